"""Random-feature banks: all replicates and kernels of a dictionary as one array object.

`FeatureBank` (`engine=numpy`) is the readable reference in numpy; `CompiledBank` (`engine=numba`) does the same
with the loops of `compiled`. Both work in float32 and in float64.
Algorithms call only the methods that both share, and use array functions of `bank.xp`. An argument marked as
overwritten must not be read afterwards, because the result may be in its memory.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, is_traced
from fkl.basics.pointwise import SQUARED, PointwiseLoss
from fkl.kernels.threads import in_parts
from fkl.kernels.threads import share_work as divide

Stepped = tuple[NDArray[np.float64], NDArray[np.float64], Array]
"""Predictions, |theta|^2, and theta after the step."""
CLIENTS_A_SUM = 20
"""Number of clients whose features take as long as the rest of a sum's work."""
DOUBLE: np.dtype[np.floating] = np.dtype(np.float64)


@dataclass(frozen=True)
class FeatureBank:
    """z_i(x) for R replicates and N kernels (POF-MKL, eq. 4).

    Parameters
    ----------
    rho : (R, N or 1, d, D)
        Frequencies; a second axis of length 1 is one draw shared by all kernels.
    scale : (N,)
        Factor of each kernel's frequencies (1 unless the draw is shared).
    phase : (R, N or 1, D) or (R, N or 1, 0)
        Empty for pairs, z = D^-1/2 [sin(rho'x), cos(rho'x)]; else z = (2/D)^1/2 cos(rho'x + phase).
    narrow : int
        Number of leading kernels whose angles are precise enough in float32.
    precision : dtype
        Precision of features, parameters and sums; angles may be float64 even if this is float32.
    """

    rho: Array
    scale: Array
    phase: Array
    narrow: int = 0
    precision: np.dtype[np.floating] = DOUBLE

    xp: ClassVar[ModuleType] = np
    """Namespace of functions of the bank's arrays."""

    @property
    def replicates(self) -> int:
        """R."""
        return self.rho.shape[0]

    @property
    def kernels(self) -> int:
        """N."""
        return self.scale.shape[0]

    @property
    def width(self) -> int:
        """Length of z_i(x): 2D for pairs, D for the cosine map."""
        return self.rho.shape[-1] * self._map_count

    @property
    def _map_count(self) -> int:
        return 1 if self.phase.size else 2

    @property
    def norm(self) -> float:
        """Factor of the feature map: D^-1/2 for pairs, (2/D)^1/2 for the cosine map."""
        return float(np.sqrt((2 if self.phase.size else 1) / self.rho.shape[-1]))

    def features(self, x: Array) -> Array:
        """z_i(x_k) of shape (R, N, K, width)."""
        angle = np.matmul(x.astype(self.rho.dtype), self.rho) * self.scale[:, None, None]
        if self.phase.size:
            return self.norm * np.cos(angle + self.phase[:, :, None, :])
        return self.norm * np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)

    def predict(self, x: Array, theta: Array) -> NDArray[np.float64]:
        """theta_i' z_i(x_k) for x (K, d) and theta (R, N, width): shape (R, K, N)."""
        f = np.matmul(self.features(x), theta.astype(self.precision)[..., None])[..., 0]
        return _clients_first(f)

    def squared_norms(self, x: Array) -> NDArray[np.float64]:
        """|z_i(x_k)|^2 for x (K, d): shape (R, K, N).

        For pairs it is 1, since sin^2 + cos^2 = 1. For the cosine map it is (2/D) sum_j cos^2(a_j) = 1 + (1/D) sum_j
        cos(2 a_j): the map of doubled angles gives this sum as a prediction with constant parameters.
        """
        if not self.phase.size:
            return np.ones((self.replicates, len(x), self.kernels))
        twice = replace(self, scale=2 * self.scale, phase=2 * self.phase)
        even = np.full((self.replicates, self.kernels, self.width), 1 / (self.norm * self.width))
        return 1 + twice.predict(x, even)

    def accumulate(self, x: Array, update: Array, share: Array | None = None) -> NDArray[np.float64]:
        """sum_k share_k update[r, k, i] z_i(x_k) for x (K, d), update (R, K, N) and share (K,): shape (R, N, width).

        Without `share_work`, every client has weight 1.
        """
        if share is not None:
            update = update * share[:, None]
        weight = update.astype(self.precision).swapaxes(1, 2)[:, :, None, :]
        return np.matmul(weight, self.features(x))[:, :, 0].astype(np.float64)

    def descend(
        self,
        x: Array,
        y: Array,
        share: Array,
        theta: Array,
        step: float | Array,
        lam: float,
        loss: PointwiseLoss = SQUARED,
    ) -> Stepped:
        """Take a gradient step on l(theta'z, y) + lam |theta|^2 for each client's own copy of each kernel.

        Parameters
        ----------
        x : (K, d)
        y, share : (K,)
            Clients with share 0 are absent and keep their copy.
        theta : (R, N, K, width), in the bank's precision
            Overwritten.
        step : float or (R, K, N)
            One step size for all, or one for each client and kernel.
        lam : float
        loss : PointwiseLoss
            l.

        Returns
        -------
        f, squared_norm : (R, K, N) float64
            Predictions and |theta|^2 before the step.
        theta : (R, N, K, width)
            Parameters after the step.
        """
        # One feature vector z and one theta per replicate, kernel and client: (R, N, K, P)
        z = self.features(x)
        f = (z * theta).sum(-1)
        gradient = loss.derivative(f, y)[..., None] * z + 2 * lam * theta
        squared_norm = (theta**2).sum(-1)
        # The step size may differ by replicate, client and kernel; absent clients have share 0 and do not move
        steps = np.broadcast_to(step, (self.replicates, len(x), self.kernels)).swapaxes(1, 2)[..., None]
        theta -= steps * (share > 0)[:, None] * gradient
        return _clients_first(f), _clients_first(squared_norm), theta

    def follow(
        self, x: Array, y: Array, eta: Array, lam: float, theta: Array, loss: PointwiseLoss = SQUARED
    ) -> Stepped:
        """Let every kernel learn from one stream: predict x_b, see y_b, take a gradient step, and so on.

        theta_i <- theta_i - eta_b (l'(theta_i'z_i(x_b), y_b) z_i(x_b) + 2 lam theta_i)

        Parameters
        ----------
        x : (B, d)
        y, eta : (B,)
        lam : float
        theta : (R, N, width), in the bank's precision
            Overwritten.
        loss : PointwiseLoss
            l.

        Returns
        -------
        f, squared_norm : (R, B, N) float64
            Predictions and |theta_i|^2, both before their round's step.
        theta : (R, N, width)
            After all steps.
        """
        f = np.empty((self.replicates, len(x), self.kernels))
        squared_norm = np.empty_like(f)
        # Rounds one after another, because theta changes in each; the features of all rounds are computed at once
        for b, z in enumerate(np.moveaxis(self.features(x), 2, 0)):
            f[:, b], squared_norm[:, b] = (theta * z).sum(-1), (theta**2).sum(-1)
            theta -= eta[b] * (loss.derivative(f[:, b], y[b])[..., None] * z + 2 * lam * theta)
        return f, squared_norm, theta

    def moments(
        self, x: Array, y: Array, weight: Array, chosen: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Second moments of features and targets, sum_b weight_b z z' and sum_b weight_b y_b z, of weights >= 0.

        Parameters
        ----------
        x : (R or 1, B, d)
            Samples of each replicate, or of all.
        y, weight : (R or 1, B)
        chosen : (R, N) bool or None
            Kernels whose moments are needed; moments of the others are 0. None for all.

        Returns
        -------
        gram : (R, N, P, P) float64
        pull : (R, N, P) float64
        """
        # One replicate at a time, since its samples may be its own; sums in float64
        banks = [replace(self, rho=self.rho[r : r + 1], phase=self.phase[r : r + 1]) for r in range(self.replicates)]
        z = np.stack([bank.features(x[r % len(x)])[0] for r, bank in enumerate(banks)]).astype(np.float64)
        # Both factors get sqrt(weight), so gram stays exactly symmetric
        root = np.sqrt(weight)[:, None, :, None]
        z, y = root * z, root * y[:, None, :, None]
        # Kernels that were not chosen get moments 0
        if chosen is not None:
            z = z * chosen[:, :, None, None]
        return np.matmul(z.swapaxes(2, 3), z), np.matmul(z.swapaxes(2, 3), y)[..., 0]

    def gaussian(self, x: Array, theta: Array, root: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """theta_i'z_i(x_k) and |root_i z_i(x_k)|^2 for x (K, d), theta (R, N, P), root (R, N, P, P): (R, K, N) both."""
        z = self.features(x).astype(np.float64)
        mean = np.matmul(z, theta[..., None])[..., 0]
        return _clients_first(mean), _clients_first((np.matmul(z, root.swapaxes(2, 3)) ** 2).sum(axis=-1))

    def posterior(
        self, gram: Array, pull: Array, noise: Array
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Inverse root, mean and log determinant of A = gram + noise I.

        If a pivot of A is at most noise / 2, gram has negative eigenvalues, and these are set to 0.

        Parameters
        ----------
        gram : (R, N, P, P)
            Symmetric.
        pull : (R, N, P)
        noise : (R, N)
            > 0.

        Returns
        -------
        root : (R, N, P, P) float64
            Lower triangular, root'root = A^-1.
        theta : (R, N, P) float64
            A^-1 pull.
        logdet : (R, N) float64
            log det A.
        """
        # A pivot of at most noise / 2 shows that rounding has made an eigenvalue of gram negative
        ridge = noise[..., None, None] * np.eye(gram.shape[-1])
        low = _least_pivots(gram + ridge) <= 0.5 * noise
        gram = np.where(low[..., None, None], without_negative(gram), gram)
        # A = L L', root = L^-1, so the mean is A^-1 pull = root'(root pull), and log det A = 2 sum log L_jj
        factor = np.linalg.cholesky(gram + ridge)
        root = np.tril(np.linalg.inv(factor))
        along = np.matmul(root, pull[..., None])
        logdet = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        return root, np.matmul(root.swapaxes(-1, -2), along)[..., 0], logdet

    def put(self, theta: Array, index: tuple[Any, ...], values: Array) -> Array:
        """`theta` with new values at an index; it is overwritten."""
        theta[index] = values
        return theta

    def split(self, theta: Array) -> Array:
        """View (..., width) as (..., maps, D), with the sine and cosine parts on separate rows."""
        return theta.reshape(*theta.shape[:-1], self._map_count, -1)

    @cached_property
    def draws(self) -> tuple[Array, Array]:
        """Frequencies (R, narrow, d, D) in float32 and (R, N - narrow, d, D) in float64, scaled for each kernel."""
        omega = self.rho * self.scale[:, None, None]
        narrow = np.ascontiguousarray(omega[:, : self.narrow], np.float32)
        return narrow, np.ascontiguousarray(omega[:, self.narrow :], np.float64)

    @cached_property
    def phases(self) -> Array:
        """Phases (R, N, D or 0), repeated where the kernels share one draw."""
        return np.repeat(self.phase, self.kernels // self.phase.shape[1], axis=1)

    def phases_like(self, kind: Any) -> Array:
        """The phases, or an empty array of the same type, so loops are compiled for only one type."""
        return self.phases if self.phases.size else self.phases.astype(kind)


def without_negative(gram: Array) -> Array:
    """The symmetric matrices (..., P, P) with negative eigenvalues set to 0."""
    xp = array_namespace(gram)
    values, vectors = symmetric_eigen(gram)
    return xp.matmul(vectors * xp.maximum(values, 0)[..., None, :], vectors.swapaxes(-1, -2))


def _least_pivots(matrices: Array) -> NDArray[np.float64]:
    """The smallest Cholesky pivot of each symmetric matrix (..., P, P); 0 if a pivot is not positive."""
    from scipy.linalg.lapack import dpotrf

    factors = (dpotrf(one, lower=True) for one in matrices.reshape(-1, *matrices.shape[-2:]))
    least = [0.0 if failed else np.diagonal(factor).min() ** 2 for factor, failed in factors]
    return np.array(least).reshape(matrices.shape[:-2])


def symmetric_eigen(matrices: Array) -> tuple[Array, Array]:
    """Eigenvalues (..., P), ascending, and eigenvectors (..., P, P) of symmetric matrices (..., P, P), in threads."""
    # Arrays that JAX traces have no threads of ours
    if is_traced(matrices):
        values, vectors = array_namespace(matrices).linalg.eigh(matrices)
        return values, vectors
    # Divide the matrices among threads
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    values, vectors = np.empty(flat.shape[:-1]), np.empty(flat.shape)

    def part(begin: int, end: int) -> None:
        values[begin:end], vectors[begin:end] = np.linalg.eigh(flat[begin:end])

    in_parts(part, len(flat), flat.size * flat.shape[-1])
    return values.reshape(matrices.shape[:-1]), vectors.reshape(matrices.shape)


def _clients_first(told: Array) -> NDArray[np.float64]:
    """From (R, N, K) to (R, K, N)."""
    return np.ascontiguousarray(told.swapaxes(1, 2), np.float64)


@dataclass(frozen=True)
class CompiledBank(FeatureBank):
    """A feature bank with BLAS products and compiled loops."""

    def predict(self, x: Array, theta: Array) -> NDArray[np.float64]:
        """theta_i' z_i(x_k) of all replicates, (R, K, N)."""
        from fkl.kernels import compiled

        out = np.empty((self.replicates, x.shape[0], self.kernels))
        rest = read_only(self.split(np.ascontiguousarray(theta, self.precision))), self.norm, out
        runs, elements = -(-self.kernels // compiled.KERNEL_RUN), out.size * self.rho.shape[-1]
        divide(compiled.predict_kernels, self.replicates * runs, elements, *self._with_usual(x), *rest)
        return out

    def accumulate(self, x: Array, update: Array, share: Array | None = None) -> NDArray[np.float64]:
        """Weighted sums of features, (R, N, P); the work is proportional to the number of non-zero updates."""
        from fkl.kernels import compiled

        # (R, N, P) for the sums; every pair of replicate and kernel is a task of its own
        out = np.empty((self.replicates, self.kernels, self.width))
        weight = np.ones(len(x)) if share is None else np.ascontiguousarray(share, np.float64)
        updates, like = read_only(np.ascontiguousarray(update)), np.empty(0, self.precision)
        rest = updates, read_only(weight), self.norm, like, self.split(out)
        # The work decides how many threads are worth their start
        sums = self.replicates * self.kernels
        elements = (np.count_nonzero(update) + CLIENTS_A_SUM * sums) * self.rho.shape[-1]
        divide(compiled.accumulate_gradients, sums, elements, *self._with_usual(x), *rest)
        return out

    def descend(
        self,
        x: Array,
        y: Array,
        share: Array,
        theta: Array,
        step: float | Array,
        lam: float,
        loss: PointwiseLoss = SQUARED,
    ) -> Stepped:
        """Take a gradient step for each client's own copy of each kernel."""
        from fkl.kernels import compiled

        # Predictions and squared norms before the step, (R, K, N)
        f = np.empty((self.replicates, x.shape[0], self.kernels))
        squared_norm = np.empty_like(f)
        # Wide samples that mostly repeat one value are multiplied by their few other entries only
        samples, few, *draws = self._with_usual(x)
        given = (np.ascontiguousarray(values, np.float64) for values in (y, share, np.broadcast_to(step, f.shape)))
        target, there, steps = map(read_only, given)
        own = samples, few, target, there, *draws, self.norm, steps, lam, loss, self.split(theta), f, squared_norm
        divide(compiled.descend_clients, self.replicates * self.kernels, theta.size, *own)
        return f, squared_norm, theta

    def learn_rounds(
        self, x: Array, y: Array, share: Array, weight: Array, decay: Array, theta: Array, step: float, loss: Any
    ) -> tuple[NDArray[np.float64], Array, Array]:
        """Let all kernels learn in B rounds, by the mean of weighted gradients in each; the bits are those of rounds.

        Parameters
        ----------
        x : (B, K, d)
        y, share : (B, K)
        weight : (B, R, K, N)
            Factor of each client's gradient.
        decay : (B, R, N)
            Factor of theta in the mean gradient.
        theta : (R, N, P)
        step : float
        loss : PointwiseLoss

        Returns
        -------
        f : (B, R, K, N)
            Predictions.
        thetas : (R, N, B, P)
            Theta before each round's step, rounded to the bank's precision.
        theta : (R, N, P)
            After all steps.
        """
        from fkl.kernels import compiled

        (B, K), (R, N, P) = y.shape, theta.shape
        out, theta, thetas = np.empty((R, N, B, K)), np.array(theta), np.empty((R, N, B, P))
        samples, *draws = self._compiled_operands(x)
        whole = same_product(samples.shape, draws[0].shape[-1], samples.dtype)
        given = (y, share, weight.transpose(1, 3, 0, 2), decay.transpose(1, 2, 0))
        targets, shares, *factors = (read_only(np.ascontiguousarray(values, np.float64)) for values in given)
        like = np.empty(0, self.precision)
        rest = self.norm, *factors, step, loss, whole, like, self.split(theta), out, self.split(thetas)
        divide(compiled.learn_rounds, R * N, out.size * self.rho.shape[-1], samples, targets, shares, *draws, *rest)
        return np.ascontiguousarray(out.transpose(2, 0, 3, 1)), thetas, theta

    def follow(
        self, x: Array, y: Array, eta: Array, lam: float, theta: Array, loss: PointwiseLoss = SQUARED
    ) -> Stepped:
        """Let every kernel learn from one stream: predict, see the target, take a gradient step."""
        from fkl.kernels import compiled

        f = np.empty((self.replicates, len(x), self.kernels))
        squared_norm = np.empty_like(f)
        # The compiled loop needs contiguous float64
        targets, rates = (read_only(np.ascontiguousarray(values, np.float64)) for values in (y, eta))
        rest = self.norm, targets, rates, lam, loss, self.split(theta), f, squared_norm
        # Kernels with float32 angles and those with float64 angles are two calls, because their arrays have different
        # types
        for omega, first in zip(self.draws, (0, self.narrow), strict=True):
            if omega.size:
                samples, draws = (read_only(values) for values in (np.ascontiguousarray(x, omega.dtype), omega))
                own = samples, draws, first, read_only(self.phases_like(omega.dtype))
                divide(
                    compiled.follow_stream, self.replicates * omega.shape[1], f.size * self.rho.shape[-1], *own, *rest
                )
        return f, squared_norm, theta

    def moments(
        self, x: Array, y: Array, weight: Array, chosen: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Second moments of features and of features with targets, (R, N, P, P) and (R, N, P)."""
        from fkl.kernels import compiled

        # (R, N, P, P) and (R, N, P), written in place
        R, N, P = self.replicates, self.kernels, self.width
        gram, pull = np.empty((R, N, P, P)), np.empty((R, N, P))
        samples, *draws = self._compiled_operands(x)
        targets, weights = (read_only(np.ascontiguousarray(values, np.float64)) for values in (y, weight))
        # All kernels unless some were chosen
        asked, like = np.ones((R, N), np.bool_) if chosen is None else chosen, np.empty(0, self.precision)
        own = samples, targets, weights, *draws, self.norm, like, read_only(asked), gram, pull
        divide(compiled.accumulate_moments, R * N, int(np.count_nonzero(weight)) * R // len(weight) * N * P, *own)
        return gram, pull

    def gaussian(self, x: Array, theta: Array, root: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean theta_i'z_i(x_k) and spread |root_i z_i(x_k)|^2, (R, K, N) both."""
        from fkl.kernels import compiled

        mean = np.empty((self.replicates, len(x), self.kernels))
        spread = np.empty_like(mean)
        own = (read_only(np.ascontiguousarray(values, np.float64)) for values in (theta, root))
        rest = self.norm, np.empty(0, self.precision), *own, mean, spread
        divide(
            compiled.predict_gaussian,
            self.replicates * self.kernels,
            mean.size * self.width,
            *self._compiled_operands(x),
            *rest,
        )
        return mean, spread

    def posterior(
        self, gram: Array, pull: Array, noise: Array
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Inverse root, mean and log determinant of A = gram + noise I; small pivots show a negative eigenvalue."""
        from fkl.kernels import compiled

        # Contiguous float64 inputs, and arrays for root, mean and log determinant
        given = [np.ascontiguousarray(values, np.float64) for values in (gram, pull, noise)]
        out = np.empty_like(given[0]), np.empty_like(given[1]), np.empty_like(given[2])
        whole = np.empty(noise.shape, np.bool_)
        divide(compiled.factor_posterior, whole.size, gram.size * self.width, *given, *out, whole)
        # Where a pivot was too small, set negative eigenvalues to 0 and factor once more
        if not whole.all():
            given[0] = np.where(whole[..., None, None], given[0], without_negative(given[0]))
            divide(compiled.factor_posterior, whole.size, gram.size * self.width, *given, *out, whole)
        return out

    def _with_usual(self, x: Array) -> tuple[Any, ...]:
        """`_compiled_operands`, with the samples' usual values inserted after the samples."""
        from fkl.kernels import compiled

        samples, *draws = self._compiled_operands(x)
        usual = compiled.usual_values(samples)
        few = None if usual is None else compiled.Usual(*map(read_only, (*usual, self._frequency_sums)))
        return samples, few, *draws

    @cached_property
    def _frequency_sums(self) -> Array:
        """Sums of frequencies over features, (R, N or 1, D)."""
        return self.rho.sum(axis=2, dtype=np.float64).astype(self.rho.dtype)

    def _compiled_operands(self, x: Array) -> tuple[Array, Array, Array, Array]:
        return read_only(np.ascontiguousarray(x, self.rho.dtype)), *self._draws

    @cached_property
    def _draws(self) -> tuple[Array, Array, Array]:
        return read_only(self.rho), read_only(self.scale), read_only(self.phase)


@lru_cache
def same_product(shape: tuple[int, int, int], features: int, precision: np.dtype[Any]) -> bool:
    """Whether one BLAS product of samples (B, K, d) has the bits of the products of its rounds, on this processor.

    BLAS adds up rows at the end of a matrix in another order, so it depends on K; made-up numbers show it.
    """
    from scipy.linalg.blas import get_blas_funcs

    numbers = np.random.default_rng(0)
    x, rho = (numbers.normal(size=size).astype(precision) for size in (shape, (shape[2], features)))
    product = get_blas_funcs("gemm", dtype=precision)
    # In C order, as numba calls it: the transposed product of transposed factors
    parts = [product(1.0, rho.T, one.T).T for one in x]
    return np.array_equal(product(1.0, rho.T, x.reshape(-1, shape[2]).T).T, np.concatenate(parts))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view. Numba then sees one type for writeable and read-only arrays."""
    seen = array.view()
    seen.flags.writeable = False
    return seen


BANKS: dict[str, type[FeatureBank]] = {"numpy": FeatureBank, "numba": CompiledBank}
"""Banks by engine; rounds that JAX traces use `fkl.kernels.jax_bank`."""
