"""Every registered algorithm keeps the promises of `fkl.conformance`, and the suite finds whoever breaks one."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import cheats
import numba
import numpy as np
import pytest
from cheats import RunningMean
from conftest import ALGORITHMS, is_a_test
from literal.worlds import Size, assert_close, make_dictionary, make_problem
from numpy.typing import NDArray

from fkl.algorithms.base import Outcome, World, mixture_norm
from fkl.algorithms.federated import descent
from fkl.conformance import PROMISES, BrokenPromiseError, Conformance, scenario
from fkl.conformance.promises import outcomes
from fkl.contract import star
from fkl.contract.star import Federated
from fkl.engines.experiment import Experiment, make_world
from fkl.kernels.threads import wake_for
from fkl.network import Network
from fkl.runs.prepare import prepare
from fkl.tasks.stream import ALONE
from fkl.wire import payloads

Promise = Callable[[Conformance], None]
IN_ONE_PROCESS = [promise for promise in PROMISES if promise is not Conformance.parties_share_nothing_but_messages]
LABELS = Conformance.labels_are_not_known_before_they_are_shown
IN_TURN = (
    "a round is a stretch of the server's stream: clients are asked in turn, each after the targets of those before"
)
EXCUSED: dict[tuple[str, Promise], str] = {
    (pooled, LABELS): IN_TURN for pooled in ("pooled_raker", "pooled_ada_raker", "pooled_omkl_gf")
}
"""Promises that an algorithm breaks, and why that is right; one that is kept after all fails."""

ABSENT = ("partition=quantity_skew", "partition.clients=5", "partition.rounds=60", "precision=float64")
NEAREST = ("compression=uniform", "compression.rounding=nearest")
NOISY = ("privacy=local", "privacy.clip=1.5", "privacy.noise=0.5")
LOSSY = ("network.loss=0.3", "topology=erdos_renyi", "topology.p=0.9")
DIFFICULT: dict[str, tuple[str, ...]] = {
    "pof_mkl, bins drawn, clients absent": ("algo=pof_mkl", "algo.M=2", "algo.xi=0.3", *ABSENT),
    "ofmkl_avg, clients absent": ("algo=ofmkl_avg", *ABSENT),
    "vm_kofl, clients absent": ("algo=vm_kofl", *ABSENT),
    "em_kofl, clients absent": ("algo=em_kofl", *ABSENT),
    "fed_poe, clients absent": ("algo=fed_poe", "algo.eta_k=3", *ABSENT),
    "fomd_oms, clients absent": ("algo=fomd_oms", "algo.J=3", "algo.eta=32", "algo.step_size=0.5", *ABSENT),
    "nco_oms, clients absent": ("algo=nco_oms", "algo.J=3", "algo.eta=32", "algo.step_size=0.5", *ABSENT),
    "rf_gp, clients absent": ("algo=rf_gp", "algo.flush=null", "algo.forget=0.95", *ABSENT),
    "rf_gp, an active few, clients absent": ("algo=rf_gp", "algo.M=3", "algo.flush=7", "algo.personal=true", *ABSENT),
    "rf_gp, summed up, clients absent": ("algo=rf_gp", "algo.rank=2", "algo.flush=6", *ABSENT),
    "perfedavg, clients absent": ("algo=perfedavg", *ABSENT),
    "raker, mixed families": ("algo=raker", "kernels.N=7", "kernels.laplacians=3", "precision=float64"),
    "cta, messages lost": ("algo=cta", *LOSSY),
    "coke, messages lost": ("algo=coke", "algo.v=0.1", *LOSSY),
    "coke, quantized": ("algo=coke", "algo.v=0.1", *NEAREST, "compression.bits=6"),
    "odkla, clients absent": ("algo=odkla", *ABSENT),
    "consensus_rf_gp, clients absent": ("algo=consensus_rf_gp", "algo.flush=null", "algo.forget=0.95", *ABSENT),
    "consensus_rf_gp, messages lost": ("algo=consensus_rf_gp", *LOSSY),
    "odkla, messages lost": ("algo=odkla", *LOSSY),
    "one_shot_ridge, clients absent": ("algo=one_shot_ridge", *ABSENT, "participation=share", *NOISY),
    "dkla, logistic": ("algo=dkla", "algo.loss=logistic", "algo.iterations=20", "dataset=ellipses", "dataset.rows=90"),
    "fdskl, a bank": ("algo=fdskl", "algo.bank=24", "precision=float64"),
    "fdskl, fresh masks, a fold": ("algo=fdskl", "algo.masks=fresh", "algo.fold=1", "precision=float64"),
    "secureboost, a fold": ("algo=secureboost", "algo.fold=0", "algo.trees=5"),
}
"""Where there is more that can go wrong."""


@cache
def conformance(*overrides: str) -> Conformance:
    """One scenario, whose traces all promises share."""
    return Conformance.from_overrides(*overrides)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_registered_algorithm(algo: str, promise: Promise) -> None:
    """Each promise by itself, or the reason why not."""
    if (algo, promise) in EXCUSED:
        with pytest.raises(BrokenPromiseError):
            promise(conformance(f"algo={algo}"))
        pytest.skip(EXCUSED[algo, promise])
    promise(conformance(f"algo={algo}"))


@pytest.mark.parametrize("promise", IN_ONE_PROCESS, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", DIFFICULT)
def test_difficult_scenario(name: str, promise: Promise) -> None:
    """The same where clients are absent, messages are lost, or doubles are used; parties as objects, not processes."""
    promise(conformance(*DIFFICULT[name]))


# --- one client is the centralized case

Shown = tuple[World, list[dict[str, Any]]]


def shown(*overrides: str) -> Shown:
    """What one replicate shows in every round, in doubles."""
    experiment = prepare(scenario(*overrides, "precision=float64"))
    world, _ = make_world(experiment, (0,))
    return world, [experiment.task.shown(world, outcome) for outcome in outcomes(experiment, world)]


def gradient_descent(one: Shown) -> None:
    """Online gradient descent on (theta'z - y)^2 + lam |theta|^2."""
    world, rounds = one
    problem, eta, lam = world.problem, 1 / np.sqrt(world.problem.rounds), 1e-3
    theta, expected = np.zeros(world.bank.width), []
    for x, y in zip(problem.x[:, 0], problem.y[:, 0], strict=True):
        z = world.bank.features(x[None])[0, 0, 0]
        expected.append(theta @ z)
        theta = theta - eta * (2 * (theta @ z - y) * z + 2 * lam * theta)
    found = np.array([told["y_hat"][0, 0] for told in rounds])
    assert_close(found, np.array(expected), 1e-10, "y_hat")


def closed_form(one: Shown) -> None:
    """The minimiser of the mean loss of all samples, with its regularisation."""
    world, rounds = one
    assert_close(rounds[-1]["theta"][0], world.loss.optimum(world.training, LAM), 1e-9, "theta")


def alike(overrides: tuple[str, ...], one: Shown) -> None:
    """Another algorithm's predictions."""
    _, other = shown(*overrides)
    mine, theirs = (np.array([told["y_hat"][0, 0] for told in rounds]) for rounds in (one[1], other))
    assert_close(mine, theirs, 1e-10, "y_hat")


LAM = 0.1
KERNEL = ("kernels.N=1", "kernels.smallest=1", "kernels.largest=1")
ONE = ("partition.clients=1",)
AGENT = (*ONE, f"algo.lam={LAM}")
Theory = tuple[tuple[str, ...], Callable[[Shown], None]] | str
THEORY: dict[str, Theory] = {
    "pof_mkl": ((*KERNEL, *ONE), gradient_descent),
    "ofmkl_avg": ((*KERNEL, *ONE), gradient_descent),
    "ofskl": ((*KERNEL, *ONE), gradient_descent),
    "vm_kofl": ((*KERNEL, *ONE), gradient_descent),
    "em_kofl": ((*KERNEL, *ONE), gradient_descent),
    "fed_poe": ((*KERNEL, *ONE), gradient_descent),
    "fomd_oms": "test_algorithms_model_selection.py::test_one_kernel_is_projected_gradient_descent_on_the_mean_loss",
    "nco_oms": "test_algorithms_model_selection.py::test_one_client_has_nobody_to_collaborate_with",
    "rf_gp": "test_algorithms_rf_gp.py::test_told_in_every_round_it_is_ridge_regression_on_pooled_samples",
    "perfedavg": "a step of meta-learning has no centralized counterpart, of one client either",
    "cta": ((*AGENT, "algo.eta=0.5", "algo.iterations=400"), closed_form),
    "push_cta": ((*AGENT, "algo.eta=0.5", "algo.iterations=400"), closed_form),
    "dkla": (AGENT, closed_form),
    "one_shot_ridge": (AGENT, closed_form),
    **dict.fromkeys(("dkrr_ny_cm", "falkon"), "test_algorithms_nystroem.py::test_one_client_is_nystroem_s_closed_form"),
    "link_dkla": (AGENT, closed_form),
    "coke": ((*AGENT, "algo.v=0.5", "algo.mu=0.8"), closed_form),
    "dekrr_ddrf": "test_algorithms_dekrr_ddrf.py::test_without_others_it_is_ridge_on_its_own_features",
    "odkla": (ONE, gradient_descent),
    "consensus_rf_gp": "test_algorithms_consensus_rf_gp.py::test_one_agent_is_one_client",
    "domkl": "test_algorithms_streams_on_graphs.py::test_domkl_alone_takes_proximal_steps_and_hedges",
    "qc_odkla": (ONE, gradient_descent),
    "pooled_raker": (ALONE, partial(alike, ("algo=raker",))),
    "pooled_ada_raker": (ALONE, partial(alike, ("algo=ada_raker",))),
    "pooled_omkl_gf": (ALONE, partial(alike, ("algo=omkl_gf",))),
    "parsimonious_federated": "test_algorithms_parsimonious_learners.py::test_one_agent_is_the_centralized_learner",
    "cascade_svm": "test_algorithms_parsimonious_learners.py::test_machines_send_all_or_their_support_vectors",
    "fdskl": "test_algorithms_vertical_fdskl.py::test_literal_protocol_fast_path_and_dsg_are_one",
    "fd_svrg": "test_algorithms_vertical_baselines.py::test_fd_svrg_is_its_messages",
    "pp_svmv": "test_algorithms_vertical_baselines.py::test_pp_svmv_is_the_pooled_machine",
    "secureboost": "test_algorithms_vertical_baselines.py::test_secureboost_loses_nothing",
    "vertical_nystroem": "test_algorithms_vertical_summed_once.py::test_nystroem_does_not_depend_on_the_partition",
    "vertical_ridge": (
        "test_algorithms_vertical_summed_once.py::test_feature_ridge_is_the_pooled_ridge_on_the_features"
    ),
    **dict.fromkeys(("dsg", "libsvm", "parsimonious_centralized", "pooled_svm"), "is a centralized case itself"),
    **dict.fromkeys(
        ("ada_raker", "omkl_gf", "omkl_sfg", "omkl_sfg_r", "omkr", "poly_2", "raker", "rbf_1", "rfomkr"),
        "is one learner alone",
    ),
}
"""Overrides that leave one client, and what it then is; or the test that says so, or why there is nothing to say."""


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_one_client_is_the_centralized_case(algo: str) -> None:
    """Whatever theory says of an algorithm without others to talk to."""
    assert algo in THEORY, f"say in THEORY what {algo} is with one client, or why there is nothing to say"
    theory = THEORY[algo]
    if isinstance(theory, str):
        assert "::" not in theory or is_a_test(f"algorithms/{theory}")
        return
    overrides, holds = theory
    holds(shown(f"algo={algo}", *overrides))


# --- whoever breaks a promise is found


def flawed(flaw: Callable[[World, Any, int, Any], None]) -> Any:
    """A running mean with a flaw: a function of world, state, round and y_hat, which writes into what it should not."""

    @dataclass(frozen=True)
    class Flawed(RunningMean):
        def step(self, world: World, state: Any, t: int) -> tuple[Any, Outcome]:
            state, outcome = super().step(world, state, t)
            flaw(world, state, t, outcome.y_hat)
            return state, outcome

    return Flawed()


class Outside:
    """A place that no state holds."""

    rounds = 0


def unseeded(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    y_hat += np.random.default_rng().random()


def writes(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    world.problem.x[t] += 1


def writes_features(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    world.bank.rho[:] += 1


def counts_the_others(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    y_hat += len(world.streams.replicates)


def looks_at_the_first(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    y_hat[1:] += 1e-12 * y_hat[0]


def counts_threads(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    wake_for(10**9)
    y_hat += 1e-9 * numba.get_num_threads()


def remembers_elsewhere(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    Outside.rounds = 1 if t == 0 else Outside.rounds + 1
    y_hat += 1e-9 * (Outside.rounds if t > 0 else 0) * (Outside.rounds != t + 1)


def keeps_a_function(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    state.server.note = lambda: t


def knows(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    y_hat += 1e-6 * world.problem.y[t].mean()


def knows_the_next(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    y_hat += 1e-6 * world.problem.y[min(t + 1, world.problem.rounds - 1), 0]


def books_itself(world: World, state: Any, t: int, y_hat: NDArray[np.float64]) -> None:
    one = np.ones(y_hat.shape, np.int64)
    world.channel.ledger.enter(t, "uplink", "smuggled", one, one, one)


FLAWS = [
    (unseeded, Conformance.seeded_runs_repeat),
    (writes, Conformance.inputs_stay_as_they_are),
    (writes_features, Conformance.inputs_stay_as_they_are),
    (counts_the_others, Conformance.replicates_are_independent),
    (looks_at_the_first, Conformance.replicates_are_independent),
    (counts_threads, Conformance.threads_and_chunks_do_not_matter),
    (counts_the_others, Conformance.threads_and_chunks_do_not_matter),
    (remembers_elsewhere, Conformance.state_survives_save_and_load),
    (keeps_a_function, Conformance.state_survives_save_and_load),
    (knows, LABELS),
    (knows_the_next, LABELS),
    (books_itself, Conformance.ledger_books_every_message),
]
LEDGER = Conformance.ledger_books_every_message
APART, PROCESSES = Conformance.parties_see_what_they_hold_alone, Conformance.parties_share_nothing_but_messages
CHEATS = [
    (
        cheats.ServerReadsData,
        APART,
        "the server, alone with messages, cannot take: .* no attribute 'x'",
    ),
    (cheats.Understates, APART, "uplink of round 1: 32 bytes are booked and 128 sent"),
    (cheats.Understates, Conformance.ledger_books_every_message, "uplink: the ledger's rounds, clients, kinds are not"),
    (cheats.ReadsOthers, APART, "y_hat of client 0 in round 1 .*: a party sees more than its own state"),
    (cheats.KnowsLabels, LABELS, "y_hat of round 11 differs with the targets of that round"),
    (cheats.SharesAGlobal, PROCESSES, "y_hat of client 0 in round 2 .*: parties share something besides messages"),
    (
        cheats.ServerWritesIntoItsState,
        APART,
        "the server, alone .*, cannot take: .*: it changes what it is",
    ),
    (cheats.SharesState, APART, "y_hat of client 0 in round 2 .*: a party sees more than its own state"),
    (cheats.ServerDrawsABin, APART, "the server draws what the clients draw: SELECTION"),
    (cheats.ServerDrawsAllBins, APART, "the server, alone .*, cannot take: .*: it draws what 1 draws of SELECTION"),
    (cheats.DrawsOthers, APART, "a client, alone .*, cannot play: .*: it draws what 1 draws of SELECTION"),
    (cheats.AsksForTheSeed, APART, "a client, alone .*, cannot play: .*: it asks for the seed"),
    (cheats.Dies, PROCESSES, "^a client, alone with messages, cannot play: its process ended, with exit code 3$"),
    (cheats.HoldsAFunction, APART, "^a party cannot be on its own, since .* cannot be pickled: [^\n]*$"),
    (cheats.HoldsAFunction, PROCESSES, "^a party cannot be on its own, since .* cannot be pickled: [^\n]*$"),
    *[
        (cheat, promise, said)
        for promise in (LEDGER, APART)
        for cheat, said in (
            (cheats.ByShape, "^Target.target has rows of shapes .*: both ends know one shape"),
            (cheats.ByShapeOfEach, "^Target.target has shape .*: an array without entries tells by its shape alone"),
            (cheats.ByByteOrder, "^Target.target is ndarray of >f8, must be an array of numbers in native byte order"),
            (cheats.ByItemSize, r"^Target.target is ndarray of \|S[0-9]+, must be an array of numbers"),
            (cheats.BySubclass, "^Target.target is Knows of <f8, must be an array of numbers"),
            (
                cheats.OneForAll,
                r"^Parameters.theta has shape \(.*\); the first axes of PerClient must be \(R, K\) = \([15], 4\)$",
            ),
        )
    ],
    (cheats.ByType, APART, "uplink of party . in round .: Target has another shape or type than those of others"),
    (cheats.ByType, LEDGER, "uplink of round 1: other samples give a message of another form: .*f[48].*f[48]"),
    (cheats.ByFile, APART, "y_hat of client 0 in round 2 .*: a party sees more than its own state"),
    (cheats.ByFile, PROCESSES, "y_hat of client 0 in round 2 .*: parties share something besides messages"),
    (cheats.Smuggler, APART, "Smuggler is not written as parties that exchange messages"),
]
"""Methods that cheat, the promise that they break, and what is said of them."""


def of(algorithm: Any, precision: str = "float64") -> Conformance:
    """Promises of an algorithm on a small problem."""
    size = Size(T=20)
    problem = make_problem(size, 0, precision=precision)
    return Conformance(Experiment(problem, make_dictionary(size), Network(), algorithm, 0, 5, precision))


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_who_keeps_all_promises_is_not_blamed(promise: Promise) -> None:
    promise(of(RunningMean()))


@pytest.mark.parametrize("promise", [Conformance.seeded_runs_repeat, LABELS, LEDGER], ids=lambda one: one.__name__)
def test_the_example_of_the_contract_keeps_its_promises(promise: Promise) -> None:
    """The text in the docstring of `Federated` runs; the class is of no module, so that it cannot be pickled."""
    _, _, text = inspect.getdoc(Federated).partition("::\n")  # type: ignore[union-attr]
    code = dedent("\n".join(line for line in text.splitlines() if not line or line.startswith("    ")))
    known = {**vars(star), **vars(payloads), "Outcome": Outcome, "mixture_norm": mixture_norm, "np": np}
    exec(code, known := {**known, "Theta": descent.Server, "Down": descent.Parameters, "Up": descent.Gradients})
    promise(of(known["Plain"]()))


@pytest.mark.parametrize(("flaw", "promise"), FLAWS, ids=lambda value: value.__name__)
def test_who_breaks_a_promise_is_found(flaw: Callable[..., None], promise: Promise) -> None:
    with pytest.raises(BrokenPromiseError):
        promise(of(flawed(flaw)))


@pytest.mark.parametrize(("cheat", "promise", "said"), CHEATS, ids=lambda value: getattr(value, "__name__", ""))
def test_who_cheats_is_refused_by_name(cheat: Callable[[], Any], promise: Promise, said: str) -> None:
    """Each breaks that promise, whatever else it breaks; the honest method beside it breaks none (above)."""
    with pytest.raises(BrokenPromiseError, match=said):
        promise(of(cheat()))


@pytest.mark.parametrize("cheat", [cheats.ByFileOfAll, cheats.Late, cheats.Watched])
def test_what_the_suite_cannot_see(cheat: Callable[[], Any]) -> None:
    """As docs/extending.md says: files that all can read, later rounds, and who looks for the check."""
    for promise in (LEDGER, APART, PROCESSES):
        promise(of(cheat()))


def test_low_bits_do_not_arrive() -> None:
    """What is booked as a float32 is one: the server of the cheat learns what that of an honest method does."""
    found = []
    for method in (cheats.ByLowBits(), RunningMean()):
        experiment = of(method, "float32").experiment
        world, _ = make_world(experiment, (0,))
        found.append([outcome.y_hat for outcome in outcomes(experiment, world)])
    assert np.array_equal(found[0], found[1])
    APART(of(cheats.ByLowBits(), "float32"))


def test_somebody_is_absent_in_the_scenario() -> None:
    """Or a state that goes on in rounds that its client misses would pass."""
    checked = conformance("algo=ofmkl_avg")
    present = checked.experiment.problem.present
    assert not present.all() and present.any(axis=0).all()
    with pytest.raises(BrokenPromiseError, match=r"y_hat of client . in round .* is another alone"):
        APART(replace(checked, experiment=replace(checked.experiment, algorithm=cheats.ChangesTheAbsent())))


def test_a_global_variable_is_invisible_to_parties_of_one_process() -> None:
    """Which is why each has a process of its own."""
    APART(of(cheats.SharesAGlobal()))


def test_an_outcome_of_another_shape_is_named() -> None:
    @dataclass(frozen=True)
    class Flat(RunningMean):
        def step(self, world: World, state: Any, t: int) -> tuple[Any, Outcome]:
            state, outcome = super().step(world, state, t)
            return state, replace(outcome, y_hat=outcome.y_hat[0])

    with pytest.raises(BrokenPromiseError, match=r"^Outcome.y_hat has shape \(4,\), must be \(R, K\) = \(5, 4\)$"):
        of(Flat()).seeded_runs_repeat()


@pytest.fixture(autouse=True)
def _as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A flaw leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    yield
    Outside.rounds = 0
    Path(cheats.ByFileOfAll.folder, cheats.FILE).unlink(missing_ok=True)
