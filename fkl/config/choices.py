"""Groups and their choices, read from YAML files of limited size, and from the papers' experiments."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from fkl import conf_folder
from fkl.basics.errors import FklError, did_you_mean
from fkl.basics.field_words import own_spelling
from fkl.config import experiments

LONGEST_FILE = 2**18
"""Maximum size of a file in bytes, five times that of all of fkl's own files together."""
MOST = 30_000
"""Maximum number of keys, values and hundreds of letters, after replacing every alias."""
DEEPEST = 50
LONGEST_NUMBER = 1000
"""Maximum length of an integer; Python refuses to write one of more than 4300 digits."""
PLAIN = ("bool", "float", "int", "map", "merge", "null", "seq", "str")
LETTERS_EACH = 100
POWER_OF_TEN = re.compile(r"[-+]?[0-9]+(_[0-9]+)*(\.[0-9_]*)?[eE][-+]?[0-9]+$")
"""Numbers such as 1e-3, which YAML 1.1 takes for text."""


def read_text(file: Path) -> str:
    """Text of a file, or one line about why it is not text."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(LONGEST_FILE + 1)
    except OSError as error:
        raise FklError(f"{file}: cannot be read ({error.strerror})") from None
    if len(raw) > LONGEST_FILE:
        raise FklError(f"{file}: longer than {LONGEST_FILE} bytes, which no configuration needs")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FklError(f"{file}, line {line}: byte {raw[error.start]:#x} is not text in UTF-8") from None


@lru_cache(maxsize=256)  # a sweep reads the same files for every job
def read_mapping(text: str, file: Path) -> dict[str, Any]:
    """Keys and values of a YAML text; callers must not change them.

    Raises
    ------
    FklError
        If the text is anything else; the message names file and line.
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode) or not root.value:
            kind = {yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}.get(type(root), "empty")
            raise FklError(f"{file}: {kind}; must be keys and values")
        return loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = file if mark is None else f"{file}, line {mark.line + 1}"
        raise FklError(f"{where}: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise FklError(f"{file}, line {line}: {error.character:#x} is not a text character") from None
    except (ValueError, TypeError) as error:  # too much, a number of 5000 digits, a list as a key
        raise FklError(f"{file}: {error}") from None


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Loader of mappings with words as keys, with limits of size and depth; 1e-3 is a number, and a date is text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.total = 0
        self.sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, and refuse it if it is no plain data, or too much of it; an alias counts as what it names."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
        before, is_alias, mark = self.total, self.check_event(yaml.AliasEvent), self.peek_event().start_mark
        node: Any = super().compose_node(parent, index)
        self.depth -= 1
        is_word = isinstance(node, yaml.ScalarNode)
        if is_alias:
            _require(id(node) in self.sizes, "an alias that contains itself", mark)
            self.total += self.sizes[id(node)]
        else:
            kind = node.tag.removeprefix("tag:yaml.org,2002:")
            _require(kind in PLAIN, f"{kind}: no such type; types are {', '.join(PLAIN)}", mark)
            too_long = is_word and kind == "int" and len(node.value) > LONGEST_NUMBER
            _require(not too_long, f"a number of more than {LONGEST_NUMBER} letters", mark)
            self.total += 1 + (len(node.value) // LETTERS_EACH if is_word else 0)
            keys = set[Any]()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                is_key = isinstance(key, yaml.ScalarNode) and not key.tag.endswith(":null")
                _require(is_key, "a key must be a word", key.start_mark)
                _require((key.tag, key.value) not in keys, f"found duplicate key {key.value}", key.start_mark)
                keys.add((key.tag, key.value))
        _require(self.total <= MOST, f"more than {MOST} keys and values, including those of aliases", mark)
        self.sizes[id(node)] = self.total - before
        return node


def _require(condition: bool, said: str, mark: yaml.Mark) -> None:
    if not condition:
        raise yaml.MarkedYAMLError(problem=said, problem_mark=mark)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", POWER_OF_TEN, [*"-+0123456789"])


CONDITIONS: tuple[str, ...] = (
    "participation", "aggregate", "audit", "privacy", "attack", "compression", "secure", "late", "links",
)  # fmt: skip
"""Groups of network conditions, all optional; those that change messages apply in this order."""
REQUIRED: tuple[str, ...] = ("algo", "dataset", "partition")
"""Groups that every run needs."""
GROUPS = (*REQUIRED, "kernels", "topology", *CONDITIONS, "intervals", "logger")
"""Folders of the configuration, with one YAML file per choice."""
PATH = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
"""Path of a group or a choice; it cannot leave its folder."""
LONGEST_PATH = 250
"""Maximum number of bytes of such a path; file systems do not allow much longer names."""
MOST_LISTED = 16
"""Maximum number of names that an error about an unknown name lists completely."""
PACKAGE = re.compile(r"_global_|\w+(\.\w+)*")
GONE = {
    "engine=disk": "has gone; leave it out: all clients are in memory then, and fkl plan says how much they need",
    "logger=trackio": "has gone; use logger=wandb or logger=mlflow",
}
"""Choices of earlier versions, also in their saved runs, and what to do without them."""


@dataclass(frozen=True)
class ChoiceFile:
    """Content of one file, or of one choice in a paper's experiments.yaml.

    Parameters
    ----------
    path : str
        For example ``algo/coke``.
    package : str or None
        Node of its keys, ``# @package PACKAGE`` in a file; None for its group.
    defaults : list
        Other choices that it extends.
    config : dict
        Its keys.
    is_from_paper : bool
        Whether it has the additional keys of a paper, see `fkl.config.experiments`.
    """

    path: str
    package: str | None
    defaults: list[Any]
    config: dict[str, Any]
    is_from_paper: bool = False


class Choices:
    """The choices of fkl, of the papers, and of the user's folders; the first choice with a name counts."""

    def __init__(self, *folders: Path) -> None:
        self.folders = (conf_folder(), *folders)

    def names(self, group: str) -> list[str]:
        """Names directly in a group."""
        if not _is_path(group):
            return []
        files = (file.stem for folder in self.folders for file in (folder / group).glob("*.yaml"))
        return sorted({*files, *experiments.paper_choices().get(group, ())})

    def is_group(self, path: str) -> bool:
        """Whether there is a group with this name, or one that contains other groups."""
        if not _is_path(path):
            return False
        return any((folder / path).is_dir() for folder in self.folders) or experiments.is_group(path)

    def spelled_name(self, group: str, name: str) -> str:
        """The name of a choice as its file spells it: FedAvg is fedavg, see `own_spelling`."""
        return name if self._file_of_choice(f"{group}/{name}") else own_spelling(name, self.names(group))

    def _file_of_choice(self, path: str) -> Path | None:
        """The file of a choice; None if there is none."""
        files = [folder / f"{path}.yaml" for folder in self.folders] if _is_path(path) else []
        return next((file for file in files if file.is_file()), None)

    def read(self, path: str) -> ChoiceFile:
        """Read a choice.

        Raises
        ------
        fkl.basics.errors.FklError
            If no choice has this name, or its file is not a configuration.
        """
        file = self._file_of_choice(path)
        is_fkl_s = file is not None and file.is_relative_to(self.folders[0])
        if not is_fkl_s and (node := experiments.paper_choice(path)) is not None:
            config = dict(node)
            return ChoiceFile(path, "_global_", config.pop("defaults", []), config, is_from_paper=True)
        if file is None:
            raise not_known(path, self.names(path.rpartition("/")[0]))
        text = read_text(file)
        config = dict(read_mapping(text, file))
        defaults = config.pop("defaults", [])
        if not isinstance(defaults, list):
            raise FklError(f"{file}: defaults={defaults}: must be a list")
        # The package that its first comments name
        package = None
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                break
            comment, at, name = line.partition("@package")
            if at and comment.strip() == "#":
                package = name.strip()
                if not PACKAGE.fullmatch(package):
                    raise FklError(f"{file}: @package {package}: must be _global_ or keys with dots between them")
                break
        return ChoiceFile(path, package, defaults, config)


def _is_path(text: str) -> bool:
    return len(text.encode()) <= LONGEST_PATH and PATH.fullmatch(text) is not None


def tuned_keys(method: str, folders: Iterable[Path] = ()) -> dict[str, Any]:
    """Keys of a method that `fkl study` tunes, with their ranges as in tune.yaml; may be empty."""
    for folder in (conf_folder(), *folders):
        if (file := folder / "tune.yaml").is_file():
            keys = read_mapping(read_text(file), file).get(method)
            if isinstance(keys, dict):
                return {str(key): text for key, text in keys.items()}
    return {}


def flat_items(node: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Keys of a configuration, with a dot below each node, and their values."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from flat_items(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def primary_config() -> dict[str, Any]:
    """Settings and nodes of conf/config.yaml by key, and the choices of its groups."""
    content = Choices().read("config")
    chosen = {group: name for entry in content.defaults if isinstance(entry, dict) for group, name in entry.items()}
    return {group: chosen[group] for group in GROUPS} | content.config


def choice_files(group: str, folders: Sequence[Path] = ()) -> dict[str, Path]:
    """The YAML of each choice in a group of fkl and of the user's folders, without the papers' choices."""
    found = {file.stem: file for folder in (*folders, conf_folder()) for file in (folder / group).glob("*.yaml")}
    return dict(sorted(found.items()))


def choice_descriptions(group: str, folders: Sequence[Path] = ()) -> dict[str, str]:
    """One-line description of each choice in a group, by name, including the papers' choices."""
    about_of = {}
    for name, file in choice_files(group, folders).items():
        with file.open(encoding="utf-8") as lines:
            comments = (line[1:].strip() for line in lines if line[:1] == "#" and "@package" not in line)
            about_of[name] = next(comments, "")
    return dict(sorted({**about_of, **experiments.paper_choice_descriptions(group)}.items()))


def choice_comments(group: str, name: str, folders: Sequence[Path] = ()) -> dict[str, str]:
    """Comments in a choice's YAML: those above a key under that key, and those below the first line under ""."""
    lines = choice_files(group, folders)[name].read_text(encoding="utf-8").splitlines()[1:]
    comment_of: dict[str, str] = {}
    waiting: list[str] = []
    for line in lines:
        if line[:1] == "#":
            waiting.append(line[1:].strip() or "\n\n")  # an empty comment ends a paragraph
            continue
        key = "" if "" not in comment_of else line.partition(":")[0]
        if waiting or not key:
            comment_of[key] = "\n\n".join(" ".join(part.split()) for part in " ".join(waiting).split("\n\n")).strip()
        waiting = []
    return comment_of


def refuse_gone(choice: str) -> None:
    """Refuse a choice, KEY=NAME, that only earlier versions had."""
    if choice in GONE:
        raise FklError(f"{choice}: {GONE[choice]}")


def not_known(path: str, names: Iterable[str]) -> FklError:
    """The error about a choice GROUP/NAME that does not exist, with similar names."""
    refuse_gone("=".join(path.rsplit("/", 1)))
    if path.startswith("dataset/") and re.search(r"[./*]", file := path.removeprefix("dataset/")):
        advice = f"a file of your own: dataset=file dataset.path={shlex.quote(file)} dataset.target=COLUMN"
        return FklError(f"dataset={file}: no such choice", help=[advice])
    group, _, name = path.rpartition("/")
    if group.startswith(f"{experiments.GROUP}/"):  # their names start with the paper's name
        group, name = experiments.GROUP, path.removeprefix(f"{experiments.GROUP}/")
        names = [one for paper in experiments.paper_files() for one in experiments.paper_experiments(paper)]
        return FklError(f"{group}={name}: no such choice", help=did_you_mean(name, names, f"all: fkl list {group}"))
    there = sorted(names) or [f"{one}/..." for one in sorted(experiments.groups_in(group))]
    if group in (*GROUPS, "as_published"):
        where = f"all of them: fkl list {group}"
    else:
        where = f"choices: {', '.join(there)}" if len(there) <= MOST_LISTED else "all of them: fkl list experiment"
    return FklError(f"{group or 'config'}={name}: no such choice", help=did_you_mean(name, there, where))


def no_such_key(key: str, keys: Iterable[object]) -> FklError:
    """The error about a key that does not exist, with similar keys."""
    there = sorted(str(one) for one in keys if one != "_target_")
    start, _, last = key.rpartition(".")
    few = len(there) <= MOST_LISTED
    where = f"keys there: {', '.join(there)}" if few else f"all keys: fkl describe {start or 'settings'}"
    if not there:
        where = f"the chosen {start} has no keys"
    return FklError(f"{key}: no such key", help=did_you_mean(last, there, where, f"{start}." if start else ""))
