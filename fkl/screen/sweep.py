"""Output of a sweep: one line per finished run, and one line for all failures with the same reason."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fkl.screen.units import number, seconds

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
