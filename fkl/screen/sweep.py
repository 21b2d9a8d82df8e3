"""What a sweep prints: a line a run as it ends, and one line for all failures that have the same reason."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fkl.screen.units import number, seconds

VARIES = re.compile(r"\S*/\S*|-?\d+(\.\d+)?(e[-+]?\d+)?")
"""Parts of a message that do not make it another reason: paths and numbers."""


def job_line(note: dict[str, Any], jobs: int, name: str, swept: Sequence[str], mark: str, told: str, left: str) -> str:
    """One line about a job that has ended.

    Parameters
    ----------
    note : dict
        Its state, number, overrides, metric and mean.
    jobs : int
        How many there are.
    name : str
        Its method and data set.
    swept : sequence of str
        Keys whose values the sweep varies.
    mark, told : str
        Its verdict: ``"✓"`` or ``"▲"``, and what it is not better than.
    left : str
        How long the others may take.
    """
    words = [word for word in note["overrides"].split() if word in _swept_words(note, swept)]
    varied = " ".join(word for word in words if not word.startswith(("algo=", "dataset=")))
    place = f"{note['job'] + 1:{len(str(jobs))}}/{jobs}"
    if "mean" in note:
        result = f"{note['metric']} {number(note['mean'])}"
        worse = told.replace("not better than the", "≥").replace(" and the", " and ≥")
        parts = [mark, place, name, varied, f"{result} {worse}" if mark == "▲" else result]
    else:
        parts = ["✗", place, name or note["overrides"], varied if name else "", f"{note['state']}: {note['message']}"]
    again = "(finished already)" if note["state"] == "finished already" else ""
    return "  ".join(part for part in (*parts, again, left) if part)


def time_left(started: float, now: float, ended: Iterable[dict[str, Any]], jobs: int) -> str:
    """A guess from the jobs that had something to do; nothing where none had, or none is left."""
    states = [note["state"] for note in ended]
    played = sum(state != "finished already" for state in states)
    if not played or len(states) == jobs:
        return ""
    return f"{seconds(round((now - started) / played * (jobs - len(states))))} left"


def grouped(ended: Sequence[dict[str, Any]], state: str, swept: Sequence[str]) -> list[str]:
    """A line for each reason for which jobs are in this state: how many, what they have in common, and the first one.

    What they have in common is the swept values that all of them have, beside how many jobs have these.
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
