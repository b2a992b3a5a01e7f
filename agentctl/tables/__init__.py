"""TOML tables that a blueprint and the user's config may both hold, and what binds their keys."""
