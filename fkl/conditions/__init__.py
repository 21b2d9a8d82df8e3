"""Conditions: effects of a network on messages and parties, the same for every method.

A condition is a wrapper: a wrapped method is again a method, so the simulation, checkpoints and the conformance suite
need no special cases.
"""

from fkl.conditions.wrapped import OnMessages, wrap

__all__ = ["OnMessages", "wrap"]
