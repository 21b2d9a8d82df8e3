"""One run, from its configuration to a folder of results."""
