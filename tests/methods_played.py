"""What several files ask of each method's small run, played once in a process of the tests."""

from functools import cache

from fkl.conformance import Conformance


@cache
def conformance(*overrides: str) -> Conformance:
    """One scenario, whose traces and tables all promises share."""
    return Conformance.from_overrides(*overrides)
