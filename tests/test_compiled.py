"""Compiled functions do not depend on what was compiled before, in this process or by an earlier version of fkl.

python tests/test_compiled.py writes the lines that `test_a_change_in_another_module_is_compiled` asks for.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import fkl

ROOT = Path(fkl.__file__).parent
FILES = [file for file in sorted(ROOT.rglob("*.py")) if "\n@njit" in file.read_text()]
LINE = "# Compiled with parts of other modules: {}, see tests/test_compiled.py\n"


@cache
def compiled(file: Path) -> dict[str, tuple[ast.FunctionDef, str]]:
    """Functions that numba compiles, by name, and the `fastmath` that each states, or nothing."""
    found = {}
    for function in ast.parse(file.read_text()).body:
        for decorator in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
            if ast.unparse(decorator).startswith("njit"):
                words = decorator.keywords if isinstance(decorator, ast.Call) else ()
                stated = "".join(ast.unparse(word.value) for word in words if word.arg == "fastmath")
                found[function.name] = (function, stated)
    return found


@cache
def called(file: Path) -> set[Path]:
    """Other modules whose functions and constants are compiled into this module's functions."""
    bodies = (line for function, _ in compiled(file).values() for line in function.body)
    used = {part.id for line in bodies for part in ast.walk(line) if isinstance(part, ast.Name)}
    found = set[Path]()
    imports = (line for line in ast.parse(file.read_text()).body if isinstance(line, ast.ImportFrom))
    for module, names in ((str(line.module), {name.asname or name.name for name in line.names}) for line in imports):
        if module.startswith("fkl.") and used & names:
            other = ROOT.parent / f"{module.replace('.', '/')}.py"
            found |= {other} | called(other)
    return found


def without_line(file: Path) -> str:
    """Text of a module without its own line."""
    return re.sub(LINE.format("[0-9a-f]*"), "", file.read_text()).rstrip()


def expected(file: Path) -> str:
    """The last line of a module, which changes with the modules compiled into it; empty if there are none."""
    texts = "".join(without_line(other) for other in sorted(called(file)))
    return LINE.format(hashlib.sha256(texts.encode()).hexdigest()[:8]) if texts else ""


def shared(function: ast.FunctionDef, without: set[str]) -> Iterator[str]:
    """What a function uses that numba compiles once a process, for all functions that use it."""
    for part in ast.walk(function):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and isinstance(part.right, ast.Constant):
            yield f"{function.name}: {ast.unparse(part)}"
        elif isinstance(part, ast.Call):
            name = ast.unparse(part.func)
            if name in without or name.rpartition(".")[2] in ("sum", "mean", "prod", "var", "std", "cumsum"):
                yield f"{function.name}: {name}"


def test_fast_sums_use_nothing_that_is_shared() -> None:
    """Numba compiles it with the `fastmath` of the first function that calls it, unless it states its own.

    The last digits of a run then depended on the runs that the process had played before, and on the first run after an
    installation, because compiled functions are cached. (x * x is part of its own function; x ** 2 is shared.)
    """
    functions = [one for file in FILES for one in compiled(file).values()]
    without = {function.name for function, stated in functions if not stated}
    fast = [function for function, stated in functions if stated not in ("", "False")]
    assert len(fast) >= 20
    assert not [found for function in fast for found in shared(function, without)]


def test_no_function_needs_a_cache() -> None:
    """Numba refuses ``cache=True`` where no folder can be written; njit_cached does not."""
    assert [file.name for file in FILES if "cache=True" in file.read_text()] == []


@pytest.mark.parametrize("file", [file for file in FILES if called(file)], ids=lambda file: file.stem)
def test_a_change_in_another_module_is_compiled(file: Path) -> None:
    """Numba's cache of a module lasts until the module's own file changes, also if a function that it calls does."""
    assert expected(file) in file.read_text(), "python tests/test_compiled.py"


if __name__ == "__main__":
    for changed in FILES:
        line, text = expected(changed), without_line(changed)
        changed.write_text(f"{text}\n\n\n{line}" if line else f"{text}\n")
