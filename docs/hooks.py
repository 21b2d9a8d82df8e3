"""Pages of the documentation that are made from the code: a hook of MkDocs, see mkdocs.yml.

A page a choice of the configuration, from `fkl.cli.describe`; the papers' differences, the changes and the page of
contributors from where they lie; in docs/records.md what the columns of a run's tables mean. Links between them are
turned into links between pages; a link to a file of the source becomes its name, since the site does not hold the
source.
"""

import posixpath
import re
from pathlib import Path
from textwrap import indent
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from fkl.cli.describe import Description, of_choice
from fkl.config import choices
from fkl.config.compose import keys_of
from fkl.screen import columns

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ("pof_mkl", "graph_omkl", "coke", "fdskl", "parsimonious", "fomd_oms", "fed_poe", "dekrr")
COPIED = {"changes.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"} | {
    f"papers/{paper}.md": f"fkl/papers/{paper}/differences.md" for paper in PAPERS
}
"""Pages whose text lies elsewhere in the repository, and where."""
GROUPS = {
    "Methods": ("methods", ("algo",)),
    "Data sets": ("datasets", ("dataset",)),
    "Partitions": ("partitions", ("partition",)),
    "Kernels": ("kernels", ("kernels",)),
    "Graphs": ("graphs", ("topology",)),
    "Conditions": ("conditions", choices.CONDITIONS),
}
"""Entries of the navigation whose pages are made, their folder, and the groups of choices that they describe."""
COLUMNS_HERE = "<!-- columns -->"
"""Stands in docs/records.md for the meanings of all columns and kinds of messages."""
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and name them in the navigation."""
    for uri, source in COPIED.items():
        files.append(File.generated(config, uri, content=(ROOT / source).read_text(encoding="utf-8")))
    for entry, (folder, groups) in GROUPS.items():
        of_one = len(groups) == 1
        made = {
            (name if of_one else f"{group}={name}"): of_choice(group, name)
            for group in groups
            for name in choices.files(group)
        }
        for title, one in made.items():
            files.append(File.generated(config, f"{folder}/{title}.md", content=_page(title, one)))
        files.append(File.generated(config, f"{folder}/index.md", content=_index(entry, made)))
        _fill(config.nav, entry, [f"{folder}/index.md", *(f"{folder}/{title}.md" for title in made)])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages."""
    uri = page.file.src_uri
    markdown = markdown.replace(COLUMNS_HERE, _columns())
    source = COPIED.get(uri, f"docs/{uri}")
    pages = {path: name for name, path in COPIED.items()} | {f"docs/{file.src_uri}": file.src_uri for file in files}

    def turned(match: re.Match[str]) -> str:
        words, target, part = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in pages:
            return f"[{words}]({posixpath.relpath(pages[path], posixpath.dirname(uri) or '.')}{part})"
        if (ROOT / path).exists():
            return f"{words} (`{path}`)" if words.strip("`") != path else f"`{path}`"
        return match[0]  # which the strict build refuses

    return LINK.sub(turned, markdown)


def _columns() -> str:
    """What columns, endings of their names and kinds of messages mean, from `fkl.screen.columns`."""
    sent = {f"{way}_{unit}": columns.meaning(f"{way}_{unit}") for way in columns.WHO for unit in columns.WHAT}
    lost = {f"lost_{unit}": columns.meaning(f"lost_{unit}") for unit in columns.WHAT}
    endings = {f"..._{ending.strip('_')}": words.format("...") for ending, words in columns.ENDINGS.items()}
    coverage = {"coverage_50": columns.meaning("coverage_50")}
    tables = {"column": columns.COLUMNS | coverage | endings | sent | lost, "kind of message": columns.KINDS}
    return "\n\n".join(
        "\n".join([f"| {heading} | what it is |", "|---|---|", *(f"| `{a}` | {_cell(b)} |" for a, b in of.items())])
        for heading, of in tables.items()
    )


def _page(title: str, made: Description) -> str:
    """A choice's page: what it is, where it comes from, how it is run, and its keys."""
    told = [made.what, f"    {made.usage}", made.details]
    told += [f"**Paper.** {made.paper}"] * bool(made.paper)
    told += [f"**It follows** {made.equations}."] * bool(made.equations)
    told += [f"**It comes with** `{' '.join(made.brings)}`, unless others are chosen."] * bool(made.brings)
    if made.keys:
        cells = [(f"`{key.name}`", f"`{key.default}`", key.type, key.meaning, key.limits) for key in made.keys]
        rows = [("key", "default", "type", "meaning", "must be"), ("---",) * 5, *cells]
        told.append("\n".join("| " + " | ".join(_cell(word) for word in row) + " |" for row in rows))
    if made.group == "algo":
        told.append(f'??? note "The equations, as they are computed"\n\n{indent(_source(made), "    ")}')
    return "\n\n".join([f"# {title}", *filter(None, told), ""])


def _source(made: Description) -> str:
    """The file of a method, in which its equations stand in the paper's order with their numbers."""
    module = str(keys_of(made.group, made.name)["_target_"]).rpartition(".")[0]
    file = ROOT / f"{module.replace('.', '/')}.py"
    return f"```python\n{file.read_text(encoding='utf-8')}```"


def _cell(text: str) -> str:
    """Text in a table, where a bar would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _index(entry: str, made: dict[str, Description]) -> str:
    """A page that lists the choices of an entry, by their titles."""
    rows = [f"| [{title}]({title}.md) | {_cell(one.what)} |" for title, one in made.items()]
    return "\n".join([f"# {entry}", "", "| name | what it is |", "|---|---|", *rows, ""])


def _fill(nav: Any, entry: str, pages: list[str]) -> None:
    """Put pages in the place that an entry of the navigation keeps for them."""
    for item in nav:
        if entry in item:
            item[entry] = pages
