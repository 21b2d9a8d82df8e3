"""Bounds of FOMD-OMS and Fed-POE: no stream exceeds sure ones, and planted faults do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.worlds import Size, make_dictionary, make_problem

from fkl.algorithms.federated.fed_poe import FedPoe
from fkl.algorithms.federated.fomd_oms import FomdOms
from fkl.engines.base import Experiment
from fkl.network import Network
from fkl.theory.answer import by_theory
from fkl.theory.base import Verdict


def opposed(kind, theta_of):
    """The class, with the stream y = -1 where the only kernel predicts f > 0, else 1."""

    class Opposed(kind):
        def step(self, world, state, t):
            f = world.bank.predict(world.problem.x[t], theta_of(state))[0, 0, 0]
            world.problem.y[t] = -1.0 if f > 0 else 1.0
            return super().step(world, state, t)

    return Opposed


def constant_x(size):
    """A stream of one x, with y = 1."""
    problem = make_problem(size, 0)
    return replace(problem, x=np.broadcast_to(problem.x[:1, :1], problem.x.shape), y=np.ones(problem.y.shape))


def bounds(method, problem, dictionary, replicates=1) -> dict[str, Verdict]:
    """Verdicts by name."""
    experiment = Experiment(problem, dictionary, Network(), method, 0, replicates, "float64")
    return {verdict.theorem.name: verdict for verdict in by_theory(experiment).verdicts}


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.floats(0.05, 2), st.sampled_from([1.0, 0.2]), st.floats(0, 0.3), st.booleans())
def test_no_stream_exceeds_what_holds_surely(seed, rate, scale, absent, theory) -> None:
    """With J = N nothing but the kernel that predicts is drawn."""
    size = Size(K=2, N=3, D=4, T=25)
    problem = make_problem(size, seed, absent)
    problem = replace(problem, y=problem.y / scale)
    rates = {} if theory else {"eta": rate, "step_size": rate / 4}
    alone = FomdOms(J=3, **rates)
    for method in (alone, replace(alone, U=0.3, Y=2.0), FedPoe(eta=rate / 4, eta_k=rate)):
        for name, verdict in bounds(method, problem, make_dictionary(size)).items():
            assert verdict.form.kind == "surely"
            assert verdict.form.unmet or not verdict.exceeded, name
            whole = problem.present.all() or name in ("Ensemble", "Weights")
            assert bool(verdict.form.unmet) != whole


@pytest.mark.parametrize(
    ("method", "name", "theta_of"),
    [
        (FomdOms(J=1, U=100.0, step_size=0.02), "Descent", lambda state: state.server.theta),
        (FedPoe(lam=0.0, eta=0.02), "Own descent", lambda state: state.client.theta[:, :, 0]),
    ],
)
def test_targets_against_the_sign_are_close_to_the_bound(method, name, theta_of) -> None:
    size = Size(K=1, N=1, D=3, T=2500)
    played = opposed(type(method), theta_of)(**vars(method))
    assert 1 <= bounds(played, constant_x(size), make_dictionary(size))[name].factor < 1.03
