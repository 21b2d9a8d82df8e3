"""The methods: one file for each, in the order of the paper's equations.

`federated` has a server and clients, `local_training` methods whose clients take several steps, `decentralized` agents
on a graph, `online` a single learner, `vertical` parties with different features, `parsimonious` functions with few
kernels. Begin with `federated/pof_mkl.py`; `fkl show pof_mkl` prints it.
"""
