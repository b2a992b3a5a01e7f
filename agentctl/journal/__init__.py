"""The ordered record of commits, the only source of truth; one writer a thread."""
