"""Do it: the only code that touches the machine for a model."""
