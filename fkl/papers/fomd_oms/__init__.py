"""Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model Selection with Decentralized Data, 2024."""

from functools import partial

from fkl.papers.tables import table_beside_script

table = partial(table_beside_script, __file__)
