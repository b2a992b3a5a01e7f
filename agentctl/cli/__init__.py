"""The command line; wiring.py is the only place that builds concrete classes."""
