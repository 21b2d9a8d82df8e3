"""Pairs of methods that differ in one idea: what it is worth, on each data set."""

from collections.abc import Iterator
from typing import Any

from fkl.papers.frontier.entries import Entry, difference, unit_of

QUESTIONS: dict[str, tuple[str, str]] = {
    "statistics in place of gradients": ("RF-GP", "POF-MKL, all kernels"),
    "statistics after 1, 2, 4, ... rounds": ("RF-GP, doubling", "RF-GP"),
    "one tuned kernel in place of 11": ("RF-GP, doubling, one kernel", "RF-GP, doubling"),
    "statistics on a graph": ("RF-GP on a graph, one kernel", "ODKLA"),
    "a stream, and nobody together": ("RF-GP", "Each alone, ridge"),
    "learning together, 2 of 11 kernels at a time": ("FOMD-OMS", "NCO-OMS"),
    "mixing with what a client learns alone": ("Fed-POE", "POF-MKL, all kernels"),
    "intervals of many lengths": ("AdaRaker, pooled", "Raker, pooled"),
    "a graph in place of a server": ("ODKLA", "OFSKL"),
    "few bits, and those only where there is news": ("QC-ODKLA, 4 bits", "ODKLA"),
    "many kernels on a graph": ("DOMKL", "ODKLA"),
    "features that data choose": ("DeKRR-DDRF, k=300", "DKLA, k=300"),
    "one message in place of 300": ("One-shot ridge, D=20", "DKLA, k=300"),
    "more features in this message": ("One-shot ridge, D=100", "One-shot ridge, D=20"),
    "samples as centres": ("FALKON, k=20", "One-shot ridge, D=100"),
    "steps together by averages of solutions": ("DKRR-NY-CM, k=20", "FALKON, k=20"),
}
"""Questions, each with the names of two methods: with the idea, and without it."""


def answers(found: list[Entry]) -> Iterator[dict[str, Any]]:
    """Table 4 of one data set: by how much a method errs more than another, paired by seed and replicate."""
    unit, scale = unit_of(found[0].dataset)
    plain = {entry.name: entry for entry in found if not entry.privacy}
    most = max(len(entry.values) for entry in found)
    for question, names in QUESTIONS.items():
        if not all(name in plain for name in names):
            continue
        method, other = (plain[name] for name in names)
        apart, low, high = (value / scale for value in difference(method, other))
        yield {
            "question": question,
            "dataset": method.dataset,
            "method": method.name,
            "other": other.name,
            "unit": unit,
            "error": method.mean("error") / scale,
            "error_other": other.mean("error") / scale,
            "difference": apart,
            "low_95": low,
            "high_95": high,
            "bytes": round(method.mean("bytes")),
            "bytes_other": round(other.mean("bytes")),
            "diverged": most - min(len(method.values), len(other.values)),
        }
