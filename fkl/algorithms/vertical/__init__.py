"""Methods for samples whose features are held by different parties."""
