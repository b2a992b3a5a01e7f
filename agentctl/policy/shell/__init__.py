"""A command line in, its effects out, or 'cannot tell'. Never raises, never hangs."""
