"""What every algorithm promises besides its numbers; see `fkl.conformance.promises`."""

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject, PartyProcess
from fkl.conformance.promises import PROMISES, Conformance, scenario, small

__all__ = [
    "PROMISES",
    "BrokenPromiseError",
    "Conformance",
    "PartyObject",
    "PartyProcess",
    "require_parties_agree",
    "scenario",
    "small",
]
