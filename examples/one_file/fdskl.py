"""FDSKL in one file: parties with other features of the same people learn a kernel machine from masked sums.

Gu, Dang, Li and Huang, "Federated doubly stochastic kernel learning for vertically partitioned data", KDD 2020,
arXiv:2008.06197. Equation and algorithm numbers are theirs. It needs numpy alone: python fdskl.py
"""

import numpy as np

# Settings
PARTIES = 4
FEATURES = 8  # of all parties together
TRAINING, TEST = 1000, 500
ITERATIONS = 200
BATCH = 64  # samples of an iteration; the paper has 1, and its public code's kin use batches
BLOCK = 16  # random features of an iteration; the paper has 1
SIGMA = 1.5  # of the Gaussian kernel exp(-|x - x'|^2 / (2 SIGMA^2))
GAMMA = 20.0  # constant step
LAM = 1e-4  # regularisation lambda


def logistic(f, y):
    """Derivative by f of log(1 + exp(-y f)), Table 1."""
    return -y / (1 + np.exp(y * f))


def masked_sum(parts, masks, apart):
    """Algorithm 3: sum_j w_j'x_j + b_apart, though no party shows its w_j'x_j.

    parts (q, n, D) has w_j'x_j of each party, and masks (q, D) its random numbers b_j. Tree T1 adds the masked parts;
    tree T2 adds the masks of all parties but `apart`, whose mask stays and is the phase of the random feature.
    """
    xi = sum(part + mask for part, mask in zip(parts, masks, strict=True))
    b_bar = sum(mask for j, mask in enumerate(masks) if j != apart)
    return xi - b_bar


def fdskl(x, y, groups, apart, batches, w, b, slope, gamma, lam):
    """Algorithms 1 to 3: alpha (T, D), the coefficients of the random features of each iteration.

    x (n, d), y (n,) are -1 and 1; party j holds the columns groups[j]. Iteration t has the rows batches[t], frequencies
    w[t] (D, d), and masks b[t] (D, q), of which that of party apart[t] stays; its step is gamma(t).
    """
    T, D, q = b.shape

    def phi(s, rows):  # cos(w'x + b) of the features of iteration s: lines 4 and 5 of Algorithm 1
        parts = [x[np.ix_(rows, groups[j])] @ w[s][:, groups[j]].T for j in range(q)]
        return np.sqrt(2) * np.cos(masked_sum(parts, b[s].T, apart[s]))

    alpha = np.zeros((T, D))
    for t in range(T):
        rows = batches[t]
        f = sum((phi(s, rows) @ alpha[s] for s in range(t)), np.zeros(len(rows)))  # Algorithm 2, lines 6 and 7
        pull = slope(f, y[rows]) @ phi(t, rows)  # line 8
        alpha[:t] *= 1 - gamma(t) * lam  # line 10
        alpha[t] = -gamma(t) * pull / (len(rows) * D)  # line 9, eq. (7)
    return alpha


def predict(x, alpha, w, phase):
    """Values f of rows x (n, d), from all coefficients; phase (T, D) is the mask that stayed."""
    return sum(np.sqrt(2) * np.cos(x @ w[s].T + phase[s]) @ alpha[s] for s in range(len(alpha)))


def make_data(rng):
    """Two classes: inside and outside of an ellipsoid in all features, so that no party alone can tell."""
    x = rng.uniform(-1, 1, (TRAINING + TEST, FEATURES))
    inside = np.square(x).sum(axis=1)
    return x, np.where(inside > np.median(inside), 1.0, -1.0)


def main():
    """Count mistakes on test rows."""
    rng = np.random.default_rng(0)
    x, y = make_data(rng)
    groups = np.array_split(np.arange(FEATURES), PARTIES)
    w = rng.standard_normal((ITERATIONS, BLOCK, FEATURES)) / SIGMA
    b = rng.uniform(0, 2 * np.pi, (ITERATIONS, BLOCK, PARTIES))
    apart = rng.integers(PARTIES, size=ITERATIONS)
    batches = rng.integers(TRAINING, size=(ITERATIONS, BATCH))
    alpha = fdskl(x, y, groups, apart, batches, w, b, logistic, lambda t: GAMMA, LAM)

    phase = np.stack([b[t, :, apart[t]] for t in range(ITERATIONS)])
    wrong = np.sign(predict(x[TRAINING:], alpha, w, phase)) != y[TRAINING:]
    most = (y[TRAINING:] != np.sign(y[:TRAINING].mean() or 1)).mean()
    print(f"mistakes of FDSKL on test rows       {100 * wrong.mean():.1f} %")
    print(f"... of the more frequent class       {100 * most:.1f} %")
    sums = BATCH * BLOCK * ITERATIONS * (ITERATIONS + 1) // 2
    print(f"masked sums over {PARTIES} parties          {sums:,}: features of earlier iterations are summed again")


if __name__ == "__main__":
    main()
