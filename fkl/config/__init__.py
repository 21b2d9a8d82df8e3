"""From the words of a command line, and a user's YAML files, to a checked `Run` and its digest."""
