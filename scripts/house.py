"""`python scripts/house.py [--list]`: count what makes fkl hard to search and to read.

`make lint` prints four figures; the exit code is 1 if one of them is beyond its limit. `--list` names the places. A
name of one word counts as searchable if it is part of a protocol (`PROTOCOLS`), a property that is a plain noun of the
field (`NOUNS`), or one letter, which is a symbol of a paper.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ONE_WORD_SHARE, DOUBLED_CLASSES, COMMENT_SHARE, POINTING_DOCSTRINGS = 0.35, 0, 0.02, 0
PROTOCOLS = {
    "parties of a method": "start client server broadcast send receive hear init play step learn begin train",
    "parties of a vertical method": "party generators fit solve decision",
    "judges, tasks and loggers": "judge round end close fail columns panels",
    "losses and kernels": "value gradient derivative slope optimum predict accumulate descend follow moments posterior",
    "data, files and networks": "load read write save open build draw present",
    "modules of papers and theorems": "table figure theorems identities",
    "commands, and functions in Python": "main run plan study data flower compare report replay reproduce bound",
}
"""Names by the protocol that they belong to."""
NOUNS = """
    agents bank classes clients columns data datasets dimension edges features function functions kernels label labels
    loss memory methods metric name neighbours pairs parties precision ranks replicate replicates rounds rows runs
    samples seeds sites size summary targets title trials units verdicts width
"""


def functions(tree: ast.AST, in_class: bool = False, in_function: bool = False) -> Iterator[tuple[ast.AST, str, str]]:
    """Each function of a module with its kind: a property, a method, a function, or one within another function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            is_property = in_class and any("property" in mark for mark in marks)
            kind = "property" if is_property else "method" if in_class else "within" if in_function else "function"
            yield node, node.name, kind
            yield from functions(node, in_function=True)
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, in_class=True)
        else:
            yield from functions(node, in_class, in_function)


def is_searchable(name: str, kind: str) -> bool:
    """Whether a name has two words, or is one word that everybody in the field knows."""
    word = name.strip("_")
    if name.startswith("__") or "_" in word or len(word) == 1:
        return True
    protocol = {one for names in PROTOCOLS.values() for one in names.split()}
    return name in protocol or (kind == "property" and name in NOUNS.split())


def main(listing: bool) -> int:
    """Print the figures, and return the exit code."""
    names, classes, pointing = [], defaultdict(list), []
    lines = comments = 0
    for file in sorted((ROOT / "fkl").rglob("*.py")):
        text, where = file.read_text(encoding="utf-8"), file.relative_to(ROOT)
        lines += text.count("\n")
        comments += sum(line.lstrip().startswith("#") for line in text.splitlines())
        tree = ast.parse(text)
        names += [(name, kind, f"{where}:{node.lineno}") for node, name, kind in functions(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{where}:{node.lineno}")
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words = (ast.get_docstring(node) or "").split()[:2]
                if words[:1] == ["As"] or words == ["The", "same"]:
                    pointing.append(f"{where}:{getattr(node, 'lineno', 1)}: {' '.join(words)}")
    hard = [(name, kind, place) for name, kind, place in names if not is_searchable(name, kind)]
    doubled = {name: places for name, places in classes.items() if len(places) > 1}
    figures = (
        ("function names of one word", len(hard) / len(names), ONE_WORD_SHARE, f"{len(hard)} of {len(names)}"),
        ("class names that several classes have", len(doubled), DOUBLED_CLASSES, ""),
        ("comment lines", comments / lines, COMMENT_SHARE, f"{comments} of {lines}"),
        ("docstrings that begin with As or The same", len(pointing), POINTING_DOCSTRINGS, ""),
    )
    beyond = False
    for what, figure, limit, counts in figures:
        least = what == "comment lines"
        shown = [f"{value:.1%}" if isinstance(value, float) else str(value) for value in (figure, limit or 0)]
        beyond |= figure < limit if least else figure > limit
        print(f"{what}: {shown[0]} ({'at least' if least else 'at most'} {shown[1]})" + f", {counts}" * bool(counts))
    if listing:
        print(*(f"{place}: {kind} {name}" for name, kind, place in hard), sep="\n")
        print(*(f"class {name}: {', '.join(places)}" for name, places in doubled.items()), *pointing, sep="\n")
    return int(beyond)


if __name__ == "__main__":
    sys.exit(main("--list" in sys.argv[1:]))
