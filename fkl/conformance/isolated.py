"""Compare isolated parties with all parties at once, for methods of every family."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fkl.algorithms.online.learners import Learner
from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.isolated_graph import require_agents_agree
from fkl.conformance.isolated_star import LoneOneShotClient, kind_of_client, require_clients_agree
from fkl.conformance.isolated_vertical import require_actors_agree
from fkl.conformance.party_process import Apart
from fkl.contract.graph import Decentralized
from fkl.contract.parties import VerticalMethod
from fkl.contract.star import Federated, OneShot
from fkl.contract.world import World


def require_parties_agree(method: Any, world: Callable[[], World], party: Apart) -> str:
    """Compare isolated parties with all of them at once: their results, and the bytes they send.

    Returns why nothing is compared, or an empty text.

    Parameters
    ----------
    method : Federated, Decentralized, VerticalMethod or Learner
    world : callable
        Makes worlds of one replicate.
    party : PartyObject or PartyProcess

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        Names the party, the round, and the difference.
    """
    kinds = type(getattr(method, "innermost", method)).__mro__
    require = next((CHECKS[kind] for kind in kinds if kind in CHECKS), None)
    if require is None:
        families = "one of fkl.contract's families, or a Learner"
        raise BrokenPromiseError(f"{method.label} is not written as parties that exchange messages: {families}")
    require(method, world, party)
    if getattr(method, "pooled", False):
        return "it has no parties"
    return "it has no server" if require is CHECKS[Learner] else ""


CHECKS: dict[type, Callable[[Any, Callable[[], World], Apart], None]] = {
    Federated: lambda method, *others: require_clients_agree(kind_of_client(method), method, *others),
    OneShot: partial(require_clients_agree, LoneOneShotClient),
    Decentralized: require_agents_agree,
    VerticalMethod: require_actors_agree,
    Learner: lambda *_: None,  # nothing to compare: there is one client, and no server
}
"""The comparison for each family of methods."""
