"""AdaRaker (Shen, Chen and Giannakis, 2019): Raker on intervals of lengths 1, 2, 4, ..., weighted by how they do."""

import numpy as np
from literal.common import Array, Arrays, feature_vector, gradient, loss, normalised
from literal.online import OnlineRun


class Instance:
    """Raker with a constant step."""

    def __init__(self, omega: Arrays, step: float) -> None:
        self.step = step
        self.theta = [np.zeros(2 * one.shape[1]) for one in omega]
        self.log_w = np.zeros(len(omega))

    def predict(self, z: Arrays) -> tuple[float, float]:
        """Its mixture, and |f|^2 of it."""
        w = normalised(self.log_w)
        kernels = range(len(z))
        f = sum(w[i] * (self.theta[i] @ z[i]) for i in kernels)
        return float(f), float(sum(w[i] * (self.theta[i] @ self.theta[i]) for i in kernels))

    def learn(self, z: Arrays, y: float, lam: float) -> None:
        """One step of all kernels and weights."""
        for i in range(len(z)):
            self.log_w[i] -= self.step * loss(self.theta[i], z[i], y, lam)
            self.theta[i] = self.theta[i] - self.step * gradient(self.theta[i], z[i], y, lam)


def run(x: Array, y: Array, omega: Arrays, *, eta: float, lam: float, restart: bool) -> OnlineRun:
    """One replicate; `theta` and `log_w` of what is returned are lists, a length after another, and `log_u` is log h.

    Parameters
    ----------
    x : (T, d)
    y : (T,)
    omega : list of (d, D)
    eta : float
        eta_0.
    lam : float
    restart : bool
        Whether an instance forgets where its interval ends.
    """
    out = OnlineRun.empty(len(x), len(omega))
    active: dict[int, Instance] = {}  # by j
    h: dict[int, float] = {}
    for t in range(1, len(x) + 1):
        z = [feature_vector(one, x[t - 1]) for one in omega]
        target = y[t - 1]
        for j in range(t.bit_length()):
            if t % 2**j == 0:  # I = [m 2^j, (m + 1) 2^j - 1] begins
                step = min(0.5, eta / np.sqrt(2**j))
                h[j] = step
                if restart or j not in active:
                    active[j] = Instance(omega, step)
        shown = {j: instance.predict(z) for j, instance in active.items()}
        total = sum(h.values())
        f = sum(h[j] / total * shown[j][0] for j in active)
        norm = sum(h[j] / total * shown[j][1] for j in active)
        out.y_hat[t - 1], out.squared_norm[t - 1] = f, norm
        combined = (f - target) ** 2 + lam * norm
        for j, instance in active.items():
            relative = (shown[j][0] - target) ** 2 + lam * shown[j][1] - combined
            h[j] *= np.exp(-instance.step * relative)
            instance.learn(z, target, lam)
    ordered = [active[j] for j in sorted(active)]
    out.theta = np.array([instance.theta for instance in ordered])
    out.log_w = np.array([instance.log_w for instance in ordered])
    out.log_u = np.log([h[j] for j in sorted(h)])
    return out
