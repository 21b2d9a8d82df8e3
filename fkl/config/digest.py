"""Everything that decides a run's numbers, with its hashes: configuration, fkl's code, and the user's modules."""

import ast
import hashlib
import importlib
import json
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

from fkl.config.choices import CONDITIONS
from fkl.config.settings import Settings

NOT_RESULTS = (
    "out",
    "paths",
    "threads",
    "chunk",
    "checkpoint_s",
    "objective",
    "save_model",
    "save_sums",
    "figures",
    "logger",
)
"""Keys that change the place or speed of a run, but none of its numbers."""
WITHOUT_NULL = ("metrics", "stop_when", "like")
"""Keys that have no effect if they are null; older runs, which lack them, have the same numbers."""


def decisive_part(resolved: dict[str, Any], idle: Iterable[str] = ()) -> dict[str, Any]:
    """The part of a resolved configuration that decides numbers; `idle` are keys that its method does not use."""
    keys = {key: value for key, value in resolved.items() if key not in NOT_RESULTS}
    keys = {key: value for key, value in keys.items() if value is not None or key not in (*CONDITIONS, *WITHOUT_NULL)}
    if isinstance(keys.get("dataset"), dict) and isinstance(keys["dataset"].get("table"), dict):
        from fkl.data.table_layout import deciding_part

        keys["dataset"] = deciding_part(keys["dataset"])
    network = keys.get("network")
    if isinstance(network, dict) and network.get("_target_") == "fkl.network.Network":  # null and 0 have no effect
        keys["network"] = {key: value for key, value in network.items() if value}
    for group in {key.partition(".")[0] for key in idle}:
        keys[group] = {key: value for key, value in keys[group].items() if f"{group}.{key}" not in idle}
    return keys


def config_identity(resolved: dict[str, Any], free: Iterable[str] = ()) -> str:
    """Digest of the decisive configuration without some free keys, for example ``dataset.rows``.

    A whole number is the same with and without a point: ``algo.gamma=0`` and ``algo.gamma=0.0``. A setting that did not
    exist yet when a run was made counts as its default.
    """
    settings = {one.name: one.default for one in fields(Settings)}
    keys = _without_points(decisive_part(settings | resolved))
    for key in free:
        *nodes, last = key.split(".")
        node: Any = keys
        for name in nodes:
            node = node.get(name) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node.pop(last, None)
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()


def _without_points(value: Any) -> Any:
    """A copy of plain data with whole numbers as integers."""
    if isinstance(value, dict):
        return {key: _without_points(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_points(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


PACKAGE = Path(__file__).parents[1]
SHOWS_OR_STARTS = (
    "cli",
    "conformance",
    "papers",
    "report",
    "screen",
    "statistics",
    "study",
    "sweeps",
    "basics/errors.py",
    "basics/field_words.py",
)
"""Packages and files of fkl that have no influence on a run's numbers."""
SUFFIXES = (".py", *EXTENSION_SUFFIXES)
INSTALLED = {"site-packages", "dist-packages"}

_known: dict[str, dict[str, str]] = {}
"""For each user module that this process imported: the modules that it imports, and the hashes of their files at that
time."""


@cache
def of_fkl() -> str:
    """Hash of fkl's own source, computed once per process; it does not depend on the folder or on line endings."""
    files = sorted(file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py"))
    return _joint_hash(
        {
            name: hashlib.sha256(_content_of_file(PACKAGE / name)).hexdigest()
            for name in files
            if not {name, name.partition("/")[0]} & {*SHOWS_OR_STARTS}
        }
    )


@cache
def of_files(pattern: str) -> str:
    """Hash of some of fkl's files, such as ``study/*.py``."""
    files = {file.name: hashlib.sha256(_content_of_file(file)).hexdigest() for file in PACKAGE.glob(pattern)}
    return _joint_hash(files)


def of_module(name: str) -> str | None:
    """Hash of a module that `import_module` imported, and of its local imports; None for a module of fkl.

    Imports are found without running code: `import` statements anywhere in a file, also inside functions, and calls of
    `import_module` and `__import__` with a literal name. Local means in the module's folder or any other folder on
    Python's path, except for installed packages and the standard library. For an installed module, its own package
    counts as local. Files that a module reads, but does not import, are not covered.
    """
    return None if _is_fkl(name) else _joint_hash(_known[name])


def import_module(name: str) -> ModuleType:
    """Import a module; a user's module that has changed since this process imported it is imported again.

    Raises
    ------
    ImportError, ValueError
        The errors of `importlib.import_module`.
    """
    module = importlib.import_module(name)
    if _is_fkl(name):
        return module
    hashes = _hashes_behind(name)
    if _known.setdefault(name, hashes) != hashes:
        for changed in set(hashes).union(*_known.values()):  # an unchanged module may hold objects of a changed one
            if _is_local(sys.modules.get(changed)):  # but not a module of Python with the same name as a user's file
                del sys.modules[changed]
        for other, files in [*_known.items()]:
            if any(hashes.get(name, content) != content for name, content in files.items()):
                del _known[other]
        _known[name] = hashes
        importlib.invalidate_caches()
        module = importlib.import_module(name)
    return module


def _is_fkl(name: str) -> bool:
    return name.partition(".")[0] == "fkl"


def _joint_hash(hashes: dict[str, str]) -> str:
    return hashlib.sha256("".join(f"{name} {hashes[name]}\n" for name in sorted(hashes)).encode()).hexdigest()


def _content_of_file(file: Path) -> bytes:
    content = file.read_bytes()
    return content.replace(b"\r\n", b"\n") if file.suffix == ".py" else content


def _hashes_behind(name: str) -> dict[str, str]:
    """Hash of the file of every local module that an imported module needs, by module."""
    # Folders to search for modules, starting with the folder of this module
    place = Path(getattr(sys.modules[name], "__file__", None) or "nowhere").absolute()
    folders = [place.parents[name.count(".") + (place.stem == "__init__")]]
    if not _is_installed(folders[0]):
        others = [Path(entry).absolute() for entry in sys.path if Path(entry).is_dir()]
        folders += [folder for folder in others if not _is_installed(folder)]
    top = name.partition(".")[0] if _is_installed(folders[0]) else None
    hashes: dict[str, str] = {}
    waiting = [name]
    while waiting:
        wanted = waiting.pop()
        if _is_fkl(wanted) or (top is not None and wanted.partition(".")[0] != top):
            continue
        parts = wanted.split(".")
        for module in (".".join(parts[:count]) for count in range(1, len(parts) + 1)):  # importing a.b.c runs a and a.b
            if module in hashes:
                continue
            # The module's file, from the first folder that has it, in Python's order
            inner = Path(*module.split("."))
            names = [inner / "__init__.py", *(inner.with_name(inner.name + suffix) for suffix in reversed(SUFFIXES))]
            files = (folder / one for folder in folders for one in names)
            file = next((file for file in files if file.is_file()), None)
            if file is not None:
                content = _content_of_file(file)
                hashes[module] = hashlib.sha256(content).hexdigest()
                if file.suffix == ".py":
                    waiting += _imported_names(
                        content, module if file.stem == "__init__" else module.rpartition(".")[0]
                    )
    return hashes


def _is_local(module: ModuleType | None) -> bool:
    """Whether an imported module is neither installed nor of the standard library."""
    file = getattr(module, "__file__", None)
    return hasattr(module, "__path__") if file is None else not _is_installed(Path(file).absolute().parent)


def _is_installed(folder: Path) -> bool:
    standard = Path(sysconfig.get_path("stdlib"))
    return not INSTALLED.isdisjoint(folder.parts) or folder == standard or standard in folder.parents


@cache
def _imported_names(content: bytes, package: str) -> tuple[str, ...]:
    """Names that a file of a package may import; none for a file that is not Python, which fails when it is run."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return ()
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # from a import b: a and a.b
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*filter(None, above), *filter(None, [node.module])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names if base and alias.name != "*")]
        elif isinstance(node, ast.Call):  # import_module("a")
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                literals = [word.value for word in node.args[:1] if isinstance(word, ast.Constant)]
                names += [word for word in literals if isinstance(word, str)]
    return tuple(name for name in names if name)
