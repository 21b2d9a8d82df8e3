"""A swarm: random configurations, each checked in several ways. A failure is reduced to one command line.

    python scripts/swarm.py --minutes 60 --seed 0

A configuration is a method with random keys, conditions, graph, sizes and precision. It fails if anything raises an
error that is not for the user, if it breaks a promise, if two engines disagree, or if a run that was killed and
started again leaves other tables than an undisturbed one.
"""

import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fkl.basics.errors import BadValue, BrokenPromiseError, FklError, count_of
from fkl.config.choices import CONDITIONS, Choices
from fkl.config.compose import compose_config
from fkl.config.loading import load_engine
from fkl.conformance.promises import PROMISES, Conformance, quick_run, words_of_scenario
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import TIMING_COLUMNS, make_records

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from recount import ledger_books_every_message  # which the tests have

Rng = np.random.Generator
Words = tuple[str, ...]

WORDS: dict[str, tuple[Any, ...]] = {
    "kernels.N": (1, 2, 3, 6), "kernels.D": (1, 2, 5), "kernels.map": ("pairs", "cosine"),
    "kernels.draw": ("iid", "orthogonal"), "precision": ("float32", "float64"), "seed": (1, 2, 3),
    "partition.clients": (1, 2, 3, 7), "partition.rounds": (1, 2, 9), "algo.iterations": (1, 2, 9),
    "algo.test_share": (0.1, 0.5), "learners": ("alone", "pooled"), "rows": ("even", "late", "tune_0"),
    "network.loss": (0.2,), "network.deadline_s": (0.01,), "network.compute_s": (0.005,), "stop_when": ("mse<0.05",),
    "chunk": (1, 2), "threads": (1, 2), "scaling": ("unit_box", "none"), "save_model": ("true",),
    "topology": ("ring", "star", "complete", "erdos_renyi", "directed", "grid", "tree"),
    "dataset": ("synthetic", "drift", "ellipses"), "intervals": ("adaptive", "split"),
}  # fmt: skip
"""Keys and groups outside the method and the conditions, with values to draw from."""
MOST_WORDS = 7
"""Most random words of a configuration, without keys of its conditions."""
OTHER_ENGINES = {"numpy": "numpy", "jax": "jax"}
"""Engines that a process can play by itself, and the library that each needs."""
RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""Differences between engines that rounding explains, in doubles."""
ERRORS, LARGEST = ("mse", "test_mse", "train_mse"), 10.0
"""A run with a larger error diverges, which magnifies rounding: its engines are not compared."""
ITERATIONS, MOST_ITERATIONS = "algo.iterations=", 20
"""Iterations that engines are compared in: COKE with compression=uniform magnifies rounding tenfold in 20 of them."""
ENGINES_SHARE, KILLED_SHARE = 0.4, 0.1
"""Shares of the configurations that another engine plays, and that are killed."""
SLOW = {Conformance.parties_share_nothing_but_messages}
"""Promises that take a process for each party."""
RUNS = "undisturbed", "killed"
"""Folders of the runs that are compared."""
EXCUSED = (
    ("algo=pooled_", Conformance.labels_are_not_known_before_they_are_shown),
    ("learners=", Conformance.parties_see_what_they_hold_alone),
)
"""Beginnings of words, and the promise that these break: pooled learners ask clients in turn, and learners that are
alone or pooled have no parties."""
IN_DOUBLES = ("consensus_rf_gp", "d_rf_gp")
"""Methods that magnify the rounding of single precision."""


class Failure(NamedTuple):
    """What went wrong with some words.

    Parameters
    ----------
    check : str
    kind : str
        The error without its numbers: the same fault has the same kind.
    text : str
    """

    check: str
    kind: str
    text: str


Check = Callable[[Words], object]


def swarm(minutes: float, seed: int) -> int:
    """Play random configurations, print failures as they appear and counts at the end, and return how many failed."""
    end, number = time.monotonic() + 60 * minutes, 0
    counts: Counter[str] = Counter()
    seen: dict[tuple[str, str], str] = {}
    while time.monotonic() < end:
        rng = np.random.default_rng([seed, number])
        number += 1
        words = drawn(rng)
        counts["words"] += len(words)
        for name, check in checks(words, rng):
            counts[name] += 1
            try:
                failure = failed(name, check, words)
            except FklError:
                counts["refusals"] += 1
                break
            if failure is None or failure[:2] in seen:
                continue
            few = reduced(failure, check, words)
            seen[failure[:2]] = line = f"{name}: {failure.text}\n    {command(name, few)}"
            print(f"FAILED in configuration {number - 1}: {line}", flush=True)
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    failures = count_of(len(seen), "different failure")
    print(f"seed {seed}: {number} configurations in {minutes:g} minutes; {told}; {failures}")
    return len(seen)


def drawn(rng: Rng) -> Words:
    """A random method and random words that fit it; a word that is refused is left out."""
    choices = Choices()
    method = str(rng.choice(choices.names("algo")))
    words: Words = (f"algo={method}", *(("precision=float64",) if method in IN_DOUBLES else ()))
    for _ in range(rng.integers(MOST_WORDS + 1)):
        if rng.random() < 0.4:
            group = str(rng.choice(CONDITIONS))
            more = with_keys(group, str(rng.choice(choices.names(group))), rng)
        elif rng.random() < 0.4:
            more = key_of_method(words, rng)
        else:
            key = str(rng.choice(list(WORDS)))
            more = (f"{key}={rng.choice(np.array(WORDS[key], object))}",)
        if more and more[0].partition("=")[0] not in {word.partition("=")[0] for word in words}:
            with suppress(FklError), quiet():
                prepare_run(quick_run(*words, *more))
                words += more
    return words


def with_keys(group: str, name: str, rng: Rng) -> Words:
    """A choice of a group, with other values of some of its numbers."""
    own = {
        key: value for key, value in compose_config("algo=pof_mkl", f"{group}={name}")[group].items() if key[0] != "_"
    }
    if group == "privacy":
        return (f"privacy={name}", f"privacy.clip={other(1.0, rng)}", f"privacy.noise={other(1.0, rng)}")
    chosen = [key for key, value in own.items() if value is not None and rng.random() < 0.4]
    return (f"{group}={name}", *(f"{group}.{key}={other(own[key], rng)}" for key in chosen))


def key_of_method(words: Words, rng: Rng) -> Words:
    """Another value of one of the method's keys."""
    own = {key: value for key, value in compose_config(words[0])["algo"].items() if key[0] != "_" and value is not None}
    if not own:
        return ()
    key = str(rng.choice(list(own)))
    return (f"algo.{key}={other(own[key], rng)}",)


def other(value: Any, rng: Rng) -> Any:
    """Another value like this one."""
    if isinstance(value, bool):
        return str(not value).lower()
    if isinstance(value, int):
        return int(rng.choice([1, 2, max(1, value // 2), value + 1]))
    if isinstance(value, float):
        return float(value * rng.choice([0.3, 0.5, 2.0]))
    return value


def checks(words: Words, rng: Rng) -> Iterator[tuple[str, Check]]:
    """Some checks of a configuration, by name."""
    yield "run", tables_of
    excused = {promise for beginning, promise in EXCUSED if any(word.startswith(beginning) for word in words)}
    promises = [promise for promise in (*PROMISES, ledger_books_every_message) if promise not in excused | SLOW]
    for place in rng.choice(len(promises), 3, replace=False):
        yield f"promise {promises[place].__name__}", partial(kept, promises[place])
    for name, library in OTHER_ENGINES.items():
        if find_spec(library) is not None and rng.random() < ENGINES_SHARE:
            yield f"engine {name}", partial(same_in_engine, name)
    if rng.random() < KILLED_SHARE:
        yield "kills", partial(same_after_kills, rng.random(3))


def kept(promise: Callable[[Conformance], None], words: Words) -> None:
    """Check one promise."""
    promise(Conformance.from_overrides(*words))


def tables_of(words: Words, name: str = "numba") -> dict[str, Any]:
    """The tables of a run with an engine."""
    run = quick_run(*words)
    experiment = prepare_run(run)
    chunks = simulate_run(replace(experiment, engine=load_engine(name)))
    return vars(make_records(experiment, chunks, Path(run.paths.cache).expanduser()))


def same_in_engine(name: str, words: Words) -> None:
    """Compare the tables of another engine with those of numba, in doubles."""
    words = (*(word for word in words if not word.startswith("precision=")), "precision=float64")
    run = quick_run(*words)
    if load_engine(name).can_play(run) is not None:
        return
    if (getattr(run.algo, "iterations", None) or 0) > MOST_ITERATIONS:
        words = (*(word for word in words if not word.startswith(ITERATIONS)), f"{ITERATIONS}{MOST_ITERATIONS}")
    tables = {one: tables_of(words, one) for one in ("numba", name)}
    if any((table[error] > LARGEST).any() for table in tables["numba"].values() for error in ERRORS if error in table):
        return
    for table in tables[name]:
        mine, theirs = (tables[one][table].drop(columns=list(TIMING_COLUMNS), errors="ignore") for one in tables)
        for column in mine.select_dtypes("number"):
            pair = mine[column].to_numpy(), theirs[column].to_numpy()
            if not np.allclose(*pair, RELATIVE, ABSOLUTE, equal_nan=True):
                row = int(np.argmax(~np.isclose(*pair, RELATIVE, ABSOLUTE, equal_nan=True)))
                said = f"{pair[0][row]!r} with numba, {pair[1][row]!r} with {name}"
                raise BrokenPromiseError(f"{table}.csv, {column} in row {row}: {said}")


def same_after_kills(moments: Any, words: Words) -> None:
    """Kill a run at several moments, start it again each time, and compare its tables with an undisturbed run's."""
    with TemporaryDirectory() as folder:
        given = [sys.executable, "-m", "fkl", "run", *words_of_scenario(*words), "figures=none", "checkpoint_s=0"]

        def play(out: str, seconds: float | None = None) -> float:
            begun = time.monotonic()
            with subprocess.Popen(
                [*given, f"out={out}"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            ) as process:
                try:
                    _, said = process.communicate(timeout=seconds)
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                    return 0.0
            if process.returncode == 2:
                raise FklError(said)
            if process.returncode:
                raise BrokenPromiseError(f"exit code {process.returncode}: {said.strip().splitlines()[-1]}")
            return time.monotonic() - begun

        whole = play("undisturbed")
        for moment in moments:
            play("killed", float(moment * whole))
        play("killed")
        names = {run: sorted(file.name for file in Path(folder, run).iterdir()) for run in RUNS}
        if names["undisturbed"] != names["killed"]:
            raise BrokenPromiseError(f"files {names['undisturbed']} and {names['killed']}")
        for name in (name for name in names["killed"] if name.endswith(".csv")):
            one, two = (
                pd.read_csv(Path(folder, run, name), dtype=str).drop(columns=list(TIMING_COLUMNS), errors="ignore")
                for run in names
            )
            if not one.equals(two):
                raise BrokenPromiseError(f"{name} differs after kills")


def failed(name: str, check: Check, words: Words) -> Failure | None:
    """What a check of these words says; None if it passes.

    Raises
    ------
    fkl.basics.errors.FklError
        If the words are refused, or the run diverges.
    """
    try:
        with quiet(), np.errstate(all="ignore"):
            check(words)
    except BrokenPromiseError as error:
        text = " ".join(str(error).split())
        if BadValue.__name__ in text:  # a party refuses to play alone
            return None
    except FklError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    else:
        return None
    return Failure(name, "".join(letter for letter in text[:60] if not letter.isdigit()), text[:400])


def reduced(failure: Failure, check: Check, words: Words) -> Words:
    """Fewer words with the same failure: none of them can be left out."""
    for word in words[1:]:
        fewer = tuple(other for other in words if other != word)
        with suppress(FklError):
            again = failed(failure.check, check, fewer)
            if again is not None and again[:2] == failure[:2]:
                words = fewer
    return words


def command(name: str, words: Words) -> str:
    """The command that repeats a check."""
    if name.startswith("promise"):
        return f"python -m fkl.conformance {' '.join(words)}"
    return f"fkl run {' '.join(words_of_scenario(*words))}"


@contextmanager
def quiet() -> Iterator[None]:
    """Print nothing in this block."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sys.exit(swarm(arguments.minutes, arguments.seed) > 0)
