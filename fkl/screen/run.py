"""Output of `fkl run`: a verdict, six lines of numbers, and the place of files; of a sweep a line for each run."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fkl.basics.errors import plural
from fkl.config.interpolation import OWN_TABLE
from fkl.data.baselines import CONSTANTS, not_beaten
from fkl.runs.metrics import MAIN, main_metric
from fkl.screen.units import bytes_of, number, percent_apart, seconds, with_spread

if TYPE_CHECKING:
    import pandas as pd

SHORT = {
    "mse_running_mean": "mean target",
    "mse_last_value": "last target",
    "test_mse_training_mean": "mean target",
    "test_error_majority": "most frequent class",
}
"""Short names of baselines."""
UNITS = "rmse_in_units"
BELOW, NOT_BELOW = "✓", "▲"
LABEL, FIRST = 9, 34
"""Widths of a line's label, and of the first of its two entries."""


class Verdict(NamedTuple):
    """Whether a run's error is below its baselines."""

    mark: str
    words: str


def verdict(summary: "pd.DataFrame") -> Verdict:
    """Compare the mean error over replicates with each baseline, starting with the worst result; or judge an audit."""
    if "epsilon_lower" in summary:
        lower = summary["epsilon_lower"]
        upper = summary.get("epsilon_upper_sums", summary["epsilon_upper"])
        mark = BELOW if (lower <= upper).all() else NOT_BELOW
        return Verdict(mark, f"audit: epsilon is at least {number(lower.mean())}, stated {number(upper.mean())}")
    for error, baselines in CONSTANTS.items():
        there = {name: float(summary[name].mean()) for name in baselines if name in summary}
        if error not in summary or not there:
            continue
        found = float(summary[error].mean())
        worse = {SHORT[name]: value for name, value in there.items() if not found < value}
        if worse:
            of = " and ".join(f"the {name} ({number(value)})" for name, value in worse.items())
            return Verdict(NOT_BELOW, f"not better than {of}")
        apart = (f"{percent_apart(found, value)} the {SHORT[name]}" for name, value in there.items())
        return Verdict(BELOW, ", ".join(apart))
    return Verdict(BELOW, "finished; there is no baseline to compare with")


def other_warnings(provenance: dict[str, Any], summary: "pd.DataFrame") -> list[str]:
    """Further facts about a run's numbers, in addition to the verdict."""
    told = str(provenance.get("warning", "")).removesuffix(not_beaten(summary) or "").removesuffix("; ")
    return [told] if told else []


def sizes(provenance: dict[str, Any], config: dict[str, Any]) -> str:
    """Size of the experiment."""
    usual = f"{plural(provenance['clients'], 'client')}, {plural(provenance['rounds'], 'round')}"
    words = [provenance.get("sizes", usual), plural(config["replicates"], "replicate")]
    if graph := provenance.get("topology"):
        words.append(f"{graph['edges']} links, spectral gap {graph['spectral_gap']:.3g}")
    if config.get("stop_when"):
        words.append(f"ended after round {provenance['rounds']}")
    if config.get("rows", "all") != "all":
        words.append(f"rows={config['rows']}")
    return ", ".join(words)


def is_own(config: dict[str, Any]) -> bool:
    """Whether the data are a table of the user's own, with units that the user knows."""
    return str((config.get("dataset") or {}).get("_target_")) == OWN_TABLE


def blocks(
    folder: Path,
    provenance: dict[str, Any],
    config: dict[str, Any],
    summary: "pd.DataFrame",
    waited: float | None = None,
) -> list[str]:
    """Lines: the run, and the verdict; numbers by subject; place of the files, and next steps.

    Parameters
    ----------
    folder : Path
    provenance, config : dict
    summary : DataFrame
    waited : float, optional
        Seconds that the user waited for it.
    """
    mean = summary.mean()
    mark, words = verdict(summary)
    lines = [f"{provenance['algorithm']} on {provenance['dataset']}", f"{mark} {words}", ""]
    in_units = [UNITS] * (is_own(config) and UNITS in summary)
    errors = in_units + ([name for name in MAIN if name in summary] or [main_metric(summary)])
    baselines = [name for name in SHORT if name in summary]

    def value(name: str, before: str = "", behind: str = "") -> list[str]:
        known = name in mean and mean[name] == mean[name]  # NaN if it is unknown
        return [f"{before} {number(mean[name])} {behind}".strip()] if known else []

    def line(label: str, entries: list[str]) -> None:
        for start in range(0, len(entries), 2):
            first, *second = entries[start : start + 2]
            text = f"  {label if start == 0 else '':{LABEL}} {first:{FIRST - 1}} {''.join(second)}"
            lines.append(text.rstrip())

    spread = {name: float(summary[name].std(ddof=1)) if summary[name].nunique() > 1 else 0.0 for name in errors}
    main = [f"{name} {with_spread(mean[name], spread[name])}{' (sd)' * (spread[name] > 0)}" for name in errors]
    line("error", [*main[:1], *value("r2", "R²"), *main[1:]])
    line("", [f"{SHORT[name]} {number(mean[name])}" for name in baselines])
    fairness = [name.removesuffix("_gini") for name in map(str, summary) if name.endswith("_gini")]
    line("clients", [
        entry for name in fairness
        for entry in (*value(f"{name}_worst_tenth", "worst tenth"), *value(f"{name}_gini", "Gini"))
    ])  # fmt: skip
    covered, length = (mean.get(f"conformal_{fact}_90", float("nan")) for fact in ("coverage", "length"))
    if covered == covered:
        line("intervals", [f"{covered:.1%} of targets in those of 90 %", f"mean length {number(length)}"])
    epsilons = {"epsilon_sample": "of a sample", "epsilon_client": "of a client"}
    line("privacy", [entry for name, words in epsilons.items() for entry in value(name, "epsilon", words)])
    regrets = {"regret_best_kernel": "to the best kernel", "regret_hindsight": "in hindsight"}
    line("regret", [entry for name, words in regrets.items() for entry in value(name, behind=words)])
    ways = {
        "uplink": "up from all clients",
        "downlink": "down to all clients",
        "broadcast": "broadcast by all agents",
        "link": "over all links",
    }
    sent = {way: float(mean[f"{name}_bytes"]) for name, way in ways.items() if f"{name}_bytes" in mean}
    line("sent", [f"{bytes_of(size)} {way}" for way, size in sent.items()])
    behind = [f"{seconds(waited)} from start to end"] if waited is not None else ["finished already"]
    line("time", [f"{seconds(mean['runtime_s'])} computing a replicate", *behind])
    lines.append(f"  data      {sizes(provenance, config)}")
    if is_own(config):
        line("scaling", [f"{config['scaling']}, from {provenance.get('scaling_from', 'all rows')}"])
    pictures = " · ".join(file.name for file in sorted(folder.glob("*.png")))
    lines += ["", f"  run       {folder}"]
    lines += [f"  pictures  {pictures}"] * bool(pictures)
    return [*lines, "  next      fkl compare · all columns: fkl run ... -v"]


def all_columns(summary: "pd.DataFrame", timing: tuple[str, ...]) -> str:
    """Mean and standard deviation over replicates; times have no deviation, because replicates run together."""
    figures = summary.drop(columns="replicate")
    varies = (figures.nunique() != 1) | (len(figures) == 1)  # std of equal numbers may exceed 0
    deviation = figures.std(ddof=1).where(varies, 0.0).drop(list(timing))
    import pandas as pd

    table = pd.DataFrame({"mean": figures.mean(), "sd": deviation}).loc[list(figures)]
    return table.to_string(float_format=lambda value: f"{value:.5g}", na_rep="-")


VARIES = re.compile(r"\S*/\S*|-?\d+(\.\d+)?(e[-+]?\d+)?")
"""Parts of a message that are ignored when reasons are compared: paths and numbers."""


def job_line(
    note: dict[str, Any], jobs: int, name: str, swept: Sequence[str], mark: str, worse_than: str, left: str
) -> str:
    """One line about a job that has ended.

    Parameters
    ----------
    note : dict
        Its state, number, overrides, metric and mean.
    jobs : int
        Number of jobs.
    name : str
        Its method and data set.
    swept : sequence of str
        Keys whose values the sweep varies.
    mark, worse_than : str
        Its verdict: ``"✓"`` or ``"▲"``, and the baselines that it does not beat.
    left : str
        Estimated time of the remaining jobs.
    """
    words = [word for word in note["overrides"].split() if word in _swept_words(note, swept)]
    varied = " ".join(word for word in words if not word.startswith(("algo=", "dataset=")))
    place = f"{note['job'] + 1:{len(str(jobs))}}/{jobs}"
    if "mean" in note:
        result = f"{note['metric']} {number(note['mean'])}"
        worse = worse_than.replace("not better than the", "≥").replace(" and the", " and ≥")
        parts = [mark, place, name, varied, f"{result} {worse}" if mark == "▲" else result]
    else:
        parts = ["✗", place, name or note["overrides"], varied if name else "", f"{note['state']}: {note['message']}"]
    again = "(finished already)" if note["state"] == "finished already" else ""
    return "  ".join(part for part in (*parts, again, left) if part)


def time_left(started: float, now: float, ended: Iterable[dict[str, Any]], jobs: int) -> str:
    """An estimate from the jobs that did some work; empty if there are none, or none is left."""
    states = [note["state"] for note in ended]
    played = sum(state != "finished already" for state in states)
    if not played or len(states) == jobs:
        return ""
    return f"{seconds(round((now - started) / played * (jobs - len(states))))} left"


def grouped(ended: Sequence[dict[str, Any]], state: str, swept: Sequence[str]) -> list[str]:
    """One line for each reason of jobs in this state: their number, their common values, and the first job.

    The common values are swept values that all of these jobs have, with the number of jobs that have them.
    """
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for note in ended:
        if note["state"] == state:
            reason = VARIES.sub("#", note["message"]) if state == "failed" else ""
            by_reason.setdefault(reason, []).append(note)
    lines = []
    for notes in by_reason.values():
        first = notes[0]
        common = set.intersection(*(_swept_words(note, swept) for note in notes))
        having = sum(common <= _swept_words(note, swept) for note in ended)
        shared = f"{' '.join(sorted(common))}, {len(notes)} of {having}: " if common else ""
        more = "" if len(notes) == 1 else ", for example"
        lines.append(f"{len(notes)} {state}{more}: {shared}{first['message']} (see {first['folder']})")
    return lines


def _swept_words(note: dict[str, Any], swept: Sequence[str]) -> set[str]:
    return {word for word in note["overrides"].split() if word.lstrip("+").partition("=")[0] in swept}
