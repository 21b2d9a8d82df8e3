"""Decentralized methods: agents on a graph, each with its own samples, and no server."""
