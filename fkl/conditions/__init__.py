"""Conditions: effects of a network on the messages and parties of any method.

A condition is a wrapper: a wrapped method is again a method, so the simulation, checkpoints and the conformance suite
need no special cases. There are `compression`, `privacy`, `secure` sums, `aggregators`, `attacks`, `late` messages and
an `audit`. Start with `wrapped`.
"""

from fkl.conditions.wrapped import OnMessages, wrap_method

__all__ = ["OnMessages", "wrap_method"]
