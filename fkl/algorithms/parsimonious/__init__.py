"""Federated classification with parsimonious functions in RKHS: agents send their relevant samples once."""
