"""Symmetric matrices times vectors: each entry below the diagonal is read once and used twice.

Where the matrices are larger than the processor's inner caches, reading them is most of a product's time.
"""

from numba import njit

ROWS = 4
"""Rows that are taken together, for which each entry of the vectors is then read and written once."""


@njit(
    "void(int64, int64, float64[:, :, ::1], float64[:, ::1], float64[:, ::1])",  # compiled here, not inside a clock
    fastmath={"reassoc", "contract", "nsz"},  # sums may be taken in vector lanes
    error_model="numpy",
    nogil=True,
    cache=True,
)
def symmetric_products(begin, end, matrix, v, out):
    """out[b] = matrix[b] v[b], of whose matrices only what is on and below the diagonal is read.

    Parameters
    ----------
    begin, end : int
        Of the B products to make, which `fkl.kernels.threads.share` gives to threads.
    matrix : (B, P, P) float64
    v : (B, P) float64
    out : (B, P) float64, written
    """
    P = v.shape[1]
    whole = P - P % ROWS
    for b in range(begin, end):
        a, x, y = matrix[b], v[b], out[b]
        for i in range(P):
            y[i] = 0.0
        for i in range(0, whole, ROWS):
            a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
            x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
            s0 = s1 = s2 = s3 = 0.0
            for j in range(i):
                s0 += a0[j] * x[j]
                s1 += a1[j] * x[j]
                s2 += a2[j] * x[j]
                s3 += a3[j] * x[j]
                y[j] += a0[j] * x0 + a1[j] * x1 + a2[j] * x2 + a3[j] * x3
            y[i] = s0 + a0[i] * x0 + a1[i] * x1 + a2[i] * x2 + a3[i] * x3
            y[i + 1] = s1 + a1[i] * x0 + a1[i + 1] * x1 + a2[i + 1] * x2 + a3[i + 1] * x3
            y[i + 2] = s2 + a2[i] * x0 + a2[i + 1] * x1 + a2[i + 2] * x2 + a3[i + 2] * x3
            y[i + 3] = s3 + a3[i] * x0 + a3[i + 1] * x1 + a3[i + 2] * x2 + a3[i + 3] * x3
        for i in range(whole, P):
            s = 0.0
            for j in range(i):
                s += a[i, j] * x[j]
                y[j] += a[i, j] * x[i]
            y[i] = s + a[i, i] * x[i]
