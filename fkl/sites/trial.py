"""`fkl flower try`: a server and its sites on this machine, each in its own process.

It starts a SuperLink and a process for each site, only on 127.0.0.1, with TLS and with keys by which the SuperLink
recognises the sites. All of them end with the trial.
"""

import ctypes
import errno
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fkl.basics.errors import FklError, count_of, in_one_line, require
from fkl.basics.files import report_write_errors
from fkl.data.problem import Table
from fkl.screen.messages import print_lines
from fkl.sites.clients import ends_of, kind_of
from fkl.sites.configuration import SharedFacts, common_scale, in_order, own_table, require_site, run_of

HERE = "127.0.0.1"
MARK = "FKL_TRIAL"
"""Variable in the environment of a trial's processes: the process number of `fkl flower try`, and random letters."""
PATIENCE_S = 60.0
"""Time limit in seconds for the SuperLink to listen, and for a Flower command to end."""
GOES_ON = "the same command continues the run"


def run_trial(project: Path, files: Sequence[Path], folder: Path) -> int:
    """Run a project of `fkl flower init` to its end, and print its server's output.

    Parameters
    ----------
    project : Path
    files : sequence of Path
        Rows of site 0, 1, ...
    folder : Path
        Folder for logs, certificates, keys, and the server's files.

    Returns
    -------
    int
        Exit status of the run.
    """
    # Read all files first: a fault is then found before processes start
    require_sites(project, files)
    ended = ""  # the server's last line: where its files are, or its error

    # The last line says how the server ended
    def heard(line: str) -> None:
        nonlocal ended
        if line.startswith(("files: ", "error: ")):
            ended = line
        elif _is_ours(line) and not ended:  # after an error, Flower prints where it was raised
            print_lines(line)

    # Run the deployment, and explain an early end by its logs
    with _exit_on_sigterm(), Deployment(folder, files) as deployment:
        deployment.run_project(project, heard)
        kind, _, place = ended.partition(": ")
        if kind == "error":
            raise FklError(place, help=deployment.last_errors())
        if kind != "files":
            log = folder / ("run.log" if deployment.status else "superlink.log")
            raise FklError(f"the server ended early: see {log}; {GOES_ON}", help=deployment.last_errors())
    for line in _what_is_left(folder / "flower" / Path(place).name, files):
        print_lines(line)
    return deployment.status


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Exit in Python, so all processes are ended on the way out."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def require_sites(project: Path, files: Sequence[Path]) -> None:
    """Read the files of all sites, and raise the errors of the sites and of the server, before any process starts.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the site and its file.
    """
    # What the project says about sites and configuration
    toml = project / "pyproject.toml"
    require(toml.is_file(), "project", project, "a folder that fkl flower init has written")
    try:
        given = tomllib.loads(toml.read_text(encoding="utf-8"))["tool"]["flwr"]["app"]["config"]
        sites, clients, configuration = (given[name] for name in ("sites", "clients-per-site", "configuration"))
    except (ValueError, KeyError, TypeError) as error:
        raise FklError(f"{toml}: not a file that fkl flower init wrote ({in_one_line(error)})") from error
    if len(files) != sites:
        there = f"{count_of(len(files), 'file')} of rows {'is' if len(files) == 1 else 'are'} given"
        raise FklError(
            f"{there}, but {project} is for {count_of(sites, 'site')}: give one file per site, in their order"
        )
    # The tables of all sites, which must fit each other
    run = run_of(configuration)
    tables: list[Table] = []
    for k, file in enumerate(files):
        with _site_in_errors(k, file):
            require(file.is_file(), "rows", file, "the file of the site's rows")
            tables.append(table := own_table(run, str(file)))
            require_site(len(table.y), table.feature_names, tables[0].feature_names, clients)
    # The facts that a server would compute, and every site with them
    scale = common_scale([ends_of(run, table, clients, k) for k, table in enumerate(tables)], run)
    rounds = kind_of(run).rounds(run, max(len(table.y) for table in tables), clients)
    facts = SharedFacts("", sites, clients, rounds, tables[0].feature_names, scale)
    for k, (file, table) in enumerate(zip(files, tables, strict=True)):
        with _site_in_errors(k, file):
            kind_of(run)(run, facts, in_order(table, facts.columns), k)


@contextmanager
def _site_in_errors(k: int, file: Path) -> Iterator[None]:
    """Put the site and its file before any error of this block."""
    try:
        yield
    except FklError as error:
        raise FklError(f"site {k} ({file}): {str(error).removeprefix(f'{file}: ')}", help=error.help) from error


def _what_is_left(server: Path, files: Sequence[Path]) -> Iterator[str]:
    """The paths of the server's and each site's files, and how to predict with a site's model."""
    yield f"server: {server}"
    model: Path | None = None
    for k, file in enumerate(files):
        file_left = file.with_name(f"{file.stem}.site{k}.{server.name}")
        files_of_site = [name for name in ("predictions.csv", "model.npz") if (file_left / name).is_file()]
        yield f"site {k}: rows of {file}; {' and '.join(files_of_site) or 'no file'} in {file_left}"
        model = model or (file_left / "model.npz" if "model.npz" in files_of_site else None)
    if model is not None:
        yield f"to predict: fkl predict {shlex.quote(str(model))} NEW_ROWS.csv"


def _is_ours(line: str) -> bool:
    """Whether a line of a run's log is not Flower's own."""
    return bool(line) and not line.startswith(
        ("INFO", "WARNING", "\x1b", "Loading project", "Success", "Starting", "Using SuperLink")
    )


class Deployment:
    """A SuperLink and sites on this machine.

    Parameters
    ----------
    folder : Path
        Folder for logs, certificates, keys, Flower's files, and the server's files.
    files : sequence of Path
        Rows of site 0, 1, ...
    database : str
        The file in which the SuperLink stores its state; by default it is in memory, so nothing is left afterwards.

    Attributes
    ----------
    status : int
        Exit status of the last run.
    """

    def __init__(self, folder: Path, files: Sequence[Path], database: str = ":flwr-in-memory:") -> None:
        # Files and processes of this deployment
        self._database = database
        self.folder, self.files, self.status = folder.resolve(), [file.resolve() for file in files], 0
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._begins: dict[str, int] = {}  # place where this deployment's part of a log begins
        # A home of its own, so the user's Flower is not touched
        home = self.folder / "home"
        with report_write_errors(home):
            home.mkdir(parents=True, exist_ok=True)
        write_certificates(self.folder)
        # A free port, and a connection with this deployment's certificate
        with socket.socket() as free:
            free.bind((HERE, 0))
            self.link = int(free.getsockname()[1])
        connection = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{HERE}:{self.link}"\n'
        with_certificate = f'{connection}root-certificates = "{self.folder / "ca.crt"}"\n'
        (home / "config.toml").write_text(with_certificate, encoding="utf-8")
        # No telemetry, fast polls, one thread per process, and a mark that processes carry
        self.environment = os.environ | {
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_HOME": str(home),
            "PYTHONIOENCODING": "utf-8",  # encoding of the logs, whatever the terminal's is
            MARK: f"{os.getpid()}-{secrets.token_hex(16)}",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",  # seconds between two looks for a new run
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "PYTHONUNBUFFERED"), "1"),
        }

    def __enter__(self) -> Self:
        try:
            self.start_link()
            for k in range(len(self.files)):
                write_key(self.folder / f"site{k}.key")
                self._run_flwr("supernode", "register", f"site{k}.key.pub", "here")
                self.start_site(k)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed([*self._running]):  # the SuperLink last, because it waits for open connections
            self.kill_process(name, signal.SIGTERM)
        self._end_what_is_left()

    def _end_what_is_left(self) -> None:
        """End the SuperLink's own processes, which go on for a while without it; only Linux shows which they are."""
        mark = f"{MARK}={self.environment[MARK]}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)

    def start(self, name: str, *words: str) -> None:
        """Start a process in a new process group, with its output in NAME.log."""
        # Each process has its log and its group, so it can be ended with its children
        with (self.folder / f"{name}.log").open("ab") as log:
            self._begins.setdefault(name, log.tell())
            self._running[name] = subprocess.Popen(
                words,
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_ends_with_the_trial(),
            )

    def start_link(self) -> None:
        """Start the SuperLink, and wait until it listens."""
        words = ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key"]
        words += ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
        words += ["--database", self._database, "--host", HERE, "--port", str(self.link)]
        self.start("superlink", "flower-superlink", *words)
        self._wait_for_link()

    def start_site(self, k: int) -> None:
        """Start the process of a site."""
        words = ["--number", str(k), "--rows", str(self.files[k]), "--certificates", "ca.crt", "--key", f"site{k}.key"]
        self.start(f"site{k}", sys.executable, "-m", "fkl", "flower", "site", f"{HERE}:{self.link}", *words)

    def kill_process(self, name: str, how: int = signal.SIGKILL) -> None:
        """End a process that was started here, and its process group."""
        process = self._running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def run_project(self, project: Path, heard: Callable[[str], None]) -> str:
        """Run a project to its end, pass each line of its log to `heard`, and return the number of the run."""
        # Start Flower's run, and follow its log from where it begins
        log, number = self.folder / "run.log", ""
        begin = log.stat().st_size if log.exists() else 0
        self.start("run", "flwr", "run", str(project.resolve()), "here", "--stream")
        process = self._running["run"]
        with log.open(encoding="utf-8", errors="replace") as stream:
            stream.seek(begin)
            while True:
                # Ask first whether the process has ended: if so, all of its lines can be read
                ended = process.poll() is not None
                while line := stream.readline():
                    if "started run " in line:
                        number = line.split("started run ")[1].split()[0]
                    heard(line.rstrip())
                if ended:
                    self.status = int(process.returncode)
                    return number
                self._require_all()
                time.sleep(0.2)  # the log comes in batches, half a second apart

    def _require_all(self) -> None:
        """Raise an error if a process has ended, because the server would wait for a site without end."""
        for name, process in self._running.items():
            ended = "" if process.poll() is None else f"has ended with exit code {process.returncode}"
            if name == "superlink" and not self._is_listening():
                ended = ended or "is about to end"  # which takes up to a minute after the log's stream has ended
            if name != "run" and ended:
                raise FklError(f"{name} {ended}: see {self.folder / name}.log; {GOES_ON}", help=self.last_errors())

    def last_errors(self) -> list[str]:
        """The last error in each site's log, with the file of its rows."""
        lines = []
        for k, file in enumerate(self.files):
            log = self.folder / f"site{k}.log"
            with suppress(OSError), log.open(errors="replace") as stream:
                stream.seek(self._begins.get(f"site{k}", 0))
                errors = [line.strip().removeprefix("error: ") for line in stream if line.startswith("error: ")]
                lines += [f"site {k} ({file}): {line.removeprefix(f'{file}: ')}; {log}" for line in errors[-1:]]
        return lines

    def _run_flwr(self, *words: str) -> None:
        """Run one of Flower's commands."""
        given = {"cwd": self.folder, "env": self.environment, "capture_output": True, "text": True}
        done = subprocess.run(["flwr", *words], check=False, timeout=PATIENCE_S, **given)  # type: ignore[call-overload]
        if done.returncode:
            self._require_all()
            raise FklError(f"flwr {' '.join(words)}: {done.stdout}{done.stderr}")

    def _wait_for_link(self) -> None:
        """Wait until the SuperLink listens."""
        until = time.monotonic() + PATIENCE_S
        while not self._is_listening():
            if time.monotonic() > until:
                raise FklError(f"Flower's SuperLink has not started: see {self.folder / 'superlink.log'}")
            time.sleep(0.05)

    def _is_listening(self) -> bool:
        """Whether the SuperLink accepts connections; true if it is only too busy at the moment."""
        with socket.socket() as one:
            one.settimeout(1)
            return one.connect_ex((HERE, self.link)) != errno.ECONNREFUSED


def _ends_with_the_trial() -> Callable[[], object] | None:
    """On Linux, a function for a new process: the system then kills that process when the trial ends in any way."""
    if sys.platform != "linux":
        return None
    library, end_with_parent = ctypes.CDLL(None), 1
    return lambda: library.prctl(end_with_parent, signal.SIGKILL)


def write_certificates(folder: Path) -> None:
    """Write a certificate authority for one day, ca.crt, and this machine's certificate, server.crt and server.key."""
    # Keys of the authority and of the server; both are valid for a day
    authority, server, now = (
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP384R1()),
        _current_time(),
    )
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fkl's authority of one day")])
    here = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HERE)])

    def signed(name: x509.Name, key: Any, is_authority: bool) -> bytes:
        made = x509.CertificateBuilder().subject_name(name).issuer_name(authority_name).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
        made = made.not_valid_after(now + timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        if not is_authority:
            made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HERE))]), critical=False)
        return made.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    # The authority's certificate, the server's, and the server's key, which only the user can read
    (folder / "ca.crt").write_bytes(signed(authority_name, authority, True))
    (folder / "server.crt").write_bytes(signed(here, server, False))
    _write_secret(folder / "server.key", server, serialization.PrivateFormat.TraditionalOpenSSL)


def write_key(file: Path) -> None:
    """Write a site's key and, with .pub, the public key by which the SuperLink recognises it."""
    key = ec.generate_private_key(ec.SECP384R1())
    _write_secret(file, key, serialization.PrivateFormat.OpenSSH)
    openssh = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    file.with_name(f"{file.name}.pub").write_bytes(key.public_key().public_bytes(*openssh))


def _write_secret(file: Path, key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> None:
    file.touch(mode=0o600)
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def _current_time() -> datetime:
    return datetime.now(UTC)
