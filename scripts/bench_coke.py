"""Time DKLA, COKE and CTA beside the floor of their arithmetic and a literal transcription, then 1000 agents.

`fkl.bench.coke` says what the floors are. All run in this one process, in turn, several times; ratios are medians.
"""

import resource
import time

import networkx as nx
import numpy as np
from literal import decentralized as literal

from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.dkla import Dkla
from fkl.bench.coke import DICTIONARY, DIMENSION, SIZE, K, R, T, cases, graph, make_experiment
from fkl.bench.floor import THREADS, seconds
from fkl.engines.experiment import Experiment, make_world
from fkl.engines.rounds import simulate
from fkl.kernels import Dictionary

LITERAL_ITERATIONS = 5
MANY, MANY_L, MANY_T, MANY_SIZE = 1000, 200, 500, 50


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
    of_dkla, of_coke, of_cta = cases()
    experiment = make_experiment(Dkla(), graph(), SIZE, DIMENSION, DICTIONARY, R)
    figures = []
    turns = zip(of_dkla.turns(), of_coke.turns(), of_cta.turns(), strict=True)
    for repeat, (dkla, coke, cta) in enumerate(turns, 1):
        slow = literal_seconds(experiment, graph())
        figures.append([*(ours / floor for ours, floor in (dkla, coke, cta)), slow / dkla[0]])
        print(
            f"{repeat}: DKLA {dkla[0]:.2f} s, COKE {coke[0]:.2f} s, CTA {cta[0]:.2f} s; floor {dkla[1]:.2f} s, of CTA "
            f"{cta[1]:.2f} s; literal DKLA {slow:.0f} s",
            flush=True,
        )
    to_floor, coke_to_floor, cta_to_floor, to_literal = np.median(figures, axis=0)
    print(f"{of_dkla.shape}, {THREADS} threads: medians of {of_dkla.repeats}")
    print(f"  DKLA / floor {to_floor:.2f}, COKE / floor {coke_to_floor:.2f}, CTA / floor {cta_to_floor:.2f}")
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
