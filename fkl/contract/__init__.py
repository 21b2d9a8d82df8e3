"""The contract of methods: parties that see only what they hold, and messages that know what they are on a wire."""
