"""Time DKLA, COKE and CTA beside the floor of their arithmetic and a literal transcription, then 1000 agents.

The floor of DKLA and COKE is one product of every agent's inverse with a vector in every iteration, of CTA two products
with its samples compressed to as many rows as features (numpy, one BLAS thread, replicates in chunks as in the run).
All run in this one process, in turn, several times; ratios are medians. What a run takes on the whole has the features,
the factorizations and the judging of every iteration in it.
"""

import resource
import time

import networkx as nx
import numpy as np
from floor import THREADS, run_seconds, seconds
from literal import decentralized as literal
from threadpoolctl import threadpool_limits

from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Consensus
from fkl.algorithms.decentralized.cta import Cta
from fkl.algorithms.decentralized.dkla import Dkla
from fkl.data.problem import Batch, Problem
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.network.topology import connected
from fkl.simulation import Experiment, make_world, simulate

K, SIZE, DIMENSION, EDGES, T, R, L = 10, 1860, 25, 14, 2000, 20, 100
DICTIONARY = Dictionary(N=1, D=L, bandwidth_convention="deviation", smallest=1.0, largest=1.0)
CHUNK = 4
LITERAL_ITERATIONS = 5
REPEATS = 3
MANY, MANY_L, MANY_T, MANY_SIZE = 1000, 200, 500, 50


def make_experiment(
    algorithm: Consensus, graph: nx.Graph, size: int, dimension: int, features: Dictionary, replicates: int
) -> Experiment:
    """Agents with `size` random samples each."""
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 1, (size, len(graph), dimension))
    y = 0.5 + 0.5 * np.sin(3 * x.sum(axis=-1))
    stream = Problem(x, y, np.ones((size, len(graph)), np.bool_), np.zeros(len(graph), np.int64))
    batch = Batch.of(stream, algorithm.iterations, algorithm.test_share, None, generator)
    return Experiment(batch, features, Network(), algorithm, 0, replicates, "float32", connected(graph))


def floor_seconds(products: int) -> float:
    """Time of so many products an iteration of an agent's matrix with its vector, of a whole run."""
    P = 2 * L
    matrix, vector = np.random.default_rng(0).standard_normal((CHUNK, K, P, P)), np.ones((CHUNK, K, P, 1))
    out = np.empty_like(vector)

    def work() -> None:
        for _ in range(T * products):
            np.matmul(matrix, vector, out=out)

    with threadpool_limits(1, user_api="blas"):
        return seconds(work) * R / CHUNK


def literal_seconds(experiment: Experiment, graph: nx.Graph) -> float:
    """Time of DKLA as the paper has it, of a whole run, from a few iterations of one replicate."""
    world, _ = make_world(experiment, (0,))
    x, y, client = world.problem.part(True)
    phi = world.bank.features(x)[0, 0].astype(float)
    mine = [client == k for k in range(K)]
    samples = [phi[k] for k in mine], [y[k] for k in mine]
    neighbours = [sorted(graph[k]) for k in range(K)]
    once = seconds(lambda: literal.dkla(*samples, neighbours, 1e-3, 1e-2, LITERAL_ITERATIONS))
    return once * T * R / LITERAL_ITERATIONS


def main() -> None:
    """Print times, ratios and the growth with the number of edges."""
    graph = nx.gnm_random_graph(K, EDGES, seed=2)
    methods = Dkla(), Coke(censored="squared_norm"), Cta()
    given = {method.label: make_experiment(method, graph, SIZE, DIMENSION, DICTIONARY, R) for method in methods}
    figures = []
    for repeat in range(REPEATS):
        floor = {"DKLA": floor_seconds(1), "COKE": floor_seconds(1), "CTA": floor_seconds(2)}
        ours, whole = {}, {}
        for name, experiment in given.items():
            start = time.perf_counter()
            ours[name] = run_seconds(experiment)
            whole[name] = time.perf_counter() - start
        slow = literal_seconds(given["DKLA"], graph)
        figures.append([*(ours[name] / floor[name] for name in given), slow / ours["DKLA"]])
        print(
            f"{repeat + 1}: "
            + ", ".join(f"{name} {ours[name]:.2f} s ({whole[name]:.2f} s on the whole)" for name in given)
            + f"; floor {floor['DKLA']:.2f} s, of CTA {floor['CTA']:.2f} s; literal DKLA {slow:.0f} s",
            flush=True,
        )
    to_floor, of_coke, of_cta, to_literal = np.median(figures, axis=0)
    print(f"{T} iterations, {K} agents, L={L}, {R} replicates, {THREADS} threads: medians of {REPEATS}")
    print(f"  DKLA / floor {to_floor:.2f}, COKE / floor {of_coke:.2f}, CTA / floor {of_cta:.2f}")
    print(f"  literal DKLA, one agent after another, factoring in every iteration / DKLA: {to_literal:.0f}")
    many_agents()


def many_agents() -> None:
    """1000 agents on Watts-Strogatz graphs: memory of the whole process, time against the number of edges."""
    features = Dictionary(N=1, D=MANY_L, bandwidth_convention="deviation", smallest=1.0, largest=1.0)
    edges, each = [], []
    for neighbours in (4, 8, 16, 32, 64):
        graph = nx.connected_watts_strogatz_graph(MANY, neighbours, 0.1, seed=0)
        experiment = make_experiment(Coke(iterations=MANY_T), graph, MANY_SIZE, 5, features, 1)
        start = time.perf_counter()
        (chunk,) = simulate(experiment, None, None, lambda _: None)
        whole = time.perf_counter() - start
        print(f"  {graph.number_of_edges()} edges: {chunk.seconds:.1f} s, {whole:.1f} s on the whole", flush=True)
        edges.append(graph.number_of_edges())
        each.append(1e3 * chunk.seconds / MANY_T)
    slope, at_zero = np.polyfit(edges, each, 1)
    left = np.square(each - np.polyval([slope, at_zero], edges)).sum() / np.square(each - np.mean(each)).sum()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"COKE, {MANY} agents, {MANY_SIZE} samples each, L={MANY_L}, {MANY_T} iterations, one replicate:")
    print(f"  an iteration takes {at_zero:.2f} ms + {1e3 * slope:.3f} us an edge (R^2 {1 - left:.4f})")
    print(f"  whole process, all of the above, at most {peak:.2f} GiB (goal: 2)")


if __name__ == "__main__":
    main()
