"""Symmetric matrices times vectors: each entry below the diagonal is read once and used twice.

For matrices larger than the processor's inner caches, reading them takes most of the time.
"""

from fkl.kernels.cached_njit import njit_cached


@njit_cached(
    "void(int64, int64, float64[:, ::1], float64[:, ::1], float64[:, ::1])",  # compiled now, not inside a clock
    fastmath={"reassoc", "contract", "nsz"},  # sums may be formed in vector lanes
    error_model="numpy",
    nogil=True,
)
def symmetric_products(begin, end, half, v, out):
    """out[b] = matrix[b] v[b].

    Parameters
    ----------
    begin, end : int
        Range of the B products, which `fkl.kernels.threads.share_work` divides among threads.
    half : (B, S) float64
        Half of the matrices, as in `losses.Symmetric`: four rows together, and the remaining rows last.
    v : (B, P) float64
    out : (B, P) float64, written
    """
    P = v.shape[1]
    whole = P - P % 4
    for b in range(begin, end):
        a, x, y, at = half[b], v[b], out[b], 0
        # Four rows at a time: each entry of the lower half is read once and used for both its row and its column
        for i in range(P):
            y[i] = 0.0
        for i in range(0, whole, 4):
            n = i + 4
            a0, a1 = a[at : at + n], a[at + n : at + 2 * n]
            a2, a3 = a[at + 2 * n : at + 3 * n], a[at + 3 * n : at + 4 * n]
            at += 4 * n
            x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
            s0 = s1 = s2 = s3 = 0.0
            for j in range(i):
                s0 += a0[j] * x[j]
                # Row entries left of the diagonal block, and their mirror images
                s1 += a1[j] * x[j]
                s2 += a2[j] * x[j]
                s3 += a3[j] * x[j]
                y[j] += a0[j] * x0 + a1[j] * x1 + a2[j] * x2 + a3[j] * x3
            # The 4 x 4 block on the diagonal
            y[i] = s0 + a0[i] * x0 + a1[i] * x1 + a2[i] * x2 + a3[i] * x3
            y[i + 1] = s1 + a1[i] * x0 + a1[i + 1] * x1 + a2[i + 1] * x2 + a3[i + 1] * x3
            y[i + 2] = s2 + a2[i] * x0 + a2[i + 1] * x1 + a2[i + 2] * x2 + a3[i + 2] * x3
            y[i + 3] = s3 + a3[i] * x0 + a3[i + 1] * x1 + a3[i + 2] * x2 + a3[i + 3] * x3
        # The remaining rows, one by one
        for i in range(whole, P):
            row, s = a[at : at + P], 0.0
            at += P
            for j in range(i):
                s += row[j] * x[j]
                y[j] += row[j] * x[i]
            y[i] = s + row[i] * x[i]
