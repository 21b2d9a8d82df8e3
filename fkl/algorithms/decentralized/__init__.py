"""Decentralized methods: agents on a graph, each with its own samples, no server."""
