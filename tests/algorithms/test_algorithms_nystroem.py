"""Nystroem methods of a star against their literal transcriptions, their limits, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from literal import one_shot
from literal.common import Array
from literal.worlds import assert_close

from fkl.algorithms.federated.nystroem import _without_replacement
from fkl.basics.errors import FklError
from fkl.conformance import scenario
from fkl.contract.world import World
from fkl.engines.base import make_world
from fkl.runs import api
from fkl.runs.prepare import prepare

LAM, WIDTH = 0.2, 0.25
WORDS = (f"algo.lam={LAM}", "algo.centres=3", f"kernels.smallest={WIDTH}", "precision=float64")
UNEVEN = ("partition=quantity_skew", "partition.clients=3", "partition.rounds=60")
POINTS = np.random.default_rng(8).uniform(-0.3, 0.3, (6, 10))


def kernel(a: Array, b: Array) -> float:
    return float(np.exp(-((a - b) @ (a - b)) / (2 * WIDTH**2)))


def learned(algo: str, iterations: int, *words: str) -> tuple[World, Any, Array, Array]:
    """The world of one replicate, what is held in the end, the centres, and f at the points, (K, 6)."""
    experiment = prepare(scenario(f"algo={algo}", *WORDS, f"algo.iterations={iterations}", *words))
    world, _ = make_world(experiment, (0,))
    state = experiment.algorithm.init(world)
    for t in range(iterations):
        world.channel.open_round(t, world.problem.present[t])
        state, _ = experiment.algorithm.step(world, state, t)
    [function] = experiment.algorithm.functions(world, state, iterations)
    return world, state, state.client.centres[0], function.sums(POINTS)


def parts(world: World) -> tuple[list[Array], list[Array]]:
    """Each client's samples."""
    x, y, client = world.problem.part(True)
    own = [client == k for k in range(world.problem.clients)]
    return [x[one] for one in own], [y[one] for one in own]


@pytest.mark.parametrize(("steps", "words"), [(1, ()), (5, UNEVEN)], ids=str)
def test_falkon_is_its_literal(steps: int, words: tuple[str, ...]) -> None:
    """In coefficients, with the paper's T and A, where ours are in the space of the centres."""
    world, _, centres, f = learned("falkon", 1 + steps, *words)
    literal = one_shot.falkon(kernel, *parts(world), centres, LAM, steps, POINTS)
    assert_close(f, np.broadcast_to(literal, f.shape), 1e-9, "f")


@pytest.mark.parametrize(("communications", "words"), [(0, UNEVEN), (4, UNEVEN)], ids=str)
def test_dkrr_ny_cm_is_its_literal(communications: int, words: tuple[str, ...]) -> None:
    """Its first round is DKRR-NY, the mean of what clients find alone."""
    world, _, centres, f = learned("dkrr_ny_cm", 1 + communications, *words)
    lam = LAM / world.problem.clients
    literal = one_shot.dkrr_ny_cm(kernel, *parts(world), centres, lam, communications, POINTS)
    assert_close(f, np.broadcast_to(literal, f.shape), 1e-9, "f")


@pytest.mark.parametrize(("algo", "iterations"), [("falkon", 30), ("dkrr_ny_cm", 1)])
def test_one_client_is_nystroem_s_closed_form(algo: str, iterations: int) -> None:
    """Of one client its own solution is that of all, without a communication."""
    world, _, centres, f = learned(algo, iterations, "partition.clients=1", "algo.centres=8")
    exact = one_shot.nystroem(kernel, *parts(world), centres, LAM, POINTS)
    assert_close(f, exact[None], 1e-8, "f")


def test_with_all_samples_for_centres_it_is_kernel_ridge() -> None:
    """The span of all samples holds the minimiser over all functions: (K + lam n / K I)^-1 y, of equal clients."""
    world, _, centres, f = learned("falkon", 40, "algo.centres=1000", "partition.rounds=12")
    x, y = (np.concatenate(part) for part in parts(world))
    assert sorted(map(tuple, centres)) == sorted(map(tuple, x))
    gram = np.array([[kernel(a, b) for b in x] for a in x])
    clients = world.problem.clients
    a = np.linalg.solve(gram + LAM * len(x) / clients * np.eye(len(x)), y)
    exact = np.array([[kernel(point, b) for b in x] for point in POINTS]) @ a
    assert_close(f, np.broadcast_to(exact, f.shape), 1e-7, "f")


def test_centres_are_drawn_without_replacement_and_uniformly() -> None:
    u = np.random.default_rng(0).random((20000, 3))
    drawn = np.array([_without_replacement(one, 5) for one in u])
    assert all(len(set(one)) == 3 for one in drawn[:1000])
    np.testing.assert_allclose(np.bincount(drawn.ravel(), minlength=5) / len(u), 0.6, atol=0.02)
    assert sorted(_without_replacement(u[0], 2)) == [0, 1], "all there are"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("privacy=local", "privacy.clip=1"), "privacy=Local: must be null for FALKON"),
        (("participation=share",), "participation=Share: must be null for FALKON, whose rounds no client can miss"),
        (("kernels.N=2", "kernels.largest=3"), "kernels.N=2: must be 1: FALKON learns one kernel"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(FklError, match=said):
        api.run("algo=falkon", "dataset=diabetes", "replicates=1", *words)
