"""Conditions: what a network does to messages and parties, the same for every method.

A condition is a wrapper: put around a method it is a method again, so the simulation, checkpoints and the conformance
suite need not know of it.
"""

from fkl.conditions.wrapped import OnMessages, Wrapped, wrap

__all__ = ["OnMessages", "Wrapped", "wrap"]
