"""The methods, one file each, in the order of their paper's equations."""
