"""Federated classification with parsimonious functions in RKHS: agents send the samples that matter, once."""
