"""fkl is the papers' methods as `examples/one_file` writes them: each in one script, with numpy alone."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from literal.common import Array
from literal.worlds import Size, Trace, assert_close, draws, make_dictionary, make_problem, play_experiment, run

from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.algorithms.parsimonious.dual import Dual, solve
from fkl.algorithms.parsimonious.solver import Quadrature
from fkl.algorithms.vertical.fdskl import Fdskl
from fkl.basics.random_streams import Streams
from fkl.contract.world import Common
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.network.topology import connected

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "one_file"
NAMES = sorted(file.stem for file in FOLDER.glob("*.py"))


def script(name: str) -> Any:
    spec = spec_from_file_location(f"one_file_{name}", FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def omega(trace: Trace, r: int) -> Array:
    """Frequencies (N, D, d) of replicate r."""
    bank = trace.world.bank
    return (np.asarray(bank.rho[r]) * np.asarray(bank.scale)[:, None, None]).transpose(0, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_script_runs_and_prints_what_it_reached(name: str) -> None:
    ran = subprocess.run([sys.executable, FOLDER / f"{name}.py"], capture_output=True, text=True, check=True)
    assert len(ran.stdout.splitlines()) >= 3


@pytest.mark.parametrize(("M", "xi"), [(1, 1.0), (3, 0.5)])
def test_pof_mkl(M: int, xi: float) -> None:
    size = Size(N=7, K=4, T=20)
    method = PofMkl(M=M, xi=xi, eta=0.05, eta_k=0.8, lam=0.01)
    trace = run(method, make_problem(size, seed=3), make_dictionary(size))
    for r in range(2):
        x, y = trace.world.problem.x, trace.world.problem.y
        uniform = draws(trace, r, size.K)
        found = script("pof_mkl").pof_mkl(x, y, omega(trace, r), uniform, M, xi, 0.05, 0.8, 0.01)
        state = trace.state
        for ours, theirs in zip((trace.y_hat[r], state.server.theta[r], state.client.log_w[r]), found, strict=True):
            assert_close(ours, theirs, 1e-9, "pof_mkl")


def test_graph_omkl() -> None:
    size = Size(N=7, K=1, T=30)
    method = OmklGf(M=3, J=2, exploring=12, eta=0.5, lam=0.01)
    trace = run(method, make_problem(size, seed=3), make_dictionary(size))
    for r in range(2):
        x, y, state = trace.world.problem.x[:, 0], trace.world.problem.y[:, 0], trace.state
        drawn = state.graph_draws[r], state.node_draws[r]
        found = script("graph_omkl").omkl_gf(x, y, omega(trace, r), *drawn, 0.5, 0.01)
        for ours, theirs in zip((trace.y_hat[r, :, 0], state.theta[r], state.log_w[r]), found, strict=True):
            assert_close(ours, theirs, 1e-9, "omkl_gf")


@pytest.mark.parametrize("v", [0.0, 0.4])
def test_coke(v: float) -> None:
    graph, rng = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]), np.random.default_rng(0)
    method = Coke(lam=0.01, rho=0.05, v=v, mu=0.9, iterations=40, test_share=1 / 3)
    batch = method.batch(make_problem(Size(K=5, T=24), seed=3), rng)
    kernel = Dictionary(N=1, D=8, smallest=1.0, largest=1.0)
    played = play_experiment(Experiment(batch, kernel, Network(), method, 0, 2, "float64", connected(graph)))
    x, y, client = batch.part(True)
    neighbours = [sorted(graph[k]) for k in range(5)]
    for r in range(2):
        phi = played.world.bank.features(x)[r, 0]
        given = [phi[client == k] for k in range(5)], [y[client == k] for k in range(5)]
        theta, sent = script("coke").coke(*given, neighbours, 0.01, 0.05, lambda k: v * 0.9**k, 40)
        assert_close(np.stack(played.outcomes)[:, r], theta, 1e-9, "theta")
        assert np.cumsum(played.ledger.tallies["broadcast"].by_round[:, r, 0]).tolist() == sent.tolist()


def test_fdskl() -> None:
    rng, module = np.random.default_rng(0), script("fdskl")
    x = rng.uniform(0, 1, (30, 7))
    y = np.where((x[:, 0] - 0.5) * (x[:, 1] - 0.5) > 0, 1.0, 0.0)
    problem = FeatureGroups(3, "contiguous").split(Table.of_one_site(x, y, tuple(map(str, range(7)))), rng)
    method = Fdskl(iterations=12, gamma=2.0, lam=0.1, batch=3, features=2)
    streams = Streams(5, (1,))
    kernel = Dictionary(N=1, smallest=0.5, largest=0.5, bandwidth_convention="deviation")
    common = Common(kernel, problem.dimension, problem.rounds, streams, "float64")
    learner = method.learner(common, problem)
    method.advance(common, problem, learner, 12)
    apart = [stays for _, stays in method.duties(problem, streams).tolist()]
    w = np.stack([method.directions(common, t) for t in range(12)])
    b = np.stack([[method.phases(common, t, party) for party in range(3)] for t in range(12)]).transpose(0, 2, 1)
    batches = learner.batches.tolist()
    given = (problem.x, problem.y, [*problem.groups], apart, batches, w, b, module.logistic, 2.0, 0.1)
    assert_close(learner.alpha.reshape(12, 2), module.fdskl(*given), 1e-9, "alpha")


def test_parsimonious_functions() -> None:
    """The script's gradient ascent and Newton's method in fkl end at one dual value."""
    module, rng = script("parsimonious"), np.random.default_rng(0)
    x, y, _ = module.make_data(rng, 60)
    mu, alpha = module.ascend(np.zeros(60), x, y, 2.0, 0.1, 20_000)
    s, w = module.nodes()
    value = module.dual_value(mu, y, module.kernel(s, w, x), 2.0, 0.1)
    grid = Quadrature.over_box(module.BOX, module.CENTRES**2, module.WIDTHS)
    ours = solve(Dual.single(grid, x, y, 2.0, 0.1), 4000, 1e-9)
    assert value == pytest.approx(ours.value[0], rel=1e-3)
    assert module.accuracy(alpha, x, y) == (np.sign(ours.model().predict(x)) == y).mean()
