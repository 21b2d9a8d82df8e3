"""Three tasks done by the pages alone, in an empty folder: every command runs; long ones are made small."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from conftest import Answer

DOCS = Path(__file__).resolve().parent.parent / "docs"
SMALL = ("kernels.D=4", "replicates=2")


def commands(page: str, program: str = "fkl") -> list[list[str]]:
    """The words of each command of a program on a page, in its order."""
    text = (DOCS / page).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(rf"^    (?:\$ )?{program} (.+)|`{program} ([^`]+)`", text, re.MULTILINE)
    return [shlex.split(block or inline, comments=True) for block, inline in found]


def blocks(page: str, language: str) -> list[str]:
    """Code that a page shows, without the indentation of a list."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [dedent(code) for code in found]


def test_own_files_with_sites(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """A file with a column of sites, and a file for each site as a hospital writes it."""
    wards = ("icu", "surgery", "other")
    rows = [f"{wards[i % 3]},{'fm'[i % 2]},{20 + i % 50},{i % 3 + i / 40}" for i in range(60)]
    (tmp_path / "wards.csv").write_text("\n".join(["ward,sex,age,stay", *rows]))
    (tmp_path / "sites").mkdir()
    for site in ("north", "south"):
        rows = [f"{i};N{i};{wards[i % 3]};{'' if i % 9 else 20 + i};{1 + i:02}.01.2024;{i},5" for i in range(30)]
        (tmp_path / "sites" / f"{site}.csv").write_text("\n".join(["id;name;ward;age;admitted;stay", *rows]))
    told = [words for words in commands("own_data.md") if any(word.startswith("dataset.path=") for word in words)]
    assert len(told) == 3 and {words[0] for words in told} == {"run", "data"}
    for words in told:
        answer = fkl(*words, *SMALL if words[0] == "run" else ())
        assert answer.code == 0, answer.err
        assert ("2 clients" if "dataset.path=sites/*.csv" in words else "3 clients") in answer.out


@pytest.mark.slow
def test_own_method(fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its promises, and is OFMKL-Avg."""
    [method], [keys] = blocks("extending.md", "python"), blocks("extending.md", "yaml")
    (tmp_path / "my_method.py").write_text(method)
    (tmp_path / "my_conf" / "algo").mkdir(parents=True)
    (tmp_path / "my_conf" / "algo" / "my_method.yaml").write_text(keys)
    monkeypatch.syspath_prepend(str(tmp_path))
    told = [words for words in commands("extending.md") if "algo=my_method" in words]
    assert told
    for words in told:
        answer = fkl(*words, *SMALL)
        assert answer.code == 0, answer.err
        assert answer.out.endswith("  unchecked python -m fkl.conformance --config-dir my_conf algo=my_method\n")
    same = fkl("run", "algo=ofmkl_avg", "algo.eta=0.1", "dataset=wave_farm", *SMALL)
    [mine, theirs] = (re.search("mse (.*?) ", text)[1] for text in (answer.out, same.out))  # type: ignore[index]
    assert mine == theirs
    [check] = commands("extending.md", "python")
    kept = subprocess.run([sys.executable, *check], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert kept.returncode == 0, kept.stdout + kept.stderr


def test_a_table_in_latex(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """From the tutorial's sweep, with tests of the methods."""
    told = [words for words in commands("tutorial.md") if words[0] in ("run", "list", "describe", "compare")]
    told = [words for words in told if words != ["compare"] and "+experiment=pof_mkl/table1" not in words]
    assert [words[0] for words in told] == ["run", "list", "describe", "run", "compare"]
    for words in told:
        more = ("dataset=diabetes", "kernels.D=4") if words[0] == "run" else ()
        answer = fkl(*words, *more)
        assert answer.code == 0, answer.err
    table = (tmp_path / "outputs" / "comparison" / "pivot.tex").read_text()
    assert all(words in table for words in (r"\begin{tabular}", r"\toprule", "POF-MKL", "vM-KOFL", "OFMKL-Avg"))
    assert "is best" in answer.out
