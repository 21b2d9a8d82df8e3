"""AdaRaker against its literal transcription, its limiting cases, and what it is for."""

from typing import Any

import numpy as np
import pytest
from literal import ada_raker
from literal.common import frequencies
from literal.worlds import Size, Trace, assert_close, make_dictionary, make_problem, run

from fkl.algorithms.online.learners import AdaRaker
from fkl.runs import api

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
SIZE = Size(R=2, K=1, N=4, D=5, T=150)
METHODS = [AdaRaker(eta=0.9, lam=0.1, restart=True), AdaRaker(eta=0.3)]


def literal_run(method: AdaRaker, trace: Trace, r: int) -> Any:
    world = trace.world
    x, y = np.asarray(world.problem.x[:, 0], float), world.problem.y[:, 0]
    omega = frequencies(world.bank.rho[r], world.bank.scale)
    return ada_raker.run(x, y, omega, eta=method.eta, lam=method.lam, restart=method.restart)


@pytest.mark.parametrize(("options", "precision"), [({"laplacians": 2}, "float64"), ({}, "float32")])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_it_is_its_literal(method: AdaRaker, options: dict[str, Any], precision: str) -> None:
    """Every round, and what is known after all of them, in blocks that no interval keeps to."""
    problem = make_problem(SIZE, seed=3, precision=precision)
    trace = run(method, problem, make_dictionary(SIZE, **options), seed=5, replicates=(0, 1), precision=precision)
    for r in range(SIZE.R):
        literal, tolerance = literal_run(method, trace, r), TOLERANCE[precision]
        assert_close(trace.y_hat[r, :, 0], literal.y_hat, tolerance, "y_hat")
        assert_close(trace.squared_norm[r, :, 0], literal.squared_norm, tolerance, "squared_norm")
        assert_close(np.asarray(trace.state.theta[r], float), literal.theta, tolerance, "theta")
        assert_close(trace.state.log_w[r], literal.log_w, tolerance, "log_w")
        assert_close(trace.state.log_h[r], literal.log_u, tolerance, "log_h")


def test_the_block_size_changes_nothing_beyond_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1, of 7 rounds and of more rounds than there are."""
    method = METHODS[0]
    problem, dictionary = make_problem(SIZE, seed=3), make_dictionary(SIZE)
    whole = run(method, problem, dictionary)
    for block in (1, 7, 1000):
        monkeypatch.setattr(AdaRaker, "block", block)
        assert_close(run(method, problem, dictionary).y_hat, whole.y_hat, 1e-12, f"blocks of {block}")


def test_on_a_drifting_stream_it_regrets_less_than_raker() -> None:
    """Against what is expected of each target, where the concept changes suddenly, each with the same eta."""
    words = ("dataset=drift", "dataset.clients=1", "dataset.rounds=900", "dataset.every=150", "kernels.N=3")
    words = (*words, "kernels.laplacians=0", "kernels.D=20", "replicates=2", "algo.eta=0.5")
    regret, of_raker = (
        api.run(f"algo={algo}", *words, quiet=True).summary["regret_dynamic"] for algo in ("ada_raker", "raker")
    )
    assert (regret < 0.8 * of_raker).all()
