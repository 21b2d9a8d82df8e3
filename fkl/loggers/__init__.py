"""Loggers: who is told of a run while it goes on, and of what it left behind; see docs/loggers.md."""
