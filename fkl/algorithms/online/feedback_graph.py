"""Feedback graphs over the kernels of a dictionary, and a set of nodes that reaches them all."""

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require
from fkl.kernels.kernel_similarity import farthest_first

Adjacency = NDArray[np.bool_]


def similarity_graph(log_inner: NDArray[np.float64], M: int) -> Adjacency:
    """Join each kernel to kernels that differ from it and from one another (graph-aided OMKL, Algorithm 4).

    Node i starts with itself. The kernel with the largest total divergence to its out-neighbours joins them, and of
    ties the first, until it has M.

    Parameters
    ----------
    log_inner : (N, N)
        Logarithms of the kernels' inner products. `farthest_first` orders the divergences by them.
    M : int
        Out-neighbours of a node, itself included.

    Returns
    -------
    (N, N) bool
        [i, j] where an edge leads from i to j.
    """
    N = len(log_inner)
    require(1 <= M <= N, "M", M, f"an integer from 1 to {N}, the number of kernels")
    adjacency = np.eye(N, dtype=np.bool_)
    nodes = np.arange(N)
    log_total = log_inner.copy()  # of node i's out-neighbours with kernel j
    for members in range(1, M):
        sign, size = farthest_first(log_inner, log_total, members)
        sign[adjacency] = -2  # no kernel joins twice
        first = sign == sign.max(axis=1, keepdims=True)
        joining = np.where(first, size, -np.inf).argmax(axis=1)
        adjacency[nodes, joining] = True
        log_total = np.logaddexp(log_total, log_inner[joining])
    return adjacency


def divergence_ranks(log_inner: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks (N, N) of the divergences, [i, j] from 0 for the kernel j nearest to i; ties share a rank."""
    sign, size = farthest_first(log_inner, log_inner, 1)
    sign[np.diag_indices_from(sign)] = -2  # a kernel is nearest to itself
    order = np.lexsort((size, sign), axis=-1)
    signs, sizes = (np.take_along_axis(key, order, axis=1) for key in (sign, size))
    steps = (np.diff(signs, axis=1) != 0) | (np.diff(sizes, axis=1) != 0)
    ranks = np.zeros(log_inner.shape)
    cumulative = np.concatenate([np.zeros((len(ranks), 1)), steps.cumsum(axis=1)], axis=1)
    np.put_along_axis(ranks, order, cumulative, axis=1)
    return ranks


def dominating_set(adjacency: Adjacency) -> NDArray[np.intp]:
    """Nodes that together point to all nodes: the greedy set cover of Chvatal (1979), most new nodes first.

    networkx's dominating set uses another algorithm, for undirected graphs, without a bound on its size.

    Parameters
    ----------
    adjacency : (N, N) bool
        Every node points to itself.

    Returns
    -------
    (n,) int
        Ascending.
    """
    chosen = []
    uncovered = np.ones(len(adjacency), np.bool_)
    while uncovered.any():
        chosen.append((adjacency & uncovered).sum(axis=1).argmax())
        uncovered &= ~adjacency[chosen[-1]]
    return np.sort(chosen)
