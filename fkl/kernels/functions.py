"""Learned functions as arrays, to store models and predict with them.

A method's `functions(world, state, t)` returns the functions with which it predicts in round t, one for each replicate.
A personal method has K functions for K clients; otherwise all clients share one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import combinations, pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from fkl.basics.arrays import Array
from fkl.kernels.bank import CompiledBank, FeatureBank
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.dictionary import FAMILIES, kernel_matrix

Integers = NDArray[np.integer]

VALUES_AT_A_TIME = 2**23
"""Features or kernel values in memory at once."""
LEAF = -1
Described = dict[str, tuple[str, str]]
NUMBERS: dict[str, Callable[[np.dtype[Any]], bool]] = {
    "floats": lambda dtype: dtype in (np.float32, np.float64),
    "integers": lambda dtype: dtype == np.int64,
    "truth": lambda dtype: dtype == np.bool_,
    "words": lambda dtype: dtype.kind == "U",
}


@dataclass(frozen=True)
class SavedFunction:
    """Arrays that define a function of samples."""

    kind: ClassVar[str]
    arrays: ClassVar[Described]
    """Type of each field: floats, integers, booleans or words, with a letter for each axis; d is the number of
    features."""

    @property
    def clients(self) -> int:
        """Number of clients with their own function; 1 if all share it."""
        return 1

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values at samples (n, d), for each client if they differ: (K or 1, n)."""
        raise NotImplementedError

    def in_double(self) -> Self:
        """Convert the function's numbers to float64, which allows larger samples."""
        floats = [name for name, (numbers, _) in self.arrays.items() if numbers == "floats"]
        return replace(self, **{name: getattr(self, name).astype(np.float64) for name in floats})

    def squared_norm(self) -> NDArray[np.float64] | None:
        """Squared norm in the space of the combined kernel, (K or 1,); None if the arrays do not determine it."""
        return None

    def is_function_of(self, d: int) -> bool:
        """Whether this is a valid function of d features; its arrays may come from any file."""
        sizes = {"d": d}
        for name, (numbers, axes) in self.arrays.items():
            array = getattr(self, name)
            if array.ndim != len(axes) or not NUMBERS[numbers](array.dtype):
                return False
            if any(sizes.setdefault(axis, size) != size for axis, size in zip(axes, array.shape, strict=True)):
                return False
        return self.is_consistent(d)

    def is_consistent(self, d: int) -> bool:
        """Whether the arrays are consistent, given that their axes and types are right."""
        return True


@dataclass(frozen=True)
class OnFeatures(SavedFunction):
    """f_k(x) = sum_i weights_ki theta_ki'z_i(x) + bias, on the random features z_i of a `FeatureBank`.

    Parameters
    ----------
    rho : (n, d, D)
        One draw per kernel, or n = 1 for all.
    scale : (N,)
    phase : (n, b)
        b = D for the cosine map, 0 for pairs.
    narrow : () int
        As in `FeatureBank`.
    theta : (T, N, P), in the bank's precision
        T = K if every client has its own theta, else 1.
    weights : (K, N) float64
    bias : () float64
    """

    kind: ClassVar[str] = "features"
    arrays: ClassVar[Described] = {
        "rho": ("floats", "ndD"),
        "scale": ("floats", "N"),
        "phase": ("floats", "nb"),
        "narrow": ("integers", ""),
        "theta": ("floats", "TNP"),
        "weights": ("floats", "KN"),
        "bias": ("floats", ""),
    }

    rho: Array
    scale: Array
    phase: Array
    narrow: Integers
    theta: Array
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    @classmethod
    def from_bank(cls, bank: FeatureBank, r: int, theta: Array, weights: Array, chosen: Integers | None = None) -> Self:
        """A function on one replicate's features, of all or the chosen kernels, from their theta and weights."""
        rho, scale, phase, narrow = bank.rho[r], bank.scale, bank.phase[r], bank.narrow
        if chosen is not None:
            narrow = int((chosen < narrow).sum())
            scale = scale[chosen]
            rho, phase = (rho, phase) if len(rho) == 1 else (rho[chosen], phase[chosen])
        coefficients = np.asarray(theta, bank.precision)
        return cls(rho, scale, phase, np.array(narrow), coefficients, np.asarray(weights, np.float64), np.array(0.0))

    @classmethod
    def of_replicates(cls, bank: FeatureBank, theta: Array, weights: Array) -> tuple[Self, ...]:
        """One function per replicate, of all kernels: theta (R, K or 1, N, P) and weights (R, K or 1, N)."""
        return tuple(cls.from_bank(bank, r, *both) for r, both in enumerate(zip(theta, weights, strict=True)))

    @property
    def clients(self) -> int:
        """Number of clients with their own function, K."""
        return len(self.weights)

    def is_consistent(self, d: int) -> bool:
        """Whether there is one draw per kernel or one for all, and one theta per client or one for all."""
        n, _, D = self.rho.shape
        N, P = self.theta.shape[1:]
        phases, maps = self.phase.shape[1], P // max(D, 1)
        map_fits = (phases, P) in ((D, D), (0, 2 * D)) and maps > 0
        return n in (1, N) and map_fits and len(self.theta) in (1, len(self.weights)) and 0 <= self.narrow <= N

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values at samples (n, d), for each client if they differ: (K or 1, n)."""
        bank, f = self.feature_bank(), np.empty((len(self.weights), len(x)))
        for rows in row_blocks(len(x), self.theta[0].size, VALUES_AT_A_TIME):
            for k, theta in enumerate(self.theta):
                of = slice(None) if len(self.theta) == 1 else slice(k, k + 1)
                f[of, rows] = self.weights[of] @ bank.predict(x[rows], theta[None])[0].T
        return f + self.bias

    def squared_norm(self) -> NDArray[np.float64] | None:
        """Squared norm sum_i weights_ki |theta_ki|^2 of each f_k, (K,); None if weights are not those of a mixture."""
        if self.bias != 0 or (self.weights < 0).any() or not np.allclose(self.weights.sum(axis=-1), 1):
            return None
        of_kernels = (self.theta.astype(np.float64) ** 2).sum(axis=-1)
        return (self.weights * of_kernels).sum(axis=-1)

    def feature_bank(self) -> CompiledBank:
        """The features of all kernels, of one replicate."""
        rho = np.ascontiguousarray(self.rho[None])
        return CompiledBank(rho, self.scale, self.phase[None], int(self.narrow), self.theta.dtype)


@dataclass(frozen=True)
class Gaussian(OnFeatures):
    """Predictions with variances: noise_i (1 + |root_i z_i(x)|^2) for kernel i, and that of the kernels' mixture.

    Parameters
    ----------
    rho, scale, phase, narrow, theta, weights, bias
        As in `OnFeatures`; all clients share theta, T = 1.
    root : (N, P (P + 1) / 2), in the bank's precision
        The lower triangle of each kernel's matrix, row by row.
    noise : (N,) float64
    """

    kind: ClassVar[str] = "gaussian"
    arrays: ClassVar[Described] = OnFeatures.arrays | {"root": ("floats", "NQ"), "noise": ("floats", "N")}

    root: Array
    noise: NDArray[np.float64]

    @classmethod
    def from_mean(cls, mean: OnFeatures, root: Array, noise: Array) -> Self:
        """Functions with this mean, from the roots and noises of their kernels."""
        own = {one.name: getattr(mean, one.name) for one in fields(mean)}
        return cls(**own, root=np.asarray(root, mean.theta.dtype), noise=np.asarray(noise, np.float64))

    def is_consistent(self, d: int) -> bool:
        """Whether the triangles belong to matrices over all features."""
        P = self.theta.shape[-1]
        return super().is_consistent(d) and len(self.theta) == 1 and self.root.shape[1] == P * (P + 1) // 2

    def variance(self, x: Array) -> NDArray[np.float64]:
        """Variances of the targets of samples (n, d), for each client if they differ: (K or 1, n)."""
        variances = np.empty((len(self.weights), len(x)))
        for rows, mean, variance in self._of_kernels(x):
            variances[:, rows] = self.weights @ (variance + mean**2).T - (self.weights @ mean.T) ** 2
        return variances

    def log_density(self, x: Array, y: Array) -> NDArray[np.float64]:
        """Log densities of targets (n,) of samples (n, d), for each client if they differ: (K or 1, n)."""
        densities = np.empty((len(self.weights), len(x)))
        for rows, mean, variance in self._of_kernels(x):
            log_densities = -0.5 * (np.log(2 * np.pi * variance) + (y[rows, None] - mean) ** 2 / variance)
            densities[:, rows] = logsumexp(log_densities, axis=-1, b=self.weights[:, None])
        return densities

    def _of_kernels(self, x: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Rows, and each kernel's means and variances of their targets, (n, N) both."""
        bank = self.feature_bank()
        N, P = self.theta.shape[1:]
        root = np.zeros((N, P, P))
        root[:, *np.tril_indices(P)] = self.root
        for rows in row_blocks(len(x), self.theta[0].size, VALUES_AT_A_TIME):
            [mean], [spread] = bank.gaussian(x[rows], self.theta, root[None])
            yield rows, mean, self.noise * (1 + spread)


@dataclass(frozen=True)
class FeatureClasses(OnFeatures):
    """The class whose function on random features is the largest, as the value of the target.

    Parameters
    ----------
    rho, scale, phase, narrow, theta, weights, bias
        As in `OnFeatures`, with a function for each class instead of each client.
    classes : (C,)
        Ascending.
    """

    kind: ClassVar[str] = "feature_classes"
    arrays: ClassVar[Described] = OnFeatures.arrays | {"classes": ("floats", "C")}

    classes: NDArray[np.float64]

    @property
    def clients(self) -> int:
        """1: all clients share the functions."""
        return 1

    def is_consistent(self, d: int) -> bool:
        """Whether each class has a function."""
        return super().is_consistent(d) and len(self.theta) == len(self.weights) == len(self.classes) >= 2

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Classes of samples (n, d), the first of equals: (1, n)."""
        return self.classes[super().predict(x).argmax(axis=0)][None]

    def squared_norm(self) -> None:
        """None: a class is no vector."""
        return


@dataclass(frozen=True)
class OnPoints(SavedFunction):
    """f_k(x) = sum_i sum_s coefficients_kis k_i(x, points_s) + bias_k, with exact kernels.

    Parameters
    ----------
    points : (S, d)
    families : (N,) str
        As in `Dictionary`.
    scales : (N,)
        As in `Dictionary`.
    coefficients : (K, N, S)
    bias : (K,)
    """

    kind: ClassVar[str] = "points"
    arrays: ClassVar[Described] = {
        "points": ("floats", "Sd"),
        "families": ("words", "N"),
        "scales": ("floats", "N"),
        "coefficients": ("floats", "KNS"),
        "bias": ("floats", "K"),
    }

    points: Array
    families: NDArray[np.str_]
    scales: NDArray[np.float64]
    coefficients: Array
    bias: Array

    @classmethod
    def gaussian(cls, points: Array, scales: Array, coefficients: Array, bias: Array, *more: NDArray[Any]) -> Self:
        """Functions with kernels exp(-scale^2 |x - x'|^2 / 2)."""
        return cls(points, np.full(len(scales), "rbf"), np.asarray(scales, np.float64), coefficients, bias, *more)

    @property
    def clients(self) -> int:
        """Number of clients with their own function, K."""
        return len(self.bias)

    def is_consistent(self, d: int) -> bool:
        """Whether the kernels are known."""
        return set(self.families.tolist()) <= set(FAMILIES) and bool((self.scales > 0).all())

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values at samples (n, d), for each client if they differ: (K or 1, n)."""
        return self.sums(x)

    def sums(self, x: Array) -> NDArray[np.float64]:
        """The values of all f_k, (K, n)."""
        points = np.asarray(self.points, np.float64)
        f = np.zeros((len(self.bias), len(x)))
        for rows in row_blocks(len(x) if len(points) else 0, len(points), VALUES_AT_A_TIME):
            block = np.asarray(x[rows], np.float64)
            for i, (family, scale) in enumerate(zip(self.families, self.scales, strict=True)):
                f[:, rows] += self.coefficients[:, i] @ kernel_matrix(str(family), float(scale), block, points).T
        return f + self.bias[:, None]


@dataclass(frozen=True)
class Classes(OnPoints):
    """The class that these functions select, as the value of the target.

    Parameters
    ----------
    points, families, scales, coefficients, bias
        As in `OnPoints`; K = 1 for two classes, else the number of classes, or of pairs of classes.
    classes : (C,)
        Ascending.
    votes : () bool
        Whether each pair i < j of classes has a function, positive for i, and the most votes win. Otherwise the largest
        f wins; with two classes, a positive f means the second. If all f are 0, the result is NaN.
    """

    kind: ClassVar[str] = "classes"
    arrays: ClassVar[Described] = OnPoints.arrays | {
        "classes": ("floats", "C"),
        "votes": ("truth", ""),
    }

    classes: NDArray[np.float64]
    votes: NDArray[np.bool_]

    @property
    def clients(self) -> int:
        """1: all clients share the function."""
        return 1

    def is_consistent(self, d: int) -> bool:
        """Whether the number of functions is right for the classes."""
        C = len(self.classes)
        needed = C * (C - 1) // 2 if self.votes or C == 2 else C
        return super().is_consistent(d) and C >= 2 and len(self.bias) == needed

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values at samples (n, d), for each client if they differ: (K or 1, n)."""
        f = self.sums(x)
        if self.votes:
            votes = np.zeros((len(self.classes), len(x)), np.int64)
            for pair, (i, j) in enumerate(combinations(range(len(votes)), 2)):
                votes[i] += f[pair] > 0
                votes[j] += f[pair] <= 0
            return self.classes[votes.argmax(axis=0)][None]
        largest = (f[0] > 0).astype(np.int64) if len(self.classes) == 2 else f.argmax(axis=0)
        return np.where(f.any(axis=0), self.classes[largest], np.nan)[None]


@dataclass(frozen=True)
class Linear(SavedFunction):
    """f(x) = w'x + bias.

    Parameters
    ----------
    w : (d,)
    bias : ()
    """

    kind: ClassVar[str] = "linear"
    arrays: ClassVar[Described] = {"w": ("floats", "d"), "bias": ("floats", "")}

    w: Array
    bias: NDArray[np.float64]

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values at samples (n, d), for each client if they differ: (K or 1, n)."""
        return (x @ self.w + self.bias)[None]


@dataclass(frozen=True)
class Trees(SavedFunction):
    """A sum of trees; a sample goes left if x[feature] <= threshold.

    Parameters
    ----------
    roots : (T,) int
        Root nodes. The nodes of all trees are stored one after another, and children come after their parent.
    feature : (m,) int
        -1 at a leaf.
    threshold : (m,)
    left, right : (m,) int
        Nodes; -1 at a leaf.
    value : (m,)
        Value that a leaf adds to f.
    """

    kind: ClassVar[str] = "trees"
    arrays: ClassVar[Described] = {
        "roots": ("integers", "T"),
        "feature": ("integers", "m"),
        "threshold": ("floats", "m"),
        "left": ("integers", "m"),
        "right": ("integers", "m"),
        "value": ("floats", "m"),
    }

    roots: Integers
    feature: Integers
    threshold: NDArray[np.float64]
    left: Integers
    right: Integers
    value: NDArray[np.float64]

    def is_consistent(self, d: int) -> bool:
        """Whether every node except leaves has two children after it, so every path ends."""
        m = len(self.feature)
        inner = np.flatnonzero(self.feature != LEAF)
        features = ((self.feature[inner] >= 0) & (self.feature[inner] < d)).all()
        children = all(((side[inner] > inner) & (side[inner] < m)).all() for side in (self.left, self.right))
        return bool(features and children and ((self.roots >= 0) & (self.roots < m)).all())

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values at samples (n, d), for each client if they differ: (K or 1, n)."""
        f, sample = np.zeros(len(x)), np.arange(len(x))
        for root in self.roots:
            node = np.full(len(x), root)
            while (inner := self.feature[node] != LEAF).any():
                here = node[inner]
                below = x[sample[inner], self.feature[here]] <= self.threshold[here]
                node[inner] = np.where(below, self.left[here], self.right[here])
            f += self.value[node]
        return f[None]


@dataclass(frozen=True)
class NetworkFunction(SavedFunction):
    """A fully connected ReLU network with one output.

    Parameters
    ----------
    widths : (L,) int
        Sizes of the layers, input and output included.
    parameters : (p,)
        Matrices (outputs, inputs + 1) of the layers, one after another, biases in the last column.
    """

    kind: ClassVar[str] = "network"
    arrays: ClassVar[Described] = {"widths": ("integers", "L"), "parameters": ("floats", "p")}

    widths: Integers
    parameters: Array

    @classmethod
    def from_layers(cls, layers: list[Array]) -> Self:
        """A network from its matrices (outputs, inputs + 1)."""
        widths = [layers[0].shape[1] - 1, *(len(layer) for layer in layers)]
        return cls(np.array(widths), np.concatenate([layer.ravel() for layer in layers]))

    @property
    def layers(self) -> list[Array]:
        """Matrices of the network, from the first layer to the last."""
        shapes = [(int(b), int(a) + 1) for a, b in pairwise(self.widths)]
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(self.parameters, ends), shapes, strict=True)]

    def is_consistent(self, d: int) -> bool:
        """Whether the layers use all parameters, and the last has one output."""
        widths = [int(width) for width in self.widths]
        if len(widths) < 2 or min(widths) < 1 or (widths[0], widths[-1]) != (d, 1):
            return False
        return sum((a + 1) * b for a, b in pairwise(widths)) == len(self.parameters)

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values at samples (n, d), for each client if they differ: (K or 1, n)."""
        layers = self.layers
        a = x.astype(self.parameters.dtype)
        for number, layer in enumerate(layers):
            a = a @ layer[:, :-1].T + layer[:, -1]
            a = np.maximum(a, 0) if number + 1 < len(layers) else a
        return a.T.astype(np.float64)


KINDS: dict[str, type[SavedFunction]] = {
    kind.kind: kind
    for kind in (OnFeatures, Gaussian, FeatureClasses, OnPoints, Classes, Linear, Trees, NetworkFunction)
}
"""Types of function in a model file, by name."""
NAMES_CLASSES = Classes, FeatureClasses
"""Types whose values are classes, or NaN."""
