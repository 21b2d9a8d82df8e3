"""The methods: one file for each, in the order of the paper's equations.

`federated` has methods with a server and clients, `local_training` methods whose clients take several steps,
`decentralized` agents on a graph, `online` single learners, `vertical` parties with different features, `parsimonious`
functions with few kernels. Start with `federated/pof_mkl.py`; `fkl show pof_mkl` prints it.
"""
