"""Results of runs: metrics, tidy tables, folders, and finding finished runs."""
