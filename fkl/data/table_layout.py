"""Content of a published data set's YAML: its files, how they are read, and the user's keys.

Nothing here imports numpy, so `fkl describe` answers at once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from fkl.basics.errors import require
from fkl.basics.keys import Keys, key

NAMED_COLUMNS = ("text", "airquality", "concrete", "heart")
"""Formats of a table whose columns have names, including the target's."""
LIBSVM = ("libsvm", "libsvm_sparse", "libsvm_streamed", "cod_rna")
FORMATS = (*NAMED_COLUMNS, "mat", "mat_cells", *LIBSVM)
"""Words for `Layout.format`; `fkl.data.readers` has a function for each."""
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": None}
HOLES = ("refuse", "drop", "mean", "median", "previous")
SCALINGS = ("none", "unit_box", "ends")
FILE_KEYS = ("name", "url", "sha256", "size", "instead", "package", "site")
MOST_DECIMALS = 15
BRACES = re.compile(r"\{([^{}]*)\}")
RANGE = re.compile(r"(\d+)\.\.(\d+)")
ONLY_TOLD = ("title", "licence", "shape")
"""Fields of a layout that affect no number; in a file's entry, these are `url` and `instead`."""


@dataclass(frozen=True)
class Layout(Keys):
    """The node `table` of a data set's YAML.

    Names of columns may be patterns as in a shell: ``WAP{001..520}``, ``{NCD,AI}_{0..6}``.
    """

    name: str = key("unnamed", "Name of the data set, and of the folder that its files are in.")
    title: str = key("", "Description in `fkl data list`.")
    licence: str = key("not known", "Licence in `fkl data list`.")
    shape: str = key("", "Rows x features in `fkl data list`.")
    files: list[Any] = key(
        [],
        "For each file its name and, where they are known, url, sha256 and size of the unpacked file, what to try "
        "instead, the installed package that has it, and the site that its rows come from; see "
        "`fkl.data.store.DataFile`.",
    )
    read: list[str] = key([], "Names of the files that are read, one after the other; empty for all.")
    format: str = key("text", "One of `FORMATS`.", choices=FORMATS)
    separator: str = key(
        "comma", "Delimiter in text: comma, semicolon, tab, pipe, or space for any run of blanks.", choices=SEPARATORS
    )
    header: bool = key(True, "Whether the first line of text has the names of the columns, which must be `columns`.")
    columns: list[str] = key(
        [], "Names of all columns of a text in the order of the file, or of the features of any other format."
    )
    text: list[str] = key(
        [], "Columns of words. Words of a feature are coded 0, 1, ... in the order in which they first appear."
    )
    samples: str = key("X", "Variable of the features in a MATLAB file.")
    target: str = key("", "Column of the target; in a MATLAB file its variable.")
    site: str = key(
        "", "Column that names the site of each row; empty if a row's file or cell does, or all rows are of one site."
    )
    leave_out: list[str] = key([], "Columns that are not features.")
    negative: float | None = key(
        None,
        "Label of the class -1 if the target has two classes; that of the other class is 1. With this key, LIBSVM "
        "files must be as published: one sample per line, with ascending indices from 1.",
    )
    hole: str | None = key(None, "Cell that marks a missing value.")
    missing: str = key(
        "refuse",
        "Treatment of missing values: an error, leaving out their rows, or filling in the column's mean, median "
        "or previous value; rows that still miss one are dropped.",
        choices=HOLES,
    )
    file_rows: int | None = key(None, "Rows that every file must have: a check for files without a hash.")
    most_rows: int | None = key(None, "Limit of `rows` and `rows_per_site`.")
    without_last: int = key(0, "Number of rows at the end of a file that are not samples.")
    rows: int | None = key(None, "Number of first rows of all files together that are used; null for all.")
    rows_per_site: int | None = key(None, "Number of first rows of each file that are used; null for all.")
    replace: dict[str, Any] = key(
        {}, "Value `cell` of a feature, and the `key` whose value replaces it: ``{cell: 100.0, key: no_signal}``."
    )
    decimals: int | None = key(None, "Decimals that all cells are rounded to; null for the file's own.")
    scaled: str = key(
        "none",
        "``unit_box`` maps features and target to [0, 1], ``ends`` features to [0, 1] and the target to [-1, 1].",
        choices=SCALINGS,
    )
    samples_in_rows: bool = key(False, "Whether samples are rows, not columns, of the features in a MATLAB file.")
    switches: dict[str, Any] = key(
        {},
        "Keys whose values change fields of the layout: a list of the allowed values, or for each value the fields "
        "that it changes. ``{input: {published: {}, raw: {read: [raw.csv]}}}``",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Files must have known keys, and columns must exist
        require(self.name.isidentifier(), "dataset.table.name", self.name, "a word of letters, digits and _")
        for file in self.files:
            is_known = isinstance(file, Mapping) and "name" in file and set(file) <= {*FILE_KEYS}
            require(is_known, "dataset.table.files", file, f"a list of files, each with {', '.join(FILE_KEYS)}")
        names = [file["name"] for file in self.files]
        for name in self.read:
            require(name in names, "dataset.table.read", name, f"one of {', '.join(names)}")
        for field_name in ("text", "leave_out"):
            for name in getattr(self, field_name):
                there = name in self.all_columns or BRACES.search(name) is not None
                require(there, f"dataset.table.{field_name}", name, "one of dataset.table.columns")

    @property
    def used(self) -> list[Any]:
        """The files that are read."""
        by_name = {file["name"]: file for file in self.files}
        return [by_name[name] for name in self.read or by_name]

    @cached_property
    def all_columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(expand_patterns(self.columns))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the features: all columns except the target, the site and those that are omitted."""
        others = {self.target, self.site, *expand_patterns(self.leave_out)}
        return tuple(name for name in self.all_columns if name not in others)

    def with_chosen_keys(self, values: Mapping[str, Any]) -> "Layout":
        """The layout with the user's keys in place.

        Parameters
        ----------
        values : mapping
            Values of all keys, see `layout_options`.

        Raises
        ------
        fkl.basics.errors.BadValue
            If a key has a value that is not allowed; the message names the allowed values.
        """
        # Keys that the user changed, then those that a switch changes
        changes = {key: value for key, value in values.items() if key in FIELDS}
        waiting = [(key, choices, "") for key, choices in self.switches.items()]
        # A switch's choice may bring switches of its own
        for switch, choices, where in waiting:
            allowed = by_word(choices)
            word = as_word(values[switch])
            require(word in allowed, switch, word, f"{list_allowed(allowed)}{where}")
            change = dict(allowed[word])
            for name in change:
                require(name in FIELDS, "dataset.table.switches", name, f"one of the fields {', '.join(FIELDS)}")
            # A choice may narrow what other keys can be: `raw: {switches: {missing: [drop]}}`.
            waiting += [(*one, f" with {switch}={word}") for one in change.pop("switches", {}).items()]
            changes |= change
        layout: Layout = replace(self, **changes, switches={})
        # Numbers within their limits
        for name, (low, high, null) in layout.limits.items():
            value = values.get(name)
            fits = (null and value is None) or (isinstance(value, int) and low <= value <= high)
            require(name not in values or fits, name, value, f"{integer_limits(low, high)}{', or null' * null}")
        if layout.format in NAMED_COLUMNS:
            there = layout.target in layout.all_columns
            require(there, "dataset.table.target", layout.target, "one of dataset.table.columns")
        return layout

    @property
    def limits(self) -> dict[str, tuple[int, int, bool]]:
        """Least and largest value of the keys that are numbers, and whether they may be null."""
        most = 2**63 - 1 if self.most_rows is None else self.most_rows
        rows = 2, most, self.most_rows is None
        return {"rows": rows, "rows_per_site": rows, "decimals": (0, MOST_DECIMALS, True)}


FIELDS = {one.name: one for one in fields(Layout)}


class Option(NamedTuple):
    """A key of a data set: the type of its field, that type in words, and further limits of the value."""

    type: Any
    told: str
    allowed: str
    bounds: Mapping[str, float] = MappingProxyType({})


def layout_options(node: Mapping[str, Any]) -> dict[str, Option]:
    """Keys of a data set's node besides `table`.

    These are the fields of the layout that are next to `table`, its switches, and the key that `replace` names.

    Raises
    ------
    fkl.basics.errors.BadValue
        If `table` does not describe the keys correctly.
    """
    # The table's node must be a mapping with well-formed switches
    table = node.get("table")
    require(isinstance(table, Mapping), "table", table, "how its files are read, see docs/own_data.md")
    switches, replaced = table.get("switches", {}), table.get("replace", {})  # type: ignore[union-attr]
    require(isinstance(switches, Mapping), "dataset.table.switches", switches, "keys with values")
    both = isinstance(replaced, Mapping) and set(replaced) in (set(), {"cell", "key"})
    require(both, "dataset.table.replace", replaced, "cell and key, as in {cell: 100.0, key: no_signal}")
    for switch, choices in switches.items():
        require(isinstance(choices, Mapping | list), f"dataset.table.switches.{switch}", choices, "a list of values")
        for value in choices if isinstance(choices, Mapping) else ():  # a run's config.yaml has no other keys
            quoted = f'a word in quotes, "{as_word(value)}"'
            require(isinstance(value, str), f"dataset.table.switches.{switch}", value, quoted)
    # For each key: its type, the words of its help, and its limits
    limits = Layout(most_rows=table.get("most_rows")).limits  # type: ignore[union-attr]
    option_of = {}
    for name in dict.fromkeys([*node, *switches, *([replaced["key"]] if replaced else [])]):
        if name in switches:
            words = by_word(switches[name])
            if {*words} <= {"true", "false"}:
                option_of[name] = Option(bool, "bool", "")
            else:
                quoted = ", ".join(f'"{word}"' for word in words)
                option_of[name] = Option(str, f"{{{quoted}}}", list_allowed(words))
        elif name in FIELDS:
            low, high, null = limits.get(name, (0, 0, True))
            kind = FIELDS[name].type if null else int
            type_name = str(getattr(kind, "__name__", kind)).replace(" | None", " or null")
            if name in limits:
                bounds = {"minimum": low} | ({"maximum": high} if high < 2**63 - 1 else {})
                option_of[name] = Option(kind, type_name, f"{integer_limits(low, high)}{', or null' * null}", bounds)
            else:
                option_of[name] = Option(kind, type_name, "")
        elif name == replaced.get("key"):
            option_of[name] = Option(float, "float", "a finite number")
    return option_of


def by_word(choices: Any) -> dict[str, dict[str, Any]]:
    """The fields that each value of a switch changes, by the value as a word; values in a list change nothing."""
    if isinstance(choices, Mapping):
        return {as_word(value): dict(change or {}) for value, change in choices.items()}
    return {as_word(value): {} for value in choices}


def as_word(value: object) -> str:
    """A value as YAML writes it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def list_allowed(words: Iterable[str]) -> str:
    """Allowed words in a sentence."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def integer_limits(low: int, high: int) -> str:
    """Limits of an integer in words."""
    return f"an integer from {low} to {high}" if high < 2**63 - 1 else f"an integer >= {low}"


def expand_patterns(patterns: Iterable[str]) -> Iterator[str]:
    """Names that patterns generate, in the order of a shell: the last braces change first."""
    for pattern in patterns:
        # Every second part was in braces: a range of numbers, or words
        choices = []
        for i, part in enumerate(BRACES.split(str(pattern))):
            if i % 2 == 0:  # parts with odd numbers were in braces
                choices.append([part])
            elif match := RANGE.fullmatch(part):
                first, last = int(match[1]), int(match[2])
                choices.append([str(number).zfill(len(match[1])) for number in range(first, last + 1)])
            else:
                choices.append(part.split(","))
        yield from map("".join, product(*choices))


def deciding_part(node: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a node that decides numbers, without titles and addresses; omitted fields have their defaults."""
    table = {key: value for key, value in {**vars(Layout()), **node["table"]}.items() if key in FIELDS}
    if table["negative"] == -1 and table["format"] in LIBSVM:  # which 1.0.0rc1 did not write
        table["negative"] = None
    table["files"] = [{key: file.get(key) for key in ("name", "sha256", "site")} for file in table["files"]]
    return {**node, "table": {key: value for key, value in table.items() if key not in ONLY_TOLD}}


def for_display(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node with the data set's name instead of its class, and its keys without those for reading."""
    if not isinstance(node.get("table"), dict):
        return dict(node)
    keys = {key: value for key, value in node.items() if key != "table"}
    return keys | {"_target_": f"{node['_target_']}.{node['table']['name']}"}
