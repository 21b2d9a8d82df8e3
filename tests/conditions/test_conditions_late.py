"""Late updates and labels: by 0 rounds they change nothing, by more they are what a literal loop makes of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL
from literal.common import feature_vector, frequencies, gradient
from literal.worlds import Size, make_dictionary, make_problem, run

from fkl.algorithms.federated.descent import OfmklAvg, Ofskl
from fkl.basics.random_streams import Role
from fkl.conditions import wrap_method
from fkl.conditions.late import LateLabels, LateUpdates
from fkl.study.plan import Plan
from fkl.study.progress import check_study


@pytest.mark.parametrize("drawn", ["client", "message"])
def test_updates_are_those_of_a_literal_loop(drawn: str) -> None:
    """Each gradient, made dense, waits in a list until it is due."""
    size, exponent = Size(R=1, K=4, N=2, D=6, T=14), 0.5
    problem, dictionary = make_problem(size, 3, absent=0.2), make_dictionary(size)
    method = wrap_method(OfmklAvg(eta=0.3, lam=0.05), {"late": LateUpdates(3, drawn, exponent)})
    trace = run(method, problem, dictionary, replicates=(0,))
    streams, bank = trace.world.streams, trace.world.bank
    omega = frequencies(bank.rho[0], bank.scale)
    theta = [np.zeros(2 * size.D) for _ in range(size.N)]
    waiting: list[tuple[int, int, list[Any]]] = []
    for t in range(size.T):
        for k in np.flatnonzero(problem.present[t]):
            z = [feature_vector(one, problem.x[t, k]) for one in omega]
            y_hat = np.mean([theta[i] @ z[i] for i in range(size.N)])
            assert abs(y_hat - trace.y_hat[0, t, k]) < 1e-12, (t, k)
            delay = int(4 * streams.uniform_for_all(Role.DELAY, t + 1 if drawn == "message" else 0, size.K)[k])
            waiting.append((t, t + delay, [gradient(theta[i], z[i], problem.y[t, k], 0.05) for i in range(size.N)]))
        now = [(t - sent, slopes) for sent, due, slopes in waiting if due == t]
        for i in range(size.N):
            step = sum((1 + age) ** -exponent * slopes[i] for age, slopes in now) / max(len(now), 1)
            theta[i] = theta[i] - 0.3 * step
    ages = {due - sent for sent, due, _ in waiting}
    assert len(ages) >= (4 if drawn == "message" else 2)
    np.testing.assert_allclose(trace.state.server.method.theta[0], theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("factor", "stable"), [(0.9, True), (1.1, False)])
def test_late_gradients_bear_the_step_that_theory_says(factor: float, stable: bool) -> None:
    """One sample, again and again: r_{t+1} = r_t - 2 eta r_{t-d} dies out up to 2 eta = 2 sin(pi / (2 (2 d + 1)))."""
    size, d = Size(R=1, K=1, N=1, T=300), 4
    one = make_problem(size, 0)
    same = replace(one, x=np.repeat(one.x[:1], 300, axis=0), y=np.ones((300, 1)))
    eta = factor * np.sin(np.pi / (2 * (2 * d + 1)))
    method = wrap_method(Ofskl(eta=eta, lam=0.0), {"late": LateUpdates(d)})
    off = np.abs(run(method, same, make_dictionary(size), replicates=(0,)).y_hat[0, :, 0] - 1)
    assert (off[-50:].max() < 0.1 * off[:50].max()) == stable
    assert (off[-50:].max() > off[:50].max()) != stable


def test_late_labels_are_those_of_a_literal_loop() -> None:
    """Predict x of t, and step by the sample of t - d with the theta of t; nothing travels up before."""
    size, d = Size(R=1, K=3, N=2, D=6, T=10), 3
    problem, dictionary = make_problem(size, 4), make_dictionary(size)
    method = wrap_method(OfmklAvg(eta=0.3, lam=0.05), {"late": LateLabels(d)})
    trace = run(method, problem, dictionary, replicates=(0,))
    omega = frequencies(trace.world.bank.rho[0], trace.world.bank.scale)
    theta = [np.zeros(2 * size.D) for _ in range(size.N)]
    for t in range(size.T):
        for k in range(size.K):
            z = [feature_vector(one, problem.x[t, k]) for one in omega]
            assert abs(np.mean([theta[i] @ z[i] for i in range(size.N)]) - trace.y_hat[0, t, k]) < 1e-12
        if t >= d:
            x, y = problem.x[t - d], problem.y[t - d]
            for i in range(size.N):
                slopes = [gradient(theta[i], feature_vector(omega[i], x[k]), y[k], 0.05) for k in range(size.K)]
                theta[i] = theta[i] - 0.3 * sum(slopes) / size.K
    np.testing.assert_allclose(trace.state.server.method.theta[0], theta, rtol=0, atol=1e-12)
    sent = trace.ledger.tallies["uplink"].by_round[:, 0, 0]
    np.testing.assert_array_equal(sent, [0] * d + [size.K] * (size.T - d))


@pytest.mark.parametrize("late", ["late=updates", "late=updates, late.drawn=message", "late=labels"])
def test_what_looks_at_the_first_round_refuses_nothing_that_a_run_accepts(
    late: str, fkl: Callable, tmp_path: Path
) -> None:
    """Columns of a future run are found in its first round, before anything late arrives."""
    words = (*SMALL, "algo=vm_kofl", "partition.rounds=20", *late.split(", "))
    for command in (("run", *words, "objective=mse", "figures=none"), ("plan", *words)):
        assert fkl(*command).code == 0, fkl(*command).err
    data = "[{dataset: diabetes, partition.rounds: 20}]"
    given = f"methods: [vm_kofl, ofmkl_avg]\ndatasets: {data}\nset: [{late}, kernels.D=4]\n"
    (tmp_path / "study.yaml").write_text(given)
    check_study(Plan.read(tmp_path / "study.yaml"))
    for command in (("run", *words), ("plan", *words), ("run", *words, "objective=mse")):
        longer = fkl(*(word.replace("message", "all") for word in command), "late.rounds=20")
        assert longer.code == 2 and "late.rounds=20: must be an integer below 20, the number of rounds" in longer.err
