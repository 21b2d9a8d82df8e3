"""The contract of methods: parties see only their own data, and messages know their size on a wire."""
