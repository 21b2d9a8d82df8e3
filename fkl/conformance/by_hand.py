"""Arguments of a method's functions in one round, for a unit test against numbers that you computed by hand."""

from dataclasses import dataclass

import numpy as np

from fkl.basics.random_streams import Streams
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.kernels import Dictionary


@dataclass(frozen=True)
class Round:
    """Arguments of the server and the clients of a `Federated` method in one round.

    Parameters
    ----------
    common : Common
        Has a bank of N kernels with P = 2 D parameters each.
    samples : Samples
        x (K, d), y (K,) and present (K,).
    turn : Turn
        Turn of the clients.
    share : (K,) float64
        Each client's weight in a mean over the present clients.
    """

    common: Common
    samples: Samples
    turn: Turn
    share: np.ndarray


def round_by_hand(
    clients: int = 3,
    features: int = 2,
    kernels: int = 2,
    D: int = 4,
    replicates: int = 1,
    absent: tuple[int, ...] = (),
    t: int = 0,
    rounds: int = 10,
    seed: int = 0,
) -> Round:
    """Make the arguments of a method's functions in one round, with samples from a standard normal distribution.

    Parameters
    ----------
    clients, features, kernels, D, replicates : int
        K, d, N, random features of each kernel, R.
    absent : tuple of int
        Indices of the clients that do not take part.
    t, rounds : int
        Index of the round, and number of rounds.
    seed : int

    Returns
    -------
    Round
        Arrays are float64. To use your own samples, call `dataclasses.replace`.

    Examples
    --------
    >>> from fkl.algorithms.federated.descent import OfmklAvg
    >>> from fkl.conformance import round_by_hand
    >>> method, one = OfmklAvg(eta=0.1), round_by_hand(clients=3, replicates=2)
    >>> server, clients = method.start(one.common, 3)
    >>> down = method.broadcast(one.common, server, one.turn)
    >>> clients, up, outcome = method.client(one.common, clients, down, one.samples, one.turn)
    >>> outcome.y_hat.shape  # (R, K)
    (2, 3)
    """
    numbers = np.random.default_rng(seed)
    streams = Streams(seed, tuple(range(replicates)))
    dictionary = Dictionary("rbf", kernels, 0, 0.5, 2.0, "deviation", D)
    present = ~np.isin(np.arange(clients), absent)
    samples = Samples(numbers.standard_normal((clients, features)), numbers.standard_normal(clients), present)
    turn = Turn(t, 0, streams, range(clients), clients_present=int(present.sum()))
    common = Common(dictionary, features, rounds, streams, "float64", "numpy", clients)
    return Round(common, samples, turn, present / present.sum())
