"""Methods for samples whose features lie with different parties."""
