"""Who plays the rounds of a run: this process, from memory or from files, or a device."""
