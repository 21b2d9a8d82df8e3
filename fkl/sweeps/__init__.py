"""Many runs: Hydra's sweepers and launchers, a search, the work of a job, and the closing list of a sweep."""
