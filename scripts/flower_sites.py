"""Three sites of Flower on this machine: 20 rounds of POF-MKL, with one site killed and restarted; a comparison.

One SuperLink and three SuperNodes, each in its own process, only on 127.0.0.1, with TLS and with keys by which the
SuperLink knows the SuperNodes. It needs the extra flower, and ends all processes that it has started.

    python scripts/flower_sites.py [FOLDER]
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fkl.config import load
from fkl.config.compose import compose
from fkl.conformance.played import Played, play_together
from fkl.contract.lone_party import shown_arrays
from fkl.engines.experiment import make_world
from fkl.runs.prepare import prepare

HERE = "127.0.0.1"
WORDS = ("dataset=file", "dataset.target=y", "kernels=rbf", "kernels.D=4", "replicates=1", "precision=float64")
"""Words of every run with sites."""
ROWS = (20, 17, 20)
"""Rows of each site's file; the second one's are used up first."""
PER_SITE = 5
"""Clients of each deployed site: a round learns from this many of its rows."""
KILLED, AFTER, AWAY = 2, 6, 3
"""The site that is killed, after which round, and how many rounds it misses before it is started again."""
PATIENCE_S = 900.0
"""Time limit in seconds."""


def write_files(folder: Path, rows: Iterable[int] = ROWS) -> list[Path]:
    """One CSV per site, with three features and a target from their sine."""
    rng, files = np.random.default_rng(7), []
    for k, n in enumerate(rows):
        x = rng.normal(size=(n, 3)) + 0.3 * k
        table = pd.DataFrame(x, columns=["a", "b", "c"])
        table["y"] = 10 + np.sin(x.sum(axis=1)) + 0.1 * rng.normal(size=n)
        files.append(folder / f"site{k}.csv")
        table.to_csv(files[-1], index=False)
    return files


def simulated(
    words: Iterable[str], files: list[Path], there: np.ndarray, per_site: int = 1
) -> tuple[Played, np.ndarray, Any]:
    """All clients of all sites at once, as `fkl run` plays them.

    Parameters
    ----------
    words : iterable of str
    files : list of Path
    there : (T, sites) bool
        Which sites take part in each round.
    per_site : int
        Clients of a site, which get its rows in turn.

    Returns
    -------
    Played
    (T, K) bool
        Which clients took part.
    Scale
        Scale of the rows.
    """
    tables = [pd.read_csv(file, dtype=str) for file in files]
    tables = [one.assign(site=[f"{k}-{i % per_site}" for i in range(len(one))]) for k, one in enumerate(tables)]
    whole = files[0].with_name("whole.csv")
    pd.concat(tables).to_csv(whole, index=False)
    experiment = prepare(load(compose(*words, f"dataset.path={whole}", "dataset.site=site")))
    problem = experiment.problem
    present = np.repeat(there, per_site, axis=1) & problem.present
    world, _ = make_world(replace(experiment, problem=problem.thinned(present)), (0,))
    return play_together(experiment.algorithm, world, shown_arrays), present, problem.scale


def compared(
    words: Iterable[str], files: list[Path], folder: Path, run_id: str, per_site: int = 1
) -> tuple[float, bool, np.ndarray]:
    """Results of a server and its sites, compared with the simulation with the same sites absent.

    Returns
    -------
    float
        The largest difference between predictions.
    bool
        Whether all bytes agree with the ledger, by round and by site, up and down.
    (T, sites) bool
        Which sites took part.
    """
    rounds, sites = (pd.read_csv(folder / f"{name}.csv", dtype={"sites": str}) for name in ("rounds", "sites"))
    there = np.array([[str(k) in str(one).split() for k in range(len(files))] for one in rounds["sites"]])
    expected, present, scale = simulated(words, files, there, per_site)
    largest = 0.0
    for k, file in enumerate(files):
        rows = pd.read_csv(file.with_name(f"{file.stem}.site{k}.{run_id}.predictions.csv"))
        t, j = np.divmod(rows["row"].to_numpy() - 1, per_site)
        clients = k * per_site + j
        assert len(rows) == present[:, k * per_site : (k + 1) * per_site].sum() == present[t, clients].sum()
        found = scale.y(rows["prediction"].to_numpy())
        one = np.array([expected.shown[now]["y_hat"][client] for now, client in zip(t, clients, strict=True)])
        largest = max(largest, float(np.abs(found - one).max(initial=0.0)))
    same = []
    for direction in ("uplink", "downlink"):
        of_sites = expected.by_client[direction].reshape(-1, per_site).sum(axis=1)
        same += [rounds[f"{direction}_bytes"].tolist() == expected.by_round[direction].tolist()]
        same += [sites[f"{direction}_bytes"].tolist() == of_sites.tolist()]
    return largest, all(same), there


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback address."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind((HERE, 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Deployment:
    """A SuperLink and SuperNodes on this machine, with all their files in one folder.

    Parameters
    ----------
    folder : Path
        Folder for logs, certificates, keys, Flower's own files, and those of the server.
    files : list of Path
        File of each site.
    """

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self.folder, self.files = folder, files
        self.link, *self._ports = free_ports(1 + len(files))
        self._running: dict[str, subprocess.Popen[str]] = {}
        home = folder / "home"
        home.mkdir()
        connection = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{HERE}:{self.link}"\n'
        (home / "config.toml").write_text(f'{connection}root-certificates = "{folder / "ca.crt"}"\n')
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_HOME": str(home)}
        near = {
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.environment = os.environ | quiet | near | one
        write_certificates(folder)

    def __enter__(self) -> "Deployment":
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        """Start all of it."""
        words = ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key"]
        words += ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
        self.start("superlink", "flower-superlink", *words, "--host", HERE, "--port", str(self.link))
        self._wait(self.link)
        for k in range(len(self.files)):
            write_key(self.folder / f"site{k}.key")
            self.flwr("supernode", "register", f"site{k}.key.pub", "here")
            self.start_site(k)

    def __exit__(self, *_: object) -> None:
        for name in [*self._running]:
            self.kill(name, signal.SIGTERM)

    def start(self, name: str, *words: str) -> None:
        """Start a process in a new process group; its output goes to NAME.log."""
        with (self.folder / f"{name}.log").open("a") as log:
            self._running[name] = subprocess.Popen(
                words, cwd=self.folder, env=self.environment, stdout=log, stderr=log, text=True, start_new_session=True
            )

    def start_site(self, k: int) -> None:
        """Start the SuperNode of a site."""
        own = f'site={k} path="{self.files[k]}"'
        words = ["--root-certificates", "ca.crt", "--superlink", f"{HERE}:{self.link}", "--host", HERE]
        words += ["--port", str(self._ports[k]), "--auth-supernode-private-key", f"site{k}.key", "--node-config", own]
        self.start(f"site{k}", "flower-supernode", *words)

    def runs(self, name: str) -> bool:
        """Whether a process was started here, and not ended."""
        return name in self._running

    def kill(self, name: str, how: int = signal.SIGKILL) -> None:
        """End a process that was started here, with its group."""
        process = self._running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def flwr(self, *words: str) -> None:
        """A Flower command that ends by itself."""
        given = {"cwd": self.folder, "env": self.environment, "capture_output": True, "text": True, "timeout": 60}
        done = subprocess.run(["flwr", *words], check=False, **given)  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(f"flwr {' '.join(words)}: {done.stdout}{done.stderr}")

    def run(self, project: Path, heard: Callable[[str], None]) -> str:
        """Run a project to its end, follow its log line by line, and return the number of the run."""
        until, number = time.monotonic() + PATIENCE_S, ""
        self.start("run", "flwr", "run", str(project), "here", "--stream")
        log, process = self.folder / "run.log", self._running["run"]
        with log.open() as stream:
            while True:
                ended = process.poll() is not None
                while line := stream.readline():
                    if "started run " in line:
                        number = line.split("started run ")[1].split()[0]
                    heard(line.rstrip())
                if ended:
                    return number
                if time.monotonic() > until:
                    raise TimeoutError(f"{project} has not ended in {PATIENCE_S:.0f} s: see {log}")
                time.sleep(0.1)

    def _wait(self, port: int) -> None:
        """Wait until the port is open."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection((HERE, port), timeout=1):
                return
            time.sleep(0.1)
        raise TimeoutError(f"nobody listens on {HERE}:{port}: see {self.folder}")


def write_certificates(folder: Path) -> None:
    """A certificate authority for one day, ca.crt, and the certificate of this machine, server.crt and server.key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    authority, server, now = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1()), _now()
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fkl's authority of one day")])
    here = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HERE)])

    def signed(name: x509.Name, key: Any, is_authority: bool) -> bytes:
        made = x509.CertificateBuilder().subject_name(name).issuer_name(own).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
        made = made.not_valid_after(now + timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        if not is_authority:
            made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HERE))]), critical=False)
        return made.sign(authority, hashes.SHA256()).public_bytes(_pem())

    (folder / "ca.crt").write_bytes(signed(own, authority, True))
    (folder / "server.crt").write_bytes(signed(here, server, False))
    _write_secret(folder / "server.key", _private(server, "TraditionalOpenSSL"))


def write_key(file: Path) -> None:
    """A site's key, and with .pub the public key for the SuperLink."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP384R1())
    _write_secret(file, _private(key, "OpenSSH"))
    openssh = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    file.with_name(f"{file.name}.pub").write_bytes(key.public_key().public_bytes(*openssh))


def _private(key: Any, form: str) -> bytes:
    from cryptography.hazmat.primitives import serialization

    written: bytes = key.private_bytes(_pem(), getattr(serialization.PrivateFormat, form), serialization.NoEncryption())
    return written


def _pem() -> Any:
    from cryptography.hazmat.primitives import serialization

    return serialization.Encoding.PEM


def _now() -> datetime:
    return datetime.now(UTC)


def _write_secret(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)


def deployed(folder: Path, say: Callable[[str], None]) -> tuple[float, bool, np.ndarray]:
    """Play everything in an empty folder; results as in `compared`."""
    rows = folder / "rows"
    rows.mkdir()
    files, words = write_files(rows, [PER_SITE * n for n in ROWS]), ("algo=pof_mkl", "algo.M=5", "algo.xi=0.5", *WORDS)
    project = folder / "project"
    command = ["flower", "init", str(project), "--sites", str(len(files)), "--clients-per-site", str(PER_SITE), *words]
    subprocess.run([sys.executable, "-m", "fkl", *command], check=True, timeout=120, stdout=subprocess.DEVNULL)
    text = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(text.replace("timeout-s = 120.0", "timeout-s = 45.0"))
    with Deployment(folder, files) as deployment:

        def heard(line: str) -> None:
            """Kill the site, and start it again, at the right rounds in the server's log."""
            say(line)
            if line.startswith(f"round {AFTER}: site") and deployment.runs(f"site{KILLED}"):
                deployment.kill(f"site{KILLED}")
                say(f"# site {KILLED} is killed")
            elif line.startswith(f"round {AFTER + AWAY}: site") and not deployment.runs(f"site{KILLED}"):
                deployment.start_site(KILLED)
                say(f"# site {KILLED} is started again")

        number = deployment.run(project, heard)
    return compared(words, files, folder / "flower" / number, number, PER_SITE)


def main() -> None:
    """Print the events, and the difference to the simulation."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # to end all started processes
    given = sys.argv[1:2]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(given[0] if given else made).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        largest, same, there = deployed(folder, lambda line: print(line, flush=True))
    for k in range(there.shape[1]):
        print(f"rounds that site {k} had no part in: {(np.flatnonzero(~there[:, k]) + 1).tolist() or 'none'}")
    print(f"the simulation with the same absence: predictions differ by {largest:.1e} at most")
    print(f"bytes of the messages' arrays are those of its ledger: {same}")


if __name__ == "__main__":
    main()
