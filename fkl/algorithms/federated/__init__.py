"""Federated methods: a server and K clients, most of them online with one sample per client and round."""
