"""How large the core is: contract, tasks and their judges, loop, channel and ledger.

python scripts/core_lines.py
"""

import ast
import io
import tokenize
from pathlib import Path

import fkl

CORE = {
    "contract": (
        "contract/samples.py",
        "contract/world.py",
        "contract/star.py",
        "contract/graph.py",
        "contract/parties.py",
    ),
    "tasks and judges": ("tasks/*.py",),
    "loop": ("engines/experiment.py", "engines/rounds.py", "engines/local.py"),
    "channel and ledger": (
        "network/messages.py",
        "network/wire.py",
        "network/packets.py",
        "network/channel.py",
        "network/ledger.py",
    ),
}
WORDS = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
"""What is no code; documentation is found by itself."""


def lines(file: Path) -> tuple[int, int]:
    """All lines of a file, and those with code on them."""
    text = file.read_text()
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            told.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in WORDS:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(text.splitlines()), len(code - told)


def main() -> None:
    """Print a line for each part, and their sum."""
    root, total = Path(fkl.__file__).parent, [0, 0]
    print(f"{'':20}{'lines':>8}{'of code':>10}")
    for part, patterns in CORE.items():
        counted = [lines(file) for pattern in patterns for file in sorted(root.glob(pattern))]
        whole, code = (sum(column) for column in zip(*counted, strict=True))
        total = [total[0] + whole, total[1] + code]
        print(f"{part:20}{whole:8}{code:10}")
    print(f"{'together':20}{total[0]:8}{total[1]:10}")


if __name__ == "__main__":
    main()
