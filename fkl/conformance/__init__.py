"""Promises of every algorithm, in addition to its numbers; see `fkl.conformance.promises`."""

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.by_hand import Round, round_by_hand
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject, PartyProcess
from fkl.conformance.promises import PROMISES, Conformance, scenario, small

__all__ = [
    "PROMISES",
    "BrokenPromiseError",
    "Conformance",
    "PartyObject",
    "PartyProcess",
    "Round",
    "require_parties_agree",
    "round_by_hand",
    "scenario",
    "small",
]
