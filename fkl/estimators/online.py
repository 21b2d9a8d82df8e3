"""Online multi-kernel learners as regressors and classifiers: Raker, OMKL-GF and OMKR."""

from typing import Any, ClassVar

from fkl.algorithms.online.learners import Omkr, Raker
from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.basics.errors import require
from fkl.estimators.base import IncrementalClassifier, IncrementalRegressor
from fkl.estimators.stream import StreamLearner
from fkl.kernels import Dictionary

FORESEEN = 1000
"""Number of samples that is assumed for a stream of unknown length."""


class RakerRegressor(StreamLearner, IncrementalRegressor):
    """Raker: every kernel learns from every sample in random features, and the best kernels gain weight.

    The results equal those of `fkl run algo=raker` on one stream up to rounding. Scale the samples first: the step is
    suitable for features z(x) of norm 1, and the bandwidths are suitable for distances between 0.1 and 10.

    Parameters
    ----------
    kernels : fkl.kernels.Dictionary or None
        By default the 51 Gaussian and 25 Laplacian kernels of `fkl run`.
    eta : float
        The step for sample t is eta / sqrt(t), which does not depend on the length of the stream.
    lam : float
        Regularisation parameter.
    precision : {"float32", "float64"}
    random_state : int, RandomState or None
        An integer is the seed, as in `fkl run`.
    loss : {"square", "huber", "quantile"}
        As `algo.loss`, with `level` and `delta`. With "quantile" it predicts the quantile at `level`.
    level, delta : float

    Attributes
    ----------
    n_samples_seen_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from fkl.estimators import RakerRegressor
    >>> X, y = make_friedman1(400, random_state=0)
    >>> model = RakerRegressor(eta=0.5).fit(X[:200], y[:200] / 30)
    >>> model.partial_fit(X[200:300], y[200:300] / 30).n_samples_seen_
    300
    >>> model.score(X[300:], y[300:] / 30) > 0.3
    True
    """

    _kernels: ClassVar[Dictionary] = Dictionary(N=76, laplacians=25, bandwidth_convention="variance", D=50)

    def __init__(
        self,
        kernels: Dictionary | None = None,
        eta: float = 0.1,
        lam: float = 1e-3,
        precision: str = "float32",
        random_state: Any = 0,
        loss: str = "square",
        level: float = 0.5,
        delta: float = 0.1,
    ) -> None:
        self.kernels, self.eta, self.lam, self.precision, self.random_state = kernels, eta, lam, precision, random_state
        self.loss, self.level, self.delta = loss, level, delta

    def _make_method(self) -> Raker:
        return Raker(eta=self.eta, lam=self.lam, **_of_numbers(self))


class RakerClassifier(StreamLearner, IncrementalClassifier):
    """Raker for two classes; see `RakerRegressor`.

    Parameters
    ----------
    kernels, eta, lam, precision, random_state
        As in `RakerRegressor`.
    loss : {"logistic", "hinge", "least_squares"}
        Only "logistic" has `predict_proba`.

    Attributes
    ----------
    classes_ : (2,)
    n_samples_seen_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from fkl.estimators import RakerClassifier
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> RakerClassifier(eta=5.0).fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.9
    True
    """

    _kernels: ClassVar[Dictionary] = RakerRegressor._kernels

    def __init__(
        self,
        kernels: Dictionary | None = None,
        eta: float = 0.1,
        lam: float = 1e-3,
        precision: str = "float32",
        random_state: Any = 0,
        loss: str = "logistic",
    ) -> None:
        self.kernels, self.eta, self.lam, self.precision, self.random_state = kernels, eta, lam, precision, random_state
        self.loss = loss

    def _make_method(self) -> Raker:
        return Raker(eta=self.eta, lam=self.lam, loss=_of_classes(self))


class OmklGfRegressor(StreamLearner, IncrementalRegressor):
    """OMKL-GF: a few kernels predict and learn from each sample, chosen by a graph that is drawn from their weights.

    The results equal those of `fkl run algo=omkl_gf` on one stream up to rounding, if `horizon` is the length of the
    stream. Scale the samples first, as for `RakerRegressor`.

    Parameters
    ----------
    kernels, eta, lam, precision, random_state, loss, level, delta
        See `RakerRegressor`; the exploration rates are also eta / sqrt(t).
    M : int
        Largest number of kernels to which a node of the graph is connected.
    J : int
        Number of nodes of the graph.
    exploring : int
        Number of samples after which the graph is no longer drawn.
    horizon : int or None
        Number of samples for which random numbers are drawn in advance; later samples get the next numbers. By default
        1000, or `exploring` if that is larger.

    Attributes
    ----------
    n_samples_seen_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from fkl.estimators import OmklGfRegressor
    >>> X, y = make_friedman1(400, random_state=0)
    >>> model = OmklGfRegressor(eta=0.5).fit(X[:300], y[:300] / 30)
    >>> model.score(X[300:], y[300:] / 30) > 0.3
    True
    """

    _kernels: ClassVar[Dictionary] = RakerRegressor._kernels

    def __init__(
        self,
        kernels: Dictionary | None = None,
        eta: float = 0.1,
        lam: float = 1e-3,
        M: int = 10,
        J: int = 2,
        exploring: int = 300,
        horizon: int | None = None,
        precision: str = "float32",
        random_state: Any = 0,
        loss: str = "square",
        level: float = 0.5,
        delta: float = 0.1,
    ) -> None:
        self.kernels, self.eta, self.lam, self.precision, self.random_state = kernels, eta, lam, precision, random_state
        self.M, self.J, self.exploring, self.horizon = M, J, exploring, horizon
        self.loss, self.level, self.delta = loss, level, delta

    def _make_method(self) -> OmklGf:
        return OmklGf(eta=self.eta, lam=self.lam, M=self.M, J=self.J, exploring=self.exploring, **_of_numbers(self))

    def _assumed_rounds(self, samples: int) -> int:
        return _draw_horizon(self)


class OmklGfClassifier(StreamLearner, IncrementalClassifier):
    """OMKL-GF for two classes; see `OmklGfRegressor`.

    Parameters
    ----------
    kernels, eta, lam, M, J, exploring, horizon, precision, random_state
        As in `OmklGfRegressor`.
    loss : {"logistic", "hinge", "least_squares"}
        Only "logistic" has `predict_proba`.

    Attributes
    ----------
    classes_ : (2,)
    n_samples_seen_ : int
    """

    _kernels: ClassVar[Dictionary] = RakerRegressor._kernels

    def __init__(
        self,
        kernels: Dictionary | None = None,
        eta: float = 0.1,
        lam: float = 1e-3,
        M: int = 10,
        J: int = 2,
        exploring: int = 300,
        horizon: int | None = None,
        precision: str = "float32",
        random_state: Any = 0,
        loss: str = "logistic",
    ) -> None:
        self.kernels, self.eta, self.lam, self.precision, self.random_state = kernels, eta, lam, precision, random_state
        self.M, self.J, self.exploring, self.horizon, self.loss = M, J, exploring, horizon, loss

    def _make_method(self) -> OmklGf:
        loss = _of_classes(self)
        return OmklGf(eta=self.eta, lam=self.lam, M=self.M, J=self.J, exploring=self.exploring, loss=loss)

    def _assumed_rounds(self, samples: int) -> int:
        return _draw_horizon(self)


class OmkrRegressor(StreamLearner, IncrementalRegressor):
    """OMKR: exact kernels, each with one coefficient for every sample so far.

    The results equal those of `fkl run algo=omkr` on one stream up to rounding. The n-th sample needs N n kernel
    values, so all samples are stored. Nothing is random. Scale the samples first, as for `RakerRegressor`.

    Parameters
    ----------
    kernels : fkl.kernels.Dictionary or None
        By default the 76 kernels of `fkl run algo=omkr`.
    eta, precision, loss, level, delta
        See `RakerRegressor`.

    Attributes
    ----------
    n_samples_seen_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from fkl.estimators import OmkrRegressor
    >>> X, y = make_friedman1(400, random_state=0)
    >>> model = OmkrRegressor(eta=0.5).fit(X[:300], y[:300] / 30)
    >>> model.score(X[300:], y[300:] / 30) > 0.3
    True
    """

    _kernels: ClassVar[Dictionary] = Dictionary(N=76, laplacians=25, D=50, bandwidth_convention="divisor")
    _keeps: ClassVar[bool] = True

    def __init__(
        self,
        kernels: Dictionary | None = None,
        eta: float = 0.1,
        precision: str = "float32",
        loss: str = "square",
        level: float = 0.5,
        delta: float = 0.1,
    ) -> None:
        self.kernels, self.eta, self.precision = kernels, eta, precision
        self.loss, self.level, self.delta = loss, level, delta

    def _make_method(self) -> Omkr:
        return Omkr(eta=self.eta, **_of_numbers(self))


class OmkrClassifier(StreamLearner, IncrementalClassifier):
    """OMKR for two classes; see `OmkrRegressor`.

    Parameters
    ----------
    kernels, eta, precision
        As in `OmkrRegressor`.
    loss : {"logistic", "hinge", "least_squares"}
        Only "logistic" has `predict_proba`.

    Attributes
    ----------
    classes_ : (2,)
    n_samples_seen_ : int
    """

    _kernels: ClassVar[Dictionary] = OmkrRegressor._kernels
    _keeps: ClassVar[bool] = True

    def __init__(
        self,
        kernels: Dictionary | None = None,
        eta: float = 0.1,
        precision: str = "float32",
        loss: str = "logistic",
    ) -> None:
        self.kernels, self.eta, self.precision, self.loss = kernels, eta, precision, loss

    def _make_method(self) -> Omkr:
        return Omkr(eta=self.eta, loss=_of_classes(self))


def _of_numbers(model: Any) -> dict[str, Any]:
    """The keys of a regressor's loss."""
    allowed = ("square", "huber", "quantile")
    require(model.loss in allowed, "loss", model.loss, " or ".join(allowed))
    return {"loss": model.loss, "level": model.level, "delta": model.delta}


def _of_classes(model: Any) -> str:
    """A classifier's loss."""
    allowed = ("logistic", "hinge", "least_squares")
    require(model.loss in allowed, "loss", model.loss, " or ".join(allowed))
    return str(model.loss)


def _draw_horizon(model: Any) -> int:
    """Samples for which random numbers are drawn in advance."""
    if model.horizon is not None:
        require(model.horizon >= 1, "horizon", model.horizon, "an integer >= 1, or None")
        return int(model.horizon)
    return max(FORESEEN, int(model.exploring))
