"""Differences of methods and their verdicts: arrays in, verdicts out; no file and no run is read here."""
