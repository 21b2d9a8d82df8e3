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


class DoubledOmsStep(FomdOms):
    """The server's step is twice the declared one."""

    def server(self, *given):
        return FomdOms.server(replace(self, step_size=2 * self.step_size), *given)


class WithoutChances(FomdOms):
    """Losses and gradients are not divided by P."""

    def chances(self, log_p):
        return np.ones_like(log_p)


class WrongWay(FedPoe):
    """Weights of both mixtures grow with their losses."""

    def client(self, common, client, *given):
        before = client.log_ab.copy()
        after, up, outcome = super().client(common, client, *given)
        return replace(after, log_ab=2 * before - after.log_ab), up, outcome


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
    ("method", "name", "theta_of", "exceeded"),
    [
        (FomdOms(J=1, U=100.0, step_size=0.02), "Descent", lambda state: state.server.theta, False),
        (DoubledOmsStep(J=1, U=100.0, step_size=0.02), "Descent", lambda state: state.server.theta, True),
        (FedPoe(lam=0.0, eta=0.02), "Own descent", lambda state: state.client.theta[:, :, 0], False),
    ],
)
def test_targets_against_the_sign_show_a_doubled_step(method, name, theta_of, exceeded) -> None:
    size = Size(K=1, N=1, D=3, T=2500)
    played = opposed(type(method), theta_of)(**vars(method))
    told = bounds(played, constant_x(size), make_dictionary(size))[name]
    assert told.exceeded == exceeded
    assert exceeded or told.factor < 1.03


@pytest.mark.parametrize(("kind", "exceeded"), [(FomdOms, False), (WithoutChances, True)])
def test_a_constant_stream_shows_dropped_chances(kind, exceeded) -> None:
    size = Size(K=2, N=16, D=3, T=600)
    told = bounds(kind(J=2, U=2.0, step_size=0.03), constant_x(size), make_dictionary(size), replicates=3)
    assert told["Descent"].exceeded == exceeded


@pytest.mark.parametrize(("kind", "exceeded"), [(FedPoe, False), (WrongWay, True)])
def test_clients_that_differ_show_weights_that_go_the_wrong_way(kind, exceeded) -> None:
    """Two clients with targets 1 and -1: together they learn nothing."""
    size = Size(K=2, N=2, D=3, T=400)
    problem = constant_x(size)
    problem.y[:, 1] = -1.0
    told = bounds(kind(eta=0.1), problem, make_dictionary(size))["Ensemble"]
    assert told.exceeded == exceeded
