"""Write the pages of the site: those of docs/, those elsewhere in the repository, and those made from code.

Links between files of the repository become links between pages. A link to a file without a page becomes its name,
because the site does not contain the source.
"""

import posixpath
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import yaml
from hydra.utils import get_class

from fkl.cli.describe import Description, of_choice, source_of
from fkl.cli.docstrings import found_class
from fkl.cli.listing import by_family
from fkl.config import choices
from fkl.config.compose import keys_of
from fkl.config.loading import ENGINES, load_engine
from fkl.conformance import quick_run
from fkl.engines.base import why_not_at_sites
from fkl.papers import declared_paper
from fkl.screen import columns
from fkl.screen.units import bytes_of
from fkl.study.plan import Plan

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ("pof_mkl", "graph_omkl", "coke", "fdskl", "parsimonious", "fomd_oms", "fed_poe", "dekrr")
COPIED = {"changes.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"} | {
    f"papers/{paper}.md": f"fkl/papers/{paper}/differences.md" for paper in PAPERS
}
"""Pages whose text is elsewhere in the repository, and its path."""
NOTEBOOKS = "examples/notebooks"
GROUPS = {
    "datasets": ("Data sets", ("dataset",)),
    "partitions": ("Partitions", ("partition",)),
    "kernels": ("Kernels", ("kernels",)),
    "graphs": ("Graphs", ("topology",)),
    "conditions": ("Conditions of the network", choices.CONDITIONS),
}
"""Folders of generated pages, with titles and the groups of choices that they describe."""
COLUMNS_HERE = "<!-- columns -->"
"""Placeholder in docs/records.md for the meanings of all columns and kinds of messages."""
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
SOURCES = (".md", ".png", ".svg", ".rst")


def write(folder: Path) -> None:
    """Write all pages to a folder, which is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    docs = ROOT / "docs"
    copied = {file.relative_to(docs).as_posix(): file for file in docs.rglob("*") if file.suffix in SOURCES}
    copied |= {page: ROOT / source for page, source in COPIED.items()}
    copied |= {f"notebooks/{file.name}": file for file in (ROOT / NOTEBOOKS).glob("*.ipynb")}
    made = {**_methods(), **{name: page for group in GROUPS for name, page in _choices(group).items()}}
    pages = {file.relative_to(ROOT).as_posix(): page for page, file in copied.items()}
    for page, file in copied.items():
        if file.suffix == ".md":
            text = file.read_text(encoding="utf-8").replace(COLUMNS_HERE, _columns())
            if page.startswith("papers/"):
                text = text.replace("## Differences", f"# {declared_paper(file.parent.name)['title']}: differences", 1)
            made[page] = _linked(text, file.relative_to(ROOT).as_posix(), page, pages, {*made, *copied})
        elif file.suffix == ".ipynb":
            made[page] = file.read_text(encoding="utf-8").replace("../../docs/", "../")
        else:
            target = folder / page
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    for page, text in made.items():
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _linked(text: str, source: str, page: str, pages: dict[str, str], known: set[str]) -> str:
    """The text of a page, with links between files as links between pages."""

    def turned(match: re.Match[str]) -> str:
        words, target, part = match[1], match[2], match[3] or ""
        here = posixpath.dirname(page) or "."
        if "://" in target or posixpath.normpath(posixpath.join(here, target)) in known:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in pages:
            return f"[{words}]({posixpath.relpath(pages[path], here)}{part})"
        if (ROOT / path).exists():
            return f"`{path}`" if path.endswith(words.strip("`")) else f"{words} (`{path}`)"
        return match[0]  # the strict build refuses it

    return LINK.sub(turned, text)


def _columns() -> str:
    """Meanings of columns, endings of their names, and kinds of messages, from `fkl.screen.columns`."""
    sent = {f"{way}_{unit}": columns.column_meaning(f"{way}_{unit}") for way in columns.WHO for unit in columns.WHAT}
    lost = {f"lost_{unit}": columns.column_meaning(f"lost_{unit}") for unit in columns.WHAT}
    endings = {f"..._{ending.strip('_')}": words.format("...") for ending, words in columns.ENDINGS.items()}
    coverage = {"coverage_50": columns.column_meaning("coverage_50")}
    tables = {"column": columns.COLUMNS | coverage | endings | sent | lost, "kind of message": columns.KINDS}
    return "\n\n".join(
        "\n".join([f"| {heading} | meaning |", "|---|---|", *(f"| `{a}` | {_cell(b)} |" for a, b in of.items())])
        for heading, of in tables.items()
    )


IN_ONE_FILE = {
    "pof_mkl": "pof_mkl",
    "omkl_gf": "graph_omkl",
    "coke": "coke",
    "fdskl": "fdskl",
    "parsimonious_federated": "parsimonious",
}
"""Methods that a script of examples/one_file writes down, by name."""


def _methods() -> dict[str, str]:
    """A page for each method, and one for each family, which lists them by their printed names."""
    found = {name: of_choice("algo", name) for name in choices.choice_files("algo")}
    titles = {name: str(get_class(str(keys_of("algo", name)["_target_"])).label) for name in found}  # type: ignore[attr-defined]
    made = {f"methods/{name}.md": _method(titles[name], one) for name, one in found.items()}
    families, pages = [], []
    for family, names in by_family(list(found)).items():
        rows = [f"| [{titles[name]}]({name}.md) | `{name}` | {_cell(_sentence(found[name]))} |" for name in names]
        table = "\n".join(["| method | name | |", "|---|---|---|", *rows])
        families += [f"## {family.capitalize()}", table]
        pages.append(family.replace(",", "").replace(" ", "_"))
        made[f"methods/{pages[-1]}.md"] = "\n\n".join([f"# {family.capitalize()}", table, _toc(names), ""])
    made["methods/index.md"] = "\n\n".join(
        ["# Methods", "A method's page has its keys and its equations.", *families, _toc(pages), ""]
    )
    return made


def _sentence(one: Description) -> str:
    """Description of a method, without its name."""
    words = one.what.partition(":")[2].strip() or one.what
    return words[:1].upper() + words[1:]


def _method(title: str, one: Description) -> str:
    """A method's page: its description, its keys, and its equations as computed."""
    module, _, name = str(keys_of("algo", one.name)["_target_"]).rpartition(".")
    made = found_class(module, name)
    assert made is not None
    file, source = f"{module.replace('.', '/')}.py", source_of(made).rstrip("\n") + "\n"
    when = yaml.safe_load((ROOT / "docs" / "when.yaml").read_text(encoding="utf-8"))[one.name]
    told = [
        f"# {title}",
        f"{_sentence(one)}.",
        f"**Use it when** {when}.",
        f"    {one.usage}",
        *_told(one),
        _engines(one.name),
        *_sent(one.name),
        *_results(one.name),
    ]
    told += ["## Keys", _keys(one)]
    told += ["## Equations", f"As they are computed, in the order of the paper: `{file}`.", f"```python\n{source}```"]
    if one.name in IN_ONE_FILE:
        script = ROOT / "examples" / "one_file" / f"{IN_ONE_FILE[one.name]}.py"
        words = f"The whole method with numpy alone, `{script.relative_to(ROOT)}`; a test compares fkl with it."
        told += ["## In one file", words, f"```python\n{script.read_text(encoding='utf-8')}```"]
    return "\n\n".join([*filter(None, told), ""])


def _engines(algo: str) -> str:
    """Engines that can run a method in a small scenario, and the reasons of the others."""
    run = quick_run(f"algo={algo}")
    reasons = {f"`engine={name}`": load_engine(name).can_play(run) for name in ENGINES}
    reasons["Flower"] = why_not_at_sites(run.algo)
    can = ", ".join(name for name, why in reasons.items() if why is None)
    return " ".join([f"**Engines:** {can}.", *(f"Not {name}: {why}." for name, why in reasons.items() if why)])


def _sent(algo: str) -> list[str]:
    """Messages of a method in a small run, from docs/sends.csv, which docs/figures/sends.py writes."""
    frame = pd.read_csv(ROOT / "docs" / "sends.csv", keep_default_na=False)
    mine = frame[frame["algo"] == algo]
    if not mine["scalars"].sum():
        return ["## What it sends", "Nothing."]
    first = mine.iloc[0]
    rows = [
        f"| {row['way']} | {row['kind']} | {columns.kind_meaning(row['kind']) or ''} | {row['scalars']:,} |"
        for _, row in mine.iterrows()
    ]
    who = f"with {first['clients']} clients or parties in {first['rounds']} rounds" if first["rounds"] else "in all"
    heading = ["| way | kind | what it is | scalars in all |", "|---|---|---|---:|"]
    return ["## What it sends", "\n".join([*heading, *rows]), f"In a small run {who}: `fkl run {first['words']}`."]


def _results(algo: str) -> list[str]:
    """Results of a method in the studies of docs/studies, compared with the best method there."""
    told = []
    for folder in sorted((ROOT / "docs" / "studies").iterdir()):
        plan = Plan.read(ROOT / "examples" / "studies" / f"{folder.name}.yaml")
        names = {part.name for part in plan.methods if f"algo={algo}" in part.words}
        frame = pd.read_csv(folder / "results.csv")
        rows = []
        for _, row in frame[frame["method"].isin(names)].iterrows():
            same = frame[(frame["data set"] == row["data set"]) & (frame["failed"] == 0)]
            best = same.loc[same["error"].idxmin()]
            other = "itself" if best["method"] == row["method"] else f"{best['method']}, {best['error']:.3g}"
            sent = "nothing" if not row["uplink_bytes"] > 0 else bytes_of(row["uplink_bytes"])
            error = f"{row['failed']} of {row['of']} failed" if row["failed"] else f"{row['error']:.3g}"
            rows.append([row["method"], row["data set"], error, other, sent])
        if rows:
            heading = ["method", "data set", "error", "the best in this study", "sent by all clients"]
            lines = [
                "| " + " | ".join(_cell(str(cell)) for cell in line) + " |" for line in (heading, ["---"] * 5, *rows)
            ]
            page = folder.name if (ROOT / "docs" / "findings" / f"{folder.name}.md").exists() else "what_wins"
            told.append(
                f"From the study [{plan.question}](../findings/{page}.md), mean over {plan.seeds} seeds, tuned in each:"
            )
            told.append("\n".join(lines))
            told.append(f"![Error against bytes](../studies/{folder.name}/error-against-bytes.png)")
    return ["## Results", *told] if told else []


def _choices(folder: str) -> dict[str, str]:
    """A page for each choice of some groups, and one that lists them."""
    title, groups = GROUPS[folder]
    alone = len(groups) == 1
    found = {
        (name if alone else f"{group}={name}"): of_choice(group, name)
        for group in groups
        for name in choices.choice_files(group)
    }
    rows = [f"| [{name}]({name}.md) | {_cell(one.what)} |" for name, one in found.items()]
    listed = [f"# {title}", "\n".join(["| name | |", "|---|---|", *rows]), _toc(found), ""]
    made = {f"{folder}/index.md": "\n\n".join(listed)}
    for name, one in found.items():
        heading = f"# {groups[0]}={name}" if alone else f"# {name}"
        told = [heading, f"{one.what}.", f"    {one.usage}", *_told(one), _keys(one), ""]
        made[f"{folder}/{name}.md"] = "\n\n".join(filter(None, told))
    return made


def _told(one: Description) -> list[str]:
    """Paragraphs about a choice."""
    told = [one.details]
    told += [f"**Paper.** {one.paper}"] * bool(one.paper)
    told += [f"**It follows** {one.equations}."] * bool(one.equations)
    told += [f"**It brings** `{' '.join(one.brings)}`, unless you choose others."] * bool(one.brings)
    return told


def _keys(one: Description) -> str:
    """The table of a choice's keys."""
    if not one.keys:
        return "It has no keys." if one.group == "algo" else ""
    cells = [(f"`{key.name}`", key.meaning, f"`{key.default}`", key.type, key.limits) for key in one.keys]
    rows = [("key", "meaning", "default", "type", "must be"), ("---",) * 5, *cells]
    return "\n".join("| " + " | ".join(_cell(word) for word in row) + " |" for row in rows)


def _cell(text: str) -> str:
    """Text for a table cell, with escaped bars."""
    return " ".join(text.split()).replace("|", "\\|")


def _toc(names: Iterable[str]) -> str:
    """Entries of the sidebar."""
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
