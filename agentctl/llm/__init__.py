"""Model services: one module a wire protocol, one streaming path."""
