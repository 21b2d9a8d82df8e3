"""What `fkl report`, `fkl table` and `fkl figure` do with folders that are no whole run: they name them and go on."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import blank
import pytest
from broken.runs import BROKEN, sign
from conftest import Answer
from tinyhtml5.parser import HTMLParser

from fkl import cli
from fkl.runs.finished_runs import Collected, FinishedRun, collect_runs

RUN = ("dataset=diabetes", "kernels.D=4", "replicates=2", "algo=pof_mkl")
NAMES = ("<img src=x onerror=alert(1)>", "\x1b[31mred\x1b]0;title\x07", "one\r\ntwo", "\u202egnp.exe", "{{ 7 * 7 }}")
"""Names of folders that a page and a terminal must show as text."""
FAILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda file: file.write_text(" \n"), "error.txt is empty"),
    "pipe": (os.mkfifo, "error.txt is missing"),
    "binary": (lambda file: file.write_bytes(b"\xff\x00\x80last"), "last"),
    "script": (lambda file: file.write_text("a\n\x1b[31m<script>alert(1)</script>"), "<script>alert(1)"),
    "long": (lambda file: file.write_bytes(b"line\n" * 10**6 + b"the end"), "the end"),
}
"""What a failed run may leave as error.txt, and words that must be on the page."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished run."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch, blank.drawn_after_all():
        patch.chdir(folder)
        patch.delenv("FKL_DATA", raising=False)
        patch.setattr(sys, "argv", ["fkl", "run", *RUN])
        cli.main()
    [run] = (folder / "outputs" / "runs").iterdir()
    return run


@pytest.fixture
def good(fkl: Callable[..., Answer], whole: Path) -> Path:
    """The same in the folder of the test."""
    return Path(shutil.copytree(whole, Path("outputs/runs/good")))


def read_page() -> tuple[str, set[str]]:
    """All words of the page, in which the parser finds nothing to mend and one script, and the runs it shows."""
    parser = HTMLParser(namespace_html_elements=False)
    page = parser.parse(Path("outputs/report.html").read_text(encoding="utf-8"))
    assert parser.errors == []
    assert len(list(page.iter("script"))) == 1
    assert {name for element in page.iter() for name, _ in element.items() if name.startswith("on")} == set()
    shown = {element.get("id", "").removeprefix("run-") for element in page.iter("tr") if element.get("id")}
    return " ".join("".join(page.itertext()).split()), shown


@pytest.mark.parametrize("kind", [kind for kind in BROKEN if kind != "picture of words"])
def test_a_broken_run_is_told_from_a_whole_one(good: Path, kind: str) -> None:
    """By a reason that says what is wrong; the whole one stays."""
    broken = good.with_name("broken")
    shutil.copytree(good, broken)
    BROKEN[kind].by(broken)
    found = collect_runs(Path("outputs"))
    assert [*found.broken] == [broken]
    assert re.search(BROKEN[kind].said, found.broken[broken]), found.broken
    assert len(found.broken[broken]) < 1000
    assert ([run.folder for run in found.runs], found.older) == ([good], 0)


def test_five_broken_runs_are_named_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    for broken, rest in ((5, "damaged\n"), (6, "damaged; 1 more\n")):
        Collected(broken={Path(str(number)): "damaged" for number in range(broken)}).warn_about_runs()
        assert capsys.readouterr().err.endswith(f"4: {rest}")


def test_the_page_names_what_is_broken_or_failed_and_touches_nothing(
    fkl: Callable[..., Answer], good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 0, one line of warning without what a terminal obeys, and names and errors are text."""
    some = [kind for number, kind in enumerate(BROKEN) if number % 3 == 0 or kind == "picture of words"]
    for kind in some:
        shutil.copytree(good, good.with_name(kind))
        BROKEN[kind].by(good.with_name(kind))
    for name in NAMES:
        good.with_name(name).mkdir()
    for name, (leave, _) in FAILED.items():
        (Path("outputs/failed") / name).mkdir(parents=True)
        leave(Path("outputs/failed") / name / "error.txt")
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in good.parent.rglob("*"))
    monkeypatch.setattr(FinishedRun, "rounds", None)  # a run of millions of rounds that is in no paper costs no memory
    answer = fkl("report")
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in good.parent.rglob("*")) == before
    assert (answer.code, answer.out.startswith("outputs/report.html: 1 run,")) == (0, True), answer
    [line] = answer.err.splitlines()
    start = "warning: broken runs omitted; to repair one, run its command again: outputs/runs/"
    assert line.startswith(start) and line.endswith(" more") and line.isprintable() and len(line) < 2000
    page, shown = read_page()
    assert shown == {"good"}
    for kind in some:
        [reason] = re.findall(rf"outputs/runs/{re.escape(kind)}: (.*?)(?: outputs/runs/| Failed runs)", page)
        assert re.search(BROKEN[kind].said, reason), (kind, reason)
    for name in NAMES:
        seen = " ".join("".join(letter if letter.isprintable() else "." for letter in name).split())
        assert re.search(re.escape(seen).replace(r"\.", "."), page), name
    failed = page[page.index("Failed runs") :]
    assert all(re.search(rf"{name}: [^:]*{re.escape(said)}", failed) for name, (_, said) in FAILED.items())


@pytest.mark.parametrize("place", ["outputs", "outputs/runs", "outputs/failed"])
def test_a_place_that_no_page_can_be_made_in_is_refused(fkl: Callable[..., Answer], place: str) -> None:
    """One line with the path."""
    Path(place).parent.mkdir(exist_ok=True)
    Path(place).write_text("")
    answer = fkl("report")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert re.match(rf"error: {place}.*: cannot be read \(Not a dir", answer.err)


def test_what_may_not_be_read_is_named(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root reads all files, the system's answer is put in its place."""

    def denied(self: Path, *arguments: object, **keys: object) -> object:
        if self.name == "mse.png":
            raise PermissionError(13, "Permission denied", str(self))
        return unlocked(self, *arguments, **keys)

    unlocked = Path.open
    monkeypatch.setattr(Path, "open", denied)
    assert collect_runs(Path("outputs")).broken == {good: "mse.png cannot be read (Permission denied)"}


def test_a_run_counts_once_however_many_links_lead_there(whole: Path, good: Path) -> None:
    """From elsewhere, and to a link."""
    for name, target in (("a", "good"), ("b", whole), ("c", "b")):
        good.with_name(name).symlink_to(target)
    found = collect_runs(Path("outputs"))
    assert (found.broken, len(found.runs) + found.older) == ({}, 2)


def test_of_one_configuration_the_newest_alone_counts(fkl: Callable[..., Answer], good: Path) -> None:
    """Another version of fkl, so another digest; keys that decide no number do not tell two apart."""
    older, other = (Path(shutil.copytree(good, good.with_name(name))) for name in ("older", "other"))
    config = (good / "config.yaml").read_text()
    (older / "config.yaml").write_text(config.replace("threads: null", "threads: 1").replace("out: null", "out: a"))
    (other / "config.yaml").write_text(config.replace("seed: 0", "seed: 1"))
    for age, folder in enumerate((good, other, older)):
        sign(folder)
        os.utime(folder / "provenance.json", (10**9 - age, 10**9 - age))
    assert fkl("report").out.startswith("outputs/report.html: 2 runs")
    words, shown = read_page()
    assert "1 older run has the configuration of a newer one" in words and shown == {"good", "other"}
    os.utime(older / "provenance.json")
    assert {run.folder.name for run in collect_runs(Path("outputs")).runs} == {"older", "other"}


def test_a_run_that_diverged_once_and_then_finished_counts_once(good: Path) -> None:
    """Of another seed that diverged, there is no such run."""
    for name, seed in (("good", 0), ("other", 1)):
        failed = Path("outputs/failed") / name
        failed.mkdir(parents=True)
        config = (good / "config.yaml").read_text()
        (failed / "config.yaml").write_text(config.replace("seed: 0", f"seed: {seed}"))
        told = json.loads((good / "provenance.json").read_text()) | {"state": "failed", "diverged": True}
        (failed / "provenance.json").write_text(json.dumps(told))
    found = collect_runs(Path("outputs"))
    assert [run.folder.name for run in found.runs] == ["good"]
    assert [run.folder.name for run in found.lost] == ["other"]
