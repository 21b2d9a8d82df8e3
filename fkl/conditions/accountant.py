"""Privacy accounting: epsilon of Gaussian mechanisms, always computed by dp-accounting."""

from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import install_hint

INSTALLED = find_spec("dp_accounting") is not None
"""Whether dp-accounting is installed; this does not import it, because the import takes seconds."""
COMPOSED = 40
"""Largest number of different counts of mechanisms for which epsilon with drawn clients is computed."""
LOSS_STEP = 1e-3
"""Grid step of privacy losses, which are rounded up; a tenth of it changes epsilon by less than 1e-4 of its size."""
MISSING = f"no epsilon is computed, because dp-accounting is missing: {install_hint('privacy')}"


def gaussian_epsilons(noise: float, times: NDArray[np.integer], delta: float) -> NDArray[np.float64]:
    """Epsilon of a sequence of Gaussian mechanisms, for several lengths of the sequence.

    Each mechanism may depend on the outputs of earlier ones. n of them with noise multiplier sigma reveal as much as
    one with sigma / sqrt(n) (Dong, Roth and Su, Gaussian Differential Privacy, 2022, corollary 3.3), whose epsilon for
    delta is exact: Balle and Wang, Improving the Gaussian Mechanism for Differential Privacy (2018), theorem 8.

    Parameters
    ----------
    noise : float
        Sigma > 0, the standard deviation divided by the sensitivity.
    times : int array
        Numbers of mechanisms; for 0, epsilon is 0.
    delta : float

    Returns
    -------
    Epsilon, in the shape of `times`.

    Raises
    ------
    ImportError
        If dp-accounting is not installed.
    """
    # Many rounds have the same count, and each different count is computed once
    counts, place = np.unique(times, return_inverse=True)
    epsilon_of_counts = np.array([_epsilon_of_count(noise, int(count), delta) for count in counts])
    return epsilon_of_counts[place].reshape(times.shape)


@cache  # the same for every chunk of replicates
def _epsilon_of_count(noise: float, times: int, delta: float) -> float:
    from dp_accounting import get_epsilon_gaussian

    return float(get_epsilon_gaussian(noise / np.sqrt(times), delta)) if times else 0.0


def sampled_epsilons(
    noise: float, probability: float, times: NDArray[np.integer], delta: float, replaced: bool
) -> NDArray[np.float64]:
    """Upper bounds of epsilon for sequences of Gaussian mechanisms in which a client takes part by chance, unseen.

    They are computed from privacy loss distributions: Koskela, Jälkö and Honkela, Computing Tight Differential Privacy
    Guarantees Using FFT (2020). Only some lengths are composed, because each takes time; other lengths get the epsilon
    of the next larger one.

    Parameters
    ----------
    noise, times, delta : see `gaussian_epsilons`
    probability : float
        Probability of taking part in each mechanism, independently of everything else.
    replaced : bool
        Whether neighbouring data sets replace a message by any other message; otherwise they omit it.
    """
    # Exact values at up to `COMPOSED` counts; a count between two of them takes that of the larger, which is an upper
    # bound
    steps = np.unique(np.append(np.geomspace(1, times.max(), COMPOSED).astype(int), times.max()))
    told = np.array([_sampled_epsilon(noise, probability, int(count), delta, replaced) for count in steps])
    return np.where(times > 0, told[np.searchsorted(steps, times)], 0.0)


@cache
def _sampled_epsilon(noise: float, probability: float, times: int, delta: float, replaced: bool) -> float:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    relation = NeighboringRelation.REPLACE_ONE if replaced else NeighboringRelation.REPLACE_SPECIAL
    distribution = privacy_loss_distribution.from_gaussian_mechanism(
        noise, value_discretization_interval=LOSS_STEP, sampling_prob=probability, neighboring_relation=relation
    )
    return float(distribution.self_compose(times).get_epsilon_for_delta(delta))


def epsilon_of(mu: float, delta: float) -> float:
    """Epsilon of one Gaussian mechanism with a sensitivity of mu standard deviations; 0 for mu = 0."""
    from dp_accounting import get_epsilon_gaussian

    return float(get_epsilon_gaussian(1 / mu, delta)) if 0 < mu < np.inf else mu
