"""Promises of every algorithm besides its numbers, checked in a small scenario; also for your own algorithm.

    python -m fkl.conformance --config-dir my_conf algo=mine

Each promise is a method of `Conformance` that raises `BrokenPromiseError`, or returns the reason if it checked nothing.
Your own test therefore needs one line:

    Conformance.from_overrides("algo=mine", folder="my_conf").replicates_are_independent()
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fkl.basics.errors import BadValue, BrokenPromiseError
from fkl.conditions.wrapped import WrappedStar
from fkl.config.compose import compose_config
from fkl.config.loading import Run, load_run
from fkl.conformance.identities import require_identities
from fkl.conformance.isolated import require_absent_unchanged, require_parties_agree
from fkl.conformance.models import require_model
from fkl.conformance.party_process import PartyClass, PartyObject, PartyProcess
from fkl.conformance.played import method_outcomes
from fkl.conformance.privacy_facts import require_privacy_facts
from fkl.conformance.statements import require_true_statements, require_unknown_targets
from fkl.contract.world import World
from fkl.engines.base import Experiment, make_world
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.per_world import OneAgainstRest
from fkl.engines.rounds import Chunk, simulate_run
from fkl.kernels import threads
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import TIMING_COLUMNS, make_records
from fkl.screen.messages import show_messages
from fkl.tasks import task_of
from fkl.tasks.task import Probe
from fkl.wire import Channel
from fkl.wire.payloads import Ragged

DATA = ("dataset", "partition", "scaling")
REPLICATES = 5
CHUNK = 3
"""Number of replicates in a chunk: 5 replicates run in chunks of 3 and 2."""
ABSENCE = ("participation=share", "participation.share=0.8")
"""Overrides that make some clients absent in some rounds, for methods that allow it."""
PLAIN = (str, bytes, int, float, complex, type(None), Enum, np.generic)
"""Types of fields whose values are part of the form of a message."""
INTERRUPTED = 0.7
"""Share of all replicates' rounds after which a run is interrupted, in its second chunk."""


def quick_overrides(algorithm: type) -> tuple[str, ...]:
    """Overrides for a quick run of an algorithm of this class: few rounds on its own kind of data."""
    return task_of(algorithm).small_settings(algorithm)


def quick_run(*overrides: str, folder: str | Path | None = None) -> Run:
    """Compose the overrides of `quick_overrides` for the chosen algorithm, followed by `overrides`.

    Parameters
    ----------
    overrides : str
        Overrides of `fkl run`. If they choose a data set, `quick_overrides` does not set its size.
    folder : path or None
        A configuration folder in addition to fkl's own, as for `fkl run --config-dir`.
    """
    folders = () if folder is None else (Path(folder).resolve(),)
    return load_run(compose_config(*words_of_scenario(*overrides, folders=folders), folders=folders))


def words_of_scenario(*overrides: str, folders: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """All overrides that `quick_run` composes."""
    chosen = [override for override in overrides if override.startswith("algo=")]
    own_data = any(override.startswith("dataset=") for override in overrides)
    algorithm = type(load_run(compose_config(*chosen, folders=folders)).algo)
    upon = (override for override in quick_overrides(algorithm) if not (own_data and override.startswith(DATA)))
    return (*upon, f"replicates={REPLICATES}", *overrides)


@dataclass(frozen=True)
class HashedTrace:
    """Results of an algorithm, as hashes of their bytes.

    Parameters
    ----------
    shown : dict
        Hashes of each round's results, by replicate and name.
    last : Any
        Outcome of the last round.
    """

    shown: dict[int, list[dict[str, str]]]
    last: Any


def trace_rounds(
    experiment: Experiment,
    replicates: Sequence[int],
    watch: Callable[[World], object] = id,
    rounds: int | None = None,
) -> HashedTrace:
    """Run the first rounds, by default all; call `watch` before the first round and after each round."""
    world, ledger = make_world(experiment, tuple(replicates))
    watch(world)
    shown: dict[int, list[dict[str, str]]] = {replicate: [] for replicate in replicates}
    for t, outcome in enumerate(islice(method_outcomes(experiment.algorithm, world), rounds)):
        shown_columns = experiment.task.values_to_show(world, outcome)
        shown_columns |= {f"{name} traffic": list(tally.by_round[t]) for name, tally in ledger.tallies.items()}
        for r, of_replicate in enumerate(shown.values()):
            of_replicate.append({name: digest_of_array(values[r]) for name, values in shown_columns.items()})
        watch(world)
    return HashedTrace(shown, outcome)


def require_same(one: HashedTrace, other: HashedTrace, why: str, probe: Probe | None = None) -> None:
    """Compare the replicates that both traces have, in all rounds, or in those and the parts that a probe names."""
    end, hidden = (None, ()) if probe is None else (probe.rounds, probe.hidden)
    for replicate in one.shown.keys() & other.shown.keys():
        every = zip(one.shown[replicate], other.shown[replicate], strict=end is None)
        for t, (mine, theirs) in enumerate(every):
            names = hidden if t == end else mine | theirs
            differing = ", ".join(name for name in names if mine.get(name) != theirs.get(name))
            if differing and t == end:
                raise BrokenPromiseError(f"{differing} of round {t + 1} differs with the targets of that round")
            if differing:
                raise BrokenPromiseError(f"{differing} of replicate {replicate} differs in round {t + 1}: {why}")
            if t == end:
                break


def digest_of_array(array: Any) -> str:
    """Hash of an array's shape, type and bytes."""
    values = np.ascontiguousarray(array)
    return hashlib.blake2b(f"{values.shape} {values.dtype}".encode() + values.tobytes(), digest_size=16).hexdigest()


def arrays_of(holder: Any, name: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """All arrays in an object's attributes and entries, at any depth, with their names."""
    if isinstance(holder, np.ndarray):
        yield name, holder
    elif isinstance(holder, csr_array):
        yield from arrays_of((holder.data, holder.indices), name)
    elif isinstance(holder, tuple | list):
        for number, entry in enumerate(holder):
            yield from arrays_of(entry, f"{name}[{number}]")
    elif is_dataclass(holder):
        for key, entry in list(vars(holder).items()):  # also cached properties, which are no fields
            yield from arrays_of(entry, f"{name}.{key}".lstrip("."))


class FormRecorder(Channel):
    """A channel that replaces another one and records the form of every message."""

    def __init__(self, channel: Channel) -> None:
        vars(self).update(vars(channel))
        self.forms: list[tuple[str, Any]] = []

    def down(self, message: Any) -> Any:
        """Record a message of the server to all clients, and transmit it."""
        arrived = super().down(message)
        self._note_form("downlink", message)
        return arrived

    def up(self, message: Any) -> Any:
        """Record a message of every client to the server, and transmit it."""
        arrived = super().up(message)
        self._note_form("uplink", message)
        return arrived

    def send_to_neighbours(self, message: Any, sends: NDArray[np.bool_], topology: Any, awake: Any = None) -> Any:
        """Record the messages on the links, and transmit them."""
        arrived = super().send_to_neighbours(message, sends, topology, awake)
        self._note_form("link", message)
        return arrived

    def _note_form(self, direction: str, message: Any) -> None:
        self.forms.append((f"{direction} of round {self._t + 1}", form_of_message(message)))


def form_of_message(part: Any, rows: int = 0) -> Any:
    """Everything in a message or its part except its numbers: classes, lengths, types, shapes, and plain values.

    Shapes are without their first `rows` axes.
    """
    kind = f"{type(part).__module__}.{type(part).__qualname__}"
    if isinstance(part, np.ndarray):
        return part.dtype.str, part.shape[rows:]
    if isinstance(part, Mapping):
        return kind, [(name, form_of_message(entry, rows)) for name, entry in part.items()]
    if isinstance(part, tuple | list):
        return kind, [form_of_message(entry, rows) for entry in part]
    if is_dataclass(part):
        rows = int(isinstance(part, Ragged))
        return kind, {one.name: form_of_message(getattr(part, one.name), rows) for one in fields(part)}
    if isinstance(part, set | frozenset):
        return kind, sorted(map(repr, part))
    return kind, part if isinstance(part, PLAIN) else None


@dataclass(frozen=True)
class Conformance:
    """Promises of the algorithm of an experiment.

    Parameters
    ----------
    experiment : Experiment
        Experiment with 5 replicates.
    cache : Path or None
        Folder with cached losses in hindsight, as for `fkl run`.
    seed : int
        Draws the rounds that are compared, and other data.
    """

    experiment: Experiment
    cache: Path | None = None
    seed: int = 0

    @classmethod
    def from_overrides(cls, *overrides: str, folder: str | Path | None = None, seed: int = 0) -> "Conformance":
        """Promises of a configuration's algorithm in a small scenario; see `quick_run`."""
        run = quick_run(*overrides, folder=folder)
        given = prepare_run(run)
        # Make some clients absent in some rounds, if none is and the method allows it.
        if given.problem.present.all() and "links" not in run.conditions and "participation" not in run.conditions:
            with suppress(BadValue), show_messages(results=False):
                thinned = quick_run(*overrides, *ABSENCE, folder=folder)
                of_some = prepare_run(thinned)
                of_some.algorithm.init(make_world(of_some, (0,))[0])  # may also refuse absence
                run, given = thinned, of_some
        if given.redraw is not None:  # replicates must run together: all get the first one's draws
            problem, topology = given.redraw(0)
            given = replace(
                given, problem=problem, topology=given.topology if topology is None else topology, redraw=None
            )
        return cls(given, Path(run.paths.cache).expanduser(), seed)

    @property
    def everyone(self) -> range:
        """All replicates."""
        return range(self.experiment.replicates)

    @property
    def numbers(self) -> np.random.Generator:
        """Random numbers of a promise, which follow from the seed."""
        return np.random.default_rng(self.seed)

    @cached_property
    def joint_trace(self) -> HashedTrace:
        """Results of all replicates, run together."""
        return trace_rounds(self.experiment, self.everyone)

    @cached_property
    def tables(self) -> dict[str, str]:
        """Tables of a run, as text."""
        return self._tables_as_text(simulate_run(self.experiment, chunk=CHUNK))

    def seeded_runs_repeat(self) -> None:
        """Two runs with one seed give equal bytes, in every round."""
        require_same(self.joint_trace, trace_rounds(self.experiment, self.everyone), "the same seed, in a second run")

    def inputs_stay_as_they_are(self) -> None:
        """No algorithm writes into the data, the kernels, the drawn features or the graph."""
        originals: dict[int, tuple[str, NDArray[Any], str]] = {}

        def note_new_arrays(world: World) -> None:
            """Hash each array when it first appears, because some features are drawn during the run."""
            for name, array in arrays_of(world):
                if id(array) not in originals:
                    originals[id(array)] = name, array, digest_of_array(array)

        trace_rounds(self.experiment, self.everyone, note_new_arrays)
        changed = [name for name, array, before in originals.values() if digest_of_array(array) != before]
        if changed:
            raise BrokenPromiseError(f"written to: {', '.join(changed)}")

    def replicates_are_independent(self) -> None:
        """A replicate gives the same bytes alone, together with others, and in another order."""
        *_, other, last = self.everyone
        for some in ((other,), (last, 0, other)):
            require_same(
                self.joint_trace, trace_rounds(self.experiment, some), f"only replicates {some}, in this order"
            )

    def threads_and_chunks_do_not_matter(self) -> None:
        """Tables are the same with one thread and one replicate at a time as with several."""
        self._require_tables(simulate_run(self.experiment, 1, 1), "one thread, one replicate at a time")
        worth, threads.ELEMENTS_A_THREAD = threads.ELEMENTS_A_THREAD, 1  # divide even the smallest product
        try:
            self._require_tables(simulate_run(self.experiment, 2), "two threads that share every product")
        finally:
            threads.ELEMENTS_A_THREAD = worth

    def state_survives_save_and_load(self) -> None:
        """An interrupted run that resumes from its checkpoint in a new world writes the same tables."""
        most = INTERRUPTED * self.experiment.replicates * self.experiment.problem.rounds
        done = 0

        def advance(more: int) -> None:
            nonlocal done
            done += more
            if done > most:
                raise _InterruptedError

        with TemporaryDirectory() as scratch:
            file = Path(scratch) / "checkpoint"
            checkpoint = Checkpoint(file, 0.0, "")
            ended: dict[int, Chunk] = {}
            with suppress(_InterruptedError):
                for chunk in simulate_run(self.experiment, None, CHUNK, advance, checkpoint):
                    ended[chunk.first] = chunk
            if checkpoint.place() is None:
                raise BrokenPromiseError("the state cannot be saved: keep arrays and numbers in it, no functions")
            on = Checkpoint(file, None, "")
            ended |= {chunk.first: chunk for chunk in simulate_run(self.experiment, None, CHUNK, checkpoint=on)}
        self._require_tables(ended.values(), "saved, loaded and continued")

    def rounds_at_once_are_rounds(self) -> str:
        """Rounds that a method plays at once give the bytes of the same rounds one after another, from any round on."""
        method: Any = self.experiment.algorithm
        if not hasattr(type(method), "play_rounds"):
            return "it plays every round by itself"
        numbers = self.numbers
        some = (int(numbers.integers(self.experiment.replicates)),)
        if why := method.why_round_by_round(make_world(self.experiment, some)[0]):
            return f"every round is played by itself: {why}"
        end = self.experiment.problem.rounds
        first = int(numbers.integers(end - 1))
        by_form = []
        for at_once in (False, True):
            world, ledger = make_world(self.experiment, some)
            state, shown = method.init(world), []
            for t in range(first if at_once else end):
                world.channel.open_round(t, world.problem.present[t])
                state, outcome = method.step(world, state, t)
                shown.append(self.experiment.task.values_to_show(world, outcome))
            if at_once:
                played = [*method.play_rounds(world, state, first, end - first)]
                shown += [self.experiment.task.values_to_show(world, outcome) for _, outcome in played]
                state, _ = played[-1]
            told = {f"{name} of round {t + 1}": array for t, one in enumerate(shown) for name, array in one.items()}
            by_form.append(
                told | dict(arrays_of(state, "state")) | dict(arrays_of([*ledger.tallies.values()], "ledger"))
            )
        for name, expected in by_form[0].items():
            if digest_of_array(expected) != digest_of_array(by_form[1].get(name)):
                raise BrokenPromiseError(f"{name} differs if rounds {first + 1} to {end} are played at once")
        return ""

    def labels_are_not_known_before_they_are_shown(self) -> None:
        """Targets have no effect before they are revealed, and targets of test samples never have an effect."""
        alone: dict[tuple[int, ...], HashedTrace] = {}
        for probe in self.experiment.task.other_targets(self.joint_trace.last, self.numbers):
            some, end = probe.replicates, None if probe.rounds is None else probe.rounds + 1
            if some is not None and some not in alone:
                alone[some] = trace_rounds(self.experiment, some)
            before = self.joint_trace if some is None else alone[some]
            changed = replace(self.experiment, problem=probe.problem)
            after = trace_rounds(changed, self.everyone if some is None else some, rounds=end)
            require_same(before, after, probe.why, probe)
        require_unknown_targets(self.experiment, self.numbers)

    def messages_have_one_form(self) -> None:
        """Messages of other samples have the same classes, types and shapes, which cost no bytes."""
        forms, others = (
            self._message_forms(problem) for problem in (None, self.experiment.task.other_samples(self.numbers))
        )
        for (where, mine), (_, theirs) in zip(forms, others, strict=True):
            if mine != theirs:
                raise BrokenPromiseError(
                    f"{where}: other samples give a message of another form: {mine}, then {theirs}"
                )

    def _message_forms(self, problem: Any = None) -> list[tuple[str, Any]]:
        """Forms of the messages of the first replicate, with the experiment's data or with other data."""
        experiment = self.experiment if problem is None else replace(self.experiment, problem=problem)
        world, _ = make_world(experiment, (0,))
        recorder = FormRecorder(world.channel)
        for _ in method_outcomes(experiment.algorithm, replace(world, channel=recorder)):
            pass
        return recorder.forms

    def parties_see_what_they_hold_alone(self) -> str:
        """Parties as separate objects, with their own data and messages as bytes, give the same results."""
        return self.require_parties_agree(PartyObject)

    def parties_share_nothing_but_messages(self) -> str:
        """Parties in separate processes give the same results."""
        return self.require_parties_agree(PartyProcess)

    def require_parties_agree(self, party: PartyClass) -> str:
        """Compare isolated parties with all together, in double precision and, for objects, in the run's precision.

        A server that hides who is present also adds noise in rounds without clients. In isolation it would not know
        the shapes of messages that do not arrive, so its method is compared without conditions.
        """
        algorithm: Any = self.experiment.algorithm
        hidden = isinstance(algorithm, WrappedStar) and algorithm.hides_presence  # a property of instances
        played = replace(self.experiment, algorithm=algorithm.innermost) if hidden else self.experiment
        doubles = replace(played, problem=played.task.in_doubles(), precision="float64")
        why = require_parties_agree(*_of_parties(doubles), party)
        if party is PartyObject and played.precision != doubles.precision:
            require_parties_agree(*_of_parties(played), party)
        return "the condition that hides who is present; the method is isolated without it" if hidden else why

    def absent_clients_keep_their_state(self) -> str:
        """A client's state does not change in a round that it misses, whatever it would receive."""
        return require_absent_unchanged(self.experiment)

    def facts_of_privacy_hold(self) -> str:
        """Messages confirm what the class states for the computation of epsilon; see `privacy_facts`."""
        return require_privacy_facts(self.experiment, self.numbers)

    def saved_models_predict_as_it_does(self) -> str:
        """The functions that a run saves give the same predictions as the method itself."""
        problem = self.experiment.task.in_doubles()
        return require_model(replace(self.experiment, problem=problem, precision="float64"), self.numbers)

    def norms_and_densities_are_true(self) -> str:
        """The stated norm is that of a function with these predictions, and the stated density is one."""
        problem = self.experiment.task.in_doubles()
        return require_true_statements(replace(self.experiment, problem=problem, precision="float64"), self.numbers)

    def identities_of_its_proofs_hold(self) -> str:
        """The identities that the class claims hold in the algorithm's rounds; see `fkl.conformance.identities`."""
        return require_identities(self.experiment)

    def _tables_as_text(self, chunks: Iterable[Chunk]) -> dict[str, str]:
        records = make_records(self.experiment, chunks, self.cache)
        without = {"columns": list(TIMING_COLUMNS), "errors": "ignore"}
        return {name: table.drop(**without).to_csv(index=False) for name, table in vars(records).items()}

    def _require_tables(self, chunks: Iterable[Chunk], why: str) -> None:
        for name, text in self._tables_as_text(chunks).items():
            pairs = zip(self.tables[name].splitlines(), text.splitlines(), strict=True)
            for line, (expected, actual) in enumerate(pairs):
                if expected != actual:
                    heading = self.tables[name].splitlines()[0]
                    said = f"{name}.csv differs in line {line + 1}: {why}\n{heading}\n{expected}\n{actual}"
                    raise BrokenPromiseError(said)


PROMISES = (
    Conformance.seeded_runs_repeat,
    Conformance.inputs_stay_as_they_are,
    Conformance.replicates_are_independent,
    Conformance.threads_and_chunks_do_not_matter,
    Conformance.state_survives_save_and_load,
    Conformance.rounds_at_once_are_rounds,
    Conformance.labels_are_not_known_before_they_are_shown,
    Conformance.messages_have_one_form,
    Conformance.parties_see_what_they_hold_alone,
    Conformance.parties_share_nothing_but_messages,
    Conformance.absent_clients_keep_their_state,
    Conformance.facts_of_privacy_hold,
    Conformance.saved_models_predict_as_it_does,
    Conformance.norms_and_densities_are_true,
    Conformance.identities_of_its_proofs_hold,
)


class _InterruptedError(Exception):
    """Raised to interrupt a run."""


def _of_parties(experiment: Experiment) -> tuple[Any, Callable[[], World]]:
    """The method whose parties send messages, and its world in replicate 0; that of the first of several classes."""
    algorithm = experiment.algorithm
    if isinstance(algorithm, OneAgainstRest):
        return algorithm.method, lambda: algorithm.worlds_made(make_world(experiment, (0,))[0])[0]
    return algorithm, lambda: make_world(experiment, (0,))[0]
