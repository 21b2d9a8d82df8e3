"""Studies: methods tuned and judged fairly, and what may be said of them. The statistics are here."""
