"""Loggers: they receive the metrics of a run while it runs, and its files at the end; see docs/loggers.md."""
