"""From the words of a command line, and a user's YAML files, to a configuration: Hydra's work, with limits."""
