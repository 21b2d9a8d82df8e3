"""Many runs: Hydra's sweepers and launchers, a search, what a job does, and the list that closes a sweep."""
