"""A server and three sites in processes of their own: killed and restarted, and among strangers on the network."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("flwr", reason="needs the extra flower")
from sites.played import PER_SITE, ROWS, WORDS, compared, write_files

from fkl.basics.errors import FklError
from fkl.sites import trial
from fkl.sites.project import write_project
from fkl.sites.states import SEALED
from fkl.sites.trial import HERE, Deployment

POF_MKL = ("algo=pof_mkl", "algo.M=5", "algo.xi=0.5", *WORDS)
JOINING, IN_A_ROUND = "rows/site2.site2.node", f"tried/flower/*/{SEALED}"
"""Files that show how far a trial has come: written as site 2 joins, and after the first round."""


def project_in(folder: Path, timeout_s: float, rows: tuple[int, ...]) -> tuple[Path, list[Path]]:
    """A project for three sites, and the files of their rows."""
    (folder / "rows").mkdir(parents=True)
    project, files = folder / "project", write_files(folder / "rows", [PER_SITE * n for n in rows])
    write_project(project, len(files), POF_MKL, PER_SITE)
    text = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(text.replace("timeout-s = 120.0", f"timeout-s = {timeout_s}"))
    return project, files


@pytest.mark.slow
def test_kills_of_server_and_sites_change_no_byte(tmp_path: Path) -> None:
    """The server's process, the SuperLink with it, and sites are killed; the same command goes on.

    Predictions to 1e-9 and bytes exactly are those of the simulation.
    """
    left = []
    for name, moments in (("calm", {}), ("killed", {4: "server", 7: "site1", 10: "link", 14: "site0"})):
        project, files = project_in(tmp_path / name, 60.0, ROWS)
        moments = dict(moments)
        with Deployment(tmp_path / name / "tried", files, str(tmp_path / name / "superlink.db")) as deployment:

            def heard(line: str, moments: dict[int, str] = moments, deployment: Deployment = deployment) -> None:
                now = int(line.split()[1].rstrip(":")) if line.startswith("round ") else 0
                due = [moment for moment in moments if moment <= now]  # lines of a server that is killed may be lost
                if not due:
                    return
                what = moments.pop(due[0])
                if what.startswith("site"):
                    deployment.kill_process(what)
                    deployment.start_site(int(what[-1]))
                elif what == "server":
                    subprocess.run(["pkill", "-KILL", "-f", f"flwr-serverapp.*{HERE}:{deployment.link}"], check=True)
                else:
                    deployment.kill_process("superlink")
                    deployment.start_link()
                if not what.startswith("site"):
                    deployment.kill_process(
                        "run", signal.SIGTERM
                    )  # which would stream the log of a run without a server

            for _ in range(5):
                deployment.run_project(project, heard)
                [folder] = (tmp_path / name / "tried" / "flower").iterdir()
                if (folder / "sites.csv").exists() and len(pd.read_csv(folder / "rounds.csv")) == 20:
                    break
                time.sleep(1)
        assert not moments
        largest, same, _ = compared(POF_MKL, files, folder, folder.name, PER_SITE)
        assert largest < 1e-9 and same
        other = ["seconds", "sent_by_flower", "heard_by_flower"]  # which hold digits of identities
        rounds = pd.read_csv(folder / "rounds.csv", dtype=str).drop(columns=other)
        found = {"rounds": rounds.to_csv(), "sites": (folder / "sites.csv").read_text()}
        for file in files:
            own = file.with_name(f"{file.stem}.{file.stem}.{folder.name}")
            found |= {f"{file.stem} {one}": (own / one).read_bytes() for one in ("predictions.csv", "model.npz")}
        left.append(found)
    assert left[0] == left[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows what is left")
@pytest.mark.parametrize(
    ("what", "how", "code", "rounds", "moment"),
    [
        ("flower try", 9, -9, 20, IN_A_ROUND),
        ("flower try", 15, 143, 4, JOINING),
        ("--number 1 ", 9, 2, 4, JOINING),
    ],
)
def test_a_trial_that_is_killed_leaves_no_process(
    what: str, how: int, code: int, rounds: int, moment: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Nor does one whose site is killed: it ends in one line. The same command then plays the whole run.

    It leaves no database of Flower's.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell's processes ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    project, files = project_in(tmp_path, 60.0, (rounds, 4, 4))
    words = ["-m", "fkl", "flower", "try", str(project), *map(str, files), "--out", str(tmp_path / "tried")]

    def left() -> dict[int, str]:
        """Processes whose command names this test's folder, or that work in it."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (process / "cmdline").read_text().replace("\0", " ")
                if str(tmp_path) in f"{line} {(process / 'cwd').readlink()}":
                    found[int(process.name)] = line
        return found

    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as tried:
        until = time.monotonic() + 120
        while time.monotonic() < until and not (
            any(tmp_path.glob(moment)) and any(what in line for line in left().values())
        ):
            time.sleep(0.1)
        [victim] = [number for number, line in left().items() if what in line]
        os.kill(victim, how)
        _, said = tried.communicate()
    assert tried.returncode == code
    assert len(said.splitlines()) <= 1
    until = time.monotonic() + 120
    while left() and time.monotonic() < until:
        time.sleep(0.1)
    assert not left()
    subprocess.run([sys.executable, *words], check=True)
    [table] = (tmp_path / "tried" / "flower").glob("*/rounds.csv")
    assert len(pd.read_csv(table)) == rounds
    assert not list((tmp_path / "tried").rglob("*.db*"))


@pytest.mark.parametrize("ended", [False, True])
def test_a_trial_whose_server_ends_early_says_so(
    ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flower's own command then exits with 0. At the end of one that does not, all files are named."""

    def run(self: Deployment, project: Path, heard: Callable[[str], None]) -> str:
        (self.files[0].with_name("site0.site0.1")).mkdir()
        (self.files[0].with_name("site0.site0.1") / "model.npz").touch()
        for line in ["round 1: sites 0, 1, 2, 0.1 s", "files: /there/tried/flower/1"][: 1 + ended]:
            heard(line)
        return "1"

    monkeypatch.setattr(Deployment, "__enter__", lambda self: self)
    monkeypatch.setattr(Deployment, "__exit__", lambda *_: None)
    monkeypatch.setattr(Deployment, "run_project", run)
    project, files = project_in(tmp_path, 5.0, (1, 1, 1))
    before = signal.getsignal(signal.SIGTERM)
    with nullcontext() if ended else pytest.raises(FklError, match=r"the server ended early: see .*superlink\.log"):
        assert trial.run_trial(project, files, tmp_path / "tried") == 0
    assert signal.getsignal(signal.SIGTERM) is before
    told = capsys.readouterr().out
    assert (f"model.npz in {files[0].parent}/site0.site0.1" in told) == ended
    assert (f"no file in {files[2].parent}/site2.site2.1" in told) == ended


def test_a_trial_whose_superlink_is_stopped_says_so(tmp_path: Path) -> None:
    """It takes no more connections then, and its process ends up to a minute later."""

    class Asleep(Deployment):
        def start(self, name: str, *words: str) -> None:
            super().start(name, "sleep", "60")

    deployment = Asleep(tmp_path / "tried", [])
    with socket.create_server((HERE, deployment.link)) as port, deployment:
        port.close()
        with pytest.raises(FklError, match=r"superlink is about to end: see .*superlink\.log"):
            deployment.run_project(tmp_path, print)
