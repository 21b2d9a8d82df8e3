"""Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model Selection with Decentralized Data, 2024."""

from functools import partial

from fkl.papers import script_output

table = partial(script_output.script_table, __file__)
