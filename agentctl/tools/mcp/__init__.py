"""Tools of MCP servers: started when a run needs them, named `server__tool`, gone with the run.

The SDK is imported in `wire/` alone, which is loaded when the first server is started.
"""
