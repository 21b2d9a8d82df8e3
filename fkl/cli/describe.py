"""Output of `fkl describe NAME` for every name in `fkl list`, made only from docstrings and YAML files."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any

from fkl.basics.errors import FklError, did_you_mean
from fkl.basics.field_words import field_words, own_spelling
from fkl.basics.keys import NO_DEFAULT
from fkl.basics.keys import KeyDeclaration as Declared
from fkl.cli.docstrings import Class, found_class
from fkl.cli.listing import WORDS
from fkl.config import choices, experiments
from fkl.config.compose import brought_by, keys_of
from fkl.data.table_layout import layout_options
from fkl.screen.columns import COLUMNS, KINDS, column_meaning, kind_meaning

GROUPS = (*choices.GROUPS, "as_published", "experiment")
"""Groups in which a name is looked up, in this order; GROUP=NAME selects one."""
PAPERS = GROUPS[-2:]
CITATION = re.compile(r"\b(?:19|20)\d\d\b|of [A-Z]\w+ and [A-Z]|et al\.")
EQUATION = re.compile(r"\beqs?\. (\(\d+\w?\)(?:(?:,| and| to|-) ?\(\d+\w?\))*)")
FULL_OR_HALF = re.compile(r"\$\{full_or_half:(\d+)\}")
ALGORITHM = re.compile(r"\bAlgorithms? (\d+(?:(?:, | and | to |-)\d+)*)")
NODES = {
    "settings": ("fkl.config.settings.Settings", "", "Keys outside every group"),
    "network": ("fkl.network.Network", "network", "What messages cost, and which are lost"),
    "paths": ("fkl.config.settings.Paths", "paths", "Folders"),
}
"""Parts of the configuration without choices: class, place of its keys, and description."""
MADE = {
    "_target_": "the class of fkl that receives the other keys of its node; each choice sets its own",
    "table": "where the data set's file is, and how its columns are read; each data set sets its own",
}
"""Entries of config.yaml that are not keys."""
PLACES = (*(name for name in NODES if name != "settings"), *choices.GROUPS)
"""Prefixes of a key that is given only by its last part."""
MOST_NAMED, MOST_MEANINGS = 6, 4
"""Maximum number of choices named for a key, and of meanings shown for it."""
TABLE_SET = "fkl.data.table_set.TableSet"
"""Class of the data sets that a YAML file describes completely."""


@dataclass(frozen=True)
class DescribedKey:
    """A key of the configuration.

    Parameters
    ----------
    name : str
        Its name on a command line, for example ``"algo.M"``.
    type : str
    default : str
        Default as in YAML.
    limits : str
        Further limits of the value; may be empty.
    meaning : str
    bounds : dict
        Limits of a number, by the words of JSON Schema.
    """

    name: str
    type: str
    default: str
    limits: str
    meaning: str
    bounds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """Description of a choice.

    Parameters
    ----------
    group, name : str
    what : str
        Summary in one line.
    details : str
        Paragraphs; may be empty.
    paper : str
        Where it was published; empty if the source has no reference.
    equations : str
        Numbers of the paper's equations and algorithms that its source follows.
    brings : tuple of str
        Choices of other groups that it sets, as words of a command line.
    usage : str
        A command line.
    keys : tuple of Key
    also : tuple of str
        Other choices of the same name, GROUP=NAME.
    """

    group: str
    name: str
    what: str
    details: str
    paper: str
    equations: str
    brings: tuple[str, ...]
    usage: str
    keys: tuple[DescribedKey, ...]
    also: tuple[str, ...] = ()


def explain_name(name: str, width: int, folders: Sequence[Path] = ()) -> str:
    """Everything with this name, for a terminal of this width: column, kind of message, key, group, choice.

    The choices are fkl's and those of the user's folders.

    Raises
    ------
    fkl.basics.errors.FklError
        If nothing has this name.
    """
    told = [f"{name}: {words}" for words in (column_meaning(name), kind_meaning(name)) if words]
    told += _keys_named(name, folders)
    if name in choices.GROUPS:
        told.append(_of_group(name, folders))
    told += [f"{name}: {words}" for part, words in MADE.items() if part in name.split(".")]
    is_choice = name in NODES or any(_spelled_name(name, group, folders) for group in GROUPS)
    if not told and not is_choice and "." not in name:
        told = [one for place in PLACES for one in _keys_named(f"{place}.{name}", folders)]
    start, dot, _ = name.rpartition(".")
    of_field = field_words(name) if not dot or (start in PLACES and not told) else []
    told += [text for text, _ in of_field]
    choice = [] if told and not is_choice else [as_text(describe_choice(name, folders), width)]
    first = [
        explain_name(names[0], width, folders) for _, names in of_field if len(told) == len(of_field) and not choice
    ]
    return "\n\n".join([*(_wrap_text(one, width) for one in told), *choice, *first])


def _wrap_text(text: str, width: int) -> str:
    """Text wrapped to the width of a terminal, with indented continuation lines."""
    lines = [
        fill(line, width, initial_indent="  " * (at > 0), subsequent_indent="  ", break_on_hyphens=False)
        for at, line in enumerate(text.split("\n"))
    ]
    return "\n".join(lines)


def _keys_named(name: str, folders: Sequence[Path]) -> list[str]:
    """Meanings of a key, each with the choices that have it; the default choice comes first."""
    group, dot, _ = name.partition(".")
    if not dot or group in NODES:
        keys = of_node(group if dot else "settings").keys
        return [f"{key.name}={key.default}\n{_key_text(key)}" for key in keys if key.name == name]
    if group not in choices.GROUPS:
        return []
    chosen = choices.primary_config()[group]
    names = dict.fromkeys([*([chosen] if isinstance(chosen, str) else []), *choices.choice_files(group, folders)])
    places: dict[str, list[tuple[str, str]]] = {}
    for choice in names:
        with suppress(FklError):  # a user's YAML may name a class that does not exist
            for key in keys_of_choice(group, choice, folders):
                if key.name == name:
                    places.setdefault(_key_text(key), []).append((choice, key.default))
    lines = []
    for row, kinds in places.items():
        defaults = dict.fromkeys(default for _, default in kinds)
        more = len(kinds) - MOST_NAMED
        which = ", ".join(choice for choice, _ in kinds[:MOST_NAMED]) + f" and {more} more" * (more > 0)
        differ = "; defaults differ" * (len(defaults) > 1)
        lines.append(f"{name}={kinds[0][1]}\n{row}\nwith {group}={which}{differ}")
    more = len(lines) - MOST_MEANINGS
    return [*lines[:MOST_MEANINGS], *[f"{more} other meanings: fkl describe {group}=NAME"] * (more > 0)]


def _of_group(group: str, folders: Sequence[Path]) -> str:
    """Purpose of a group, and its choices."""
    words = "methods" if group == "algo" else WORDS[group]
    names = ", ".join(choices.choice_files(group, folders))
    usual = _yaml_text(choices.primary_config()[group])
    return f"{group}={usual}: {words}\none of {names}\nwhat each is: fkl list {group}"


def describe_choice(name: str, folders: Sequence[Path] = ()) -> Description:
    """Description of a choice.

    Parameters
    ----------
    name : str
        NAME, or GROUP=NAME if several groups have a choice with this name.
    folders : sequence of Path
        Folders with choices, in addition to fkl's own.

    Raises
    ------
    fkl.basics.errors.FklError
        If there is no choice with this name.
    """
    if name in NODES:
        return of_node(name)
    said, equals, last = name.lstrip("+").replace("logger.", "logger=", 1).partition("=")  # as config.yaml writes it
    wanted = last if equals else said
    having = [group for group in GROUPS if _spelled_name(wanted, group, folders)]
    if equals and said not in GROUPS:
        raise FklError(f"{said}: no such group; groups are {', '.join(GROUPS)}")
    if not having or (equals and said not in having):
        what = f"choice of {said}" if equals else "choice, key, column or kind of message"
        names = [one for group in ([said] if equals else GROUPS) for one in _choice_names(group, folders)]
        names += [] if equals else [*choices.GROUPS, *COLUMNS, *KINDS, *(key.name for key in of_node("settings").keys)]
        raise FklError(f"no {what} is named {wanted}", help=did_you_mean(wanted, names, "all names: fkl list"))
    group = said if equals else having[0]
    wanted = _spelled_name(wanted, group, folders)
    made = of_paper(group, wanted) if group in PAPERS else of_choice(group, wanted, folders)
    also = tuple(f"{other}={_spelled_name(wanted, other, folders)}" for other in having if other != group)
    return Description(**(vars(made) | {"also": also}))


def _spelled_name(name: str, group: str, folders: Sequence[Path]) -> str:
    """The name of a choice as its file spells it; empty if the group has none with this name."""
    names = _choice_names(group, folders)
    own = own_spelling(name, names)
    return own if own in names else ""


def _choice_names(group: str, folders: Sequence[Path] = ()) -> list[str]:
    return list(
        experiments.paper_choice_descriptions(group) if group in PAPERS else choices.choice_files(group, folders)
    )


def of_choice(group: str, name: str, folders: Sequence[Path] = ()) -> Description:
    """Description from a YAML file of the configuration and its class."""
    node, comments = keys_of(group, name, folders), choices.choice_comments(group, name, folders)
    made = class_of(group, name, folders)
    by_yaml = node.get("_target_") == TABLE_SET
    run = "fkl run"
    if name not in choices.choice_files(group):
        run += "".join(f" --config-dir {shlex.quote(str(folder))}" for folder in folders)
    return Description(
        group=group,
        name=name,
        what=choices.choice_descriptions(group, folders)[name],
        details=comments[""] if by_yaml else _plain_words(made.sections[""]),
        paper=_cited_paragraph(made) if group == "algo" else "",
        equations=_equation_numbers(made) if group == "algo" and made.module.is_fkl else "",
        brings=tuple(brought_by(group, name, folders)),
        usage=f"{run} {group}={name}"
        + (f" [{_choice_node(group, name)}.KEY=VALUE ...]" if len(node) > 1 + by_yaml else ""),
        keys=keys_of_choice(group, name, folders),
    )


def keys_of_choice(group: str, name: str, folders: Sequence[Path] = ()) -> tuple[DescribedKey, ...]:
    """Keys of a choice, from its YAML and its class."""
    node = keys_of(group, name, folders)
    if node.get("_target_") == TABLE_SET:
        return tuple(_keys_of_table_set(node, choices.choice_comments(group, name, folders)))
    return tuple(_keys_of_node(_choice_node(group, name), class_of(group, name, folders), node))


def _choice_node(group: str, name: str) -> str:
    """The node of a choice; each of several loggers has its own."""
    return f"{group}.{name}" if group == "logger" else group


def _keys_of_table_set(node: dict[str, Any], comments: dict[str, str]) -> Iterator[DescribedKey]:
    """Keys of a data set that its YAML describes, with the comment above each as its meaning."""
    for name, option in layout_options(node).items():
        meaning = comments.get(name, "")
        yield DescribedKey(
            f"dataset.{name}", option.told, _yaml_text(node[name]), option.allowed, meaning, option.bounds
        )


def of_paper(group: str, name: str) -> Description:
    """Description from a paper's file of experiments."""
    node: dict[str, Any] = dict(experiments.paper_choice(f"{group}/{name}") or {})
    sweep = [f"{key}={value}" for key, value in node.get("sweep", {}).items()]
    config = experiments.for_runs({key: value for key, value in node.items() if key not in ("sweep", "defaults")})
    chosen = [part for part in node.get("defaults", ()) if part != "_self_"]
    parts = [item for part in chosen if isinstance(part, dict) for item in part.items()]
    words = [f"{key.removeprefix('override /')}={value}" for key, value in parts]
    meanings = _keys_by_path([*words, *(word.partition(",")[0] for word in sweep)])
    keys = [_paper_key(key, value, meanings) for key, value in choices.flat_items(config)]
    return Description(
        group=group,
        name=name,
        what=experiments.paper_choice_descriptions(group)[name],
        details=f"A sweep over {' '.join(sweep)}" if sweep else "",
        paper="",
        equations="",
        brings=tuple(words),
        usage=f"fkl run {'-m ' * bool(sweep)}+{group}={name}",
        keys=tuple(keys),
    )


def _keys_by_path(words: list[str]) -> dict[str, DescribedKey]:
    """Keys of the primary configuration with these choices instead of its own."""
    chosen = choices.primary_config() | dict(word.split("=", 1) for word in words)
    made = [of_node(node) for node in NODES]
    keys = [key for one in made for key in one.keys]
    for group in choices.GROUPS:
        if chosen[group] in choices.choice_files(group):
            keys += keys_of_choice(group, chosen[group])
    return {key.name: key for key in keys}


def _paper_key(name: str, value: object, known: dict[str, DescribedKey]) -> DescribedKey:
    """A key that a paper's choice sets."""
    key = known.get(name, DescribedKey(name, "", "", "", ""))
    return replace(key, default=_yaml_text(value))


def of_node(name: str) -> Description:
    """Description of a part of the configuration that has no choices, see `NODES`."""
    primary, (target, group, what) = choices.primary_config(), NODES[name]
    values = {key: value for key, value in primary.items() if key not in choices.GROUPS and not isinstance(value, dict)}
    made, node = _class_of_target(target), primary[group] if group else values
    usage = f"fkl run [{group + '.' if group else ''}KEY=VALUE ...]"
    return Description(group, name, what, "", "", "", (), usage, tuple(_keys_of_node(group, made, node)))


def class_keys(group: str, target: str) -> tuple[DescribedKey, ...]:
    """Keys of a class of fkl, with its own defaults."""
    return tuple(_keys_of_node(group, _class_of_target(target), {}))


def class_of(group: str, name: str, folders: Sequence[Path] = ()) -> Class:
    """The class of a choice."""
    return _class_of_target(str(keys_of(group, name, folders).get("_target_")))


def _class_of_target(target: str) -> Class:
    module, _, name = target.rpartition(".")
    made = found_class(module, name) if module else None
    if made is None:
        raise FklError(f"_target_={target}: no such class, neither of fkl nor in a module that Python finds here")
    return made


def _keys_of_node(group: str, made: Class, node: dict[str, Any]) -> Iterator[DescribedKey]:
    """Keys of a node in the order of its YAML, followed by those of its class that the YAML omits."""
    start = f"{group}." if group else ""
    for name in dict.fromkeys([*(key for key in node if key != "_target_"), *made.keys]):
        declared, annotation = made.keys.get(name, (Declared(NO_DEFAULT), ""))  # the key of a base class elsewhere
        value = _yaml_text(node.get(name, "" if declared.default is NO_DEFAULT else declared.default))
        kind = _type_in_words(annotation, declared.choices)
        yield DescribedKey(
            start + name,
            kind,
            value,
            declared.allowed_values(annotation),
            _plain_words(declared.meaning),
            declared.bounds,
        )


def _type_in_words(annotation: str, allowed: tuple[str, ...]) -> str:
    """A field's type in words, or the words that it allows."""
    kind = re.sub(r"dict\[.*\]", "dict", annotation.removesuffix(" | None").replace(" | None]", "]")).rstrip("]")
    kind = (
        kind.replace("list[list[", "list of lists of ")
        .replace("list[", "list of ")
        .replace(" of Any", "")
        .replace("]", "")
        .replace(" | ", " or ")
    )
    listed = ", ".join(f'"{word}"' for word in allowed)
    return (f"{{{listed}}}" if allowed else kind.lower()) + " or null" * annotation.endswith(" | None")


def _yaml_text(value: object) -> str:
    """A value as it is written on a command line."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return f"[{','.join(map(_yaml_text, value))}]" if isinstance(value, list) else FULL_OR_HALF.sub(r"\1", str(value))


def _plain_words(text: str) -> str:
    """A docstring's text with YAML's words for Python's."""
    text = re.sub(r"\bNone\b", "null", text.replace("``", ""))
    return text.replace("True", "true").replace("False", "false")


def _cited_paragraph(made: Class) -> str:
    """The first paragraph with a citation about the class, or about a class that it extends."""
    for kind in made.family:
        for paragraph in (*_module_paragraphs(kind), *kind.sections[""].split("\n\n")):
            if CITATION.search(paragraph):
                return " ".join(paragraph.split())
    return ""


def _equation_numbers(made: Class) -> str:
    """The paper's equations and algorithms that the source of the class, or of one that it extends, names."""
    ours = [one for one in made.family if ".algorithms." in one.module.name]
    text = "\n".join(dict.fromkeys(part for one in ours for part in (*_module_paragraphs(one), source_of(one))))
    parts = []
    for label, pattern in (("equations", EQUATION), ("algorithms", ALGORITHM)):
        numbers = {number for match in pattern.findall(text) for number in re.findall(r"\d+\w?", match)}
        if numbers:
            parts.append(f"{label} {', '.join(sorted(numbers, key=_equation_order))}")
    return "; ".join(parts)


def _module_paragraphs(made: Class) -> list[str]:
    """Paragraphs of its module's docstring; if the module has several methods, those that start with its label."""
    paragraphs = made.module.docstring.split("\n\n")
    if _count_methods(made) < 2:
        return paragraphs
    label, heads = made.attributes.get("label"), [paragraph.partition(": ") for paragraph in paragraphs]
    texts = [text for names, _, text in heads if label in (names, *re.split(", | and ", names))]
    return texts if texts or label is None else paragraphs


def source_of(made: Class) -> str:
    """Source of its module; if the module has several methods, that of the class and of the functions it calls."""
    text = made.module.text
    if _count_methods(made) < 2:
        return text
    parts = [made.tree, *called_functions(made)]
    return "\n\n\n".join(str(ast.get_source_segment(text, part)) for part in parts)


def called_functions(made: Class) -> list[ast.FunctionDef]:
    """Functions of its module that a class calls, directly or through other functions."""
    text, matches = ast.unparse(made.tree), list[ast.FunctionDef]()
    functions = [part for part in made.module.tree.body if isinstance(part, ast.FunctionDef)]
    while more := [part for part in functions if part not in matches and re.search(rf"\b{part.name}\b", text)]:
        matches += more
        text = "\n".join(map(ast.unparse, more))
    return sorted(matches, key=lambda part: part.lineno)


def _count_methods(made: Class) -> int:
    """Number of methods in its module."""
    return made.module.text.count("\n    label: ClassVar[str] = ")


def _equation_order(number: str) -> tuple[int, str]:
    digits = re.match(r"\d+", number)
    return int(digits[0]) if digits else 0, number


def as_text(description: Description, width: int) -> str:
    """A description as text for a terminal of this width."""
    from click import HelpFormatter

    page = HelpFormatter(width=width)
    page.write_text(description.what)
    page.write_paragraph()
    with page.indentation():
        page.write_text(description.usage)
    headings = {"": description.details, "Paper: ": description.paper, "It follows ": description.equations}
    for heading, text in headings.items():
        if text:
            page.write_paragraph()
            page.write_text(heading + text)
    if description.brings:
        page.write_paragraph()
        page.write_text(f"It selects {' '.join(description.brings)}, unless you choose others.")
    if description.keys:
        with page.section("Keys"):
            rows = [(f"{key.name}={key.default}", _key_text(key)) for key in description.keys]
            page.write_dl(rows, col_max=34)
    if description.also:
        page.write_paragraph()
        page.write_text(f"Other choices have the same name: fkl describe {' or '.join(description.also)}")
    return page.getvalue().rstrip("\n")


def run_overview(width: int) -> str:
    """Arguments of `fkl run`: choices, and the keys of every run."""
    from click import HelpFormatter

    page = HelpFormatter(width=width)
    with page.section("Choices, which `fkl list` describes"):
        primary = choices.primary_config()
        names = {group: ", ".join(choices.choice_files(group)) for group in choices.GROUPS}
        page.write_dl([(f"{group}={_yaml_text(primary[group])}", there) for group, there in names.items()])
    with page.section("Keys of every run"):
        page.write_dl([(f"{key.name}={key.default}", _key_text(key)) for key in of_node("settings").keys])
    page.write_paragraph()
    page.write_text(
        "Keys of a choice: `fkl describe NAME`; of the network and of folders: `fkl describe network`, paths."
    )
    return page.getvalue().rstrip("\n")


def _key_text(key: DescribedKey) -> str:
    """Type, meaning and limits of a key in one text."""
    limits = f"Must be {key.limits}." if key.limits and not key.type.startswith("{") else ""  # this type lists them all
    meaning = f"{key.meaning.removesuffix('.')}." if key.meaning else ""
    return " ".join(part for part in (f"[{key.type}]" if key.type else "", meaning, limits) if part)
