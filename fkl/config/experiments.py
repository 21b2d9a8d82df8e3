"""The papers' experiments and their choices, in one file per paper, experiments.yaml.

Such a file declares the paper: `title`, `paper_datasets` of its experiments, and by number its `tables` (title, and the
keys of the printed rows and columns) and `figures` (title, and whether published values are `marked` in it); `no_cells`
says why nothing can be compared, and `unobtainable` why a data set is not available. docs/papers.md is also made from
`systems` (the methods that the paper compares), `theorems` (what each says, and the run on which `fkl bound` checks
it), `also_printed` (tables and figures without results, each with a command), `gaps` (rows that our command does not
fill, with the reason) and `fills` (what to run once a missing file exists). Six parts say what is run. `options` has
groups of choices as in conf/, each a configuration without a package (``+graph_omkl/data=concrete``).
`paper_experiments` has the choices of the group `experiment`. `paper_variants` has, for each reading of the paper other
than its text, the keys that change. `builds_on` names the reading whose runs another uses if it has none.
`readings_tried` is the number of readings that were tried, named or not. `differences_tried` names the item of
differences.md about cells that differ. Some keys of a choice are not configuration:

about
    Description in one line; `fkl list` shows it.
sweep
    In an experiment: the differences between its jobs, as words of a command line (``hydra.sweeper.params``).
needed
    In an experiment: false if no published number needs it, but differences.md reports it as another reading.
cell
    Position of a job's run in the paper's tables and figures; see `fkl.papers.our_runs`. An entry at the top of the
    file is for all of the paper's experiments, unless they or their choices have another value.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

import fkl

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled loader, if it exists, is ten times faster
GROUP = "experiment"
NO_CONFIGURATION = ("about", "sweep", "needed", "cell")

Choices = dict[str, dict[str, dict[str, Any]]]
"""Groups by path, and their choices by name."""


def paper_files() -> dict[str, Path]:
    """The file of each paper."""
    found = (Path(fkl.__file__).parent / "papers").glob("*/experiments.yaml")
    return {file.parent.name: file for file in sorted(found)}


@cache
def of_paper(paper: str) -> dict[str, Any]:
    """Content of a paper's file."""
    content: dict[str, Any] = yaml.load(paper_files()[paper].read_text(encoding="utf-8"), LOADER)
    return content


def paper_experiments(paper: str) -> dict[str, dict[str, Any]]:
    """A paper's experiments by their names, PAPER/NAME."""
    content = of_paper(paper)
    common = content.get("cell", {})
    return {name: {**node, "cell": {**common, **node.get("cell", {})}} for name, node in content["experiments"].items()}


def not_needed(paper: str) -> list[str]:
    """The paper's experiments that no published number needs."""
    return [name for name, node in paper_experiments(paper).items() if not node.get("needed", True)]


def paper_variants(paper: str) -> dict[str, str]:
    """Readings of a paper other than its text, in order, and their changes."""
    return dict(of_paper(paper).get("variants", {}))


def builds_on(paper: str) -> dict[str, str]:
    """For each reading of a paper, the reading whose runs it uses if it has none; by default that is the text."""
    return dict(of_paper(paper).get("builds_on", {}))


def readings_tried(paper: str) -> int:
    """Number of readings of a paper that were tried, including its text and those without a name."""
    return int(of_paper(paper).get("readings_tried", 1))


def paper_datasets(paper: str) -> list[str]:
    """Data sets of a paper's experiments."""
    return list(of_paper(paper)["datasets"])


def differences_tried(paper: str) -> dict[str, str]:
    """First words of the item about cells that differ, by algorithm or ``ALGORITHM on DATASET``."""
    return dict(of_paper(paper).get("tried", {}))


@cache
def paper_choices() -> Choices:
    """All groups of all papers."""
    choices_of: Choices = {}
    for paper in paper_files():
        for group, options in of_paper(paper)["options"].items():
            choices_of.setdefault(group, {}).update(options)
        for name, experiment in paper_experiments(paper).items():
            group, _, option = f"{GROUP}/{name}".rpartition("/")
            choices_of.setdefault(group, {})[option] = experiment
    return choices_of


def groups_in(group: str) -> set[str]:
    """Names of the groups directly inside a group; the top-level ones for an empty name."""
    start = f"{group}/" if group else ""
    return {path.removeprefix(start).partition("/")[0] for path in paper_choices() if path.startswith(start)}


def is_group(path: str) -> bool:
    """Whether a path is that of a group, or of a folder that contains groups."""
    return any(f"{group}/".startswith(f"{path}/") for group in paper_choices())


def paper_choice(path: str) -> dict[str, Any] | None:
    """A choice by its path, for example ``graph_omkl/data/concrete``; None if it does not exist."""
    group, _, option = path.removesuffix(".yaml").rpartition("/")
    return paper_choices().get(group, {}).get(option)


def for_runs(node: dict[str, Any]) -> dict[str, Any]:
    """A choice as `fkl run` composes it."""
    config = {key: value for key, value in node.items() if key not in NO_CONFIGURATION}
    return config | ({"hydra": {"sweeper": {"params": node["sweep"]}}} if "sweep" in node else {})


def paper_choice_descriptions(group: str) -> dict[str, str]:
    """Descriptions of the choices in a group and its subgroups, by name relative to the group."""
    about_of = {}
    for path, options in paper_choices().items():
        if f"{path}/".startswith(f"{group}/"):
            for name, node in options.items():
                sweep = " (sweep: -m)" if "sweep" in node else ""
                about_of[f"{path}/{name}".removeprefix(f"{group}/")] = node.get("about", "") + sweep
    return about_of
