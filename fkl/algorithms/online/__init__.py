"""One learner on a stream: online multi-kernel learning, exact, in random features, and with few kernels a round."""
