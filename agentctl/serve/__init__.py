"""Runs for other programs: each run as any other, its questions put to the client that started it."""
