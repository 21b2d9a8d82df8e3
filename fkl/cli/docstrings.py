"""Documentation of a class from its source, without importing it: docstrings and keys.

Importing the modules of methods takes a second, because they import compilers and solvers. Reading their text takes a
few milliseconds.
"""

import ast
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.machinery import PathFinder
from importlib.util import find_spec
from inspect import cleandoc
from itertools import chain
from pathlib import Path
from typing import Any

from fkl.basics.errors import FklError
from fkl.basics.keys import NO_DEFAULT, KeyDeclaration

SECTION = re.compile(r"\n(\w+)\n-{3,}\n")

Names = dict[str, ast.expr]


@dataclass(frozen=True)
class Module:
    """A module of fkl, or of the user, as text.

    Parameters
    ----------
    name : str
        Its import path.
    """

    name: str

    @cached_property
    def text(self) -> str:
        """Text of its file; empty if Python does not find it."""
        top, *inner = self.name.split(".")
        spec = find_spec(top) or PathFinder.find_spec(top, [str(Path.cwd())])  # as `fkl run` finds a user's module
        if spec is None or spec.origin is None:
            return ""
        file = Path(spec.origin)
        path = file.parent.joinpath(*inner) if file.name == "__init__.py" else file
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return file.read_text(encoding="utf-8", errors="replace")
        return ""

    @property
    def is_fkl(self) -> bool:
        """Whether it is a module of fkl."""
        return self.name.partition(".")[0] == "fkl"

    @cached_property
    def tree(self) -> ast.Module:
        """Syntax tree of its text."""
        try:
            return ast.parse(self.text)
        except SyntaxError as error:
            raise FklError(f"{self.name}.py, line {error.lineno}: {error.msg}") from None

    @cached_property
    def docstring(self) -> str:
        """The module's docstring."""
        return ast.get_docstring(self.tree) or ""

    @cached_property
    def constants(self) -> Names:
        """Values of names at module level."""
        names: Names = {}
        for line in self.tree.body:
            if isinstance(line, ast.Assign) or (isinstance(line, ast.AnnAssign) and line.value is not None):
                targets = line.targets if isinstance(line, ast.Assign) else [line.target]
                names |= _assigned_names(targets[0], line.value)  # type: ignore[arg-type]
        return names

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Module and name of each import from fkl; for a user's module, also of imports from the user's modules."""
        lines = [line for line in self.tree.body if isinstance(line, ast.ImportFrom) and line.module]
        tops = [str(line.module).partition(".")[0] for line in lines]
        ours = [
            line
            for line, top in zip(lines, tops, strict=True)
            if top == "fkl" or not (self.is_fkl or top in sys.stdlib_module_names)
        ]
        return {alias.asname or alias.name: (str(line.module), alias.name) for line in ours for alias in line.names}

    def value(self, expression: ast.expr) -> Any:
        """Value of a literal, or of a constant by its name, here or in the module from which it is imported."""
        with suppress(ValueError):
            return ast.literal_eval(expression)
        if isinstance(expression, ast.Name):
            if expression.id in self.constants:
                return self.value(self.constants[expression.id])
            where, name = self.imports[expression.id]
            return parse_module(where).value(ast.Name(name))
        if isinstance(expression, ast.Dict):  # its keys are the allowed words
            return tuple(self.value(one) for one in expression.keys if one is not None)
        if isinstance(expression, ast.Tuple):
            parts = expression.elts
            values = (self.value(one.value) if isinstance(one, ast.Starred) else (self.value(one),) for one in parts)
            return tuple(chain.from_iterable(values))
        raise ValueError(f"{self.name}: {ast.unparse(expression)} is no literal")


@cache
def parse_module(name: str) -> Module:
    """A module, read once."""
    return Module(name)


@dataclass(frozen=True)
class Class:
    """A class of fkl, or of the user, as text.

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
    def keys(self) -> dict[str, tuple[KeyDeclaration, str]]:
        """Declaration and type of each key, including inherited keys."""
        inherited = {name: one for base in reversed(self.family[1:]) for name, one in base.keys.items()}
        for line in self.tree.body:
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
                continue
            name, value = line.target.id, line.value
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "key":
                arguments = {str(word.arg): self.module.value(word.value) for word in value.keywords}
                inherited[name] = (
                    KeyDeclaration(*map(self.module.value, value.args), **arguments),
                    ast.unparse(line.annotation),
                )
            elif name in inherited and "ClassVar" in ast.unparse(line.annotation):  # no key any more
                del inherited[name]
            elif name in inherited:  # another default
                inherited[name] = replace(inherited[name][0], default=self.module.value(value)), inherited[name][1]
            elif not self.module.is_fkl and "ClassVar" not in (annotation := ast.unparse(line.annotation)):
                inherited[name] = KeyDeclaration(NO_DEFAULT, self._parameters.get(name, "")), annotation
        return inherited

    @property
    def _parameters(self) -> dict[str, str]:
        """Meanings of parameters in its docstring."""
        parameters, names = dict[str, str](), list[str]()
        for line in self.sections.get("Parameters", "").splitlines():
            if line[:1].strip():
                names = [name.strip() for name in line.partition(":")[0].split(",")]
            else:
                parameters |= {name: f"{parameters.get(name, '')} {line.strip()}".strip() for name in names}
        return parameters

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Values of those of its class variables that are literals."""
        texts = {}
        for line in self.tree.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                try:
                    texts[line.target.id] = ast.literal_eval(line.value)
                except ValueError:  # the value depends on something else
                    continue
        return texts

    @cached_property
    def family(self) -> tuple["Class", ...]:
        """The class itself and the classes of fkl and of the user that it extends, nearest first."""
        names = [base.id for base in self.tree.bases if isinstance(base, ast.Name)]
        bases = [found_class(self.module.name, name) for name in names]
        return (self, *(one for base in bases if base is not None for one in base.family))


@cache
def found_class(module_name: str, name: str) -> Class | None:
    """A class by the module that defines or imports it; None if there is no such class."""
    here = parse_module(module_name)
    for line in here.tree.body:
        if isinstance(line, ast.ClassDef) and line.name == name:
            return Class(here, line)
    return found_class(*here.imports[name]) if name in here.imports else None


def _assigned_names(target: ast.expr, value: ast.expr) -> Names:
    """Values of the names in an assignment."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return {one.id: part for one, part in zip(target.elts, value.elts, strict=True) if isinstance(one, ast.Name)}
    return {}
