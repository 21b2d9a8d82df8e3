"""`fkl show`: the source of a method, which names the paper's equations, or the differences of two methods."""

import ast
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from fkl.basics.errors import FklError
from fkl.cli.describe import called_functions, class_of, describe_choice
from fkl.cli.docstrings import Class


def method_source(names: Sequence[str], folders: Sequence[Path] = ()) -> str:
    """The source of one method, or the functions in which two methods differ.

    Raises
    ------
    fkl.basics.errors.FklError
        If a name is not that of a method, or more than two are given.
    """
    if not 1 <= len(names) <= 2:
        raise FklError(f"show {' '.join(names)}".strip() + ": must be given one method, or two to compare")
    methods = [
        _method_family(describe_choice(f"algo={name.removeprefix('algo=')}", folders).name, folders) for name in names
    ]
    if len(methods) == 1:
        return "\n\n\n".join(_class_source(one) for one in methods[0])
    first, second = (_function_sources(family) for family in methods)
    labels = [str(family[0].attributes.get("label")) for family in methods]
    same = [name for name, text in first.items() if second.get(name) == text]
    lines = [
        f"{label}: {', '.join(dict.fromkeys(map(_file_of_class, family)))}"
        for label, family in zip(labels, methods, strict=True)
    ]
    lines.append(f"the same in both: {', '.join(same) or 'nothing'}")
    for name in dict.fromkeys([*first, *second]):
        if name not in same:
            a, b = (functions.get(name, "").splitlines() for functions in (first, second))
            lines += ["", *difflib.unified_diff(a, b, f"{name}, {labels[0]}", f"{name}, {labels[1]}", lineterm="")]
    return "\n".join(lines)


def _method_family(name: str, folders: Sequence[Path]) -> list[Class]:
    """The method's class and those of other methods that it extends, without the contract that all methods extend."""
    own, *others = class_of("algo", name, folders).family
    return [own, *(one for one in others if ".algorithms." in one.module.name)]


def _file_of_class(one: Class) -> str:
    return f"{one.module.name.replace('.', '/')}.py"


def _class_source(one: Class) -> str:
    """A class with the functions of its module that it calls, below the name of the file."""
    return "\n\n\n".join(
        [f"# {_file_of_class(one)}", *(_part_text(one, part) for part in (one.tree, *called_functions(one)))]
    )


def _function_sources(family: Iterable[Class]) -> dict[str, str]:
    """Sources of a method's functions and, as `keys`, of its fields, by name, including inherited ones."""
    sources: dict[str, str] = {}
    for kind in family:
        parts: list[ast.stmt] = [*kind.tree.body, *called_functions(kind)]
        functions = {part.name: _part_text(kind, part) for part in parts if isinstance(part, ast.FunctionDef)}
        fields = "\n".join(_part_text(kind, part) for part in parts if isinstance(part, ast.AnnAssign))
        sources = {**functions, **sources, "keys": "\n".join(filter(None, [sources.get("keys"), fields]))}
    return sources


def _part_text(one: Class, part: ast.stmt) -> str:
    """A part of a module as it is written, with its decorators."""
    first = min([part.lineno, *(each.lineno for each in getattr(part, "decorator_list", ()))])
    return "\n".join(one.module.text.splitlines()[first - 1 : part.end_lineno])
