"""Change one operator or number of fkl at a time in a copy, and see whether the tests of its module fail.

    python scripts/mutants.py fkl/conditions/accountant.py --tests conditions/test_conditions_privacy.py

A survivor may be equivalent: no test can tell it from what is there.
"""

import argparse
import ast
import random
import sys
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

from planted_faults import ROOT, copy_checkout, failing, written

OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changed(node: ast.AST) -> ast.AST | None:
    """The node with another operator or number; None if it has none."""
    new = deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in OTHER:
        new.ops[0] = OTHER[type(new.ops[0])]()
    elif isinstance(new, ast.BinOp | ast.BoolOp) and type(new.op) in OTHER:
        new.op = OTHER[type(new.op)]()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub):
        return new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        new.value += 1
    else:
        return None
    return new


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, description and source of every mutant."""
    tree = ast.parse(source)
    within_text = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    raw = source.encode()
    lines = raw.splitlines(keepends=True)
    for node in ast.walk(tree):
        if id(node) in within_text or (new := changed(node)) is None:
            continue
        ends = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        start, end = (sum(map(len, lines[: line - 1])) + column for line, column in ends)
        mutated = raw[:start] + f"({ast.unparse(new)})".encode() + raw[end:]
        yield ends[0][0], f"{ast.unparse(node)}  ->  {ast.unparse(new)}", mutated.decode()


def main() -> int:
    """Try a sample of the mutants of some files; 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="files of fkl")
    parser.add_argument("--tests", nargs="+", required=True, help="files relative to tests/")
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = [(file, *one) for file in given.files for one in mutants((ROOT / file).read_text())]
    chosen = random.Random(given.seed).sample(found, min(given.sample, len(found)))
    tests, survived = [f"tests/{file}" for file in given.tests], 0
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(root := Path(folder) / "fkl")
        if test := failing(tests, root):
            raise SystemExit(f"{test} fails without any mutant")
        for file, line, words, source in chosen:
            with written(file, source, root):
                survives = failing(tests, root) is None
            survived += survives
            print(f"{'survives' if survives else 'killed  '} {file}:{line}: {words}", flush=True)
    print(f"{len(found)} mutants, {len(chosen)} tried, {survived} survive")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
