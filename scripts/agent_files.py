"""`python scripts/agent_files.py`: write SKILL.md and llms.txt, for programs that use or read fkl.

Names and descriptions come from the command line and from `fkl list`, and titles from the pages. A test plays the
commands of SKILL.md.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from fkl.cli.commands import SECTIONS, commands
from fkl.cli.listing import ALL, WORDS, by_family
from fkl.config.choices import choice_descriptions

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "Start": ("README.md", "docs/tutorial.md", "docs/choosing.md", "docs/glossary.md"),
    "Manual": ("docs/*.md",),
    "Findings": ("docs/findings/*.md",),
    "Papers": ("fkl/papers/*/differences.md",),
    "The project": ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"),
}
"""Sections of llms.txt and their pages; a page belongs to the first section that names it."""
NO_TEXT = (
    "docs/api.md",
    "docs/index.md",
    "docs/guides.md",
    "docs/reference.md",
    "docs/findings/index.md",
)
"""Pages that list other pages."""
SKILL = """---
name: fkl
description: "{what} Use it to run a method, to compare methods, to tune and judge them in a study, to check a \
paper's numbers, or to add a method."
---
# fkl: federated and online kernel learning
Install: `pip install '.[study,report,compare]'` in a checkout; Python 3.11 or newer. A data set that is not built \
in needs `fkl data fetch NAME`.

{commands}

## Find names and keys
    $ fkl list
    $ fkl list algo --format=json
    $ fkl describe pof_mkl
    $ fkl describe algo.eta
    $ fkl describe algo --format=schema

{methods}
- Data sets: {datasets}

## Run
    $ fkl plan algo=pof_mkl dataset=diabetes replicates=2
    $ fkl run algo=pof_mkl dataset=diabetes replicates=2 out=first
    $ fkl replay first
    $ fkl run -m algo=pof_mkl,vm_kofl dataset=diabetes replicates=4 seed=0,1 algo.eta=0.1,1

Words are `GROUP=NAME` and `GROUP.KEY=VALUE`; groups: {groups}. A finished run is not made again. Exit code 2: the \
input is wrong, and one line says why.

## Read results
A run's folder has `summary.csv` (a row a replicate), `clients.csv`, `rounds.csv`, `config.yaml` and \
`provenance.json`. Errors are of scaled targets: read `mse` next to `mse_running_mean` and `mse_last_value`, which \
learn nothing. ▲ in a table marks a method that does not beat them.

    $ fkl describe mse_running_mean
    $ fkl compare dataset=diabetes --format=csv

## Study: a fair comparison
Write `study.yaml`:
```yaml
methods: [pof_mkl, vm_kofl]
datasets: [diabetes]
tune: {{trials: 24}}
judge: {{seeds: 10, margin: 0.02}}
```

    $ fkl study study.yaml --dry-run
    $ fkl study study.yaml

Report its answer with its interval. A comparison of defaults is not fair, nor one of settings that were tuned on \
the judged rows.

## Add a method
Copy `examples/own_method`: a class in `my_methods.py`, its keys in `my_conf/algo/quiet.yaml`. Read \
docs/extending.md.

    $ fkl run --config-dir my_conf algo=quiet dataset=friedman kernels.D=8 replicates=2
    $ python -m fkl.conformance --config-dir my_conf algo=quiet
"""


def skill() -> str:
    """Instructions for agents that use fkl, in at most 60 lines."""
    names = {group: [name for name, words in choice_descriptions(group).items() if words] for group in ALL}
    return SKILL.format(
        what=commands.help,
        commands="\n".join(
            f"- {title}: " + "; ".join(f"`fkl {name}`, {_short(name)}" for name in of_it)
            for title, of_it in SECTIONS.items()
        ),
        methods="\n".join(
            f"- Methods, {family}: {', '.join(of_it)}" for family, of_it in by_family(names["algo"]).items()
        ),
        datasets=", ".join(names["dataset"]),
        groups=", ".join(group for group in ALL if group not in ("as_published", "experiment")),
    )


def llms() -> str:
    """Pages of the repository, methods and data sets, in the format of llmstxt.org."""
    parts = ["# fkl", f"> {commands.help}", "SKILL.md says how to use the command line."]
    told: set[str] = {*NO_TEXT}
    for section, patterns in PAGES.items():
        files = [file.relative_to(ROOT).as_posix() for one in patterns for file in sorted(ROOT.glob(one))]
        files = [file for file in dict.fromkeys(files) if file not in told]
        told |= {*files}
        parts.append(_section(section, (f"[{_title(ROOT / file)}]({file})" for file in files)))
    known = choice_descriptions("algo")
    for family, names in by_family([name for name, words in known.items() if words]).items():
        parts.append(_section(f"Methods: {family}", (f"`{name}`: {known[name]}" for name in names)))
    for group, words in WORDS.items():
        if group != "experiment":
            parts.append(
                _section(f"{group}: {words}", (f"`{a}`: {b}" for a, b in choice_descriptions(group).items() if b))
            )
    return "\n\n".join(parts) + "\n"


def _section(title: str, lines: Iterable[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines)


def _short(name: str) -> str:
    """Purpose of a command, as part of a sentence."""
    words = re.split("[:;]", commands.commands[name].get_short_help_str(limit=200).rstrip("."))[0]
    return words[:1].lower() + words[1:]


def _title(page: Path) -> str:
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else f"{page.parent.name}: {page.stem} between the paper and our runs"


FILES = {"SKILL.md": skill, "llms.txt": llms}

if __name__ == "__main__":
    for name, made in FILES.items():
        (ROOT / name).write_text(made(), encoding="utf-8")
