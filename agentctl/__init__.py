"""agentctl runs LLM agents from TOML blueprints: judged, resumable, explained."""

__version__ = "0.1.0"
