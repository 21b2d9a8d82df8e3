"""PerFedAvg (Fallah et al.), first order: every client's personal network is formed, every gradient taken by hand."""

import numpy as np
from literal.common import Array, Arrays, Run

Network = Arrays
"""One matrix (outputs, inputs + 1) a layer, biases in the last column; ReLU between layers."""


def run(x: Array, y: Array, present: Array, network: Network, *, eta: float, alpha: float) -> tuple[Run, Network]:
    """One replicate, from the given initial network.

    Parameters
    ----------
    x : (T, K, d)
    y : (T, K)
    present : (T, K) bool
    network : list
    eta, alpha : float
        Steps of the server and of a client to its personal network.
    """
    network = [np.array(layer, np.float64) for layer in network]
    out = Run.empty(len(x), x.shape[1], 0)
    for t in range(len(x)):
        slopes = []
        for k in range(x.shape[1]):
            if not present[t, k]:
                continue
            sample = np.asarray(x[t, k], np.float64)
            out.y_hat[t, k] = predict(network, sample)
            out.squared_norm[t, k] = 0
            out.downlink[t, k] = sum(layer.size for layer in network)
            slope = gradient(network, sample, y[t, k])
            personal = [layer - alpha * change for layer, change in zip(network, slope, strict=True)]
            slopes.append(gradient(personal, sample, y[t, k]))
            out.uplink[t, k] = sum(change.size for change in slopes[-1])
        if slopes:
            network = [
                layer - eta * sum(slope[number] for slope in slopes) / len(slopes)
                for number, layer in enumerate(network)
            ]
    return out, network


def predict(network: Network, x: Array) -> float:
    """Output of the network for one sample (d,)."""
    for number, layer in enumerate(network):
        x = layer[:, :-1] @ x + layer[:, -1]
        if number + 1 < len(network):
            x = np.array([max(value, 0.0) for value in x])
    return float(x[0])


def gradient(network: Network, x: Array, y: float) -> Network:
    """Gradient of (network(x) - y)^2 by back-propagation."""
    activations = [x]
    for number, layer in enumerate(network):
        value = layer[:, :-1] @ activations[-1] + layer[:, -1]
        activations.append(value if number + 1 == len(network) else np.where(value > 0, value, 0.0))
    delta = 2 * (activations[-1] - y)
    slopes: Network = []
    for number in reversed(range(len(network))):
        slopes.insert(0, np.column_stack([np.outer(delta, activations[number]), delta]))
        if number:
            delta = (network[number][:, :-1].T @ delta) * (activations[number] > 0)
    return slopes
