"""Compiled functions do not depend on what the process has compiled before."""

import ast
from collections.abc import Iterator
from pathlib import Path

import fkl

ROOT = Path(fkl.__file__).parent


def compiled() -> Iterator[tuple[ast.FunctionDef, str]]:
    """Functions that numba compiles, and the `fastmath` that each states, or nothing."""
    for file in sorted(ROOT.rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text())):
            for decorator in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
                if ast.unparse(decorator).startswith("njit"):
                    words = decorator.keywords if isinstance(decorator, ast.Call) else ()
                    yield function, "".join(ast.unparse(word.value) for word in words if word.arg == "fastmath")


def shared(function: ast.FunctionDef, without: set[str]) -> Iterator[str]:
    """What a function uses that numba compiles once a process, for all functions that use it."""
    for part in ast.walk(function):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and isinstance(part.right, ast.Constant):
            yield f"{function.name}: {ast.unparse(part)}"
        elif isinstance(part, ast.Call):
            called = ast.unparse(part.func)
            if called in without or called.rpartition(".")[2] in ("sum", "mean", "prod", "var", "std", "cumsum"):
                yield f"{function.name}: {called}"


def test_fast_sums_use_nothing_that_is_shared() -> None:
    """Numba compiles it with the `fastmath` of the first function that calls it, unless it states its own.

    The last digits of a run then depended on the runs that the process had played before, and on the first run after an
    installation, because compiled functions are cached. (x * x is part of its own function; x ** 2 is shared.)
    """
    functions = list(compiled())
    without = {function.name for function, stated in functions if not stated}
    fast = [function for function, stated in functions if stated not in ("", "False")]
    assert len(fast) > 20
    assert not [found for function in fast for found in shared(function, without)]
