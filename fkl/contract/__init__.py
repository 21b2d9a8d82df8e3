"""The contract of methods: parties see only what they hold, and messages know their own size on a wire."""
