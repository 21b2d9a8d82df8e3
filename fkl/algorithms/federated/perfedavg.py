"""PerFedAvg: personalized federated averaging by first-order model-agnostic meta-learning.

Fallah, Mokhtari and Ozdaglar, Personalized Federated Learning with Theoretical Guarantees (NeurIPS 2020), in the online
setting of Ghari and Shen (NeurIPS 2022, appendix C): a fully connected ReLU network is updated with only the newest
sample.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import WithLoss, array_namespace
from fkl.basics.arrays import Array, is_traced
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.contract.star import Federated, Samples, StarState, Turn
from fkl.contract.world import FEATURE_KEYS, Common, Outcome, World
from fkl.kernels.client_tiles import client_tiles
from fkl.kernels.functions import NetworkFunction
from fkl.wire.payloads import PerClient, RankOne, SameForAll

MOST_PARAMETERS = 10_000_000
MOST_STEPS = 1000


@dataclass(frozen=True)
class GlobalNetwork:
    """Message to all clients: the global network, one matrix (R, outputs, inputs + 1) per layer."""

    network: tuple[SameForAll, ...]


@dataclass(frozen=True)
class NetworkGradient:
    """Message of a client: its gradient at its personal network, or the sum over its steps, one array per layer."""

    network: tuple[RankOne | PerClient, ...]


@dataclass
class NetworkServer:
    """State of the server: the global network, one matrix (R, outputs, inputs + 1) per layer, biases last."""

    layers: list[Array]


@dataclass(frozen=True)
class PerFedAvg(WithLoss, Federated):
    """w <- w - eta mean_k grad l_k(w - alpha grad l_k(w)), with l_k the loss of client k's newest sample.

    With `local_steps` above 1 (tau in Algorithm 1 of Fallah et al.), a client takes this many steps alone.
    """

    label: ClassVar[str] = "PerFedAvg"
    choices_reveal_data: ClassVar[bool] = False
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True
    idle: ClassVar[tuple[str, ...]] = FEATURE_KEYS
    not_traceable: ClassVar[str] = ""

    eta: float | None = key(
        None, "Server's step size; None for 1 / sqrt(T).", above=0, must="a number > 0, or null for 1/sqrt(T)"
    )
    alpha: float | None = key(
        None,
        "Step size of clients to their personal model; None for 1 / sqrt(T).",
        above=0,
        must="a number > 0, or null for 1/sqrt(T)",
    )
    neurons: int = key(20, "Maximum number of neurons per hidden layer.", min=1)
    parameters: int = key(
        1000,
        "Upper bound of the number of parameters. The network has as many hidden layers of `neurons` neurons as "
        "fit. If not even one fits, it has one hidden layer with as many neurons as fit.",
        min=4,
        max=MOST_PARAMETERS,
    )
    lam: float = key(
        1e-3,
        "Regularisation lambda of the regret that the run reports. The network itself has no regulariser.",
        min=0,
    )
    local_steps: int = key(
        1,
        "Steps of size eta of a client from the global network, on the sample of the round. The client then sends "
        "the sum of their gradients.",
        min=1,
        max=MOST_STEPS,
    )

    def widths(self, dimension: int) -> list[int]:
        """Sizes of the layers, including input and output."""
        least = _count_parameters([dimension, 1, 1]) + 1
        require(self.parameters >= least, "parameters", self.parameters, f"at least {least} for {dimension} features")
        neurons = min(self.neurons, (self.parameters - 2) // (dimension + 2))
        layers = 1
        if neurons == self.neurons:
            layers += (self.parameters - 1 - _count_parameters([dimension, neurons, 1])) // _count_parameters(
                [neurons, neurons]
            )
        return [dimension, *[neurons] * layers, 1]

    def start(self, common: Common, clients: int) -> tuple[NetworkServer, None]:
        """Start with Glorot's uniform initialisation and biases of 0; clients hold nothing."""
        widths = self.widths(common.dimension)
        generators = common.streams.generators(Role.NETWORK_WEIGHTS)
        layers = []
        for inputs, outputs in pairwise(widths):
            bound = np.sqrt(6 / (inputs + outputs))
            layer = np.zeros((len(generators), outputs, inputs + 1), common.precision)
            layer[..., :-1] = [generator.uniform(-bound, bound, (outputs, inputs)) for generator in generators]
            layers.append(layer)
        return NetworkServer(layers), None

    def broadcast(self, common: Common, server: NetworkServer, turn: Turn) -> GlobalNetwork:
        """Send the global network to all clients."""
        return GlobalNetwork(tuple(SameForAll(layer) for layer in server.layers))

    def client(
        self, common: Common, client: None, down: GlobalNetwork, samples: Samples, turn: Turn
    ) -> tuple[None, NetworkGradient, Outcome]:
        """Predict with the global network, then take first-order MAML steps."""
        # The server's network, and the sample of each client for each replicate
        layers = [layer.values for layer in down.network]
        x = common.xp.tile(samples.x.astype(common.precision), (layers[0].shape[0], 1, 1))
        target = samples.y.astype(common.precision)
        gradients: tuple[RankOne | PerClient, ...]
        # A single step: the meta-gradient of the server's network
        if self.local_steps == 1:
            y_hat, gradients = self._meta_gradient(layers, x, target, common)
        else:
            # Each client's network is computed as a separate replicate. Its prediction is made before the first step,
            # and its message has the sums of all steps' gradients.
            (R, K), eta, xp = x.shape[:2], self._rate(self.eta, common), common.xp
            own_layers = [xp.repeat(layer, K, axis=0) for layer in layers]
            total = [xp.zeros_like(layer) for layer in own_layers]
            alone, targets = x.reshape(R * K, 1, -1), xp.tile(target, R)[:, None]
            # Step by step: predict, add the gradients to the sum, and move the client's own network
            shown = []
            for _ in range(self.local_steps):
                y_hat, of_step = self._meta_gradient(own_layers, alone, targets, common)
                shown.append(y_hat)
                steps = [gradient.dense().values[:, 0] for gradient in of_step]
                own_layers = [layer - eta * step for layer, step in zip(own_layers, steps, strict=True)]
                total = [summed + step for summed, step in zip(total, steps, strict=True)]
            y_hat = shown[0].reshape(R, K)
            gradients = tuple(PerClient(summed.reshape(R, K, *summed.shape[1:])) for summed in total)
        return None, NetworkGradient(gradients), Outcome(y_hat.astype(np.float64), None, lambda: np.zeros(y_hat.shape))

    def _meta_gradient(
        self, layers: list[Array], x: Array, target: Array, common: Common
    ) -> tuple[Array, tuple[RankOne, ...]]:
        """Predictions (R, K), and grad l(w - alpha grad l(w)) for each layer."""
        alpha, slope = self._rate(self.alpha, common), self.pointwise.derivative
        a, y_hat = forward_pass(layers, x)
        delta = backward_pass(layers, a, slope(y_hat, target))
        personal_a, personal_y_hat = forward_pass(layers, x, (alpha, a, delta))
        personal_delta = backward_pass(layers, personal_a, slope(personal_y_hat, target), (alpha, a, delta))
        return y_hat, tuple(RankOne(d, inputs) for d, inputs in zip(personal_delta, personal_a, strict=True))

    def server(
        self, common: Common, server: NetworkServer, up: NetworkGradient, share: Array, turn: Turn
    ) -> NetworkServer:
        """Step w <- w - eta times the clients' mean gradient."""
        eta = self._rate(self.eta, common)
        means = [gradient.mean(share).astype(common.precision) for gradient in up.network]
        return NetworkServer([layer - eta * mean for layer, mean in zip(server.layers, means, strict=True)])

    def functions(self, world: World, state: StarState, t: int) -> tuple[NetworkFunction, ...]:
        """The global network; clients predict with it before they adapt it to a sample."""
        return tuple(NetworkFunction.from_layers(list(layers)) for layers in zip(*state.server.layers, strict=True))

    def _rate(self, key: float | None, common: Common) -> float:
        return float(1 / np.sqrt(common.rounds)) if key is None else key


Shift = tuple[float, list[Array], list[Array]]
"""A gradient step of every client, stored as factors: alpha, and inputs and deltas of each layer.

With one sample, the gradient of a layer is delta inputs', which has rank one. So W - alpha delta inputs' can be applied
to a vector without forming the matrix, and K personal networks need no memory.
"""


def forward_pass(layers: list[Array], x: Array, shift: Shift | None = None) -> tuple[list[Array], Array]:
    """Inputs of every layer (R, K, inputs + 1), with a 1 appended for the bias, and the output (R, K)."""
    xp, inputs = array_namespace(x), []
    # Each layer sees its input with a 1 appended, whose weight is the bias
    for number, layer in enumerate(layers):
        inputs.append(xp.concatenate([x, xp.ones_like(x[..., :1])], axis=-1))
        x = product_by_tiles(inputs[-1], layer.swapaxes(1, 2))
        # The network after an inner step, without storing it: layer - alpha delta a' differs by a matrix of rank one
        if shift is not None:
            alpha, a, delta = shift
            x = x - alpha * delta[number] * (a[number] * inputs[-1]).sum(axis=-1, keepdims=True)
        if number + 1 < len(layers):
            x = xp.maximum(x, 0)
    return inputs, x[..., 0]


def backward_pass(layers: list[Array], inputs: list[Array], slope: Array, shift: Shift | None = None) -> list[Array]:
    """Derivatives (R, K, outputs) of the loss before every layer's ReLU, from its derivative (R, K) by the output."""
    # From the output back to the first layer
    delta = slope[..., None]
    deltas = [delta]
    for number in range(len(layers) - 1, 0, -1):
        back = product_by_tiles(delta, layers[number][..., :-1])
        # Again minus the product with the matrix of rank one
        if shift is not None:
            alpha, a, first = shift
            back = back - alpha * a[number][..., :-1] * (first[number] * delta).sum(axis=-1, keepdims=True)
        # ReLU passes a derivative where its input was positive
        delta = back * (inputs[number][..., :-1] > 0)
        deltas.insert(0, delta)
    return deltas


def product_by_tiles(rows: Array, matrix: Array) -> Array:
    """Rows (R, K, m) times a matrix (R, m, n), in tiles of clients, because BLAS rounds by the number of rows.

    A client's numbers therefore do not depend on how tiles are distributed over ranks.
    """
    xp = array_namespace(rows)
    if is_traced(rows):  # a single process uses a single compiled program
        return xp.matmul(rows, matrix)
    return xp.concatenate([xp.matmul(rows[:, tile], matrix) for tile in client_tiles(rows.shape[1])], axis=1)


def _count_parameters(widths: list[int]) -> int:
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))
