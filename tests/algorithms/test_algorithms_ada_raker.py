"""AdaRaker against its literal transcription, its limiting cases, and what it is for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from literal import ada_raker
from literal.common import frequencies
from literal.worlds import Size, Trace, assert_close, make_dictionary, make_problem, run

from fkl.algorithms.online.learners import AdaRaker, Raker, _parts_by_interval
from fkl.basics.errors import BadValue
from fkl.runs import api

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
SIZE = Size(R=2, K=1, N=4, D=5, T=150)
METHODS = [AdaRaker(restart=True), AdaRaker(eta=0.9, lam=0.1, restart=True), AdaRaker(eta=0.3)]


def literal_run(method: AdaRaker, trace: Trace, r: int) -> Any:
    world = trace.world
    x, y = np.asarray(world.problem.x[:, 0], float), world.problem.y[:, 0]
    omega = frequencies(world.bank.rho[r], world.bank.scale)
    return ada_raker.run(x, y, omega, eta=method.eta, lam=method.lam, restart=method.restart)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("options", [{}, {"laplacians": 2}], ids=["rbf", "mixed"])
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


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_block_size_changes_nothing_beyond_rounding(method: AdaRaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1, of 7 rounds and of more rounds than there are."""
    problem, dictionary = make_problem(SIZE, seed=3), make_dictionary(SIZE)
    whole = run(method, problem, dictionary)
    for block in (1, 7, 1000):
        monkeypatch.setattr(AdaRaker, "block", block)
        assert_close(run(method, problem, dictionary).y_hat, whole.y_hat, 1e-12, f"blocks of {block}")


@pytest.mark.parametrize("block", [1, 5, 64])
def test_every_round_is_in_one_interval_of_each_length_that_has_begun(block: int) -> None:
    """1 + floor(log2 t) of them, t from 1, as the bound on their number has it; each begins at a multiple."""
    T = 200
    found: list[list[tuple[int, int]]] = [[] for _ in range(T)]
    for start in range(0, T, block):
        rounds = slice(start, min(T, start + block))
        for j in range(8):
            for part, begins in _parts_by_interval(j, rounds):
                assert begins == ((start + part.start + 1) % 2**j == 0)
                for t in range(part.start, part.stop):
                    found[start + t].append((j, (start + t + 1) // 2**j))
                assert len({found[start + t][-1] for t in range(part.start, part.stop)}) == 1
    for t, intervals in enumerate(found, 1):
        assert [j for j, _ in intervals] == list(range(t.bit_length()))


def test_an_instance_is_raker_on_its_interval() -> None:
    """The longest instance at the end has seen the samples since its interval began, and those alone."""
    size = replace(SIZE, T=100)
    method = AdaRaker(eta=0.4, restart=True)
    trace = run(method, make_problem(size, seed=4), make_dictionary(size))
    bank, problem = trace.world.bank, trace.world.problem
    since = slice(63, 100)  # rounds 64 to 100, from 1
    eta = np.full(37, 0.4 / 8)
    start = np.zeros((bank.replicates, bank.kernels, bank.width))
    _, _, theta = bank.follow(problem.x[since, 0], problem.y[since, 0], eta, method.lam, start)
    assert_close(trace.state.theta[:, 6], theta, 1e-12, "theta")


def test_in_its_first_round_it_knows_nothing_and_one_kernel_has_no_weights() -> None:
    """Prediction 0; with one kernel, w stays out of it: log w is its losses and nothing else."""
    size = replace(SIZE, N=1)
    trace = run(AdaRaker(restart=True), make_problem(size, seed=4), make_dictionary(size))
    assert (trace.y_hat[:, 0] == 0).all()
    assert (trace.state.log_w <= 0).all()


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_second_layer_loses_little_to_any_instance(method: AdaRaker) -> None:
    """On every interval, sum L(f_hat) - L(f_I) is what h_I has gained over eta_I: no more than its logarithm's room.

    By construction log h_I at the end of I is log eta_I + eta_I times that regret, and h_I is at most all h together.
    """
    trace = run(method, make_problem(SIZE, seed=6), make_dictionary(SIZE))
    for r in range(SIZE.R):
        literal = literal_run(method, trace, r)
        steps = np.minimum(0.5, method.eta / 2 ** (np.arange(8) / 2))
        regret = (literal.log_u - np.log(steps)) / steps
        room = (np.log(np.exp(trace.state.log_h[r]).sum()) - np.log(steps)) / steps
        assert (regret <= room + 1e-9).all()
        rounds = np.minimum(2.0 ** np.arange(8), SIZE.T)
        assert (regret <= np.log(1 + SIZE.T) / steps + steps * rounds).all(), "the order of the paper's lemma"


def test_on_a_drifting_stream_it_regrets_less_than_raker() -> None:
    """Against what is expected of each target, where the concept changes suddenly, each with the same eta.

    Instances that begin anew do not: where a target is not near 0, knowing nothing costs more than the drift.
    """
    words = ("dataset=drift", "dataset.clients=1", "dataset.rounds=1200", "dataset.every=150", "kernels.N=5")
    words = (*words, "kernels.laplacians=0", "kernels.D=30", "replicates=3", "algo.eta=0.5")
    asked = {"raker": (), "ada_raker": (), "anew": ("algo.restart=true",)}
    algos = {"anew": "ada_raker"}
    regret = {
        name: api.run(f"algo={algos.get(name, name)}", *words, *more).summary["regret_dynamic"]
        for name, more in asked.items()
    }
    assert (regret["ada_raker"] < 0.8 * regret["raker"]).all()
    assert (regret["anew"] > regret["raker"]).all()


def test_bad_values_are_named() -> None:
    for key, value in (("eta", 0.0), ("lam", -1.0)):
        with pytest.raises(BadValue, match=key):
            AdaRaker(**{key: value})
    assert AdaRaker().lam == Raker().lam
