"""`python scripts/prose.py [FILE ...]`: check that texts are plain English, as CONTRIBUTING.md asks.

A page's sentences have 20 words at most on average, and none has more than 45. Pages, and docstrings and comments of
fkl, have no phrase of scripts/prose.yaml. Tables, code, links' targets and formulas are not read.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PHRASES: dict[str, str] = yaml.safe_load((ROOT / "scripts" / "prose.yaml").read_text(encoding="utf-8"))
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "fkl/papers/*/differences.md",
    "fkl/**/*.py",
)
WORDS_ON_AVERAGE, MOST_WORDS = 20, 45
NOT_READ = re.compile(
    r"^(```|~~~).*?^\1$|^ {4,}(?![-*] |\d+\. ).*?$|^\s*\|.*?$|^<.*?$|^#.*?$|^:::.*?$|`[^`\n]+`|\x22[^\x22\n]+\x22|\]\([^)]*\)|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
SENTENCE = re.compile(r"(?<=[.!?:;])[*_\")\]]*\s+(?=[\"*_(\[]*[A-Z0-9`])|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")
WORD = re.compile(r"[A-Za-z][\w'’-]*")


def sentences(text: str) -> list[str]:
    """Sentences of a page, without code, tables and headings."""
    read = NOT_READ.sub(lambda match: " X " if match[0].startswith("`") and "\n" not in match[0] else " ", text)
    return [one for one in SENTENCE.split(read) if len(WORD.findall(one)) > 2]


def docstrings_and_comments(source: str) -> str:
    """Text of a Python file without code and examples, one line for each docstring or comment."""
    nodes = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts += [token.string.lstrip("#") for token in tokens if token.type == tokenize.COMMENT]
    lines = [[line.strip() for line in text.splitlines() if ">>>" not in line] for text in texts]
    return "\n".join(" ".join(of_text) for of_text in lines)


def phrases(text: str) -> list[str]:
    """One line for each phrase of prose.yaml in a text."""
    said = []
    for phrase, better in PHRASES.items():
        for match in re.finditer(phrase, NOT_READ.sub(" ", text), re.IGNORECASE):
            said.append(f'"{" ".join(match[0].split())}": {better}')
    return said


def faults(text: str) -> list[str]:
    """One line for each fault of a page."""
    said, found = phrases(text), sentences(text)
    lengths = [len(WORD.findall(one)) for one in found]
    if lengths and sum(lengths) / len(lengths) > WORDS_ON_AVERAGE:
        said.append(f"sentences have {sum(lengths) / len(lengths):.1f} words on average, {WORDS_ON_AVERAGE} at most")
    for one, length in zip(found, lengths, strict=True):
        if length > MOST_WORDS:
            said.append(f"a sentence of {length} words: {' '.join(one.split())[:70]} ...")
    return said


def faults_of(file: Path) -> list[str]:
    """Faults of a page, or phrases in the docstrings and comments of a Python file."""
    text = file.read_text(encoding="utf-8")
    return phrases(docstrings_and_comments(text)) if file.suffix == ".py" else faults(text)


def main(names: list[str]) -> int:
    """Print the faults of these files, or of all pages and of fkl."""
    files = [Path(name) for name in names] or [file for pattern in PAGES for file in sorted(ROOT.glob(pattern))]
    said = [f"{file}: {one}" for file in files for one in faults_of(file)]
    print("\n".join(said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
