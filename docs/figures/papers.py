"""`python docs/figures/papers.py [OUTPUTS]`: docs/papers.md, from the finished runs of `make reproduce-tables`.

It also plays a run for each theorem, for five minutes in all.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fkl.basics.errors import FklError, count_of
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.data import registry
from fkl.papers import declared_paper, draw_figure, judge_paper
from fkl.papers.cells import AGREES_BY_CHOSEN, AGREES_OTHERWISE, COUNTED, MISSING, TIME, Mark, published_cells
from fkl.papers.evidence import Evidence
from fkl.runs.finished_runs import Collected, collect_runs
from fkl.screen.sheet import Sheet
from fkl.theory.answer import TheoremsAnswer, answer_run

PAGE = Path(__file__).parents[1] / "papers.md"
FIVE = ("pof_mkl", "graph_omkl", "coke", "fdskl", "parsimonious")
HEADINGS = ("printed", "what it shows", "command", "verdict", "gap, and what fills it")
BEGIN, END = "<!-- made by docs/figures/papers.py -->", "<!-- end -->"


class Row(NamedTuple):
    """Something that a paper prints: a table, a figure, a system, a data set or a theorem.

    Parameters
    ----------
    name, shows : str
    command : str
        What plays, draws or checks it here; empty if nothing does.
    gap : str
        What is missing or not faithful, why, and the command that fills it.
    """

    name: str
    shows: str
    command: str
    gap: str = ""


def rows(paper: str) -> Iterator[Row]:
    """All rows of a paper, in the order of its experiments.yaml; verdicts need runs and are not here."""
    told = declared_paper(paper)
    gaps: dict[str, str] = dict(told.get("gaps", {}))
    lacking = _lacking(paper)
    for number, one in told["tables"].items():
        counts = {name: sum(cell.dataset == name for cell in published_cells(paper, number)) for name in lacking}
        cells = [f"not run: {count_of(count, 'number')} of {name}" for name, count in counts.items() if count]
        gap = "; ".join(filter(None, (*cells, gaps.pop(f"table {number}", ""))))
        yield Row(_titled("Table", number), one["title"], f"fkl table {paper}/{number}", gap)
    for number, one in told["figures"].items():
        yield Row(f"Figure {number}", one["title"], f"fkl figure {paper}/{number}", gaps.pop(f"figure {number}", ""))
    for name, (shows, command) in told.get("also_printed", {}).items():
        yield Row(name, shows, command, gaps.pop(name, ""))
    for algo in told["systems"]:
        run = load_run(compose_config(f"algo={algo}"))
        yield Row(run.algo.label, "system", f"fkl describe {algo}", gaps.pop(run.algo.label, ""))
    for name in dict.fromkeys([*told["datasets"], *lacking]):
        command, why = lacking.get(name, (f"fkl data describe {name}", ""))
        yield Row(name, "data set", command, "; ".join(filter(None, (why, gaps.pop(name, "")))))
    for name, (shows, words, *_) in told["theorems"].items():
        command = f"fkl run {words} out=run && fkl bound run" if "=" in words else words
        yield Row(name, shows, command, gaps.pop(name, ""))
    if gaps:
        raise FklError(f"{paper}: gaps of nothing that is printed: {', '.join(gaps)}")


def _titled(what: str, number: str) -> str:
    return f"{what} {number}" if number[0].isdigit() else f"ours: {number}"


def _lacking(paper: str) -> dict[str, tuple[str, str]]:
    """By data set that is in no file of ours: the command that fetches it, and why it is missing."""
    told = declared_paper(paper)
    reasons = told.get("unobtainable", {})
    ours = tuple(told["datasets"])
    names = [
        name for name in dict.fromkeys(cell.dataset for cell in published_cells(paper)) if not name.startswith(ours)
    ]
    fills = told.get("fills", {})
    found = {}
    for name in [*names, *(name for name in reasons if name not in names)]:
        fetch = f"fkl data fetch {name}" if name in registry.dataset_names() else ""
        why = reasons.get(name) or "its file is on its publisher's site alone"
        found[name] = (fetch, f"{why}; then `{fills[name]}`" if name in fills else why)
    return found


def verdict_of(row: Row, evidence: Evidence, answers: dict[str, TheoremsAnswer], found: Collected) -> str:
    """The verdict column: how many claims agree, what a figure shows, or whether a theorem holds."""
    number = row.command.rpartition("/")[2]
    if row.command.startswith("fkl table"):
        tally = evidence.tally_outcomes(number)
        counts = [f"{count} {mark.words}" for mark, count in tally.items() if mark in (*COUNTED, MISSING)]
        times = f"{tally[TIME]} run times, without a verdict" if TIME in tally else ""
        return ", ".join(filter(None, (*counts, times))) or "nothing is printed; ours alone"
    if row.command.startswith("fkl figure"):
        try:
            drawn = draw_figure(evidence.paper, number, found, "paper")
        except FklError as error:
            return f"not drawn: {error}"
        _, claim, words = " ".join(drawn.get(".txt", b"").decode().split()).partition("The paper")
        return claim + words or "drawn beside the printed values, which the tables judge"
    if row.command.startswith("fkl run"):
        return (
            "; ".join(
                f"{one.form.name}: {one.answer}"
                for one in answers[row.command].verdicts
                if one.theorem.name == row.name
            )
            or "not checked"
        )
    if row.shows == "system":
        names = (row.name, row.command.rpartition("_")[2])  # PF is "federated" in published.csv
        return _of_claims(mark for claim, mark in evidence.outcomes if claim[0].algorithm in names)
    if row.shows == "data set":
        return _of_claims(mark for claim, mark in evidence.outcomes if claim[0].dataset.startswith(row.name))
    theorem = declared_paper(evidence.paper)["theorems"].get(row.name)
    return "no result to compare" if theorem is None else theorem[2] if len(theorem) > 2 else "not checked"


def _of_claims(marks: Iterable[Mark]) -> str:
    """How many of the counted claims about a system or a data set agree."""
    counted = [mark for mark in marks if mark in COUNTED]
    agree = sum(mark in (AGREES_BY_CHOSEN, AGREES_OTHERWISE) for mark in counted)
    return f"{agree} of {count_of(len(counted), 'claim')} agree" if counted else "no printed number is judged"


def bounds(commands: Iterable[str]) -> dict[str, TheoremsAnswer]:
    """Play each command's run, and check the theorems about its method, as `fkl bound` does."""
    answers = {}
    for command in dict.fromkeys(one for one in commands if one.startswith("fkl run")):
        print(command, file=sys.stderr)
        words = command.removeprefix("fkl run ").partition(" out=run")[0]
        answers[command] = answer_run(load_run(compose_config(*words.split())))
    return answers


def section(paper: str, found: Collected, answers: dict[str, TheoremsAnswer]) -> str:
    """A paper's heading and table."""
    evidence, lines = judge_paper(paper, found), []
    for row in rows(paper):
        command = f"`{row.command}`" if row.command else ""
        lines.append([row.name, row.shows, command, verdict_of(row, evidence, answers, found), row.gap])
    return f"## {declared_paper(paper)['title']}\n\n{Sheet.from_rows(HEADINGS, lines).markdown}"


def main(outputs: Sequence[str]) -> None:
    """Renew the part of the page between its marks."""
    answers = bounds(row.command for paper in FIVE for row in rows(paper))
    found = collect_runs(Path(outputs[0]) if outputs else Path("outputs"))
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    body = "\n\n".join(section(paper, found, answers).strip() for paper in FIVE)
    PAGE.write_text(f"{head}{BEGIN}\n\n{body}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
