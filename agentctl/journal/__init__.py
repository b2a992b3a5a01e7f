"""The ordered record of commits, the only source of truth: append, read, replay; where runs live.

A commit is on disk when `append` returns, whole or not at all. One writer a thread, by lease,
across processes.
"""
