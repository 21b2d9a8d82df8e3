"""Documentation of a class from its source, without importing it: docstrings, fields, and required limits.

Importing the modules of methods takes a second, because they import compilers and solvers. Reading their text takes a
few milliseconds.
"""

import ast
import operator
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from inspect import cleandoc
from itertools import chain
from pathlib import Path
from typing import Any

import fkl
from fkl.basics.keys import Key

ENTRY = re.compile(r"^(\w+(?:, \w+)*) ?:(?: (.*))?$|^(\w+(?:, \w+)*)$")
"""Names of a numpy docstring's parameters, and their type, which may be left out."""
POINTER = re.compile(r"(See|As in) `")
"""Beginning of a parameter's meaning that refers to a base class."""
SECTION = re.compile(r"\n(\w+)\n-{3,}\n")

ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Pow: operator.pow}

Names = dict[str, ast.expr]


@dataclass(frozen=True)
class Module:
    """A module of fkl as text.

    Parameters
    ----------
    name : str
        Its import path.
    """

    name: str

    @cached_property
    def text(self) -> str:
        """Text of its file."""
        path = Path(fkl.__file__).parent.joinpath(*self.name.split(".")[1:])
        return (path.with_suffix(".py") if not path.is_dir() else path / "__init__.py").read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The same, parsed."""
        return ast.parse(self.text)

    @cached_property
    def docstring(self) -> str:
        """The module's docstring."""
        return ast.get_docstring(self.tree) or ""

    @cached_property
    def constants(self) -> Names:
        """Values of names at module level."""
        found: Names = {}
        for line in self.tree.body:
            if isinstance(line, ast.Assign) or (isinstance(line, ast.AnnAssign) and line.value is not None):
                targets = line.targets if isinstance(line, ast.Assign) else [line.target]
                found |= _assigned(targets[0], line.value)  # type: ignore[arg-type]
        return found

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Module and name of what it imports from fkl."""
        lines = [line for line in self.tree.body if isinstance(line, ast.ImportFrom)]
        ours = [line for line in lines if line.module and line.module.startswith("fkl")]
        return {alias.asname or alias.name: (str(line.module), alias.name) for line in ours for alias in line.names}

    def value(self, expression: ast.expr) -> Any:
        """A literal, or the constant that a name stands for, here or in the module that it comes from."""
        with suppress(ValueError):
            return ast.literal_eval(expression)
        if isinstance(expression, ast.Name):
            if expression.id in self.constants:
                return self.value(self.constants[expression.id])
            where, name = self.imports[expression.id]
            return module(where).value(ast.Name(name))
        if isinstance(expression, ast.Dict):  # of words, and what each does
            return tuple(self.value(one) for one in expression.keys if one is not None)
        if isinstance(expression, ast.Tuple):
            parts = expression.elts
            found = (self.value(one.value) if isinstance(one, ast.Starred) else (self.value(one),) for one in parts)
            return tuple(chain.from_iterable(found))
        raise ValueError(f"{self.name}: {ast.unparse(expression)} is no literal")

    def function(self, name: str) -> ast.FunctionDef | None:
        """A function at module level."""
        functions = (line for line in self.tree.body if isinstance(line, ast.FunctionDef))
        return next((function for function in functions if function.name == name), None)


@cache
def module(name: str) -> Module:
    """A module of fkl, read once."""
    return Module(name)


@dataclass(frozen=True)
class Class:
    """A class of fkl as text.

    Parameters
    ----------
    module : Module
        Module that contains it.
    tree : ast.ClassDef
    """

    module: Module
    tree: ast.ClassDef

    @cached_property
    def sections(self) -> dict[str, str]:
        """Parts of its docstring by their headings; the part before the first heading has none."""
        first, *others = SECTION.split("\n" + cleandoc(ast.get_docstring(self.tree) or "") + "\n")
        return {"": first.strip(), **dict(zip(others[::2], others[1::2], strict=True))}

    @cached_property
    def parameters(self) -> dict[str, tuple[str, str]]:
        """Type and meaning of each parameter that its docstring has."""
        found: dict[str, tuple[str, str]] = {}
        names: list[str] = []
        for line in self.sections.get("Parameters", "").splitlines():
            if match := ENTRY.fullmatch(line):
                names = (match[1] or match[3]).split(", ")
                found |= dict.fromkeys(names, (match[2] or "", ""))
            elif line.startswith("    "):
                found |= {name: (found[name][0], f"{found[name][1]} {line.strip()}".strip()) for name in names}
        return found

    @cached_property
    def fields(self) -> dict[str, tuple[str, str]]:
        """Annotation and default of each field that can be given."""
        found = {}
        for line in self.tree.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                kind, value = ast.unparse(line.annotation), line.value
                inner = isinstance(value, ast.Call) and any(word.arg == "init" for word in value.keywords)
                if not kind.startswith(("ClassVar", "InitVar")) and not inner:
                    found[line.target.id] = kind, "" if value is None else ast.unparse(value)
        return found

    @cached_property
    def keys(self) -> dict[str, tuple[Key, str]]:
        """Declaration and type of each key, also of those from classes that it extends."""
        found = {name: one for base in reversed(self.family[1:]) for name, one in base.keys.items()}
        for line in self.tree.body:
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
                continue
            name, value = line.target.id, line.value
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "key":
                words = {str(word.arg): self.module.value(word.value) for word in value.keywords}
                found[name] = Key(*map(self.module.value, value.args), **words), ast.unparse(line.annotation)
            elif name in found:  # another default
                found[name] = replace(found[name][0], default=self.module.value(value)), found[name][1]
        return found

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Values of its class variables that are literals."""
        found = {}
        for line in self.tree.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                try:
                    found[line.target.id] = ast.literal_eval(line.value)
                except ValueError:  # the value depends on something else
                    continue
        return found

    @cached_property
    def family(self) -> tuple["Class", ...]:
        """Itself and the classes of fkl that it extends, nearest first."""
        names = [base.id for base in self.tree.bases if isinstance(base, ast.Name)]
        bases = [found_class(self.module.name, name) for name in names]
        return (self, *(one for base in bases if base is not None for one in base.family))

    @cached_property
    def limits(self) -> dict[str, list[str]]:
        """Limits of each field that `require` checks when the object is made."""
        found: dict[str, list[str]] = {}
        for line in self.tree.body:
            if isinstance(line, ast.FunctionDef) and line.name == "__post_init__":
                for key, allowed in _required(line, self.module, {}):
                    if allowed not in found.setdefault(key, []):
                        found[key].append(allowed)
        return found


@cache
def found_class(module_name: str, name: str) -> Class | None:
    """A class by the module that defines or imports it; None if it is not in fkl."""
    here = module(module_name)
    for line in here.tree.body:
        if isinstance(line, ast.ClassDef) and line.name == name:
            return Class(here, line)
    return found_class(*here.imports[name]) if name in here.imports else None


def _assigned(target: ast.expr, value: ast.expr) -> Names:
    """Values of the names in an assignment."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return {one.id: part for one, part in zip(target.elts, value.elts, strict=True) if isinstance(one, ast.Name)}
    return {}


def _required(function: ast.FunctionDef, here: Module, given: Names) -> Iterator[tuple[str, str]]:
    """Key and what is allowed, of each `require` of a function and of those of its module that it calls."""
    names = dict(given)
    lines = [line for line in ast.walk(function) if isinstance(line, ast.Assign | ast.Call)]
    for line in sorted(lines, key=lambda line: (line.lineno, line.col_offset)):  # a name may be assigned again
        if isinstance(line, ast.Assign):
            names |= _assigned(line.targets[0], line.value)
            continue
        if not isinstance(line.func, ast.Name):
            continue
        called = here.function(line.func.id)
        if line.func.id == "require" and len(line.args) == 4:
            with suppress(ValueError):  # a limit that depends on other keys
                yield _words(line.args[1], here, names), _words(line.args[3], here, names)
        elif called is not None and called is not function:
            values = [_known(one, names) for one in line.args]
            parameters = dict(zip((one.arg for one in called.args.args), values, strict=False))
            yield from _required(called, here, parameters)


def _known(expression: ast.expr, names: Names) -> ast.expr:
    """Value of a name, if it is known."""
    return names.get(expression.id, expression) if isinstance(expression, ast.Name) else expression


def _value(expression: ast.expr, here: Module, names: Names) -> Any:
    """A literal, or the literal value of a name."""
    if isinstance(expression, ast.Name):
        if expression.id in names:
            others = {name: one for name, one in names.items() if name != expression.id}
            return _value(names[expression.id], here, others)
        if expression.id in here.constants:
            return _value(here.constants[expression.id], here, {})
        if expression.id in here.imports:
            where, name = here.imports[expression.id]
            return _value(ast.Name(name), module(where), {})
    if isinstance(expression, ast.Dict):  # only its keys are reported
        return [_value(key, here, names) for key in expression.keys if key is not None]
    if isinstance(expression, ast.BinOp) and type(expression.op) in ARITHMETIC:
        left, right = (_value(one, here, names) for one in (expression.left, expression.right))
        return ARITHMETIC[type(expression.op)](left, right)
    if isinstance(expression, ast.Tuple | ast.List):
        return [_value(one, here, names) for one in expression.elts]
    return ast.literal_eval(expression)


def _words(expression: ast.expr, here: Module, names: Names) -> str:
    """Text of an expression; the object's own fields, whose values are unknown here, appear by name."""
    if isinstance(expression, ast.JoinedStr):
        text = ""
        for part in expression.values:
            if isinstance(part, ast.FormattedValue):
                own = isinstance(part.value, ast.Attribute) and text.endswith(f"{part.value.attr}=")
                word = "" if own else _words(part.value, here, names)
                text = text.removesuffix("=") + word if own else text + word
            else:
                text += str(ast.literal_eval(part))
        return text
    if (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and expression.func.attr == "join"
    ):
        between = str(ast.literal_eval(expression.func.value))
        return between.join(map(str, _value(expression.args[0], here, names)))
    if isinstance(expression, ast.Attribute):
        return expression.attr
    inner = _known(expression, names)
    if isinstance(inner, ast.JoinedStr):
        return _words(inner, here, names)
    value = _value(expression, here, names)
    return f"{value:g}" if isinstance(value, float) else str(value)
