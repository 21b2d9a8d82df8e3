"""Data sets: found, fetched, read, normalised and split among clients."""
