"""Online federated methods: one server, K clients, one sample a client and round."""
