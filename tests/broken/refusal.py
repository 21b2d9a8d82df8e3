"""What every refusal looks like."""

import re
from collections.abc import Collection
from pathlib import Path

from conftest import Answer

PROGRESS = re.compile("round/s|s/round")
GIVEN = {"own.csv", "edges.txt", "trace.csv"}
TABLE = "width,height,price\n" + "".join(f"{i % 7 - 3}.{i},{i * i % 11}.5,{i % 5 - 2}.{i}\n" for i in range(24))


def give_files(folder: Path) -> None:
    """Write the files that small runs with a user's own data read."""
    (folder / "own.csv").write_text(TABLE)
    (folder / "edges.txt").write_text("0 1\n1 2\n2 3\n")
    (folder / "trace.csv").write_text("round,client,present\n1,0,0\n")


def lines(err: str) -> list[str]:
    """What was said besides the progress bar, which wipes itself out."""
    return [line for line in err.splitlines() if line.strip() and not PROGRESS.search(line)]


def files(folder: Path) -> set[str]:
    """Every file and folder in a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def require_refused(answer: Answer, folder: Path, said: str, call: object = "", given: Collection[str] = GIVEN) -> None:
    """One clear line that matches a pattern, help below it or none, exit code 2, and nothing written."""
    told = lines(answer.err)
    assert answer.code == 2, (call, answer)
    assert all(line.startswith("  help: ") for line in told[1:]), (call, told)
    assert re.search(f"^error: .*(?:{said})", " ".join(told)), (call, told, said)
    assert len(" ".join(told)) < 2000, (call, len(told[0]))
    assert all(map(str.isprintable, told)), (call, told)
    assert files(folder) <= set(given), call
