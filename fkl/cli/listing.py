"""Output of `fkl list`: all names on one screen, or the choices of one group with a description of each."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from click import HelpFormatter

from fkl.basics.errors import FklError, did_you_mean, in_one_line
from fkl.config.choices import choice_descriptions
from fkl.config.compose import keys_of
from fkl.screen.messages import print_lines, text_width
from fkl.screen.sheet import Sheet

FAMILIES = {
    "federated": "clients and a server",
    "local_training": "clients that train locally, and a server",
    "decentralized": "agents on a graph",
    "vertical": "parties with different features",
    "online": "one learner, no clients",
    "parsimonious": "one message of few samples",
}
"""Headings of methods, by the package of fkl.algorithms that has their class."""
WORDS = {
    "dataset": "data sets",
    "partition": "which client has which rows",
    "kernels": "dictionaries of kernels",
    "topology": "graphs of agents",
    "participation": "which clients take part in a round",
    "aggregate": "what a server learns from messages",
    "audit": "attacks on the stated epsilon",
    "privacy": "clipped and noisy messages",
    "attack": "false messages of some clients",
    "compression": "messages of few bits",
    "secure": "the server sees only sums",
    "late": "updates or labels that arrive late",
    "links": "which links are up",
    "intervals": "intervals around predictions",
    "logger": "where a run reports its progress",
    "as_published": "+as_published=NAME, changed readings",
    "experiment": "+NAME, the papers' runs",
}
ALL = ("algo", *WORDS)
OWN = "methods of your own"


def show_list(group: str | None, format: str = "table", folders: Sequence[Path] = ()) -> None:
    """Print the names in all groups, or describe the choices of one group, including those in the user's folders."""
    if group is None:
        _show_groups(format, folders)
        return
    if group not in ALL:
        raise FklError(
            f"{in_one_line(group)}: no such group", help=did_you_mean(group, ALL, f"groups: {', '.join(ALL)}")
        )
    # A choice without a description is a part of another one
    abouts_of = {name: about for name, about in choice_descriptions(group, folders).items() if about}
    families = by_family(list(abouts_of), folders) if group == "algo" else {WORDS[group]: list(abouts_of)}
    if format != "table":
        rows = [(name, family, abouts_of[name]) for family, names in families.items() for name in names]
        Sheet.from_rows([group, "family", "what it is"], rows).print_sheet(format)
        return
    page = HelpFormatter(width=text_width())
    for family, names in families.items():
        with page.section(family.capitalize()):
            page.write_dl([(name, abouts_of[name]) for name in names], col_max=26)
    print_lines(page.getvalue().rstrip("\n"))
    if group == "algo":
        print_lines("\nLosses besides squared errors, by algo.loss:")
        for about, found in _by_losses(list(abouts_of), folders).items():
            print_lines(
                fill(f"{about}: {', '.join(found)}", text_width(), subsequent_indent="    ", break_on_hyphens=False)
            )


def _by_losses(names: Sequence[str], folders: Sequence[Path]) -> dict[str, list[str]]:
    """Methods with several losses, by these losses: `level` is a key of those of streams."""
    from fkl.basics.pointwise import ON_STREAMS  # imports numpy

    of_streams = ", ".join(ON_STREAMS[1:])
    made: dict[str, list[str]] = {of_streams: [], "logistic": []}
    for name in names:
        keys = keys_of("algo", name, folders)
        if "loss" in keys:
            made[of_streams if "level" in keys else "logistic"].append(name)
    return made


def by_family(names: Sequence[str], folders: Sequence[Path] = ()) -> dict[str, list[str]]:
    """Methods by their kind of parties; the user's own classes come last."""
    made: dict[str, list[str]] = {family: [] for family in FAMILIES.values()}
    for name in names:
        package, _, module = str(keys_of("algo", name, folders).get("_target_")).partition(".algorithms.")
        family = module.partition(".")[0]
        made.setdefault(FAMILIES.get(family, family) if package == "fkl" else OWN, []).append(name)
    return made


def _show_groups(format: str, folders: Sequence[Path]) -> None:
    names = {group: [name for name, about in choice_descriptions(group, folders).items() if about] for group in ALL}
    # There are a hundred runs of papers, so only their folders are listed
    names["experiment"] = sorted({f"{name.partition('/')[0]}/..." for name in names["experiment"]})
    rows = [("algo", family, listed) for family, listed in by_family(names["algo"], folders).items()]
    rows += [(group, about, names[group]) for group, about in WORDS.items()]
    if format != "table":
        Sheet.from_rows(
            ["group", "what it is", "names"], [(*row, ", ".join(listed)) for *row, listed in rows]
        ).print_sheet(format)
        return
    for group, about, listed in rows:
        print_lines(
            fill(
                f"{group}, {about}: {', '.join(listed)}", text_width(), subsequent_indent="    ", break_on_hyphens=False
            )
        )
    print_lines("\nWhat each is: fkl list GROUP. All keys of one: fkl describe NAME.")
