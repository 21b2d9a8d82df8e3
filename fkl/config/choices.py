"""Groups and their choices, read from YAML files and from the papers' experiments."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fkl import conf_folder
from fkl.basics.errors import FklError, did_you_mean
from fkl.config import experiments
from fkl.config.yaml_file import read_mapping, read_text

CONDITIONS: tuple[str, ...] = (
    "participation", "aggregate", "audit", "privacy", "attack", "compression", "secure", "late", "links",
)  # fmt: skip
"""Groups of network conditions, which are all optional; those on messages apply in this order."""
REQUIRED: tuple[str, ...] = ("algo", "dataset", "partition")
"""Groups that no run can do without."""
GROUPS = (*REQUIRED, "kernels", "topology", *CONDITIONS, "intervals", "logger")
"""Folders of the configuration, with one YAML file per choice."""
PATH = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
"""Path of a group or a choice; it cannot leave its folder."""
LONGEST = 250
"""Maximum number of bytes of such a path, with which its file still has a name that file systems allow."""
MOST_LISTED = 16
"""Maximum number of names that an error about an unknown name lists completely."""
PACKAGE = re.compile(r"_global_|\w+(\.\w+)*")


@dataclass(frozen=True)
class Choice:
    """Content of one file, or of one choice in a paper's experiments.yaml.

    Parameters
    ----------
    path : str
        For example ``algo/coke``.
    package : str or None
        Node of its keys, ``# @package PACKAGE`` in a file; None for its group.
    defaults : list
        Other choices on which it builds.
    config : dict
        Its keys.
    is_paper_s : bool
        Whether it has the additional keys of a paper, see `fkl.config.experiments`.
    """

    path: str
    package: str | None
    defaults: list[Any]
    config: dict[str, Any]
    is_paper_s: bool = False


class Choices:
    """The choices of fkl, of the papers, and of the user's folders; the first one with a name counts."""

    def __init__(self, *folders: Path) -> None:
        self.folders = (conf_folder(), *folders)

    def names(self, group: str) -> list[str]:
        """Names directly in a group."""
        if not _is_path(group):
            return []
        files = (file.stem for folder in self.folders for file in (folder / group).glob("*.yaml"))
        return sorted({*files, *experiments.choices().get(group, ())})

    def is_group(self, path: str) -> bool:
        """Whether there is a group with this name, or one that contains other groups."""
        if not _is_path(path):
            return False
        return experiments.is_group(path) or any((folder / path).is_dir() for folder in self.folders)

    def read(self, path: str) -> Choice:
        """Read a choice.

        Raises
        ------
        fkl.basics.errors.FklError
            If there is none with this name, or its file is not a configuration.
        """
        if (node := experiments.choice(path)) is not None:
            config = dict(node)
            return Choice(path, "_global_", config.pop("defaults", []), config, is_paper_s=True)
        files = [folder / f"{path}.yaml" for folder in self.folders] if _is_path(path) else []
        found = next((file for file in files if file.is_file()), None)
        if found is None:
            raise not_known(path, self.names(path.rpartition("/")[0]))
        text = read_text(found)
        config = dict(read_mapping(text, found))
        defaults = config.pop("defaults", [])
        if not isinstance(defaults, list):
            raise FklError(f"{found}: defaults={defaults}: must be a list")
        # The package named in its first comments
        package = None
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                break
            comment, at, name = line.partition("@package")
            if at and comment.strip() == "#":
                package = name.strip()
                if not PACKAGE.fullmatch(package):
                    raise FklError(f"{found}: @package {package}: must be _global_ or keys with dots between them")
                break
        return Choice(path, package, defaults, config)


def _is_path(text: str) -> bool:
    return len(text.encode()) <= LONGEST and PATH.fullmatch(text) is not None


def tuned_keys(method: str, folders: Iterable[Path] = ()) -> dict[str, Any]:
    """Keys of a method that `fkl study` searches over, and their ranges as in tune.yaml; empty for none."""
    for folder in (conf_folder(), *folders):
        if (file := folder / "tune.yaml").is_file():
            keys = read_mapping(read_text(file), file).get(method)
            if isinstance(keys, dict):
                return {str(key): text for key, text in keys.items()}
    return {}


def primary() -> dict[str, Any]:
    """Settings and nodes of conf/config.yaml by key, and the choices of its groups."""
    content = Choices().read("config")
    chosen = {group: name for entry in content.defaults if isinstance(entry, dict) for group, name in entry.items()}
    return {group: chosen[group] for group in GROUPS} | content.config


def files(group: str) -> dict[str, Path]:
    """The YAML of each of fkl's own choices in a group, without the papers' choices."""
    return {file.stem: file for file in sorted((conf_folder() / group).glob("*.yaml"))}


def abouts(group: str) -> dict[str, str]:
    """Description of each choice in a group in one line, by name, including the papers' choices."""
    found = {}
    for name, file in files(group).items():
        with file.open(encoding="utf-8") as lines:
            comments = (line[1:].strip() for line in lines if line[:1] == "#" and "@package" not in line)
            found[name] = next(comments, "")
    return dict(sorted({**found, **experiments.abouts(group)}.items()))


def comments(group: str, name: str) -> dict[str, str]:
    """Comments in a choice's YAML: those above a key under that key, and those below the first line under ""."""
    lines = files(group)[name].read_text(encoding="utf-8").splitlines()[1:]
    found: dict[str, str] = {}
    waiting: list[str] = []
    for line in lines:
        if line[:1] == "#":
            waiting.append(line[1:].strip() or "\n\n")  # an empty comment ends a paragraph
            continue
        key = "" if "" not in found else line.partition(":")[0]
        if waiting or not key:
            found[key] = "\n\n".join(" ".join(part.split()) for part in " ".join(waiting).split("\n\n")).strip()
        waiting = []
    return found


def not_known(path: str, names: Iterable[str]) -> FklError:
    """The error about a choice GROUP/NAME that does not exist, with similar names."""
    if path.startswith("dataset/") and re.search(r"[./*]", file := path.removeprefix("dataset/")):
        own = f"a file of your own: dataset=file dataset.path={shlex.quote(file)} dataset.target=COLUMN"
        return FklError(f"dataset={file}: no such choice", help=[own])
    group, _, name = path.rpartition("/")
    if group.startswith(f"{experiments.GROUP}/"):  # their names begin with their paper
        group, name = experiments.GROUP, path.removeprefix(f"{experiments.GROUP}/")
        names = [one for paper in experiments.files() for one in experiments.experiments(paper)]
        return FklError(f"{group}={name}: no such choice", help=did_you_mean(name, names, f"all: fkl list {group}"))
    there = sorted(names) or [f"{one}/..." for one in sorted(experiments.groups_in(group))]
    if group in (*GROUPS, "as_published"):
        where = f"all of them: fkl list {group}"
    else:
        where = f"there are {', '.join(there)}" if len(there) <= MOST_LISTED else "all of them: fkl list experiment"
    return FklError(f"{group or 'config'}={name}: no such choice", help=did_you_mean(name, there, where))


def no_such_key(key: str, keys: Iterable[object]) -> FklError:
    """The error about a key that does not exist, with similar keys."""
    there = sorted(str(one) for one in keys if one != "_target_")
    start, _, last = key.rpartition(".")
    few = len(there) <= MOST_LISTED
    where = f"keys there: {', '.join(there) or 'none'}" if few else f"all keys: fkl describe {start or 'settings'}"
    return FklError(f"{key}: no such key", help=did_you_mean(last, there, where, f"{start}." if start else ""))
