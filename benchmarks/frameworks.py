"""`python -m benchmarks frameworks`: one round in fkl and in other frameworks, each in an environment of its own.

The round is a step of descent of one kernel's random features, one sample a client (`benchmarks.peers.work`), which
every framework can play. What is compared is processor time, since other work on a machine changes it least, and the
weights, which tell that all have played the same.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.floor import random_stream
from fkl.algorithms.federated.descent import Ofskl
from fkl.basics.random_streams import Streams
from fkl.data.problem import Problem
from fkl.engines.base import Experiment
from fkl.engines.rounds import simulate_run
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.screen.messages import print_note

CLIENTS, ROUNDS, DIMENSION, PLAYS = (10, 100, 1000), 100, 48, 3
METHOD: Any = Ofskl(eta=0.5, lam=1e-3)
KERNEL = Dictionary(N=1, smallest=1.0, largest=1.0)
HEADINGS = ("framework", "clients", "CPU time of a round, ms", "CPU time / fkl's", "largest difference of weights")
TIMEOUT_S = 900


@dataclass(frozen=True)
class Peer:
    """Another way to play the round.

    Parameters
    ----------
    script : str
        Name of its module in `benchmarks.peers`.
    package : str
        What pip installs for it, in an environment of its own; empty for what fkl's own environment has.
    rounds : dict of int to int
        Rounds that it plays of so many clients, where these are not all; 0 where it would take too long.
    """

    script: str
    package: str = ""
    rounds: Mapping[int, int] = field(default_factory=dict)


PEERS: dict[str, Peer] = {
    "batched numpy": Peer("in_batched"),
    "loop over clients": Peer("in_loop", rounds={1000: 20}),
    "pfl": Peer("in_pfl", "pfl", {100: 20, 1000: 5}),
    "FedJAX": Peer("in_fedjax", "fedjax", {100: 20, 1000: 5}),
    "fluke": Peer("in_fluke", "fluke-fl", {100: 20, 1000: 4}),
    "Flower simulation": Peer("in_flower", "flwr[simulation]", {10: 20, 100: 4, 1000: 0}),
}


def compared(folder: Path) -> list[tuple[str, ...]]:
    """Rows of a table, with `HEADINGS`; a peer that cannot be installed or played is named, and left out.

    Parameters
    ----------
    folder : Path
        For the environments of frameworks; those that are there are used as they are.
    """
    problems = {K: random_stream(ROUNDS, K, DIMENSION) for K in CLIENTS}
    ours = {K: np.median([played(problem, ROUNDS)[0] for _ in range(PLAYS)]) for K, problem in problems.items()}
    rows: list[tuple[str, ...]] = [("fkl", str(K), f"{1000 * one:.3g}", "1", "") for K, one in ours.items()]
    for name, peer in PEERS.items():
        python = Path(sys.executable) if not peer.package else environment(folder / peer.script, peer.package)
        for K, problem in problems.items() if python is not None else ():
            if (rounds := peer.rounds.get(K, ROUNDS)) == 0:
                print_note(f"{name}, {K} clients: not played, as it takes too long")
                continue
            plays = [played_by(peer, python, problem, rounds) for _ in range(PLAYS)]
            if None in [seconds for seconds, _ in plays]:
                print_note(f"{name}, {K} clients: its script failed: {plays[0][1]}")
                continue
            seconds = float(np.median([one for one, _ in plays]))
            apart = np.abs(plays[0][1] - played(problem, rounds)[1]).max()
            rows.append((name, str(K), f"{1000 * seconds:.3g}", f"{seconds / ours[K]:.3g}", f"{apart:.1e}"))
            print_note(f"{name}, {K} clients, {rounds} rounds: {1000 * seconds:.3g} ms a round")
    return rows


def played(problem: Problem, rounds: int) -> tuple[float, NDArray[np.float64]]:
    """Seconds of the processor that fkl takes for a round after the first one, and the weights after all."""
    experiment = Experiment(problem.first_rounds(rounds), KERNEL, Network(), METHOD, 0, 1, "float32")
    left, marks = iter(range(rounds)[::-1]), []

    def mark(_: int) -> None:
        if next(left) in (0, rounds - 1):  # reading this clock is a system call, which takes longer than a round
            marks.append(time.process_time())

    [chunk] = simulate_run(experiment, 1, None, mark, keep_functions=True)
    function: Any = chunk.learned[0].function
    return (marks[1] - marks[0]) / (rounds - 1), function.theta.astype(np.float64).ravel()


def environment(folder: Path, package: str) -> Path | None:
    """The Python of an environment that has a package; None, after a line that says why, where it cannot be made."""
    python = folder / "bin" / "python"
    if python.exists():
        return python
    print_note(f"{package} is installed in {folder}")
    for command in ([sys.executable, "-m", "venv", str(folder)], [str(python), "-m", "pip", "install", package]):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            print_note(f"{package} is left out, as it cannot be installed: {_last_line(done.stderr)}")
            return None
    return python


def played_by(peer: Peer, python: Path | None, problem: Problem, rounds: int) -> tuple[float | None, Any]:
    """As `played`, by another framework; None and why, where its script fails."""
    bank = KERNEL.bank(DIMENSION, Streams(0, (0,)), "float64", "numpy")
    frequencies = bank.rho[0, 0] * bank.scale[0]
    with tempfile.TemporaryDirectory() as folder:
        given = {"frequencies": frequencies, "rounds": rounds, "eta": METHOD.eta, "lam": METHOD.lam}
        np.savez(Path(folder) / "given.npz", x=problem.x[:rounds].astype(np.float64), y=problem.y[:rounds], **given)
        script = Path(peers.__file__).with_name(f"{peer.script}.py")
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        words = os.environ | one_thread | {"FKL_BENCH_WORK": folder, "PYTHONSAFEPATH": ""}  # scripts import `work`
        try:
            command, how = [str(python), str(script)], {"timeout": TIMEOUT_S, "env": words, "check": False}
            done = subprocess.run(command, capture_output=True, encoding="utf-8", **how)  # type: ignore[call-overload]
            made = np.load(Path(folder) / "made.npz")
        except subprocess.TimeoutExpired:
            return None, f"{rounds} rounds took more than {TIMEOUT_S} s"
        except FileNotFoundError:
            return None, _last_line(done.stderr)
        return float(made["seconds"]), made["theta"]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]
