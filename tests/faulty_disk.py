"""`fkl` on a disk that fails: a server with faulty_disk.c loaded imports everything, and forks for each command."""

import atexit
import ctypes
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 600
FILES = 4096
NO_SHIM = "" if sys.platform == "linux" and shutil.which("gcc") else "needs Linux and gcc"
"""Why there can be none; empty otherwise."""


class Unsynced(ctypes.Structure):
    """A file that has been written since its last fsync."""

    _fields_ = [("inode", ctypes.c_ulong), ("synced", ctypes.c_long)]


class State(ctypes.Structure):
    """As in faulty_disk.c."""

    _fields_ = [
        ("folder", ctypes.c_char * 1024),
        *((name, ctypes.c_long) for name in ("nth", "error", "later", "half", "signal", "changes")),
        ("unsynced", Unsynced * FILES),
    ]


@dataclass(frozen=True)
class Fault:
    """What happens at the n-th change.

    Parameters
    ----------
    error : int
        Its errno; 0 if it succeeds.
    later : bool
        Whether all later changes also fail.
    half : bool
        Whether the first write that fails writes half of its bytes, and says so, instead.
    signal : int
        Sent to the command's process group; 0 for none.
    """

    error: int = 0
    later: bool = False
    half: bool = False
    signal: int = 0


NONE = Fault()


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Parameters
    ----------
    code : int
    out, err : str
    changes : int
        Number of changes to files below its folder.
    unsynced : dict of int to int
        Length of files that is on the disk for certain, by their inode, if they have been written since.
    """

    code: int
    out: str
    err: str
    changes: int
    unsynced: dict[int, int]


class FaultyDisk:
    """A server of commands.

    Parameters
    ----------
    folder : Path
        For files of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file, library = folder, folder / "state", folder / "faulty_disk.so"
        folder.mkdir(parents=True)
        source = str(Path(__file__).with_suffix(".c"))
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), source, "-ldl"], check=True)
        self._file.write_bytes(bytes(ctypes.sizeof(State)))
        with self._file.open("r+b") as stream:
            self._state = State.from_buffer(mmap.mmap(stream.fileno(), 0))
        own = {"LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1", "PYTHONSAFEPATH": ""}  # it imports `processes`
        environment = os.environ | own
        environment.pop("FKL_DATA", None)
        command, pipe = [sys.executable, __file__], subprocess.PIPE
        self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)

    def close(self) -> None:
        """End the server."""
        self._server.communicate()

    def call(
        self,
        folder: Path,
        words: tuple[str, ...],
        nth: int = 0,
        fault: Fault = NONE,
        *,
        before: str = "",
        after_s: tuple[float, int] = (LIMIT_S, signal.SIGKILL),
    ) -> Ended:
        """Do a command in a folder.

        Parameters
        ----------
        folder : Path
        words : tuple of str
            Those of `fkl`, or another program's if the first is a path.
        nth : int
            The change at which there is a fault.
        fault : Fault
        before : str
            Statements that the process begins with.
        after_s : (float, int)
            Seconds after which the command's process group gets this signal.
        """
        state = self._state
        ctypes.memset(ctypes.byref(state), 0, ctypes.sizeof(State))
        state.folder, state.nth = str(folder).encode(), nth
        state.error, state.later, state.half, state.signal = fault.error, fault.later, fault.half, fault.signal
        job = {"folder": str(folder), "words": words, "before": before, "state": str(self._file)}
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        group = int(self._server.stdout.readline())
        timer = threading.Timer(after_s[0], _send, (group, after_s[1]))
        timer.start()
        code = int(self._server.stdout.readline())
        timer.cancel()
        timer.join()
        _send(group, signal.SIGKILL)  # processes that the command has left
        kept = {one.inode: one.synced for one in state.unsynced if one.inode}
        out, err = ((self._folder / name).read_text(errors="replace") for name in ("out", "err"))
        return Ended(code, out, err, state.changes, kept)


def lose_power(folder: Path, unsynced: dict[int, int]) -> None:
    """Cut files to the length that is on the disk for certain; names count as written."""
    for file in folder.rglob("*"):
        if file.is_file() and unsynced.get(file.stat().st_ino, sys.maxsize) < file.stat().st_size:
            os.truncate(file, unsynced[file.stat().st_ino])


def _send(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _serve() -> None:
    """Answer a line, a command, with its process group, and then with its exit code."""
    import tempfile
    from contextlib import chdir, redirect_stdout
    from importlib import import_module

    import processes
    from tqdm import tqdm

    for name in processes.PRELOADED:
        import_module(name)
    tqdm.monitor_interval = 0  # without its thread, and without those of kernels: a fork has no threads
    exec(processes.BLANK, {})
    from fkl import cli

    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(sys.stderr):
        for words in ("run -q dataset=diabetes kernels.D=8 kernels.N=5 partition.rounds=9 threads=1", "report"):
            sys.argv = ["fkl", *words.split()]  # reads compiled code and the papers' jobs
            cli.main()
    said = Path(os.environ["LD_PRELOAD"]).parent
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _be(json.loads(line), said)
        print(child, file=answers)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers)


def _be(job: dict[str, str], said: Path) -> None:
    """Be a command."""
    from fkl import cli

    os.setsid()
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(said / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(job["folder"])
    os.environ["FAULTY_DISK"] = job["state"]
    if job["words"][0].startswith("/"):
        os.execv(job["words"][0], job["words"])
    code = 1
    try:
        exec(job["before"], {})
        ctypes.CDLL(None).faulty_disk(job["state"].encode())
        sys.argv = ["fkl", *job["words"]]
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()  # as Python does at its end; loky's workers end here
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
