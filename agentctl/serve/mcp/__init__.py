"""Blueprints as MCP tools: a call is a run, what needs a person is asked through the client."""
