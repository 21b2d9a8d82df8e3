"""Who plays the rounds of a run: this process, a device, several processes, or real sites."""
