"""Bounds hold where they must, and are close on some streams; planted faults break what should notice them."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import SMALL
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.worlds import Size, make_dictionary, make_problem

from fkl.algorithms.federated.fed_poe import FedPoe
from fkl.algorithms.federated.fomd_oms import FomdOms
from fkl.algorithms.federated.pof_mkl import PofMkl, choose_bin
from fkl.algorithms.federated.rf_gp import RfGp
from fkl.algorithms.online.learners import Raker
from fkl.conformance.identities import evaluate_identities
from fkl.engines.base import Experiment
from fkl.network import Network
from fkl.theory import pof_mkl
from fkl.theory.answer import TheoremsAnswer, _first_line, by_theory
from fkl.theory.base import FormVerdict, Theorem, derived_form, judge_forms


def opposed_to(kind, theta_of):
    """The class, with the stream y = -1 where the only kernel predicts f > 0, else 1."""

    class Opposed(kind):
        def step(self, world, state, t):
            f = world.bank.predict(world.problem.x[t], theta_of(state))[0, 0, 0]
            world.problem.y[t] = -1.0 if f > 0 else 1.0
            return super().step(world, state, t)

    return Opposed


def of_one_x(size):
    """A stream of one x, with y = 1."""
    problem = make_problem(size, 0)
    return replace(problem, x=np.broadcast_to(problem.x[:1, :1], problem.x.shape), y=np.ones(problem.y.shape))


def answer(method, problem, dictionary, replicates=1) -> TheoremsAnswer:
    """Verdicts and identities, as `fkl bound` has them."""
    experiment = Experiment(problem, dictionary, Network(), method, 0, replicates, "float64")
    return TheoremsAnswer(by_theory(experiment).verdicts, tuple(evaluate_identities(experiment, (0,))))


def found(told: TheoremsAnswer, name: str, form: str):
    """The verdict on one form of a theorem."""
    [one] = [one for one in told.verdicts if (one.theorem.name, one.form.name) == (name, form)]
    return one


def held(told: TheoremsAnswer) -> dict[str, bool]:
    """Which identities hold."""
    return {one.name: one.holds for one in told.identities}


@settings(max_examples=10)
@given(st.integers(0, 2**31), st.floats(0.01, 0.9), st.sampled_from([1.0, 0.3]), st.floats(0.0, 0.3))
def test_no_stream_exceeds_what_holds_surely(seed, eta_k, scale, absent) -> None:
    """With M = N nothing is drawn, so descent holds surely, too."""
    size = Size(K=2, N=3, D=4, T=25)
    problem = make_problem(size, seed, absent)
    problem = replace(problem, y=problem.y / scale)
    told = answer(PofMkl(M=3, eta_k=eta_k), problem, make_dictionary(size))
    assert not told.wrong
    assert all(held(told).values())
    assert found(told, "Theorem 1", "corrected").form.unmet == ()
    assert bool(found(told, "Lemma 3", "corrected").form.unmet) == bool(absent > 0 and not problem.present.all())

    alone = Size(K=1, N=3, D=4, T=25)
    assert not answer(Raker(eta=eta_k), make_problem(alone, seed), make_dictionary(alone)).wrong
    assert not answer(RfGp(personal=True, noise=eta_k), problem, make_dictionary(size)).wrong


def test_targets_against_the_sign_are_close_to_lemma_3() -> None:
    size = Size(K=1, N=1, D=3, T=2000)
    against = opposed_to(PofMkl, lambda state: state.server.theta)(M=1, lam=0.0)
    told = answer(against, of_one_x(size), make_dictionary(size))
    of_kernel, of_all = (found(told, name, "corrected") for name in ("Lemma 3", "Theorem 2"))
    assert 1 <= of_kernel.factor < 1.03
    assert of_all.left == pytest.approx(of_kernel.left), "of one client with one kernel"


def test_probabilities_of_kernels_are_those_of_the_drawn_bins() -> None:
    """Each kernel's probability is how often it is drawn."""
    method, log_w = PofMkl(M=2, xi=0.4), np.log([[[0.5, 0.1, 0.2, 0.15, 0.05]]])
    often = np.mean([choose_bin(log_w, 2, 0.4, np.array([[u]]))[0] for u in np.linspace(0, 1, 4000, False)], axis=0)
    np.testing.assert_allclose(pof_mkl.sending_odds(method, log_w), often[0], atol=1e-3)


def test_a_finished_run_is_answered(fkl) -> None:
    """The left side of Theorem 1 is the largest regret in clients.csv."""
    assert fkl("run", "algo=pof_mkl", *SMALL, "figures=none", "out=one", "-q").code == 0
    told = fkl("bound", "one", "-v")
    assert (told.code, told.err) == (0, "figure: one/bound.png\n")
    assert Path("one/bound.png").exists()
    assert told.out.startswith("▲ POF-MKL on diabetes: 4 bounds hold, but say nothing here, the closest is ")
    assert "Theorem 1, corrected" in told.out
    assert "convex loss: holds" in told.out
    rows = pd.read_csv("one/clients.csv")
    table = fkl("bound", "one", "--format=csv").out
    left = pd.read_csv(StringIO(table), nrows=6).set_index("bound").left["Theorem 1, printed"]
    assert left == pytest.approx(rows.regret_best_kernel.max(), rel=5e-3)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("algo=pof_mkl", "compression=uniform"), 2, "do not cover a run with compression"),
        (("algo=ofmkl_avg",), 0, "✓ OFMKL-Avg on diabetes: identities hold (unbiased step); no bound is computed"),
    ],
)
def test_a_run_with_conditions_or_of_other_methods_has_no_bounds(fkl, words, code, said) -> None:
    assert fkl("run", *words, *SMALL, "figures=none", "out=one", "-q").code == 0
    told = fkl("bound", "one")
    assert (told.code, said in told.out + told.err) == (code, True)


# --- Bounds of FOMD-OMS and Fed-POE: no stream exceeds sure ones, and planted faults do.


def bounds_of(method, problem, dictionary, replicates=1) -> dict[str, FormVerdict]:
    """Verdicts by name."""
    experiment = Experiment(problem, dictionary, Network(), method, 0, replicates, "float64")
    return {verdict.theorem.name: verdict for verdict in by_theory(experiment).verdicts}


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.floats(0.05, 2), st.sampled_from([1.0, 0.2]), st.floats(0, 0.3), st.booleans())
def test_no_stream_exceeds_bounds_of_experts(seed, rate, scale, absent, theory) -> None:
    """With J = N nothing but the kernel that predicts is drawn."""
    size = Size(K=2, N=3, D=4, T=25)
    problem = make_problem(size, seed, absent)
    problem = replace(problem, y=problem.y / scale)
    rates = {} if theory else {"eta": rate, "step_size": rate / 4}
    alone = FomdOms(J=3, **rates)
    for method in (alone, replace(alone, U=0.3, Y=2.0), FedPoe(eta=rate / 4, eta_k=rate)):
        for name, verdict in bounds_of(method, problem, make_dictionary(size)).items():
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
    played = opposed_to(type(method), theta_of)(**vars(method))
    assert 1 <= bounds_of(played, of_one_x(size), make_dictionary(size))[name].factor < 1.03


@pytest.mark.parametrize(
    ("bounds", "first"),
    [
        ([(1e16, 10.0)], "▲ it: 1 bound holds, but says nothing here, the closest is 1e+16 times the left side"),
        (
            [(30, 10.0), (1e16, None)],
            "▲ it: 2 bounds hold, but say nothing here, the closest is 30 times the left side",
        ),
        ([(1e7, 1e8)], "✓ it: 1 bound holds, the closest is 1e+07 times the left side"),  # less than the trivial one
        (
            [(30, 10.0), (4, 10.0), (5, None)],
            "✓ it: 2 bounds hold, the closest is 4 times the left side; 1 vacuous, by a factor of up to 30",
        ),
    ],
)
def test_a_bound_that_says_nothing_is_no_tick(bounds: list[tuple[float, float | None]], first: str) -> None:
    verdicts = [
        verdict
        for right, trivial in bounds
        for verdict in judge_forms(
            [
                Theorem(
                    "", "T", "all", np.ones((1, 1)), derived_form("", np.full((1, 1), float(right))),
                    None if trivial is None else np.array([trivial]),
                )
            ]
        )
    ]  # fmt: skip
    assert _first_line(TheoremsAnswer(tuple(verdicts), ()), "it") == first
