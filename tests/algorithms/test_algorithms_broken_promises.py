"""`fkl.conformance` finds whoever breaks a promise, and names what cheats."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import cheats
import numpy as np
import pytest
from cheats import RunningMean
from literal.worlds import Size, make_dictionary, make_problem
from numpy.typing import NDArray
from recount import ledger_books_every_message

from fkl.algorithms.base import Outcome, World, mixture_norm
from fkl.algorithms.federated import descent
from fkl.conditions import wrap_method
from fkl.conditions.attacks import SignFlip
from fkl.conformance import PROMISES, BrokenPromiseError, Conformance, command
from fkl.conformance.party_process import PartyObject
from fkl.conformance.played import PlayedReplicate, method_outcomes, require_equal
from fkl.contract import star
from fkl.contract.star import Federated
from fkl.engines.base import Experiment, make_world
from fkl.kernels.functions import Linear
from fkl.kernels.threads import largest_threads
from fkl.network import Network
from fkl.wire import payloads
from fkl.wire.channel import Counts

Promise = Callable[[Conformance], str | None]
LABELS = Conformance.labels_are_not_known_before_they_are_shown


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
    y_hat += 1e-9 * largest_threads()


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
    world.channel.ledger.enter(t, "uplink", "smuggled", Counts.counts_of_clients(one, one, one))


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
    (books_itself, ledger_books_every_message),
]
FORMS = Conformance.messages_have_one_form
IDENTITIES = Conformance.identities_of_its_proofs_hold
FACTS, MODELS = Conformance.facts_of_privacy_hold, Conformance.saved_models_predict_as_it_does
STATED = Conformance.norms_and_densities_are_true
APART, PROCESSES = Conformance.parties_see_what_they_hold_alone, Conformance.parties_share_nothing_but_messages
CHEATS = [
    (cheats.WeightsByData, Conformance.rounds_at_once_are_rounds, r"of round \d+ differs if rounds \d+ to \d+ are"),
    (cheats.ServerReadsData, APART, "the server, in isolation, cannot take: .* no attribute 'x'"),
    (cheats.Understates, APART, "uplink of round 1: 32 bytes are booked, but 128 were sent"),
    (cheats.Understates, ledger_books_every_message, "uplink: the ledger's rounds, clients, kinds are not"),
    (cheats.ReadsOthers, APART, "y_hat of client 0 in round 1 .*: a party sees more than its own state"),
    (cheats.KnowsLabels, LABELS, r"y_hat of round \d+ differs with the targets of that round"),
    (cheats.ServerWritesIntoItsState, APART, "the server, in isolation, cannot take: .*: it changes its arguments"),
    (cheats.SharesState, APART, "y_hat of client 0 in round 2 .*: a party sees more than its own state"),
    (cheats.ServerDrawsABin, APART, "the server and the clients draw the same random numbers: SELECTION"),
    (cheats.DrawsOthers, APART, "a client, in isolation, cannot play: .*: it draws party 1's numbers of SELECTION"),
    (cheats.AsksForTheSeed, APART, "a client, in isolation, cannot play: .*: it reads the seed"),
    (cheats.Dies, PROCESSES, "^a client, in isolation, cannot play: its process ended, with exit code 3$"),
    (cheats.HoldsAFunction, APART, "^a party cannot be isolated, because .* cannot be pickled: [^\n]*$"),
    (cheats.ByShape, FORMS, "^Target.target has rows of shapes .*: all rows must have one shape"),
    (cheats.ByShape, APART, "^Target.target has rows of shapes .*: all rows must have one shape"),
    (cheats.ByShapeOfEach, FORMS, "^Target.target has shape .*: the shape of an array without entries"),
    (cheats.ByByteOrder, FORMS, "^Target.target is ndarray of >f8, must be an array of numbers in native byte order"),
    (cheats.BySubclass, FORMS, "^Target.target is Knows of <f8, must be an array of numbers"),
    (
        cheats.OneForAll,
        FORMS,
        r"^Parameters.theta has shape \(.*\); the first axes of PerClient must be \(R, K\) = \([15], 4\)$",
    ),
    (cheats.ByType, APART, "uplink of party . in round .: Target has another shape or type than other parties"),
    (cheats.ByType, FORMS, "uplink of round 1: other samples give a message of another form: .*f[48].*f[48]"),
    (cheats.ByFile, APART, "y_hat of client 0 in round 2 .*: a party sees more than its own state"),
    (cheats.ByFile, PROCESSES, "y_hat of client 0 in round 2 .*: parties share something besides messages"),
    (cheats.StepsTwice, IDENTITIES, "^unbiased step: one side of the identity is 2, the other 1:"),
    (cheats.Smuggler, APART, "Smuggler is not written as parties that exchange messages"),
    (cheats.Hides, APART, "y_hat of client 0 in round 1 .*: a party sees more than its own state"),
    (cheats.ByNestedClass, FORMS, "downlink of round .: other samples give a message of another form: .*Yes|No"),
    (cheats.ByField, FORMS, "downlink of round 2: other samples give a message of another form: .*note"),
    (cheats.ByPlace, FORMS, "^Several: its masks would carry information without bytes; send all payloads or none"),
    (cheats.ByChoice, FACTS, "of party .'s message in round .*: its class must say choices_reveal_data = True"),
    (
        cheats.SaysOnce,
        FACTS,
        "uses_sample_once and message_of_one_sample = True, but the sample of round 1 of party 0 changes its",
    ),
    (cheats.SavesAnother, MODELS, r"its model predicts differently: predictions of round \d+ differ by up to"),
    (cheats.LearnsFirst, LABELS, "^y_hat of round (4|11|18) differs with the targets of that round"),
    (cheats.LearnsFirstAtTheEnd, LABELS, "^y_hat of round 20 differs with the targets of that round"),
    (cheats.LearnsFirstAtTheBeginning, LABELS, "^y_hat of round 1 differs with the targets of that round"),
    (cheats.DoubtsAfterwards, LABELS, r"^variance of round \d+ differs with the targets of that round"),
    (cheats.RepeatsSometimes, FACTS, r"the sample of round . of party . changes its messages of rounds ., 5"),
    (cheats.RepeatsOneRound, FACTS, "the sample of round 6 of party . changes its messages of rounds 6, 20"),
    (cheats.ByEvenChoice, FACTS, "of party .'s message in round .*: its class must say choices_reveal_data = True"),
    (cheats.StatesANorm, MODELS, r"^its norm is not that of its model: squared norms of round \d+ differ by up to"),
    (cheats.StatesANormSometimes, STATED, "^the norm of client . in round 5 is not that of a function: it predicts"),
    (cheats.StatesNoNorm, STATED, r"^the norm of client . in round \d+ is not that of a function: it predicts"),
    (cheats.StatesADensity, STATED, "^the density of client . in round 1 is not one: its integral is 16"),
    (cheats.StatesMoreThanADensity, STATED, "^the density of client . in round 1 is not one: its integral is 2.718"),
    (cheats.StatesAnotherDensity, STATED, "^the density of client . in round 1 is not one: .* the variance 0.25"),
    (cheats.SavesAnotherAtTheEnd, MODELS, "^its model predicts differently: predictions of round 21 differ by up to"),
    (cheats.SavesABetterOne, MODELS, "^its model predicts differently: predictions of round 21 differ by up to"),
    (cheats.FindsTheSample, LABELS, "^predictions follow targets that no party has seen, with correlation "),
    (cheats.LearnedBefore, LABELS, "^predictions follow targets that no party has seen, with correlation "),
    (cheats.SaysOneForAll, FORMS, "^Target.target is SameForAll, one array for all; each client sends its own"),
    (
        cheats.MaskOfNumbers,
        FORMS,
        r"^Target.target has a mask `chosen` of float64 and shape .*; must be bool, \(R, K, 1",
    ),
]
"""Methods that cheat, the promise that they break, and what is said of them."""


def of(algorithm: Any, precision: str = "float64") -> Conformance:
    """Promises of an algorithm on a small problem."""
    size = Size(T=20)
    problem = make_problem(size, 0, precision=precision)
    return Conformance(Experiment(problem, make_dictionary(size), Network(), algorithm, 0, 5, precision))


@pytest.mark.parametrize("promise", (*PROMISES, ledger_books_every_message), ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("honest", [RunningMean, cheats.OwnPayload, cheats.StatesItsDensity])
def test_who_keeps_all_promises_is_not_blamed(promise: Promise, honest: Callable[[], Any]) -> None:
    promise(of(honest()))


def test_what_was_not_checked_is_not_called_ok() -> None:
    """A promise says why nothing was compared."""
    learner = Conformance.from_overrides("algo=raker")
    hidden = Conformance.from_overrides(
        "algo=ofmkl_avg", "privacy=sampled", "participation=share", "participation.share=0.6"
    )
    assert APART(learner) == "it has no server"
    assert "that hides who is present" in APART(hidden)
    assert IDENTITIES(of(RunningMean())) == "it claims no identity"
    assert FACTS(Conformance.from_overrides("algo=link_dkla")) == "it has no epsilon"
    inside = wrap_method(RunningMean(), {"attack": SignFlip(share=0.3)})
    assert MODELS(of(RunningMean())) == MODELS(of(inside)) == "it saves no model"
    assert APART(of(RunningMean())) == IDENTITIES(learner) == ""


def test_the_example_of_the_contract_keeps_its_promises() -> None:
    """The text in the docstring of `Federated` runs."""
    _, _, text = inspect.getdoc(Federated).partition("::\n")  # type: ignore[union-attr]
    code = dedent("\n".join(line for line in text.splitlines() if not line or line.startswith("    ")))
    known = {**vars(star), **vars(payloads), "Outcome": Outcome, "mixture_norm": mixture_norm, "np": np}
    exec(code, known := {**known, "Theta": descent.DescentServer, "Down": descent.Parameters, "Up": descent.Gradients})
    LABELS(of(known["Plain"]()))


@pytest.mark.parametrize(("flaw", "promise"), FLAWS, ids=lambda value: value.__name__)
def test_who_breaks_a_promise_is_found(flaw: Callable[..., None], promise: Promise) -> None:
    with pytest.raises(BrokenPromiseError):
        promise(of(flawed(flaw)))


@pytest.mark.parametrize(("cheat", "promise", "said"), CHEATS, ids=lambda value: getattr(value, "__name__", ""))
def test_who_cheats_is_refused_by_name(cheat: Callable[[], Any], promise: Promise, said: str) -> None:
    """Each breaks that promise, whatever else it breaks; the honest method beside it breaks none (above)."""
    with pytest.raises(BrokenPromiseError, match=said):
        promise(of(cheat()))


@pytest.mark.parametrize("algo", ["dkla", "falkon"])
def test_a_model_of_data_from_elsewhere_is_refused(algo: str) -> None:
    """Off streams it shows in the saved model."""
    checked = Conformance.from_overrides(f"algo={algo}")
    problem, kind = checked.experiment.problem, type(checked.experiment.algorithm)
    x = np.column_stack([problem.x, np.ones(len(problem.x))])
    w = np.linalg.lstsq(x, problem.y, rcond=None)[0]

    class LearnedElsewhere(kind):  # type: ignore[valid-type, misc]
        def functions(self, world: World, state: Any, t: int) -> tuple[Linear, ...]:
            return (Linear(w[:-1], np.array(w[-1])),) * len(world.streams.replicates)

    cheat = LearnedElsewhere(**vars(checked.experiment.algorithm))
    with pytest.raises(BrokenPromiseError, match=r"^predictions follow targets that no party has seen"):
        LABELS(replace(checked, experiment=replace(checked.experiment, algorithm=cheat)))


def test_a_seed_draws_what_is_compared() -> None:
    """Two seeds ask about other data, and one of them twice about the same."""
    experiment = of(RunningMean()).experiment
    experiment = replace(experiment, problem=make_problem(Size(T=300), 0))
    asked = []
    for seed in (1, 2, 1):
        checked = Conformance(experiment, seed=seed)
        probes = list(experiment.task.other_targets(checked.joint_trace.last, checked.numbers))
        asked.append(([probe.rounds for probe in probes], [float(probe.problem.y.sum()) for probe in probes]))
    assert asked[0] == asked[2] and asked[0][0] != asked[1][0] and asked[0][1] != asked[1][1]
    assert {0, 299} <= {*asked[0][0]} and {0, 299} <= {*asked[1][0]} and len(asked[0][0]) >= 100


@pytest.mark.parametrize(("words", "line"), [(["--seed=7"], "--seed=7"), ([], "--seed=")])
def test_the_command_prints_its_seed(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "PROMISES", (Conformance.seeded_runs_repeat,))
    monkeypatch.setattr("sys.argv", ["fkl.conformance", "algo=raker", "kernels.D=4", *words])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 0 and f"drawn with {line}" in capsys.readouterr().out


def test_low_bits_do_not_arrive() -> None:
    """What is booked as a float32 is one: the server of the cheat learns what that of an honest method does."""
    found = []
    for method in (cheats.ByLowBits(), RunningMean()):
        experiment = of(method, "float32").experiment
        world, _ = make_world(experiment, (0,))
        found.append([outcome.y_hat for outcome in method_outcomes(experiment.algorithm, world)])
    assert np.array_equal(found[0], found[1])
    APART(of(cheats.ByLowBits(), "float32"))


def test_an_agent_says_by_yes_or_no_whether_it_sends() -> None:
    checked = Conformance.from_overrides("algo=odkla")
    cheat = replace(checked, experiment=replace(checked.experiment, algorithm=cheats.SendsNumbers()))
    with pytest.raises(
        BrokenPromiseError, match=r"^sends has shape \(5, .\) and type float64; must be bool \(R, K\) = "
    ):
        cheat.seeded_runs_repeat()


def test_somebody_is_absent_in_the_scenario() -> None:
    """Or a state that goes on in rounds that its client misses would pass."""
    checked = Conformance.from_overrides("algo=ofmkl_avg")
    present = checked.experiment.problem.present
    assert not present.all() and present.any(axis=0).all()
    cheat = replace(checked, experiment=replace(checked.experiment, algorithm=cheats.ChangesTheAbsent()))
    with pytest.raises(BrokenPromiseError, match=r"y_hat of client . in round .* differs if parties are alone"):
        APART(cheat)
    with pytest.raises(BrokenPromiseError, match=r"^the state of client . changes in round .*, which it misses$"):
        cheat.absent_clients_keep_their_state()


def test_a_prediction_that_is_not_a_number_for_both_is_the_same() -> None:
    """As of a run that diverges; it must not be one for the isolated client alone."""
    experiment = of(RunningMean()).experiment
    world, _ = make_world(experiment, (0,))

    def played(y_hat: float, _: World) -> PlayedReplicate:
        return PlayedReplicate([{"y_hat": np.full((experiment.problem.clients, 1), y_hat)}], {}, {})

    require_equal(partial(played, np.nan), partial(played, np.nan), lambda: world, PartyObject, "client")
    for together, apart in ((np.nan, 0.0), (0.0, np.nan)):
        with pytest.raises(BrokenPromiseError, match=r"y_hat of client . in round 1 differs if parties are alone"):
            require_equal(partial(played, together), partial(played, apart), lambda: world, PartyObject, "client")


@pytest.fixture(autouse=True)
def _as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A flaw leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    yield
    Outside.rounds = 0
