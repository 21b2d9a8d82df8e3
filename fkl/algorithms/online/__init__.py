"""A single learner on a stream: multi-kernel learning, exact, in random features, or with few kernels a round."""
