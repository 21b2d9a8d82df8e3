"""fkl is the papers' methods as `examples/one_file` writes them: each in one script, with numpy alone."""

import subprocess
import sys

import numpy as np
import pytest
from literal.common import Array
from literal.worlds import ONE_FILE, Size, Trace, assert_close, draws, make_dictionary, make_problem, run, script

from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.algorithms.parsimonious.dual import Dual, maximise_dual
from fkl.algorithms.parsimonious.solver import Quadrature


def omega(trace: Trace, r: int) -> Array:
    """Frequencies (N, D, d) of replicate r."""
    bank = trace.world.bank
    return (np.asarray(bank.rho[r]) * np.asarray(bank.scale)[:, None, None]).transpose(0, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in ONE_FILE.glob("*.py")))
def test_a_script_runs_and_prints_what_it_reached(name: str) -> None:
    ran = subprocess.run([sys.executable, ONE_FILE / f"{name}.py"], capture_output=True, text=True, check=True)
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


def test_parsimonious_functions() -> None:
    """The script's gradient ascent and Newton's method in fkl end at one dual value."""
    module, rng = script("parsimonious"), np.random.default_rng(0)
    x, y, _ = module.make_data(rng, 60)
    mu, alpha = module.ascend(np.zeros(60), x, y, 2.0, 0.1, 20_000)
    s, w = module.nodes()
    value = module.dual_value(mu, y, module.kernel(s, w, x), 2.0, 0.1)
    grid = Quadrature.over_box(module.BOX, module.CENTRES**2, module.WIDTHS)
    ours = maximise_dual(Dual.single_problem(grid, x, y, 2.0, 0.1), 4000, 1e-9)
    assert value == pytest.approx(ours.value[0], rel=1e-3)
    assert module.accuracy(alpha, x, y) == (np.sign(ours.model().predict(x)) == y).mean()
