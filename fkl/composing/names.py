"""What there is to choose from, read from the files alone: groups, choices, keys.

So help, `fkl list`, completion and the refusal of a slip come at once, while Hydra takes a good part of a second to be
imported. What a command line says in any other way than GROUP=NAME and GROUP.KEY=VALUE is Hydra's to understand.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fkl import conf_folder
from fkl.composing import experiments
from fkl.errors import FklError

CONDITIONS = ("participation", "privacy", "compression", "secure", "late", "links")
GROUPS = ("algo", "dataset", "partition", "kernels", "topology", *CONDITIONS, "logger")
"""Folders of the configuration, a YAML a choice."""
OPTIONS = ("-m", "--multirun", "--fail-fast")
"""Of `fkl run`, those that change nothing about what there is."""
WORD = re.compile(r"(?P<prefix>\+?)(?P<key>[A-Za-z_][\w./]*)=(?P<value>.*)", re.ASCII | re.DOTALL)
NAME = re.compile(r"(?!(?:true|false|null|nan|inf)$)[a-z_]\w*(?:/\w+)*", re.ASCII | re.IGNORECASE)
LONGEST = 1000
"""Letters of a word that is understood here."""


def files(group: str) -> dict[str, Path]:
    """The YAML of each choice of a group; of those that are the papers', there is none."""
    return {file.stem: file for file in sorted((conf_folder() / group).glob("*.yaml"))}


def abouts(group: str) -> dict[str, str]:
    """What each choice of a group is, in one line, by its name; the papers' choices are among them."""
    found = {name: _first_comment(file) for name, file in files(group).items()}
    return dict(sorted({**found, **experiments.abouts(group)}.items()))


def _first_comment(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line[1:].strip() for line in lines if line[:1] == "#" and "@package" not in line), "")


def comments(group: str, name: str) -> dict[str, str]:
    """What a choice's YAML says in comments: over a key by that key, and of the whole, below its first line, by ""."""
    lines = files(group)[name].read_text(encoding="utf-8").splitlines()[1:]
    found: dict[str, str] = {}
    waiting: list[str] = []
    for line in lines:
        if line[:1] == "#":
            waiting.append(line[1:].strip() or "\n\n")  # an empty one ends a paragraph
            continue
        key = "" if "" not in found else line.partition(":")[0]
        if waiting or not key:
            found[key] = "\n\n".join(" ".join(part.split()) for part in " ".join(waiting).split("\n\n")).strip()
        waiting = []
    return found


@cache
def node(group: str, name: str) -> dict[str, Any]:
    """Keys and values of a choice, those of the choices that it extends, too."""
    content = _read(files(group)[name])
    found: dict[str, Any] = {}
    for part in content.pop("defaults", ()):
        if isinstance(part, str) and part != "_self_":
            found |= node(group, part)
    return found | content


def brought(group: str, name: str) -> list[str]:
    """Choices of other groups that a choice brings with it, as words of a command line."""
    found: dict[str, str] = {}
    for part in _read(files(group)[name]).get("defaults", ()):
        if isinstance(part, str) and part != "_self_":
            found |= dict(word.split("=", 1) for word in brought(group, part))
        elif isinstance(part, dict):
            for key, value in part.items():
                found[key.removeprefix("override /").partition("@")[0]] = "null" if value is None else str(value)
    return [f"{key}={value}" for key, value in found.items()]


@cache
def primary() -> dict[str, Any]:
    """The primary configuration: settings and nodes by their keys, and the choices of its groups."""
    content = _read(conf_folder() / "config.yaml")
    content.pop("hydra")
    chosen = {group: name for part in content.pop("defaults") if isinstance(part, dict) for group, name in part.items()}
    return {group: chosen[group] for group in GROUPS} | content


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), experiments.LOADER)
    return content


def known(group: str) -> list[str]:
    """Names right in a group."""
    return sorted({*files(group), *experiments.choices().get(group, ())})


def not_known(path: str, names: Iterable[str]) -> str:
    """One line about a choice GROUP/NAME that there is not, beside those that there are."""
    group, _, name = path.rpartition("/")
    inside = sorted(experiments.groups_in(group))
    there = ", ".join(sorted(names) or [f"{group_inside}/..." for group_inside in inside])
    more = ", and what `fkl list` names" if inside else ""
    return f"{group or 'config'}={name}: not known" + (f"; there are {there}{more}" if there else "")


def no_such_key(key: str, keys: Iterable[object]) -> str:
    """One line about a key that there is not, beside those that there are."""
    there = ", ".join(sorted(str(one) for one in keys if one not in ("_target_", "hydra")))
    return f"{key}: no such key; there are {there or 'none'}"


def require_known(words: Sequence[str]) -> None:
    """Refuse a choice or a key that there is not, where these words of `fkl run` leave no doubt about it.

    Raises
    ------
    fkl.errors.FklError
        With the line that Hydra's own error would become.
    """
    read = [WORD.fullmatch(word[:LONGEST]) for word in words if word not in OPTIONS]
    plain = [match for match in read if match]
    elsewhere = any(match["key"] == "hydra.searchpath" for match in plain)  # where other choices may be
    if elsewhere or len(plain) < len(read):
        return
    sweep = not {"-m", "--multirun"}.isdisjoint(words)
    for match in plain:
        for name in match["value"].split(",") if sweep else [match["value"]]:
            if NAME.fullmatch(name):
                _require_choice(match["prefix"], match["key"], name)
    if not sweep and not any(match["prefix"] for match in plain):
        chosen = {match["key"]: match["value"] for match in plain if match["key"] in GROUPS}
        for match in plain:
            _require_key(match["key"], chosen)


def _require_choice(prefix: str, group: str, name: str) -> None:
    """Refuse the name of a choice, where the group is one that this prefix goes with."""
    known_group = group in GROUPS if not prefix else experiments.is_group(group)
    path, _, last = f"{group}/{name}".rpartition("/")
    if known_group and last not in known(path) and not experiments.is_group(f"{path}/{last}"):
        raise FklError(not_known(f"{path}/{last}", known(path)))


def _require_key(key: str, chosen: dict[str, str]) -> None:
    """Refuse GROUP.KEY where it is certain which choice the group has, and KEY outside every group."""
    group, dot, last = key.partition(".")
    if "/" in key or "." in last:
        return
    if not dot:
        keys = primary() if group not in {*primary(), "hydra"} and not experiments.is_group(group) else None
    elif group in GROUPS:
        choice = chosen.get(group, primary()[group] if group in ("algo", "dataset") else None)
        keys = node(group, choice) if choice in files(group) else None
    else:
        keys = primary().get(group)
    if isinstance(keys, dict) and (last or group) not in keys:
        raise FklError(no_such_key(key, keys))
