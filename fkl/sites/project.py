"""`fkl flower init`: a project for `flwr run`, with files that only call fkl."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from fkl import __version__
from fkl.basics.errors import FklError, key_prefix, require, requires_extra
from fkl.basics.files import is_temporary, report_write_errors, require_files_in, write_text
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.contract.lone_party import LoneServer
from fkl.data.problem import Scale
from fkl.sites.configuration import SharedFacts, method_of, require_fits
from fkl.sites.masks import LEAST_OF_SUM

TIMEOUT_S = 120.0
"""Default time limit for an answer."""
PYPROJECT = '''\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.0.0"
description = "{label} at real sites, run by fkl"
license = "Apache-2.0"
dependencies = ["federated-kernel-learning[flower]=={version}"]

[tool.hatch.build.targets.wheel]
packages = ["sites"]

[tool.flwr.app]
publisher = "fkl"

[tool.flwr.app.components]
serverapp = "sites.server_app:app"
clientapp = "sites.client_app:app"

[tool.flwr.app.config]
sites = {sites} # number of sites; the first round begins when all of them are connected
timeout-s = {timeout} # seconds that the server waits for an answer
report-every = 100 # rounds between two reports of errors, at which sites also write their models
clients-per-site = {clients} # clients share the site's rows in turn, so a round uses this many of its rows
out = "flower" # folder of the server's files; a relative path starts where its SuperLink was started
configuration = """
{configuration}"""
'''
SERVER = '''\
"""The server of the method, run by fkl."""

from fkl.sites.server import server_app

app = server_app()
'''
CLIENT = '''\
"""A site: a client of the method with the rows of its own file, run by fkl."""

from fkl.sites.site import client_app

app = client_app()
'''
README = """\
# {label} at {sites} real sites

Written by `fkl flower init {words}`.

At the server and at every site: `pip install -e '.[flower]'` in a checkout of fkl {version}.

To try it on one machine, with one file of rows per site:

    fkl flower try . site0.csv site1.csv ...

At the server:

    flower-superlink --ssl-ca-certfile ca.crt --ssl-certfile server.crt --ssl-keyfile server.key \\
        --enable-supernode-auth --disable-runtime-dependency-installation --database superlink.db \\
        --host 0.0.0.0 --port 8000

At site 0, 1, ..., each with its own number and file:

    fkl flower site SERVER:8000 --number 0 --rows /where/its/rows/are.csv --certificates ca.crt --key site0.key

From any machine that can reach the server (the same command continues a run that was stopped):

    flwr run . SERVER --stream

fkl's page on Flower says how to make certificates and keys, and what each site discloses.
"""


def write_project(
    folder: Path, sites: int, words: tuple[str, ...], clients_per_site: int = 1, folders: Sequence[Path] = ()
) -> str:
    """Write a project to a folder that does not exist yet, is empty, or has a part of the same project.

    Parameters
    ----------
    folder : Path
    sites : int
        Number of sites.
    words : tuple of str
        Words as for ``fkl run``.
    clients_per_site : int
        Number of clients of each site.
    folders : sequence of Path
        Folders with the user's own choices.

    Returns
    -------
    str
        A line about what to do next.

    Raises
    ------
    fkl.basics.errors.FklError
        For configurations that real sites cannot run, a folder with content, or if Flower is not installed.
    """
    # Refuse what cannot be a project, before a file is written
    with requires_extra("flower", "flower"):
        import flwr  # noqa: F401 - the project is of no use without it
    for key, value in (("sites", sites), ("clients-per-site", clients_per_site)):
        require(value >= 1, key, value, "an integer >= 1")
    run = load_run(compose_config(*words, folders=folders))
    require_fits(run)
    least = LEAST_OF_SUM if "secure" in run.conditions else 1
    require(sites >= least, "sites", sites, f"at least {least} for secure sums")
    # A server of one round finds faults that would otherwise show when all sites wait
    with key_prefix("algo"):  # errors that the server would raise once all sites are connected
        facts = SharedFacts("", sites, clients_per_site, 1, ("x",), Scale())
        LoneServer(method_of(run), facts.common_facts(run), facts.clients)
    # The configuration, resolved, is part of the project
    configuration = yaml.safe_dump(run.resolved, sort_keys=False, allow_unicode=True)
    said = {"label": run.algo.label, "sites": sites, "clients": clients_per_site, "version": __version__}
    quoted = configuration.replace("\\", "\\\\").replace('"', '\\"')  # inside three quotation marks of TOML
    settings = {"timeout": TIMEOUT_S, "configuration": quoted}
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in folder.resolve().name.lower())
    several = [] if clients_per_site == 1 else [f"--clients-per-site {clients_per_site}"]
    # All files of the project
    files = {
        "pyproject.toml": PYPROJECT.format(**said, **settings, name=f"sites-{name}"),
        "README.md": README.format(**said, words=" ".join([str(folder), f"--sites {sites}", *several, *words])),
        "sites/__init__.py": "",
        "sites/server_app.py": SERVER,
        "sites/client_app.py": CLIENT,
    }
    # An existing folder must be empty, or a part of this project
    with report_write_errors(folder):  # a project that an interrupted call has begun is completed
        there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
        ours = all(
            is_temporary(path) or (name in files and path.read_bytes() == files[name].encode())
            for name, path in there.items()
        )
        if folder.exists() and not (folder.is_dir() and ours):
            raise FklError(f"{folder}: is not empty; give a new folder")
        folder.mkdir(parents=True, exist_ok=True)
    require_files_in(folder)
    for path, text in files.items():
        write_text(folder / path, text)
    return f"{folder}: {run.algo.label} for {sites} sites; its README.md says how to start them"
