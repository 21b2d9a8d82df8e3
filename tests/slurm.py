"""A real Slurm on this machine: a controller, one node, and the accounting that `sacct` reads.

Debian has it: `apt-get install slurm-wlm slurmdbd munge mariadb-server`. `python tests/slurm.py` starts one, and prints
what a shell needs to use it.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "mariadb-install-db", "mariadbd", "mariadb", "slurmdbd", "sacctmgr", "slurmctld", "slurmd")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]

SLURM = """
ClusterName=fkl
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={place}/munge,cred_expire=5
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPort={controller}
SlurmdPort={node}
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={accounts}
AccountingStoragePass={place}/munge
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores}
PartitionName=cpu Nodes={host} Default=YES
"""
ACCOUNTS = """
AuthType=auth/munge
AuthInfo=socket={place}/munge
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={accounts}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=fkl
StoragePass=fkl
LogFile={place}/slurmdbd.log
PidFile={place}/slurmdbd.pid
"""


@contextmanager
def slurm(place: Path) -> Iterator[Path]:
    """Start a Slurm whose files are in a folder, give the path of its slurm.conf, and end it."""
    ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    names = ("controller", "node", "accounts", "database")
    of = dict(zip(names, (port.getsockname()[1] for port in ports), strict=True))
    for port in ports:
        port.close()
    user = subprocess.check_output(["id", "-un"], text=True).strip()
    cores = len(os.sched_getaffinity(0))
    about = {"place": place, "host": socket.gethostname().partition(".")[0], "user": user, "cores": cores, **of}
    config, sql = place / "slurm.conf", ["mariadb", f"--socket={place}/sql", "-e"]
    config.write_text(SLURM.format(**about))
    (place / "slurmdbd.conf").write_text(ACCOUNTS.format(**about))
    (place / "slurmdbd.conf").chmod(0o600)
    (place / "key").write_bytes(os.urandom(1024))
    (place / "key").chmod(0o400)
    for folder in ("state", "spool"):
        (place / folder).mkdir()
    environment = {**os.environ, "SLURM_CONF": str(config)}
    data = [f"--user={user}", f"--datadir={place}/data"]
    with ExitStack() as running:

        def start(name: str, *command: str) -> None:
            log = running.enter_context((place / f"{name}.out").open("w"))
            process = subprocess.Popen([name, *command], stdout=log, stderr=log, env=environment)
            running.callback(_end, process)

        files = [f"--{one}-file={place}/munged.{one}" for one in ("pid", "log", "seed")]
        start("munged", "--foreground", "--force", f"--key-file={place}/key", f"--socket={place}/munge", *files)
        subprocess.run(["mariadb-install-db", "--no-defaults", *data], check=True, capture_output=True)
        where = ["--bind-address=127.0.0.1", f"--port={of['database']}", f"--socket={place}/sql"]
        start("mariadbd", "--no-defaults", *data, *where, f"--pid-file={place}/mariadbd.pid")
        _until(*sql, "grant all on *.* to fkl@localhost identified by 'fkl'", env=environment)
        start("slurmdbd", "-D")
        _until("sacctmgr", "-i", "add", "cluster", "fkl", env=environment)
        start("slurmctld", "-D")
        start("slurmd", "-D")
        _until("srun", "--immediate=2", "true", env=environment)
        yield config


def _until(*command: str, env: dict[str, str]) -> None:
    """Call a command until it succeeds."""
    for _ in range(150):
        if (said := subprocess.run(command, env=env, capture_output=True, text=True, check=False)).returncode == 0:
            return
        time.sleep(0.2)
    raise RuntimeError(f"{command}: {said.stdout}{said.stderr}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, slurm(Path(folder)) as config:
        print(f"export SLURM_CONF={config}", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
