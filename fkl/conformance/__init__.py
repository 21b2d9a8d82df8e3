"""Promises that every algorithm keeps: what it may see, send and draw.

`promises` has all of them, and `Conformance`, which checks them in a small run; `isolated` separates the parties;
`by_hand` makes the arguments of a unit test. Begin with `promises`, or with `python -m fkl.conformance algo=NAME`.
"""

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.by_hand import Round, round_by_hand
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject, PartyProcess
from fkl.conformance.promises import PROMISES, Conformance, quick_overrides, quick_run

__all__ = [
    "PROMISES",
    "BrokenPromiseError",
    "Conformance",
    "PartyObject",
    "PartyProcess",
    "Round",
    "quick_overrides",
    "quick_run",
    "require_parties_agree",
    "round_by_hand",
]
