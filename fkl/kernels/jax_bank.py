"""The random features of `engine=jax`: `FeatureBank` as functions that JAX can trace.

Features are computed for one tile of clients and some kernels at a time, and used at once; never are those of all
clients in memory. Matrix products have full precision, because JAX would otherwise use TF32 on a GPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve_triangular

from fkl.basics.arrays import choose_branch
from fkl.basics.pointwise import SQUARED, PointwiseLoss
from fkl.kernels import compiled as numbers
from fkl.kernels.bank import FeatureBank, without_negative
from fkl.kernels.client_tiles import in_tiles

Array = Any
"""An array of JAX."""
Stepped = tuple[Array, Array, Array]
HERE, ELSEWHERE = 2**18, 2**28
"""Numbers of angles at a time: on a CPU as many as fit in its cache, on a separate device many more."""


def sine_and_cosine(angle: Array, precision: np.dtype[np.floating]) -> tuple[Array, Array]:
    """Sine and cosine in this precision. In float32, they are the polynomials of the compiled bank; XLA's take longer.

    As in that bank, float64 angles are first reduced to one turn in float64, and large angles are computed exactly.
    """
    # XLA's own functions in float64
    if precision == np.float64:
        return jnp.sin(angle), jnp.cos(angle)
    # float32: angles up to `far` are reduced by one product, as in the compiled bank
    double = angle.dtype == np.float64
    far = abs(angle) > (numbers._FAR_DOUBLE if double else numbers._FAR)

    def near() -> tuple[Array, Array]:
        reduced = angle - numbers._TWO_PI * jnp.rint(angle * numbers._TURN) if double else angle
        return _by_polynomials(reduced.astype(precision))

    # Few angles are far, so only then are all of them computed in float64
    def exact() -> tuple[Array, Array]:
        whole, (sine, cosine) = angle.astype(np.float64), near()
        replaced = ((jnp.sin, sine), (jnp.cos, cosine))
        sine, cosine = (jnp.where(far, f(whole).astype(precision), one) for f, one in replaced)
        return sine, cosine

    return choose_branch(far.any(), exact, near)


def _by_polynomials(x: Array) -> tuple[Array, Array]:
    quadrant = jnp.rint(x * numbers._TWO_OVER_PI)
    r = ((x - quadrant * numbers._PIO2_HIGH) - quadrant * numbers._PIO2_MIDDLE) - quadrant * numbers._PIO2_LOW
    n, r2 = quadrant.astype(np.int32), r * r
    s = r + r * r2 * (numbers._S1 + r2 * (numbers._S2 + r2 * numbers._S3))
    c = numbers._ONE - numbers._HALF * r2 + r2 * r2 * (numbers._C1 + r2 * (numbers._C2 + r2 * numbers._C3))
    odd = (n & 1) != 0
    sine, cosine = jnp.where(odd, c, s), jnp.where(odd, s, c)
    return jnp.where((n & 2) != 0, -sine, sine), jnp.where(((n + 1) & 2) != 0, -cosine, cosine)


@dataclass(frozen=True)
class JaxBank(FeatureBank):
    """A feature bank for arrays that JAX traces.

    Parameters
    ----------
    at_once : int
        Approximate number of angles whose sines and cosines are in memory at a time.
    """

    at_once: int = HERE

    xp: ClassVar[ModuleType] = jnp

    def features(self, x: Array) -> Array:
        """Features z (R, N, K, P) of all clients at once, for methods whose states are as large as this."""
        angle = self._exact_product(x.astype(self.rho.dtype), self.rho) * self.scale[:, None, None]
        return jnp.concatenate(self._maps_of(angle, self.phase[:, :, None, :]), axis=-1)

    def predict(self, x: Array, theta: Array) -> Array:
        """theta_i' z_i(x_k) of all replicates, (R, K, N)."""
        by_map = self.split(theta.astype(self.precision))[..., None, :]  # (R, N, maps, 1, D), like a tile's features
        (f,) = self._each_kernel_and_tile(lambda z, theta: ((z * theta).sum(axis=(0, -1)),), x, [by_map])
        return self._by_client(f, len(x))

    def accumulate(self, x: Array, update: Array, share: Array | None = None) -> Array:
        """Sum over clients of share_k update[r, k, i] z_i(x_k), (R, N, width)."""
        weight = update if share is None else update * share[:, None]
        by_kernel = weight.astype(self.precision).swapaxes(1, 2)
        (sums,) = self._each_kernel_and_tile(
            lambda z, weight: ((weight[:, None] * z).sum(axis=-2),), x, [], [by_kernel]
        )
        added = sums.astype(np.float64).sum(axis=2)  # tile by tile, in the order of the compiled program
        return added.reshape(*added.shape[:2], -1)

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
        R, N, K, P = theta.shape
        # Steps, targets and shares by replicate and kernel, (R, N, K)
        own = jnp.broadcast_to(step, (R, K, N)).swapaxes(1, 2)
        of_all = [jnp.broadcast_to(values, (R, N, K)) for values in (y, share)]

        def work(z: Array, theta: Array, own: Array, y: Array, share: Array) -> Sequence[Array]:
            z = jnp.concatenate(list(z), axis=-1)
            f = (z * theta).sum(-1)
            gradient = loss.derivative(f, y)[:, None] * z + 2 * lam * theta
            after = theta - (own * (share > 0))[:, None] * gradient
            return f, (theta**2).sum(-1), after.astype(theta.dtype)

        # Tile by tile, so the features of all clients are never in memory at once
        f, squared_norm, after = self._each_kernel_and_tile(work, x, [], [theta, own, *of_all])
        return self._by_client(f, K), self._by_client(squared_norm, K), after.reshape(R, N, -1, P)[:, :, :K]

    def follow(
        self, x: Array, y: Array, eta: Array, lam: float, theta: Array, loss: PointwiseLoss = SQUARED
    ) -> Stepped:
        """Let every kernel learn from one stream: predict, see the target, take a gradient step."""

        # Rounds one after another, as a scan
        def step(theta: Array, seen: tuple[Array, Array, Array]) -> tuple[Array, tuple[Array, Array]]:
            z, y, eta = seen
            f = (theta * z).sum(-1)
            after = theta - eta * (loss.derivative(f, y)[..., None] * z + 2 * lam * theta)
            return after.astype(theta.dtype), (f, (theta**2).sum(-1))

        theta, shown = lax.scan(step, theta, (jnp.moveaxis(self.features(x), 2, 0), y, eta))
        f, squared_norm = (jnp.moveaxis(values, 0, 1).astype(np.float64) for values in shown)
        return f, squared_norm, theta

    def moments(self, x: Array, y: Array, weight: Array, chosen: Array | None = None) -> tuple[Array, Array]:
        """Sums of weight z z' and weight y z, tile by tile, for samples that all replicates share."""
        assert len(x) == len(y) == 1, "samples of each replicate's own"

        # Add one tile of samples to the sums
        def add(sums: tuple[Array, Array], tile: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
            x, y, weight = tile
            roots, shape = jnp.sqrt(weight), (self.replicates, self.kernels, len(y))
            # Roots that all replicates share are not copied for each kernel
            of_replicates = [] if len(roots) == 1 else [jnp.broadcast_to(roots[:, None], shape)]

            def work(z: Array, root: Array = roots[0]) -> Sequence[Array]:
                rows, y_rows = root[:, None] * self._flat_features(z), root * y
                return self._exact_product(rows.T, rows), self._exact_product(rows.T, y_rows)

            gram, pull = (of_tile[:, :, 0] for of_tile in self._each_kernel_and_tile(work, x, of_replicates))
            return (sums[0] + gram, sums[1] + pull), None

        # Start from zeros, and scan over the tiles
        shape = self.replicates, self.kernels, self.width
        nothing = jnp.zeros((*shape, self.width)), jnp.zeros(shape)
        cut = *(in_tiles(jnp.asarray(values[0]), 0) for values in (x, y)), in_tiles(jnp.asarray(weight), 1)
        (gram, pull), _ = lax.scan(add, nothing, cut)
        # Kernels that were not chosen get moments 0
        if chosen is not None:
            gram, pull = chosen[..., None, None] * gram, chosen[..., None] * pull
        return gram, pull

    def gaussian(self, x: Array, theta: Array, root: Array) -> tuple[Array, Array]:
        """Mean theta_i'z_i(x_k) and spread |root_i z_i(x_k)|^2, (R, K, N) both."""

        def work(z: Array, theta: Array, root: Array) -> Sequence[Array]:
            rows = self._flat_features(z)
            return self._exact_product(rows, theta), (self._exact_product(rows, root.T) ** 2).sum(-1)

        mean, spread = self._each_kernel_and_tile(work, x, [theta, root])
        return self._by_client(mean, len(x)), self._by_client(spread, len(x))

    def posterior(self, gram: Array, pull: Array, noise: Array) -> tuple[Array, Array, Array]:
        """Inverse root, mean and log determinant of A = gram + noise I."""
        eye = jnp.eye(gram.shape[-1])

        def factored(gram: Array) -> Array:
            return jnp.linalg.cholesky(gram + noise[..., None, None] * eye)

        # Factor A = gram + noise I; a NaN or a small pivot shows a negative eigenvalue
        factor = factored(gram)
        pivots = jnp.diagonal(factor, axis1=-2, axis2=-1) ** 2  # NaN after the first that is not positive
        whole = (pivots > 0.5 * noise[..., None]).all(axis=-1)
        # Only then compute eigenvalues, which takes far longer than a factor
        factor = choose_branch(
            whole.all(),
            lambda: factor,
            lambda: factored(jnp.where(whole[..., None, None], gram, without_negative(gram))),
        )
        # root = L^-1, so the mean is root'(root pull)
        root = solve_triangular(factor, jnp.broadcast_to(eye, factor.shape), lower=True)
        along = self._exact_product(root, pull[..., None])
        logdet = 2 * jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        return root, self._exact_product(root.swapaxes(-1, -2), along)[..., 0], logdet

    @staticmethod
    def _flat_features(z: Array) -> Array:
        """Features of a tile, (maps, tile, D), as (tile, width) in float64."""
        return jnp.concatenate(list(z), axis=-1).astype(np.float64)

    def put(self, theta: Array, index: tuple[Any, ...], values: Array) -> Array:
        """`theta` with new values at an index."""
        return theta.at[index].set(values.astype(theta.dtype))

    def _each_kernel_and_tile(
        self,
        work: Callable[..., Sequence[Array]],
        x: Array,
        of_kernels: Sequence[Array],
        of_clients: Sequence[Array] = (),
    ) -> list[Array]:
        """Results from the features of each kernel and tile of clients, (R, N, tiles, ...).

        Parameters
        ----------
        work : callable
            Function of features (maps, tile, D), the kernel's values, and the values of its clients in the tile; the
            last tile is padded with clients whose values and x are 0.
        x : (K, d)
        of_kernels : arrays (R, N, ...)
        of_clients : arrays (R, N, K, ...)
        """
        # Samples in tiles (tiles, size, d); draws (R, N or 1, d, D)
        R, N, drawn = self.replicates, self.kernels, self.rho.shape[1]
        samples, rho, phase = (
            in_tiles(jnp.asarray(x, self.rho.dtype), 0),
            jnp.asarray(self.rho),
            jnp.asarray(self.phase),
        )
        count, size = samples.shape[:2]
        # Arrays of kernels are constant over tiles; arrays of clients are cut into the same tiles
        arrays = [jnp.asarray(values).reshape(R * N, *values.shape[2:]) for values in of_kernels]
        theirs = [jnp.moveaxis(in_tiles(jnp.asarray(values), 2), 0, 2) for values in of_clients]
        theirs = [values.reshape(R * N * count, size, *values.shape[4:]) for values in theirs]

        def of_one(given: tuple[Any, Sequence[Array]]) -> tuple[Array, ...]:
            # The number of a place gives replicate, kernel and tile
            place, mine = given
            kernel, tile = place // count, place % count
            r, i = kernel // N, kernel % N
            angle = self._exact_product(samples[tile], rho[r, i % drawn]) * jnp.asarray(self.scale)[i]
            z = jnp.stack(self._maps_of(angle, phase[r, i % drawn]))
            return tuple(work(z, *(values[kernel] for values in arrays), *mine))

        # As many places at once as the memory limit for angles allows
        at_once = max(1, self.at_once // (size * self.rho.shape[-1]))
        made = lax.map(of_one, (jnp.arange(R * N * count), theirs), batch_size=min(at_once, R * N * count))
        return [values.reshape(R, N, count, *values.shape[1:]) for values in made]

    def _maps_of(self, angle: Array, phase: Array) -> list[Array]:
        """The parts of the feature map, in the bank's precision; only the cosine map uses the phase."""
        sine, cosine = sine_and_cosine(angle + phase if self.phase.size else angle, self.precision)
        return [self.norm * part for part in ((cosine,) if self.phase.size else (sine, cosine))]

    def _by_client(self, told: Array, clients: int) -> Array:
        """From (R, N, tiles, tile) to (R, K, N) in float64."""
        flat = told.reshape(*told.shape[:2], -1)[:, :, :clients]
        return flat.swapaxes(1, 2).astype(np.float64)

    @staticmethod
    def _exact_product(one: Array, other: Array) -> Array:
        return jnp.matmul(one, other, precision=lax.Precision.HIGHEST)
