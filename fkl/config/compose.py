"""The words of a command line become a configuration: they choose files, and change keys of the merged files.

For example, of the words ``algo=raker kernels.D=50 metrics.mae=mine.mae`` the first chooses conf/algo/raker.yaml, the
second changes a key of the merged files, and the third adds one to the only node with free keys. The steps in order:

1. `read_words` parses each word, as ``Word("", "kernels.D", 50, "kernels.D=50")``. Words are KEY=VALUE in Hydra's
   grammar; most are simple and do not need an import of Hydra.
2. `_ChosenFiles.chooses` takes the words whose key is a group, such as algo.
3. `_ChosenFiles.expanded` lists the chosen files, and those in their `defaults`, in the order in which they are merged.
4. `_add_choice` merges each file into its node, and `_apply_word` applies the remaining words.

Files are as in Hydra, with six forms of an entry in `defaults`: NAME, /GROUP/NAME, GROUP: NAME, /GROUP: NAME, override
/GROUP: NAME and _self_. A word's choice for a group takes precedence, then that of the outermost file that overrides
it, and among files at the same level that of the last. Later files change keys of earlier ones.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fkl.basics.errors import LETTERS_SHOWN, BadValue, FklError, in_one_line
from fkl.basics.keys import holds_words
from fkl.config.choices import CONDITIONS, GROUPS, REQUIRED, ChoiceFile, Choices, no_such_key
from fkl.config.experiments import NO_CONFIGURATION

LONGEST = 8192
"""Maximum length of a word; Hydra's parser takes seconds for longer ones."""
PLAIN = re.compile(
    r"""
    (?P<sign>\+{0,2})
    (?P<key>[a-z_]\w*(?:\.[a-z_]\w*)* | [a-z_]\w*(?:/[a-z_]\w*)+)=
    (?:
        (?P<text>(?!(?:true|false|null|nan|inf)$)[a-z_][\w./-]*)
      | (?P<int>[+-]?(?:0|[1-9]\d{0,17}))
      | (?P<float>[+-]?(?:0|[1-9]\d*)(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+))
    )
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""Words that can be parsed without Hydra: names, paths and numbers."""
PIECE = re.compile(
    r"""
    \s*+(?:
        (?P<quoted>'(?:\\.|[^'\\])*+' | "(?:\\.|[^"\\])*+")(?=\s*+(?:[,\[\]{})]|$))
      | (?P<name>(?<=[{,\s])(?:'(?:\\.|[^'\\])*+' | "(?:\\.|[^"\\])*+")\s*+:)
      | (?P<sign>[,\[\]{})] | (?:bool|choice|float|glob|int|interval|range|shuffle|sort|str|tag)\s*\()
      | (?P<text>(?:\$\{[^}]*+\} | \\. | \([^()]*+\) | [^,\[\]{}()\\] | \\$)++)
      | (?P<other>.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
"""Parts of a value: quoted text, the characters of lists, sweeps and functions, and text without quotes."""
INTERPOLATION = re.compile(r"\$\{[^}]*+\}")
ESCAPED = re.compile(r"\\([\\()\[\]{}:=, \t])")
AROUND = re.compile(r"^[ \t]+|(?<!\\)[ \t]+$")
TAKEN = frozenset("=[]{}")
"""Characters of lists, mappings and keys, which text has only in quotes."""
KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w.]*(/\w+)*")
LIKE_NUMBER = re.compile(
    r"[+-]?(?=\.?\d)(?:\d[\d_]*)?\.?(?:\d[\d_]*)?(?:e[+-]?\d[\d_]*)?|[+-]?(?:inf|nan)|true|false|null",
    re.ASCII | re.IGNORECASE,
)
"""Text without quotes that Hydra reads as a number, true, false or null."""
NAME_AND_VALUE = re.compile(r"\s*+((?:\\.|[^:\\])*+):(.*)", re.DOTALL)
NUMERIC = ("bool", "float", "int", "interval", "range", "sort")
"""Functions of Hydra that read numbers."""
ODD = re.compile(r"[^A-Za-z0-9_/\-\\+.$%*@?|:= \t]")
"""Characters that text without quotes must not contain."""


class Word(NamedTuple):
    """One word.

    Parameters
    ----------
    sign : {"", "+", "++", "~"}
        Change, add, change or add, remove.
    key : str
        Key of the configuration, or a group.
    value : object
    text : str
        The word as the user wrote it.
    """

    sign: str
    key: str
    value: Any
    text: str


def read_words(words: Iterable[str]) -> list[Word]:
    """Read words that each have one value.

    Raises
    ------
    fkl.basics.errors.FklError
        If one cannot be parsed, or has several values, as in a sweep.
    """
    words_read = []
    for word in words:
        # Names, paths and numbers need no import of Hydra, which is slow
        match = PLAIN.fullmatch(word) if len(word) <= LONGEST else None
        if match is not None:
            kind = str(match.lastgroup)
            make = {"text": str, "int": int, "float": float}[kind]
            words_read.append(Word(match["sign"], match["key"], make(match[kind]), word))
            continue
        # The others: quotes, lists and mappings are parsed by Hydra
        [override] = parse_words([word])
        if not override.key_or_group:
            raise _not_understood(word)
        if override.package is not None:
            raise FklError(f"{word}: write the group without @")
        # A sweep has several values, and a run has one
        if override.is_sweep_override():
            several = "several values need fkl run -m, a run for each; a list is written [1,2], text '\"a,b\"'"
            raise FklError(f"{in_one_line(word)}: {several}")
        sign = override.get_key_element().removesuffix(override.key_or_group)
        words_read.append(Word(sign, override.key_or_group, override.value(), word))
    return words_read


def each_value(word: str, names: Callable[[str], list[str]]) -> list[str]:
    """One word for each value of a swept word; `names` returns a group's choices, for glob(*)."""
    from hydra.core.override_parser.types import Glob

    [override] = parse_words([word])
    if not override.is_sweep_override():
        return [word]
    # A glob chooses among names; any other sweep lists its values itself
    glob = override.value()
    values = glob.filter(names(override.key_or_group)) if isinstance(glob, Glob) else override.sweep_string_iterator()
    return [f"{override.get_key_element()}={value}" for value in values]


def parse_words(words: Iterable[str], *, text: bool = False) -> list[Any]:
    """Words parsed by Hydra; with `text`, names and words stay what was typed: 250.80, 01, true.

    Raises
    ------
    fkl.basics.errors.FklError
        If one cannot be parsed.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    overrides = []
    for word in words:
        # Hydra's parser takes seconds for longer words, so refuse them before it sees them
        if len(word) > LONGEST:
            many = "write consecutive numbers as range(FIRST,END), and split other long lists into several sweeps"
            raise FklError(f"{in_one_line(word)}: longer than {LONGEST} letters; {many}")
        try:
            overrides += parser.parse_overrides([quote_word(word, text=text)])
        except (HydraException, RecursionError):
            # Hydra cannot parse names in quotes: parse the key with null, and insert the mapping that YAML reads
            key, _, value = quote_word(word, text=text).partition("=")
            if (named := _with_quoted_names(value, text)) is None:
                raise _not_understood(word) from None
            [override] = parse_words([f"{key}=null"])
            overrides.append(replace(override, _value=named, input_line=word))
        except ValueError as error:  # a number of 5000 digits
            raise FklError(f"{in_one_line(word)}: {error}") from None
    return overrides


def is_hydras(word: str) -> bool:
    """Whether Hydra's own parser can read a word that fkl can read."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    with suppress(HydraException):
        return bool(OverridesParser.create().parse_overrides([word]))
    return False


def _with_quoted_names(value: str, text: bool) -> dict[str, Any] | None:
    """A mapping with quoted names, {"CO(GT)":3}, which Hydra cannot parse; None for anything else."""
    try:
        # Only a mapping, and one whose values are all written
        root = yaml.compose(value, yaml.SafeLoader) if value.startswith("{") else None
        if not isinstance(root, yaml.MappingNode) or any(
            one.start_mark.index == one.end_mark.index for _, one in root.value
        ):
            return None
        mapping: dict[str, Any] = _text_in(root) if text else yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return mapping


def _text_in(node: yaml.Node) -> Any:
    """The text of each value of YAML; null as the value of a name stays null."""
    if isinstance(node, yaml.MappingNode):
        return {name.value: None if one.tag.endswith(":null") else _text_in(one) for name, one in node.value}
    return [_text_in(one) for one in node.value] if isinstance(node, yaml.SequenceNode) else node.value


def _not_understood(word: str) -> FklError:
    """The error about a word that cannot be parsed; it shows how to quote the value if that may be text."""
    key, _, value = word.partition("=")
    may_be = ""
    # Suggest how to write what the user probably meant: a mapping, or text in quotes
    if value.startswith("{") and ":" in value:
        may_be = """, with names that have other characters in double quotes: 'dataset.fill={"CO(GT)":3}'"""
    elif set(value) & TAKEN and KEY.fullmatch(key):
        from hydra.core.override_parser.types import Quote, QuotedString

        in_quotes = shlex.quote(QuotedString(value, Quote.double).with_quotes())
        may_be = f", or {key}={in_quotes} if it is text" if len(word) <= LETTERS_SHOWN else ""
    return FklError(f"{in_one_line(word)}: not understood; write KEY=VALUE{may_be}")


def quote_word(word: str, *, text: bool = False) -> str:
    """A word in a form that Hydra can parse, so users need not quote ``out=größe``. Most words do not change.

    With `text`, numbers, true and false, and null in a list get quotes too: they stay the text that was typed;
    null alone, or as the value of a name in a mapping, stays null.
    """
    key, equals, value = word.partition("=")
    return key + equals + _quoted_value(value, text) if text or ODD.search(value) else word


def _quoted_value(value: str, text: bool, *, names: bool = False) -> str:
    """A value with quotes around some of its parts; with `names`, around all names, as YAML needs them."""
    from hydra.core.override_parser.types import Quote, QuotedString

    inside: list[str] = []  # open brackets and functions, the innermost last
    before_name = odd_name = False

    def with_quotes(piece: re.Match[str]) -> str:
        nonlocal before_name, odd_name
        # First follow the brackets, because they decide how the next piece is to be read
        sign, part, start = piece["sign"] or piece["other"] or "", piece["text"] or "", ""
        if sign.endswith(("[", "{", "(")):
            inside.append(sign)
        elif sign in ("]", "}", ")"):
            del inside[-1:]
        # A name of a mapping stays before its colon, in quotes if YAML needs them
        elif before_name and inside[-1:] == ["{"] and (pair := NAME_AND_VALUE.fullmatch(part)):
            name, part = pair.groups()
            odd_name |= bool(ODD.search(ESCAPED.sub("", name)) or (text and LIKE_NUMBER.fullmatch(name)))
            start = (json.dumps(ESCAPED.sub(r"\1", name), ensure_ascii=False) if names else name) + ":"
        odd_name |= bool(piece["name"])
        before_name = sign in ("{", ",")
        # Then the value: one that is empty, has quotes already, or is null where null is allowed stays as it is
        part = AROUND.sub("", part)
        if not part or part[0] in "'\"" or (part.lower() == "null" and inside[-1:] != ["["]):
            return start + part if start else piece[0]
        # A number needs quotes to stay text, except in functions such as range, which need numbers
        like_number = text and LIKE_NUMBER.fullmatch(part) and not any(one.startswith(NUMERIC) for one in inside)
        if not (like_number or (names and text) or ODD.search(ESCAPED.sub("", INTERPOLATION.sub("", part)))):
            return start + part if start else piece[0]
        # Quote it, without the backslashes that the user needed
        part = ESCAPED.sub(r"\1", part)
        in_quotes = json.dumps(part, ensure_ascii=False) if names else QuotedString(part, Quote.single).with_quotes()
        return start + in_quotes

    # If a name needs quotes, YAML reads the whole value, so all names and texts get quotes in a second pass
    changed = PIECE.sub(with_quotes, value)
    return _quoted_value(value, text, names=True) if odd_name and not names else changed


MOST_FILES = 1000
"""Maximum number of files in one configuration; files that each name two others might never end."""
OPEN = "metrics"
"""The node with free keys; a word can add a key to it without a +."""
HYDRA_KEY = re.compile(r"hydra\b")
FORMS = "NAME, /GROUP/NAME, GROUP: NAME, /GROUP: NAME, override /GROUP: NAME or _self_"


def compose_config(*words: str, folders: Sequence[Path] = ()) -> dict[str, Any]:
    """Compose a run's configuration; `folders` have choices in addition to fkl's own, like ``--config-dir``.

    Returns
    -------
    dict
        Plain data with unresolved interpolations; `fkl.config.loading.load_run` checks it.

    Raises
    ------
    fkl.basics.errors.FklError
        The message has one line about a word or a file.
    """
    return compose_read(read_words(words), folders).config


@dataclass
class Composed:
    """A configuration, and additional information from a paper's or a user's choices.

    Parameters
    ----------
    config : dict
    sweep : dict of str to str
        Differences between the jobs of a sweep.
    cell : dict
        Position of a run in a paper's tables and figures.
    """

    config: dict[str, Any] = field(default_factory=dict)
    sweep: dict[str, str] = field(default_factory=dict)
    cell: dict[str, Any] = field(default_factory=dict)


def compose_read(words: Iterable[Word], folders: Sequence[Path] = ()) -> Composed:
    """Compose from parsed words; see `compose_config`."""
    # Words that choose files come first, because they decide which keys there are
    files = _ChosenFiles(Choices(*folders))
    changes = [word for word in words if not files.record_choice(word)]
    composed = files.merge_choices()
    # The other words change keys, in the order in which they were typed
    for word in changes:
        if word.key.partition(".")[0] in files.nulls:
            continue  # a sweep over secure=null,pairwise secure.bits=20 has this word in both jobs
        _apply_word(composed.config, _as_typed(composed.config, word))
    return composed


def quoted_for_sweep(words: Sequence[str], folders: Sequence[Path] = ()) -> list[str]:
    """Words of a sweep, in which names and words that look like numbers have quotes; Hydra would change their text."""
    # Without a word whose text Hydra would change, nothing has to be composed
    if all(quote_word(word, text=True) == quote_word(word) for word in words):
        return [*map(quote_word, words)]
    # The jobs to look at: the first choice of every group, and each other choice once. All combinations would be too
    # many
    choices = Choices(*folders)
    choosing = [each_value(one, choices.names) for one in words if choices.is_group(one.partition("=")[0].lstrip("+"))]
    first = [some[0] for some in choosing if some]
    jobs = [
        first,
        *([*first[:place], one, *first[place + 1 :]] for place, some in enumerate(choosing) for one in some[1:]),
    ]
    # A word keeps its text if its key holds words in any of these jobs
    configs = [compose_config(*job, folders=folders) for job in jobs]
    keys = [word.partition("=")[0].lstrip("+~") for word in words]
    of_text = [any(_is_of_words(config, key) for config in configs) for key in keys]
    return [quote_word(word, text=text) for word, text in zip(words, of_text, strict=True)]


def _as_typed(config: dict[str, Any], word: Word) -> Word:
    """A word; its value is the text that was typed if its key holds names or words."""
    changes = isinstance(word.value, dict) or quote_word(word.text, text=True) != quote_word(word.text)
    if not changes or not _is_of_words(config, word.key):
        return word
    return word._replace(value=parse_words([word.text], text=True)[0].value())


def _is_of_words(config: dict[str, Any], key: str) -> bool:
    """Whether a key's declared type is a name or a word, or has some."""
    group, _, inside = key.partition(".")
    of_group = config.get(group)
    if isinstance(of_group, dict) and inside and re.split(r"[.\[]", inside)[0] not in of_group:
        return False  # no such key: its class need not be imported to say so
    from fkl.config.loading import type_of_key

    return holds_words(type_of_key(config, key))


def sweep_of(words: Iterable[Word], folders: Sequence[Path] = ()) -> dict[str, str]:
    """Differences between the jobs of a sweep, by key, from the choices in these words."""
    files = _ChosenFiles(Choices(*folders))
    for word in words:
        files.record_choice(word)
    return files.merge_choices().sweep


def keys_of(group: str, name: str, folders: Sequence[Path] = ()) -> dict[str, Any]:
    """Keys and values of a choice, including the choices that it extends; `folders` as for `compose_config`."""
    node: dict[str, Any] = {}
    for choice, _ in _ChosenFiles(Choices(*folders)).expand_defaults(f"{group}/{name}", group):
        _merge_keys(node, choice.config)
    return node


def brought_by(group: str, name: str, folders: Sequence[Path] = ()) -> list[str]:
    """Choices of other groups that a choice sets, as words of a command line."""
    files = _ChosenFiles(Choices(*folders))
    files.expand_defaults(f"{group}/{name}", group)
    return [f"{brought}={'null' if value is None else value}" for brought, (value, _) in files.chosen.items()]


class _Chosen(NamedTuple):
    """The choice of a group, and the word or file that made it."""

    value: Any
    by: str


class _Entry(NamedTuple):
    """One entry of a list of defaults, as paths from the top."""

    group: str
    value: Any
    package: str
    override: bool = False
    with_group: bool = True
    """Whether others may choose another value; if not, the value is the path of a choice."""


class _ChosenFiles:
    """The choices in a configuration."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.chosen: dict[str, _Chosen] = {}
        self.added: list[_Entry] = []
        self.left_out: dict[str, _Chosen] = {}
        self.used: dict[str, Any] = {}
        self.files_read = 0

    @property
    def nulls(self) -> set[str]:
        """Groups that a word sets to null."""
        return {group for group, (value, by) in self.chosen.items() if value is None and "=" in by}

    def record_choice(self, word: Word) -> bool:
        """Whether a word chooses from a group or removes one; if so, this is recorded."""
        # A choice of Hydra's own, or of no group of fkl, is not recorded
        group, value = word.key, word.value
        if HYDRA_KEY.match(group):
            raise FklError(f"{word.text}: Hydra's own keys need a sweep, fkl run -m")
        if isinstance(value, dict) or not self.choices.is_group(group):
            return False
        if word.sign == "++":
            raise FklError(f"{word.text}: write GROUP=NAME to make a choice, or +GROUP=NAME to add one")
        # Names may be typed with other capitals or hyphens; record them as the file spells them
        if isinstance(value, str):
            value = self.choices.spelled_name(group, value)
        if word.sign == "~":
            self.left_out[group] = _Chosen(value, word.text)
            return True
        # Record the choice: a name, a list of names, or null for a group that may be omitted
        names = value if isinstance(value, list) else [value]
        may_be_null = group in GROUPS and group not in REQUIRED
        if not (value is None and may_be_null) and not all(isinstance(name, str) for name in names):
            raise BadValue(group, value, f"the name of a choice{', or null for none' * may_be_null}")
        if word.sign == "+":
            self.added.append(_Entry(group, value, group.replace("/", ".")))
        else:
            self.chosen[group] = _Chosen(value, word.text)
        return True

    def merge_choices(self) -> Composed:
        """The configuration from all choices, each merged after the choices whose keys it changes."""
        # Merge in this order: a later file changes keys of the earlier ones
        made = Composed()
        for choice, package in self.expand_defaults("config", "", self.added):
            _add_choice(made, choice, package)
        # A choice or a removal of a group that no file has is a typing error, so it is refused
        for group, (value, by) in self.chosen.items():
            if group not in self.used:
                more = f"; to add it, write +{group}={value}" if "=" in by else ""
                raise FklError(f"{by}: the configuration has no {group}{more}")
        for group, (value, by) in self.left_out.items():
            if group not in self.used or value not in (None, self.used[group]):
                actual = f"{group} is {self.used[group]}" if group in self.used else f"the configuration has no {group}"
                raise FklError(f"{by}: {actual}")
        return made

    def expand_defaults(
        self, path: str, package: str, added: Sequence[_Entry] = (), above: tuple[str, ...] = ()
    ) -> list[tuple[ChoiceFile, str]]:
        """A choice and the choices in its defaults, in the order in which they are merged, each with its node."""
        # Read the file, unless it is among those that led here
        self.files_read += 1
        if path in above or self.files_read > MOST_FILES:
            raise FklError(f"{path}.yaml: its defaults lead back to itself or never end")
        choice = self.choices.read(path)
        if choice.package is not None:
            package = choice.package.removeprefix("_global_")
        # Its entries in order; the file itself comes last if it does not say where
        entries = [_read_entry(raw, path, package) for raw in choice.defaults]
        if None not in entries:  # stands for _self_
            entries.append(None)
        if entries.count(None) > 1:
            raise FklError(f"{path}.yaml: defaults: _self_ is listed twice")
        entries += added
        # Record its overrides before its entries are expanded, because they apply to files further down. The outermost
        # file is expanded first, so the first override recorded for a group takes precedence
        for entry in entries:
            if entry is not None and entry.override:
                self.chosen.setdefault(entry.group, _Chosen(entry.value, f"{path}.yaml: override /{entry.group}"))
        parts = []
        # Expand from the last entry to the first
        for entry in reversed(entries):  # the last entry for a group takes precedence
            if entry is None:
                parts.append([(choice, package)])
                continue
            if entry.override:
                continue
            # Paths of the entry's choices, after overrides by others
            group, paths = entry.group, [entry.value]
            if entry.with_group:
                value = self.chosen[group].value if group in self.chosen else entry.value
                if group in self.used:
                    twice = f"{group}: chosen twice, as {value} and {self.used[group]}"
                    raise FklError(f"{twice}; without + a word replaces the choice")
                self.used[group] = value
                out = self.left_out.get(group)
                nothing = value is None or (out is not None and out.value in (None, value))
                names = [] if nothing else value if isinstance(value, list) else [value]
                paths = [f"{group}/{self.choices.spelled_name(group, name)}" for name in names]
            parts += [self.expand_defaults(one, entry.package, above=(*above, path)) for one in reversed(paths)]
        return [part for some in reversed(parts) for part in some]


def _read_entry(raw: Any, path: str, package: str) -> _Entry | None:
    """Read one entry of a choice's defaults; None for _self_."""
    if raw == "_self_":
        return None
    # The entry's parts: NAME, or a mapping of one group to a name, a list or null
    here, where = path.rpartition("/")[0], f"{path}.yaml: defaults: {in_one_line(raw)}"
    key, value = next(iter(raw.items())) if isinstance(raw, dict) and len(raw) == 1 else (raw, None)
    names = value if isinstance(value, list) else [value]
    if not isinstance(key, str) or not all(name is None or isinstance(name, str) for name in names):
        raise FklError(f"{where}: must be {FORMS}")
    # The group may have a place, GROUP@_global_.NODE, and may begin with override
    override = key.startswith("override ")
    named, at, placed = key.removeprefix("override ").strip().partition("@")
    if " " in named or (at and not placed.startswith("_global_.")) or (at and not isinstance(raw, dict)):
        raise FklError(f"{where}: must be {FORMS}")
    # A relative name is in the folder of the file that has the entry
    absolute = named.removeprefix("/") if named.startswith("/") or not here else f"{here}/{named}"
    with_group = isinstance(raw, dict)
    inner = named.removeprefix("/") if with_group else named.removeprefix("/").rpartition("/")[0]
    place = placed.removeprefix("_global_.") if at else ".".join(filter(None, [package, *inner.split("/")]))
    return _Entry(absolute, value if with_group else absolute, place, override, with_group)


def _add_choice(composed: Composed, choice: ChoiceFile, package: str) -> None:
    """Merge a choice's keys into a configuration, at the node of its package."""
    # Papers' experiments have a sweep and a cell of a table, which are no keys of a run
    content = choice.config
    if choice.is_from_paper:
        composed.sweep |= content.get("sweep", {})
        _merge_keys(composed.cell, content.get("cell", {}))
        content = {key: value for key, value in content.items() if key not in NO_CONFIGURATION}
    elif HYDRA_KEY.match(package):
        raise FklError(
            f"{choice.path}.yaml: @package {package}: must not be a node of Hydra's; set those on the command line"
        )
    elif not package and "hydra" in content:
        composed.sweep |= _sweep_params(choice)
        content = {key: value for key, value in content.items() if key != "hydra"}
    # Descend to the package's node, and merge there
    node = composed.config
    for name in filter(None, package.split(".")):
        inner = node.get(name)
        node[name] = inner if isinstance(inner, dict) else {}
        node = node[name]
    _merge_keys(node, content)


def _sweep_params(choice: ChoiceFile) -> dict[str, str]:
    """Sweep of a user's own experiment; other settings for Hydra are refused, because they could run code."""
    node = choice.config.get("hydra")
    match node:
        case {"sweeper": {"params": {**params}, **others}, **more} if not others and not more:
            pass
        case _:
            allowed = "only sweeper.params, the keys of a sweep; choose launchers and sweepers on the command line"
            raise FklError(f"{choice.path}.yaml: hydra={in_one_line(node)}: must be {allowed}")
    # Only plain values of keys may be swept: a mapping could hold a target, and so code
    for key, values in params.items():
        if HYDRA_KEY.match(str(key).lstrip("+~")) or isinstance(values, dict | list):
            allowed = "values of a key of fkl"
            raise FklError(f"{choice.path}.yaml: hydra.sweeper.params.{key}={in_one_line(values)}: must be {allowed}")
    return {str(key): "null" if values is None else str(values) for key, values in params.items()}


def _merge_keys(node: dict[str, Any], part: dict[str, Any]) -> None:
    """Merge a part's keys into a node."""
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(node.get(key), dict):
            _merge_keys(node[key], value)
        else:
            node[key] = deepcopy(value)


def _apply_word(config: dict[str, Any], word: Word) -> None:
    """Apply a word to a configuration."""
    # Descend to the node that has the key; missing nodes are created only for words that add
    *path, last = word.key.replace("[", ".").replace("]", "").split(".")
    node: Any = config
    adds = word.sign in ("+", "++") or path == [OPEN]
    for place, name in enumerate(path):
        inner = _get_key(node, name)
        if not isinstance(inner, dict | list):
            if node is config and inner is None and not adds and name in CONDITIONS:
                raise FklError(f"{word.text}: no {name} is chosen; write {name}=NAME first, see fkl list {name}")
            if not adds or not isinstance(node, dict):
                behind = word.key if inner is not None else ".".join(path[: place + 1])
                raise no_such_key(behind, node if isinstance(node, dict) else ())
            inner = node[name] = {}
        node = inner
    # Remove, add or change the key
    there = _get_key(node, last)
    if word.sign == "~":
        if there is None and last not in node:
            raise no_such_key(word.key, node if isinstance(node, dict) else ())
        if there is None or word.value not in (None, there):
            raise FklError(f"{word.text}: it is {'null' if there is None else there}")
        del node[last if isinstance(node, dict) else int(last)]
    elif word.sign == "+" and there is not None and not isinstance(word.value, dict | list):
        raise FklError(f"{word.text}: exists already; write {word.text[1:]}")
    else:
        _set_key(node, last, word.value, word.key, new=adds)


def _get_key(node: Any, name: str) -> Any:
    """Value under a name in a node; None if the node has no such name."""
    if isinstance(node, list):
        return node[int(name)] if name.isdecimal() and int(name) < len(node) else None
    return node.get(name, node.get(int(name)) if name.isdecimal() else None)


def _set_key(node: Any, name: str, value: Any, key: str, *, new: bool) -> None:
    """Set a key, or the keys of a mapping; without `new`, only existing keys."""
    if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
        # An element of a list
        node[int(name)] = value
    elif isinstance(node, list) or (name not in node and not new):
        raise no_such_key(key, node if isinstance(node, dict) else ())
    elif isinstance(value, dict) and isinstance(node.get(name), dict):
        # A mapping changes the keys that it names, and keeps the others
        for inner, given in value.items():
            _set_key(node[name], inner, given, f"{key}.{inner}", new=new)
    else:
        node[name] = value
