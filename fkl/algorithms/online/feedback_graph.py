"""Feedback graphs over the kernels of a dictionary, and a set of nodes that reaches them all."""

import numpy as np
from numpy.typing import NDArray

from fkl.errors import require

Adjacency = NDArray[np.bool_]


def similarity_graph(delta: NDArray[np.float64], M: int) -> Adjacency:
    """Join each kernel to kernels that differ from it and from one another (graph-aided OMKL, Algorithm 4).

    Node i starts with itself; the kernel with the largest divergence to all its out-neighbours together joins them,
    the first one where several tie, until it has M.

    Parameters
    ----------
    delta : (N, N)
        Divergences.
    M : int
        Out-neighbours of a node, itself included.

    Returns
    -------
    (N, N) bool
        [i, j] where an edge leads from i to j.
    """
    N = len(delta)
    require(1 <= M <= N, "M", M, f"a whole number from 1 to {N}, the number of kernels")
    adjacency = np.eye(N, dtype=np.bool_)
    nodes = np.arange(N)
    total = delta.copy()  # of node i's out-neighbours to kernel j
    for _ in range(M - 1):
        joining = np.where(adjacency, -np.inf, total).argmax(axis=1)
        adjacency[nodes, joining] = True
        total += delta[joining]
    return adjacency


def dominating_set(adjacency: Adjacency) -> NDArray[np.intp]:
    """Nodes that together point to all nodes: the greedy set cover of Chvatal (1979), most new nodes first.

    networkx's dominating set is another algorithm, for undirected graphs, and says nothing about its size.

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
