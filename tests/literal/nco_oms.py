"""NCO-OMS (Li, Wu, Xu and King, NeurIPS 2024): what one client of FOMD-OMS does alone, client after client."""

import numpy as np
from literal.common import Array, Data, Run, feature_vector
from literal.fomd_oms import chances, choose, first, on_the_ball, rate_of_p, rate_of_theta, weighed


def run(data: Data, uniform: Array, *, J: int, U: list[float], lam: float, **keys: float | None) -> Run:
    """One replicate; arguments as in `literal.fomd_oms.run`."""
    x, y, present, *_ = data
    omega, out, zeros = data.start()
    N, K, T = len(omega), x.shape[1], len(x)
    theta = [[one.copy() for _ in range(K)] for one in zeros]
    p = [first(U, T) for _ in range(K)]
    eta, C = rate_of_p(N, J, 1, T, **keys), [(one + keys["Y"]) ** 2 for one in U]
    for k in range(K):
        for t in range(T):
            if not present[t, k]:
                continue
            chosen, P, c = choose(p[k], J, uniform[t, k]), chances(p[k], J), [0.0] * N
            for i in range(N):
                z, own = feature_vector(omega[i], x[t, k]), theta[i][k]
                f = own @ z
                out.loss[t, k, i] = (f - y[t, k]) ** 2 + lam * (own @ own)
                if i == chosen[0]:
                    out.y_hat[t, k], out.squared_norm[t, k] = f, own @ own
                if i in chosen:
                    c[i] = (f - y[t, k]) ** 2 / P[i]
                    step = rate_of_theta(U[i], N, J, 1, t + 1, **keys) / P[i]
                    theta[i][k] = on_the_ball(own - step * 2 * (f - y[t, k]) * z, U[i])
            p[k] = weighed(p[k], c, eta, C)
    out.theta, out.log_w = np.array(theta), np.log(np.array(p))
    return out
