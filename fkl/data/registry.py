"""The data sets by name, for ``fkl data list``, ``fetch`` and ``verify``."""

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import yaml

from fkl import conf_folder
from fkl.basics.errors import FklError, did_you_mean, in_one_line
from fkl.basics.field_words import own_spelling

if TYPE_CHECKING:
    import numpy as np

    from fkl.data.problem import Table
    from fkl.data.store import DataFile, Store


class Dataset(Protocol):
    """Interface of every data set; its fields are the keys of its configuration node.

    A data set that reads the user's own file has no `data_files`, but a `fingerprint`, the file's SHA-256.
    """

    name: str
    """Its name on a command line."""
    title: str
    """Short description."""
    data_files: tuple["DataFile", ...]
    licence: str
    shape: str
    """Rows x features."""

    def load(self, store: "Store", rng: "np.random.Generator") -> "Table":
        """Read or generate the table.

        Raises
        ------
        FklError
            If a file is missing, damaged or wrong.
        """
        ...


class Listing(NamedTuple):
    """Row of a data set in ``fkl data list``.

    `files` is ✓ if all are available; `found` is their path, or the missing ones.
    """

    name: str
    files: str
    size: str
    title: str
    shape: str
    found: str
    licence: str


class FileState(NamedTuple):
    """One line of ``fkl data fetch`` or ``verify``: state is ok, corrupted, missing or failed."""

    dataset: str
    file: str
    state: str
    detail: str


def choice_targets(group: str) -> dict[str, str]:
    """Import path of the class of every choice of a group of conf/, by its name."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted((conf_folder() / group).glob("*.yaml"))}
    return {name: re.findall(r"^_target_: *(\S+)", text, re.MULTILINE)[0] for name, text in texts.items()}


def dataset_names() -> list[str]:
    """Names of all data sets that fkl ships."""
    return sorted(file.stem for file in (conf_folder() / "dataset").glob("*.yaml"))


def dataset_node(name: str) -> dict[str, Any]:
    """The node of a data set that fkl ships, read from its YAML.

    Raises
    ------
    FklError
        If no data set has this name.
    """
    # The name in its own spelling, otherwise a suggestion
    shipped = dataset_names()
    name = own_spelling(name, shipped)
    if name not in shipped:
        raise FklError(f"{in_one_line(name)}: no such data set", help=did_you_mean(name, shipped, "all: fkl data list"))
    return {key: deepcopy(value) for key, value in _yaml_content(name).items() if key != "defaults"}


@cache
def _yaml_content(name: str) -> dict[str, Any]:
    """Content of a YAML, read once."""
    content: dict[str, Any] = yaml.safe_load((conf_folder() / "dataset" / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def named_dataset(name: str, **keys: Any) -> Dataset:
    """A data set that fkl ships, with these keys instead of its YAML's.

    Raises
    ------
    FklError
        If no data set has this name, or a key cannot have this value.
    """
    # The class that the node names, made with its keys
    values = dataset_node(name) | keys
    module, _, attribute = str(values.pop("_target_")).rpartition(".")
    made = getattr(import_module(module), attribute)
    if hasattr(made, "with_keys"):
        made = made.with_keys(values)
    built: Dataset = made(**values)
    return built


def list_datasets(store: "Store") -> list[Listing]:
    """Every data set: description, paths and sizes of its files, licence."""
    listings = []
    # Where each data set's files are, and how many are missing
    for made in map(named_dataset, dataset_names()):
        sizes = [file.size for file in made.data_files if file.size is not None]
        paths = [store.find_file(file) for file in made.data_files]
        missing = sum(path is None for path in paths)
        if not made.data_files:
            place = files = "dataset.path" if hasattr(type(made), "fingerprint") else "built in"
            size = "-"
        else:
            size = f"{sum(sizes) / 1e6:.1f} MB" if len(sizes) == len(paths) else "unknown"
            if missing:
                files = "missing" if missing == len(paths) else f"{len(paths) - missing} of {len(paths)}"
                place = "missing" if missing == len(paths) else f"missing {missing} of {len(paths)} files"
            else:
                files, place = "✓", ", ".join(sorted({str(path.parent) for path in paths if path is not None}))
        listings.append(Listing(made.name, files, size, made.title, made.shape, place, made.licence))
    return listings


def fetch_datasets(names: list[str], store: "Store") -> Iterator[FileState]:
    """Fetch missing files of these data sets and check existing ones.

    States are ``ok`` (detail: the path) and ``failed`` (detail: the reason).

    Raises
    ------
    FklError
        If a name is unknown.
    """
    for file in _files_of_sets(names):
        try:
            path = store.fetch_file(file)
            store.check_file(file)
        except FklError as error:
            yield FileState(file.dataset, file.name, "failed", str(error))
        else:
            yield FileState(file.dataset, file.name, "ok", str(path))


def verify_datasets(names: list[str], store: "Store") -> Iterator[FileState]:
    """Compare the files of these data sets with their hashes; nothing is fetched.

    States are ``ok`` (detail: the path), ``corrupted`` (detail: the error) and ``missing`` (detail: the address, or
    that none is known).

    Raises
    ------
    FklError
        If a name is unknown.
    """
    for file in _files_of_sets(names):
        path = store.find_file(file)
        if path is None:
            yield FileState(file.dataset, file.name, "missing", file.url or "no address is known that serves it")
            continue
        try:
            store.check_file(file)
        except FklError as error:
            yield FileState(file.dataset, file.name, "corrupted", str(error))
        else:
            detail = str(path) if file.sha256 else f"{path} (readable; no SHA-256 is known to compare with)"
            yield FileState(file.dataset, file.name, "ok", detail)


def _files_of_sets(wanted: list[str]) -> list["DataFile"]:
    """Files of these data sets, or of all if none is named; all names are checked before any action."""
    return [file for name in wanted or dataset_names() for file in named_dataset(name).data_files]
