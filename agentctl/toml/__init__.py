"""TOML as a person wrote it: plain values, and the line and column of every key and value."""
