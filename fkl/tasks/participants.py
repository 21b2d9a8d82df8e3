"""Clients that take part in each replicate of a run, and whether they differ between replicates."""

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, key_prefix, require
from fkl.basics.random_streams import Role, Streams
from fkl.config import Run


def differs_by_replicate(run: Run) -> bool:
    """Whether the clients that take part, or answer in time, differ by replicate."""
    return "participation" in run.conditions or getattr(run.network, "timed", False)


def present_in_replicate(run: Run, present: NDArray[np.bool_], replicate: int) -> NDArray[np.bool_]:
    """The present clients, (T, K), that take part in a replicate.

    Raises
    ------
    fkl.basics.errors.FklError
        If no client takes part in any round.
    """
    participation = run.conditions.get("participation")
    if participation is None:
        return present
    [generator] = Streams(run.settings.seed, (replicate,)).generators(Role.PARTICIPATION)
    with key_prefix("participation"):
        taking_part: NDArray[np.bool_] = present & participation.present(present, generator)
    if not taking_part.any():
        raise FklError(f"participation: no client takes part in any round of replicate {replicate}")
    return taking_part


def require_rounds(run: Run, of_rounds: bool) -> None:
    """Refuse participation and deadlines for a method in which no client can miss a round.

    Parameters
    ----------
    run : Run
    of_rounds : bool
        Whether the method's task has rounds that clients can miss.
    """
    method = run.algo
    several = of_rounds and not (getattr(method, "alone", False) or getattr(method, "in_turn", False))
    allowed = f"null for {method.label}, whose rounds no client can miss"
    given = type(run.conditions.get("participation")).__name__
    require("participation" not in run.conditions or several, "participation", given, allowed)
    for key in ("compute_s", "link_spread", "deadline_s"):
        value = getattr(run.network, key, None)
        words = f"null or 0 for {method.label}, whose rounds wait for no clients"
        require(not value or several, f"network.{key}", value, words)
    deadline, compute = (getattr(run.network, key, None) for key in ("deadline_s", "compute_s"))
    fits = deadline is None or compute is not None or not getattr(method, "on_a_graph", False)
    words = f"null without compute_s for {method.label}, whose agents it gives time to compute"
    require(fits, "network.deadline_s", deadline, words)
