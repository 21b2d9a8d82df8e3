"""`fkl` in a process of its own that need not import everything first: a fork server has done so, once a session."""

import multiprocessing
import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from threading import RLock
from typing import NamedTuple

from fkl.conformance import party_process

PRELOADED = [*party_process.PRELOADED, "fkl.papers.page", "all_is_ready"]
"""The same server's, whoever starts it."""


BLANK = "\nimport blank; blank.begin()"


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class Command:
    """A call of `fkl` in a folder, under way.

    Parameters
    ----------
    folder : Path
    words : str
    before : str
        Statements that the process begins with.
    drawn : bool
        Whether its figures are no blank ones.
    module : str
        Another one that is called as `python -m` would.
    """

    def __init__(
        self, folder: Path, *words: str, before: str = "", drawn: bool = False, module: str = "fkl.cli"
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._said = Path(mkdtemp(dir=os.environ["FKL_CACHE"]))
        arguments = (folder, module, words, before + ("" if drawn else BLANK), self._said, dict(os.environ))
        self._process = context.Process(target=_be, args=arguments)
        self._process.start()

    @property
    def err(self) -> str:
        """What it has said so far."""
        file = self._said / "err"
        return file.read_text() if file.exists() else ""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def kill(self) -> None:
        """Send the signal that no process can catch."""
        self._process.kill()

    def wait(self, seconds: float = 300) -> Ended:
        """Wait for its end."""
        self._process.join(seconds)
        code = self._process.exitcode
        assert code is not None, f"still running after {seconds} s"
        return Ended(code, (self._said / "out").read_text(), self.err)


def _be(
    folder: Path, module: str, words: tuple[str, ...], before: str, said: Path, environment: dict[str, str]
) -> None:
    """Be the command."""
    from tqdm import tqdm

    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(said / name, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["fkl", *words]
    if module != "fkl.cli":
        sys.path.insert(0, str(folder))
    tqdm.set_lock(RLock())  # its usual one is a semaphore that a killed process would leave behind
    exec(before, {})
    try:
        import_module(module).main()
    finally:
        sys.stdout.flush()
