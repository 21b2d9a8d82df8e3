"""eM-KOFL (Hong and Chae): the server announces one drawn kernel; only its parameters are averaged.

The order is that of the authors' published script: the clients' copies of the kernel become their average before they
predict with it.
"""

import numpy as np
from literal.common import Array, Arrays, Data, Run, draw, feature_vector, gradient, loss, normalised


def run(
    data: Data, uniform: Array, *, eta: float, lam: float, step_factor: float, losses: str, predictor: str,
    weight_factor: float,
) -> Run:  # fmt: skip
    """One replicate; other arguments as in `literal.pof_mkl.run`.

    Parameters
    ----------
    uniform : (T,)
        The number in [0, 1) by which the server draws the kernel.
    losses : {"mean", "sum"}
        Over the clients present, in the update of the server's weights.
    predictor : {"average", "copy"}
        Whether the copies are averaged before the round's predictions or after its steps.
    weight_factor : float
        Multiplies eta in the update of the server's weights.
    """
    x, y, *_ = data
    omega, out, first = data.start()
    N, K = len(omega), x.shape[1]
    theta = [[one.copy() for _ in range(K)] for one in first]
    log_w = np.zeros(N)
    for t in range(len(x)):
        here = data.here(t)
        drawn = draw(list(normalised(log_w)), uniform[t])
        if predictor == "average":
            average(theta[drawn], here)
        for k in here:
            for i in range(N):
                z = feature_vector(omega[i], x[t, k])
                if i == drawn:
                    out.y_hat[t, k] = theta[i][k] @ z
                    out.squared_norm[t, k] = theta[i][k] @ theta[i][k]
                out.loss[t, k, i] = loss(theta[i][k], z, y[t, k], lam)
                theta[i][k] = theta[i][k] - step_factor * eta * gradient(theta[i][k], z, y[t, k], lam)
            out.uplink[t, k] = theta[drawn][k].size + N  # its copy of the kernel, and its losses
            out.downlink[t, k] = 1 + theta[drawn][k].size  # the index, and the average
        if predictor == "copy":
            average(theta[drawn], here)
        if here:
            for i in range(N):
                total = sum(out.loss[t, k, i] for k in here)
                log_w[i] -= weight_factor * eta * (total if losses == "sum" else total / len(here))
    out.theta, out.log_w = np.array(theta), log_w
    return out


def average(copies: Arrays, here: list[int]) -> None:
    """Overwrite the copies of the clients that are here by their average."""
    if here:
        together = sum(copies[k] for k in here) / len(here)
        for k in here:
            copies[k] = together.copy()
