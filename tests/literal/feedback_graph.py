"""Algorithm 4 of Ghari and Shen (2023), and Chvatal's greedy set cover (1979)."""

import numpy as np
from literal.common import Array
from numpy.typing import NDArray


def similarity_graph(delta: Array, M: int) -> NDArray[np.bool_]:
    """Adjacency (N, N), [i, j] for i -> j, with M out-neighbours a node, from the divergences (N, N).

    A node's out-neighbours are itself, and one after the other the kernel of the largest total divergence to those that
    it already has, which is what a threshold of the mean divergence comes to (the first of equals).
    """
    N = len(delta)
    adjacency = np.zeros((N, N), bool)
    for i in range(N):
        out_neighbours = [i]
        while len(out_neighbours) < M:
            others = [j for j in range(N) if j not in out_neighbours]
            out_neighbours.append(max(others, key=lambda j: sum(delta[m, j] for m in out_neighbours)))
        adjacency[i, out_neighbours] = True
    return adjacency


def dominating_set(adjacency: NDArray[np.bool_]) -> list[int]:
    """Nodes that together have an edge to every node: most newly covered nodes first, the first of equals."""
    N = len(adjacency)
    chosen: list[int] = []
    uncovered = set(range(N))
    while uncovered:
        newly = [{j for j in uncovered if adjacency[i, j]} for i in range(N)]
        best = max(range(N), key=lambda i: len(newly[i]))
        chosen.append(best)
        uncovered -= newly[best]
    return chosen
