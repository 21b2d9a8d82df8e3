"""Finished runs as entries of one comparison: the same samples judged, the same ledger, paired replicates."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from typing import Any

import pandas as pd

from fkl.composing.grid import jobs
from fkl.config import identity
from fkl.errors import FklError
from fkl.results.collect import FinishedRun

EXPERIMENT = "frontier/methods"
DATASETS = ("naval", "energy", "air")
TEST_SHARE = 0.3
STOPS = (50, 500)
FREE = ("replicates", "seed", "algo")
"""What runs on the same footing may differ in: their method, but for some of its keys; seeds are compared in pairs."""
WINDOW = 0.1
FAMILIES = {
    ".federated.pooled": "pooled, stream",
    ".federated.": "federated, stream",
    ".decentralized.": "decentralized, batch",
}
POOLED_BATCH, OWN = "pooled, batch", "own"
PAIR = ["seed", "replicate"]
COLUMNS = {
    True: {"test_mse", "link_scalars", "broadcast_scalars"},
    False: {"mse", "uplink_scalars", "downlink_scalars"},
}


@dataclass(frozen=True)
class Entry:
    """A method in one setting on one data set, at its end or, of a batch, after so many iterations.

    Parameters
    ----------
    dataset, algorithm, setting, family : str
    iterations : int or None
        None of a stream.
    values : DataFrame
        Indexed by seed and replicate: error, scalars and sent as in `measured`.
    runs : tuple of FinishedRun
        One a seed; none of what is counted and not run.
    """

    dataset: str
    algorithm: str
    setting: str
    family: str
    iterations: int | None
    values: pd.DataFrame
    runs: tuple[FinishedRun, ...]

    @property
    def method(self) -> tuple[str, str]:
        """What is the same method on every data set."""
        return self.algorithm, self.setting

    @property
    def name(self) -> str:
        """The method for people."""
        return ", ".join(word for word in self.method if word)

    @property
    def full_setting(self) -> str:
        """With the iterations."""
        stop = "" if self.iterations is None else f"k={self.iterations}"
        return "; ".join(word for word in (self.setting, stop) if word)


def entries_of(runs: Iterable[FinishedRun]) -> dict[str, list[Entry]]:
    """Entries of each data set that was run.

    Raises
    ------
    fkl.errors.FklError
        If there is none.
    """
    chosen: dict[tuple[tuple[str, str, str], int], FinishedRun] = {}
    for run in filter(belongs, runs):
        key = _cell(run), run.config["seed"]
        if key not in chosen or run.replicates >= chosen[key].replicates:
            chosen[key] = run
    of_cell: dict[tuple[str, str, str], list[FinishedRun]] = {}
    for (cell, _), run in chosen.items():
        of_cell.setdefault(cell, []).append(run)
    found: dict[str, list[Entry]] = {}
    for dataset in DATASETS:
        for cell, several in sorted(of_cell.items()):
            if cell[0] == dataset:
                found.setdefault(dataset, []).extend(_entries(cell, tuple(several)))
        found.get(dataset, []).extend(_pooled_ridge(entry) for entry in found.get(dataset, []) if _is_dkla(entry))
    if not found:
        raise FklError("frontier: no finished run belongs to it; first fkl run -m +experiment=frontier")
    return found


def at_the_end(found: list[Entry]) -> list[Entry]:
    """Entries of a data set without those that a batch method passes on its way."""
    return [entry for entry in found if entry.iterations in (None, STOPS[-1])]


def paired(found: list[Entry]) -> pd.DataFrame:
    """Errors of entries, a column each in their order, a row a replicate that all of them have."""
    columns = [entry.values["error"] for entry in found]
    return pd.concat(columns, axis=1, join="inner", keys=range(len(found))).sort_index()


def belongs(run: FinishedRun) -> bool:
    """Whether a run is on the footing of one of the experiment's: data, clients, kernels, samples that are judged."""
    if run.dataset not in DATASETS or not COLUMNS[_is_batch(run)] <= set(run.summary):
        return False
    algo, shared = run.config["algo"], _shared()
    return (
        identity(run.config, FREE) in _footings(FREE)
        and all(algo[key] in values for key, values in shared.items() if key in algo)
        and algo.get("iterations", STOPS[-1]) >= STOPS[-1]
    )


@cache
def _footings(free: tuple[str, ...]) -> set[str]:
    """What runs on the same footing have in common, for each job of the experiment."""
    return {identity(job.config, free) for job in jobs(EXPERIMENT)}


@cache
def _shared() -> dict[str, list[Any]]:
    """Keys of algo that every method of the experiment has the same value of, if it has them."""
    return {
        key: [job.config["algo"][key] for job in jobs(EXPERIMENT) if key in job.config["algo"]]
        for key in jobs(EXPERIMENT)[0].cell["footing"]
    }


def setting_of(run: FinishedRun) -> str:
    """Keys of the algorithm that are not as its class has them, and M, as key=value pairs."""
    fixed = {"_target_", "iterations", *_shared()}
    algo = {key: value for key, value in run.config["algo"].items() if key not in fixed}
    usual = _defaults(run.config["algo"]["_target_"])
    told = {key: value for key, value in algo.items() if key == "M" or usual.get(key, value) != value}
    return "; ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in told.items()
    )


def measured(run: FinishedRun, iterations: int | None) -> pd.DataFrame:
    """What is compared, a row a replicate.

    Parameters
    ----------
    run : FinishedRun
    iterations : int or None
        Of a batch method that is stopped there; None of a stream.

    Returns
    -------
    DataFrame
        error
            Mean squared error of the last `TEST_SHARE` of each client's samples: of a stream, each before it is
            learned from; of a batch, none ever is.
        scalars, sent
            Of a client until then, in the mean: on all links in all directions; that it sends itself, a broadcast to
            all neighbours once.
    """
    last = int(run.provenance["rounds"]) if iterations is None else iterations
    end = _after(run, last)
    if iterations is not None:
        return pd.DataFrame({"error": end["test_mse"], **_traffic(run, end)})
    first = last - round(TEST_SHARE * last)
    squared_errors = last * end["mse"] - first * _after(run, first)["mse"]
    return pd.DataFrame({"error": squared_errors / (last - first), **_traffic(run, end)})


def course(run: FinishedRun) -> pd.DataFrame:
    """Error over what was sent so far, a row a replicate and round.

    Returns
    -------
    DataFrame
        round, replicate, scalars as in `measured`; error, of a stream, over the last `WINDOW` of all its rounds.
    """
    rounds = run.rounds
    table = rounds[["round", "replicate"]].assign(**_traffic(run, rounds))
    if _is_batch(run):
        return table.assign(error=rounds["test_mse"])
    window = round(WINDOW * run.provenance["rounds"])
    total = (rounds["mse"] * rounds["round"]).groupby(rounds["replicate"])
    return table.assign(error=total.diff(window) / window).dropna()


def _after(run: FinishedRun, rounds: int) -> pd.DataFrame:
    """Records of all replicates after so many rounds."""
    return run.rounds[run.rounds["round"] == rounds].set_index("replicate")


def _traffic(run: FinishedRun, rows: pd.DataFrame) -> "dict[str, pd.Series[float]]":
    if _is_batch(run):
        counts = {"scalars": rows["link_scalars"], "sent": rows["broadcast_scalars"]}
    else:
        counts = {"scalars": rows["uplink_scalars"] + rows["downlink_scalars"], "sent": rows["uplink_scalars"]}
    return {name: count / run.provenance["clients"] for name, count in counts.items()}


def _entries(cell: tuple[str, str, str], runs: tuple[FinishedRun, ...]) -> list[Entry]:
    stops = STOPS if _is_batch(runs[0]) else (None,)
    family = _family(runs[0])
    return [
        Entry(*cell, family, stop, pd.concat([_of_a_seed(run, measured(run, stop)) for run in runs]), runs)
        for stop in stops
    ]


def _of_a_seed(run: FinishedRun, values: pd.DataFrame) -> pd.DataFrame:
    """Values indexed by replicate, with the run's seed in the index."""
    return values.reset_index().assign(seed=run.config["seed"]).set_index(PAIR)


def _is_dkla(entry: Entry) -> bool:
    return (*entry.method, entry.iterations) == ("DKLA", "", STOPS[-1])


def _pooled_ridge(dkla: Entry) -> Entry:
    """What DKLA's agents are on their way to, by one fit at a server that they send their training samples to.

    The run's judge tells the fit's error; its traffic is counted here, since nobody sends it: d features and a target
    a sample, and theta back.
    """
    values = [_of_a_seed(run, _at_the_optimum(run)) for run in dkla.runs]
    return Entry(dkla.dataset, "Ridge, pooled", "", POOLED_BATCH, None, pd.concat(values), ())


def _at_the_optimum(run: FinishedRun) -> pd.DataFrame:
    samples = run.clients.groupby("replicate")["training_samples"].mean()
    sent = samples * (run.provenance["features"] + 1)
    error = run.summary.set_index("replicate")["test_mse_at_optimum"]
    return pd.DataFrame({"error": error, "scalars": sent + 2 * run.config["kernels"]["D"], "sent": sent})


def _is_batch(run: FinishedRun) -> bool:
    return "test_mse" in run.summary


def _family(run: FinishedRun) -> str:
    path = run.config["algo"]["_target_"]
    return next((family for part, family in FAMILIES.items() if part in path), OWN)


def _cell(run: FinishedRun) -> tuple[str, str, str]:
    return run.dataset, run.algorithm, setting_of(run)


def _defaults(target: str) -> dict[str, Any]:
    """What a class of fkl's is without a configuration; of another one nothing, since importing is running."""
    module, _, name = target.rpartition(".")
    if not module.startswith("fkl."):
        return {}
    try:
        return {field.name: field.default for field in fields(getattr(import_module(module), name))}
    except (ImportError, AttributeError):
        return {}
