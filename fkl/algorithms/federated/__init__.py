"""Online federated methods: one server, K clients, one sample per client and round."""
