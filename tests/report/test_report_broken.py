"""What `fkl report`, `fkl table` and `fkl figure` do with folders that are no whole run: they name them and go on."""

import hashlib
import os
import re
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import blank
import pytest
from broken.runs import BROKEN, FAILED, NAMES, UNUSABLE, sign
from conftest import Answer
from processes import Command
from tinyhtml5.parser import HTMLParser

from fkl import cli
from fkl.runs.finished_runs import Collected, FinishedRun, collect

RUN = ("dataset=diabetes", "kernels.D=4", "replicates=2", "algo=pof_mkl")
PAGE = Path("outputs/report.html")


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


def tree(folder: Path) -> dict[str, str]:
    """What lies in a folder, and what is in it."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else "-"
        for path in folder.rglob("*")
    }


def read_page() -> tuple[str, set[str]]:
    """All words of the page, in which the parser finds nothing to mend and one script, and the runs it shows."""
    parser = HTMLParser(namespace_html_elements=False)
    page = parser.parse(PAGE.read_text(encoding="utf-8"))
    assert parser.errors == []
    assert len(list(page.iter("script"))) == 1
    assert {name for element in page.iter() for name, _ in element.items() if name.startswith("on")} == set()
    assert all(re.match("(comparison|figures)/", image.get("src", "")) for image in page.iter("img"))
    shown = {element.get("id", "").removeprefix("run-") for element in page.iter("tr") if element.get("id")}
    return " ".join("".join(page.itertext()).split()), shown


@pytest.mark.parametrize("kind", [kind for kind, broken in BROKEN.items() if "not a picture" not in broken.said])
def test_a_broken_run_is_told_from_a_whole_one(good: Path, kind: str) -> None:
    """By a reason that says what is wrong; the whole one stays."""
    broken = good.with_name("broken")
    shutil.copytree(good, broken)
    BROKEN[kind].by(broken)
    found = collect(Path("outputs"))
    assert [*found.broken] == [broken]
    assert re.search(BROKEN[kind].said, found.broken[broken]), found.broken
    assert len(found.broken[broken]) < 1000
    assert ([run.folder for run in found.runs], found.older) == ([good], 0)


def test_a_configuration_of_twenty_levels_is_read(good: Path) -> None:
    """And none of more."""
    config = (good / "config.yaml").read_text()
    for lists, whole in ((19, 1), (20, 0)):
        (good / "config.yaml").write_text(f"{config}more: {'[' * lists}{']' * lists}\n")
        sign(good)
        assert len(collect(Path("outputs")).runs) == whole


def test_five_broken_runs_are_named_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    for broken, rest in ((5, "damaged\n"), (6, "damaged; 1 more\n")):
        Collected(broken={Path(str(number)): "damaged" for number in range(broken)}).warn()
        assert capsys.readouterr().err.endswith(f"4: {rest}")


class Told(NamedTuple):
    """What `fkl report` said of all kinds together, and whether it left the runs as they were."""

    answer: Answer
    page: str
    shown: set[str]
    untouched: bool


@pytest.fixture(scope="module")
def told(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The page of one whole run among all broken ones, all odd names and all that failed runs leave."""
    here = tmp_path_factory.mktemp("told")
    runs = here / "outputs" / "runs"
    for kind, broken in BROKEN.items():
        shutil.copytree(whole, runs / kind)
        broken.by(runs / kind)
    for name in NAMES.values():
        (runs / name).mkdir()
    shutil.copytree(whole, runs / "good")
    for name, (leave, _) in FAILED.items():
        (here / "outputs" / "failed" / name).mkdir(parents=True)
        leave(here / "outputs" / "failed" / name)
    before = tree(runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.delenv("FKL_DATA", raising=False)
        done = Command(here, "report").wait()
        return Told(Answer(*done), *read_page(), tree(runs) == before)


def test_the_page_is_made_of_what_is_whole(told: Told) -> None:
    """Exit code 0, one line of warning without what a terminal obeys, and nothing touched."""
    assert told.answer.code == 0, told.answer.err
    assert told.answer.out.startswith("outputs/report.html: 1 run,")
    [line] = told.answer.err.splitlines()
    assert re.match(
        r"warning: broken runs left out, run the same command again to repair one: outputs/runs/.*; \d+ more$", line
    )
    assert line.isprintable() and len(line) < 2000
    assert told.untouched
    assert told.shown == {"good"}
    assert "run the same command again to mend one" in told.page


@pytest.mark.parametrize("kind", BROKEN)
def test_every_broken_run_is_named_on_the_page(told: Told, kind: str) -> None:
    reason = re.search(rf"outputs/runs/{re.escape(kind)}: (.*?)(?: outputs/runs/| Failed runs)", told.page)
    assert reason is not None
    assert re.search(BROKEN[kind].said, reason[1]), reason[1]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_text(told: Told, name: str) -> None:
    """Letter by letter but for those that nobody can see."""
    shown = " ".join("".join(letter if letter.isprintable() else "." for letter in NAMES[name]).split())
    assert re.search(re.escape(shown).replace(r"\.", "."), told.page), shown


@pytest.mark.parametrize("name", FAILED)
def test_every_failed_run_is_named(told: Told, name: str) -> None:
    failed = told.page[told.page.index("Failed runs") :]
    assert re.search(rf"{name}: [^:]*{re.escape(FAILED[name][1])}", failed)


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_place_that_no_page_can_be_made_in_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    """One line with the path."""
    make, said = UNUSABLE[what]
    make(tmp_path)
    answer = fkl("report")
    assert answer.code == 2
    [line] = answer.err.splitlines()
    assert re.match(f"error: .*{said}", line), line
    assert [path for path in tmp_path.rglob("*") if "partial" in path.name] == []


def test_what_may_not_be_read_is_named(fkl: Callable[..., Answer], good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root reads all files, the system's answer is put in its place."""
    shutil.copytree(good, good.with_name("mine"))

    def denied(self: Path, *arguments: object, **keys: object) -> object:
        if self.parent.name == "mine" and self.name == "mse.pdf":
            raise PermissionError(13, "Permission denied", str(self))
        return unlocked(self, *arguments, **keys)

    unlocked = Path.open
    monkeypatch.setattr(Path, "open", denied)
    answer = fkl("report")
    assert answer.code == 0
    assert "outputs/runs/mine: mse.pdf cannot be read (Permission denied)" in read_page()[0]


@pytest.mark.parametrize("command", [("table", "parsimonious/learners"), ("figure", "parsimonious/1")])
def test_tables_and_figures_warn_too(fkl: Callable[..., Answer], good: Path, command: tuple[str, ...]) -> None:
    """Before the line that refuses, where there is one."""
    BROKEN["rounds cut short"].by(good)
    answer = fkl(*command)
    lines = answer.err.splitlines()
    assert lines[0].endswith("outputs/runs/good: rounds.csv has changed since the run ended")
    assert (answer.code, len(lines)) == ((2, 2) if command[0] == "table" else (0, 1))


def test_a_rerun_in_the_place_of_a_broken_run_is_shown(fkl: Callable[..., Answer], good: Path) -> None:
    """Nothing of what was wrong is remembered."""
    BROKEN["summary deleted"].by(good)
    assert "good: summary.csv is missing" in fkl("report").err
    shutil.rmtree(good)
    assert fkl("run", *RUN, f"out={good}").code == 0
    answer = fkl("report")
    assert (answer.code, answer.err) == (0, "")
    assert read_page()[1] == {"good"}


def test_a_run_counts_once_however_many_links_lead_there(fkl: Callable[..., Answer], whole: Path, good: Path) -> None:
    """Beside it, from elsewhere, and to a link."""
    for name, target in (("a", "good"), ("b", whole), ("c", "b"), ("d", whole)):
        good.with_name(name).symlink_to(target)
    found = collect(Path("outputs"))
    assert found.broken == {}
    assert len(found.runs) + found.older == 2
    shutil.rmtree(good)
    good.with_name("a").unlink()
    assert fkl("report").out.startswith("outputs/report.html: 1 run,")


def test_of_one_configuration_the_newest_alone_counts(fkl: Callable[..., Answer], good: Path) -> None:
    """Another version of fkl, so another digest; keys that decide no number do not tell two apart."""
    older = Path(shutil.copytree(good, good.with_name("older")))
    config = (older / "config.yaml").read_text()
    (older / "config.yaml").write_text(config.replace("threads: null", "threads: 1").replace("out: null", "out: a"))
    sign(older)
    other = Path(shutil.copytree(good, good.with_name("other")))
    (other / "config.yaml").write_text(config.replace("seed: 0", "seed: 1"))
    sign(other)
    for age, folder in enumerate((good, other, older)):
        os.utime(folder / "provenance.json", (10**9 - age, 10**9 - age))
    assert fkl("report").out.startswith("outputs/report.html: 2 runs")
    words, shown = read_page()
    assert "1 older run has the configuration of a newer one" in words
    assert shown == {"good", "other"}
    os.utime(older / "provenance.json")
    fkl("report")
    assert read_page()[1] == {"older", "other"}
    BROKEN["picture that stops"].by(older)
    fkl("report")
    assert read_page()[1] == {"good", "other"}


def test_rounds_are_read_only_for_what_shows_them(
    fkl: Callable[..., Answer], good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of millions of rounds that belongs to no paper costs no memory."""
    asked = []
    monkeypatch.setattr(FinishedRun, "rounds", property(asked.append))
    assert fkl("report").code == 0
    assert asked == []


@pytest.mark.drawn
@pytest.mark.parametrize("command", [("report",), ("figure", "parsimonious/1")])
def test_on_a_full_disk_what_was_there_stays(fkl: Callable[..., Answer], good: Path, command: tuple[str, ...]) -> None:
    """One line with the path, and no half file; no file may grow beyond a few kilobytes here."""
    assert fkl(*command).code == 0
    before = tree(Path("outputs"))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    try:
        answer = fkl(*command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert answer.code == 2
    assert re.fullmatch(r"error: outputs/\S+: cannot be written \(File too large\)\n", answer.err)
    assert tree(Path("outputs")).keys() == before.keys()
    assert all(file.read_bytes().endswith(b"%%EOF\n") for file in Path("outputs").rglob("*.pdf"))


@pytest.mark.slow
def test_two_reports_at_once_do_not_break_each_other(fkl: Callable[..., Answer], good: Path) -> None:
    """Both end well, and leave a whole page and whole figures."""
    both = [Command(Path.cwd(), "report") for _ in range(2)]
    for one in both:
        ended = one.wait()
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith("outputs/report.html: 1 run,")
    assert read_page()[1] == {"good"}
    assert [path for path in Path("outputs").rglob(".*")] == []


def test_where_nothing_was_run_the_page_says_so_and_a_line_too(fkl: Callable[..., Answer]) -> None:
    """Such as when the command is called in another folder."""
    answer = fkl("report")
    assert answer.code == 0
    assert answer.err == "warning: outputs/runs: no such folder, so there is no run to show; fkl run makes it\n"
    assert "Nothing was run yet" in read_page()[0]
