"""Compare parties on their own with all parties at once, whatever family their method is of."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fkl.algorithms.online.learner import Learner
from fkl.basics.errors import BrokenPromiseError
from fkl.conformance import isolated_graph, isolated_star
from fkl.conformance.isolated_vertical import require_actors_agree
from fkl.conformance.party_process import Apart
from fkl.conformance.played import play_together, require_equal
from fkl.contract.graph import Decentralized
from fkl.contract.parties import VerticalMethod
from fkl.contract.star import Federated
from fkl.contract.world import World


def require_parties_agree(method: Any, world: Callable[[], World], party: Apart) -> None:
    """Compare parties on their own with all of them at once: what they show, and the bytes they send.

    Parameters
    ----------
    method : Federated, Decentralized, VerticalMethod or Learner
        Of a `Learner` there is one client and nobody to tell: nothing is compared.
    world : callable
        Makes worlds of one replicate.
    party : PartyObject or PartyProcess

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        Names the party, the round, and what differs.
    """
    family = getattr(method, "innermost", method)
    if isinstance(family, VerticalMethod):
        require_actors_agree(method, world, party)
    elif isinstance(family, Federated):
        here, all_at_once = world(), world()
        expected = play_together(method, all_at_once, isolated_star.shown_by(family, all_at_once))
        require_equal(expected, partial(isolated_star.play_apart, method, family, here, party), here, party, "client")
    elif isinstance(family, Decentralized):
        here = world()
        expected = play_together(method, world(), isolated_graph.shown_by_agents)
        require_equal(expected, partial(isolated_graph.play_apart, method, here, party), here, party, "agent")
    elif not isinstance(family, Learner):
        families = "one of fkl.contract's families, or a Learner"
        raise BrokenPromiseError(f"{method.label} is not written as parties that exchange messages: {families}")
