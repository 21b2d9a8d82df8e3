"""Methods with local steps, client after client and kernel after kernel, with every vector formed.

The branches are those of FedAvg (McMahan et al. 2017), FedAvgM (Hsu et al. 2019), FedAdagrad, FedAdam and FedYogi
(Reddi et al. 2021), FedProx (Li et al. 2020), SCAFFOLD (Karimireddy et al. 2020), q-FedAvg (Li et al. 2020), Ditto (Li
et al. 2021) and pFedMe (Dinh et al. 2020).
"""

from typing import Any

import numpy as np
from literal.common import Data, Run, feature_vector, gradient, loss

OWN = ("Ditto", "pFedMe")


def run(data: Data, name: str, key: dict[str, Any]) -> Run:
    """One replicate of the method with this label and these keys."""
    x, y, *_ = data
    omega, out, theta = data.start()
    (T, K), N, P = y.shape, len(omega), len(theta[0])
    w, m, c = np.zeros((N, P)), np.zeros((N, P)), np.zeros((N, P))
    v = np.full((N, P), key.get("tau", 0.0) ** 2)
    of_client = np.zeros((K, N, P))  # c_k of SCAFFOLD, v_k of Ditto and pFedMe
    eta, lam, E = key["eta"], key["lam"], key["local_steps"]
    for t in range(T):
        here = data.here(t)
        deltas, controls = np.zeros((K, N, P)), np.zeros((K, N, P))
        h = np.zeros((K, N))
        for k in here:
            f = np.zeros(N)
            for i in range(N):
                z, target = feature_vector(omega[i], x[t, k]), y[t, k]
                used = of_client[k, i] if name in OWN else w[i]
                f[i], out.loss[t, k, i] = used @ z, loss(used, z, target, lam)
                out.squared_norm[t, k] = np.nansum([out.squared_norm[t, k], used @ used / N])
                one = w[i].copy()
                if name == "pFedMe":
                    own = w[i].copy()
                    for _ in range(E):
                        for _ in range(key["own_steps"]):
                            slope = gradient(own, z, target, lam) + key["lam_k"] * (own - one)
                            own = own - key["eta_k"] * slope
                        one = one - eta * key["lam_k"] * (one - own)
                    of_client[k, i] = own
                else:
                    for _ in range(E):
                        slope = gradient(one, z, target, lam)
                        if name == "FedProx":
                            slope = slope + key["mu"] * (one - w[i])
                        if name == "SCAFFOLD":
                            slope = slope + c[i] - of_client[k, i]
                        one = one - eta * slope
                if name == "Ditto":
                    for _ in range(E):
                        own = of_client[k, i]
                        of_client[k, i] = own - eta * (gradient(own, z, target, lam) + key["lam_k"] * (own - w[i]))
                deltas[k, i] = one - w[i]
                if name == "SCAFFOLD":
                    renewed = of_client[k, i] - c[i] + (w[i] - one) / (E * eta)
                    controls[k, i], of_client[k, i] = renewed - of_client[k, i], renewed
                if name == "q-FedAvg":
                    F, q, L = loss(w[i], z, target, lam) + 1e-10, key["q"], 1 / eta
                    grad = L * (w[i] - one)
                    deltas[k, i] = F**q * grad
                    h[k, i] = q * F ** (q - 1) * (grad @ grad) + L * F**q
            out.y_hat[t, k] = f.mean()
            out.uplink[t, k] = N * P * (2 if name == "SCAFFOLD" else 1) + (N if name == "q-FedAvg" else 0)
            out.downlink[t, k] = N * P * (2 if name == "SCAFFOLD" else 1)
        if len(here) == 0:
            continue
        if name == "q-FedAvg":
            w = w - key["eta_server"] * deltas.sum(axis=0) / h.sum(axis=0)[:, None]
            continue
        delta, rate = deltas.sum(axis=0) / len(here), key["eta_server"]
        if name == "FedAvgM":
            m = key["beta"] * m + delta
            w = w + rate * m
        elif name in ("FedAdagrad", "FedAdam", "FedYogi"):
            m = key["beta_1"] * m + (1 - key["beta_1"]) * delta
            if name == "FedAdagrad":
                v = v + delta**2
            elif name == "FedAdam":
                v = key["beta_2"] * v + (1 - key["beta_2"]) * delta**2
            else:
                v = v - (1 - key["beta_2"]) * delta**2 * np.sign(v - delta**2)
            w = w + rate * m / (np.sqrt(v) + key["tau"])
        else:
            w = w + rate * delta
            c = c + controls.sum(axis=0) / K
    out.theta = w
    return out
