"""What a command line may say of launchers and sweepers: no class but theirs, and no number that they choke on."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from fkl.basics.errors import BadValue, FklError, require

SAMPLER = re.compile(r"optuna\.samplers\.[A-Za-z]+Sampler")


class Limit(NamedTuple):
    """What a value must be, as a function and in words."""

    holds: Callable[[Any], bool]
    allowed: str


def _one_of(*words: str | None) -> Limit:
    return Limit(lambda value: value in words, ", ".join("null" if word is None else word for word in words))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _can_be_made(folder: Any) -> bool:
    """Whether a folder is there and can be written to, or can be made."""
    if folder is None:
        return True
    whole = Path(folder).absolute()
    nearest = next(parent for parent in (whole, *whole.parents) if parent.exists())
    return str(folder).strip() != "" and nearest.is_dir() and os.access(nearest, os.W_OK)


A_FOLDER = Limit(_can_be_made, "a folder that can be written to")
AT_LEAST_1 = Limit(lambda value: _whole(value) and value >= 1, "an integer >= 1")
AT_LEAST_1_OR_NULL = Limit(lambda value: value is None or AT_LEAST_1.holds(value), "an integer >= 1, or null")
AT_LEAST_0 = Limit(lambda value: _whole(value) and value >= 0, "an integer >= 0")
NULL = Limit(lambda value: value is None, "null")
MOST_WORKERS = 4096
STORAGE = re.compile(r"sqlite:///.+|(mysql|postgresql)(\+[a-z0-9]+)?://.+")
SUBMITIT = {
    "submitit_folder": A_FOLDER,
    "timeout_min": AT_LEAST_1,
    "cpus_per_task": AT_LEAST_1_OR_NULL,
    "gpus_per_node": AT_LEAST_1_OR_NULL,
    "gpus_per_task": AT_LEAST_1_OR_NULL,
    "cpus_per_gpu": AT_LEAST_1_OR_NULL,
    "tasks_per_node": AT_LEAST_1,
    "mem_gb": AT_LEAST_1_OR_NULL,
    "nodes": AT_LEAST_1,
    "signal_delay_s": AT_LEAST_0,
    "max_num_timeout": AT_LEAST_0,
    "array_parallelism": AT_LEAST_1,
}
JOBLIB = {
    "n_jobs": Limit(
        lambda value: _whole(value) and 0 < abs(value) <= MOST_WORKERS,
        f"an integer from 1 to {MOST_WORKERS}, or -1 for all cores",
    ),
    "temp_folder": A_FOLDER,
    "backend": _one_of(None, "loky"),
    "prefer": _one_of("processes"),
    "require": NULL,
    "verbose": AT_LEAST_0,
    "timeout": Limit(lambda value: value is None or value > 0, "seconds > 0, or null"),
    "pre_dispatch": Limit(
        lambda value: re.fullmatch(r"all|[1-9]\d{0,8}( ?\* ?n_jobs)?", str(value)) is not None,
        "all, an integer >= 1, or that times n_jobs, for example 2*n_jobs",
    ),
    "batch_size": Limit(
        lambda value: re.fullmatch(r"auto|[1-9]\d{0,8}", str(value)) is not None, "auto or an integer >= 1"
    ),
    "max_nbytes": Limit(
        lambda value: value is None or re.fullmatch(r"\d{1,15}[KMG]?", str(value)) is not None,
        "bytes, for example 1M, or null",
    ),
    "mmap_mode": _one_of("r", "r+", "w+", "c", None),
}
BASIC = {"max_batch_size": AT_LEAST_1_OR_NULL}
OPTUNA = {
    "n_trials": AT_LEAST_1,
    "n_jobs": AT_LEAST_1,
    "direction": Limit(lambda value: value in ("minimize", "maximize"), "minimize or maximize"),
    "storage": Limit(
        lambda value: value is None or STORAGE.fullmatch(str(value)) is not None,
        "the URL of a sqlite, mysql or postgresql database, or null",
    ),
}
PLUGINS: dict[str, dict[str, dict[str, Limit]]] = {
    "launcher": {"basic": {}, "joblib": JOBLIB, "submitit_local": SUBMITIT, "submitit_slurm": SUBMITIT},
    "sweeper": {"basic": BASIC, "optuna": OPTUNA},
}
"""Launchers and sweepers, by the name of their choice, and what their keys must be."""


def require_allowed(hydra: DictConfig) -> None:
    """Refuse what a launcher or sweeper cannot have.

    Parameters
    ----------
    hydra : DictConfig
        Hydra's own node, as Hydra composed it of the command line's words.

    Raises
    ------
    fkl.basics.errors.FklError
        Names the key and what is allowed.
    """
    for kind in PLUGINS:
        _require_no_target_inside(hydra, kind)
        _require_plugin(hydra, kind)


def _require_no_target_inside(hydra: DictConfig, kind: str) -> None:
    """What Hydra would make on the way to a launcher or sweeper; interpolations stay as they are written."""
    for key, target in _targets(OmegaConf.to_container(hydra[kind], resolve=False), f"hydra.{kind}"):
        if key == f"hydra.{kind}._target_":
            classes = [target_of(kind, name) for name in available(kind)]
            require(target in classes, key, target, f"left as hydra/{kind} has it; there are {', '.join(classes)}")
        else:
            sampler = key.startswith("hydra.sweeper.sampler") and SAMPLER.fullmatch(str(target)) is not None
            require(sampler, key, target, "left out, or a sampler of optuna.samplers under hydra.sweeper.sampler")


def _targets(node: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Every `_target_` inside plain data, and where it is."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, value in items:
        if name == "_target_":
            yield f"{key}._target_", value
        else:
            yield from _targets(value, f"{key}.{name}")


def available(kind: str) -> list[str]:
    """Launchers or sweepers that are installed."""
    return [name for name in PLUGINS[kind] if f"{name}.yaml" in ConfigStore.instance().repo["hydra"][kind]]


def target_of(kind: str, name: str) -> str:
    """Class of a launcher or sweeper."""
    return str(_schema(kind, name)._target_)


def _schema(kind: str, name: str) -> DictConfig:
    registered: DictConfig = ConfigStore.instance().repo["hydra"][kind][f"{name}.yaml"].node  # `load` copies it
    return registered


def _require_plugin(hydra: DictConfig, kind: str) -> None:
    """Compare a launcher's or sweeper's keys with those that its class has, and with what they can be."""
    group, names = f"hydra/{kind}", available(kind)
    node: Any = OmegaConf.to_container(hydra[kind], resolve=True)
    name = next((name for name in names if target_of(kind, name) == node.get("_target_")), None)
    if name is None:
        raise BadValue(group, hydra.runtime.choices.get(group), ", ".join(names))
    if name == "submitit_slurm":
        require(shutil.which("sbatch") is not None, group, name, "another one where there is no sbatch")
    known = set(_schema(kind, name))
    for key, value in node.items():
        if key not in known:
            raise FklError(f"hydra.{kind}.{key}: no such key; there are {', '.join(sorted(map(str, known)))}")
        if (limit := PLUGINS[kind][name].get(key)) is not None:
            require(limit.holds(value), f"hydra.{kind}.{key}", value, limit.allowed)
        _require_one_line(f"hydra.{kind}.{key}", value)


def _require_one_line(key: str, value: Any) -> None:
    """A line break in a job's settings would be a line of the script that a cluster runs."""
    words = value if isinstance(value, list) else [value]
    for word in words:
        require(not isinstance(word, str) or word.isprintable(), key, value, "words of one line")
