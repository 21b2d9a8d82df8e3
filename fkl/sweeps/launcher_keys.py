"""Limits of launchers' and sweepers' keys on a command line: known classes, and only values that work."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from fkl.basics.errors import FklError, require

SAMPLER = re.compile(r"optuna\.samplers\.[A-Za-z]+Sampler")
FOLDERS = ("submitit_folder",)
AT_LEAST_0 = r"\d+", "an integer >= 0"
AT_LEAST_1 = r"[1-9]\d*", "an integer >= 1"
AT_LEAST_1_OR_NULL = r"[1-9]\d*", "an integer >= 1, or null"
SUBMITIT = {
    **dict.fromkeys(("timeout_min", "tasks_per_node", "nodes", "array_parallelism"), AT_LEAST_1),
    **dict.fromkeys(("cpus_per_task", "gpus_per_node", "gpus_per_task", "cpus_per_gpu", "mem_gb"), AT_LEAST_1_OR_NULL),
    **dict.fromkeys(("signal_delay_s", "max_num_timeout"), AT_LEAST_0),
}
JOBLIB = {
    "n_jobs": (r"-?([1-9]\d{0,2}|[1-3]\d{3}|40[0-8]\d|409[0-6])", "an integer from 1 to 4096, or -1 for all cores"),
}
OF_JOBLIB_ALONE = (
    *("backend", "prefer", "require", "verbose", "timeout"),
    *("pre_dispatch", "batch_size", "temp_folder", "max_nbytes", "mmap_mode"),
)
"""Keys of Hydra's launcher for joblib's pools, which fkl does not use; see `fkl.sweeps.launchers`."""
RAY = {
    "ray.init.address": (r"auto|local|(ray://)?[\w.-]+:\d+", "auto, local, HOST:PORT or ray://HOST:PORT, or null"),
    "ray.init.num_cpus": AT_LEAST_1_OR_NULL,
    "ray.remote.num_cpus": AT_LEAST_1,
}
"""The only allowed keys of the mappings that are passed to Ray, because others run commands on its machines."""
OPTUNA = {
    "n_trials": AT_LEAST_1,
    "n_jobs": AT_LEAST_1,
    "direction": ("minimize|maximize", "minimize or maximize"),
    "storage": (
        r"sqlite:///.+|(mysql|postgresql)(\+[a-z0-9]+)?://.+",
        "the URL of a sqlite, mysql or postgresql database, or null",
    ),
}
PLUGINS: dict[str, dict[str, dict[str, tuple[str, str]]]] = {
    "launcher": {
        "basic": {},
        "joblib": JOBLIB,
        "ray": RAY,
        "submitit_local": SUBMITIT,
        "submitit_slurm": SUBMITIT,
    },
    "sweeper": {"basic": {"max_batch_size": AT_LEAST_1_OR_NULL}, "optuna": OPTUNA},
}
"""Launchers and sweepers, by choice, with the allowed values of their keys, as a pattern and as text.

A key with dots is a key of an inner mapping, for which only the listed keys are allowed.
"""


def require_allowed(hydra: DictConfig) -> None:
    """Refuse values that a launcher or sweeper does not allow.

    Parameters
    ----------
    hydra : DictConfig
        Hydra's own node, which Hydra composed from the command line's words.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the key and its allowed values.
    """
    registered = ConfigStore.instance().repo["hydra"]
    for kind, plugins in PLUGINS.items():
        group = f"hydra/{kind}"
        schemas = {
            name: registered[kind][f"{name}.yaml"].node for name in plugins if f"{name}.yaml" in registered[kind]
        }
        names: dict[Any, str] = {schema._target_: name for name, schema in schemas.items()}
        node: Any = OmegaConf.to_container(hydra[kind], resolve=True)
        target = node["_target_"]
        allowed = f"unchanged; choose {group} from {', '.join(names)}"
        require(target in names, f"hydra.{kind}._target_", target, allowed)
        name = names[target]
        if name == "submitit_slurm":
            require(shutil.which("sbatch") is not None, group, name, "another one, because sbatch is not installed")
        limits = plugins[name]
        inside = {limit.partition(".")[0] for limit in limits if "." in limit}
        keys_known = sorted({*map(str, schemas[name])} - inside | {*limits})
        for key, value in _nested_entries(node, limits):
            if name == "joblib" and key in OF_JOBLIB_ALONE:
                require(value == schemas[name][key], f"hydra.{kind}.{key}", value, "omitted; fkl uses only n_jobs")
            _require_value(f"hydra.{kind}.{key}", value, keys_known, limits.get(key))


def _nested_entries(node: dict[str, Any], limits: Iterable[str], before: str = "") -> Iterator[tuple[str, Any]]:
    """Keys and values, including those of inner mappings whose keys are limited."""
    for name, value in node.items():
        key = f"{before}{name}"
        if isinstance(value, dict) and any(limit.startswith(f"{key}.") for limit in limits):
            yield from _nested_entries(value, limits, f"{key}.")
        else:
            yield key, value


def _require_value(path: str, value: Any, known: list[str], limit: tuple[str, str] | None) -> None:
    """Raise an error for a key that its plugin does not have, or a value that the key does not allow."""
    key = path.split(".", 2)[2]
    if key not in known:
        raise FklError(f"{path}: no such key; keys are {', '.join(known)}")
    # Hydra makes an object of every mapping with a `_target_`, however deep.
    if isinstance(value, dict | list) and (inside := str(value).count("_target_")):
        sampler = value.get("_target_") if isinstance(value, dict) else None
        fits = path == "hydra.sweeper.sampler" and inside == 1 and SAMPLER.fullmatch(str(sampler)) is not None
        allowed = "omitted, or a sampler of optuna.samplers under hydra.sweeper.sampler"
        require(fits, f"{path}._target_", sampler, allowed)
    if key in FOLDERS:
        require_folder(path, value)
    if limit is not None:
        pattern, allowed = limit
        fits = "null" in allowed if value is None else re.fullmatch(pattern, str(value)) is not None
        require(fits, path, value, allowed)
    # A line break in a job's settings would become a line in the script that a cluster runs.
    for word in value if isinstance(value, list) else [value]:
        require(not isinstance(word, str) or word.isprintable(), path, value, "text without line breaks")


def require_folder(key: str, folder: Any) -> None:
    """Refuse a folder that cannot be written or created; null is the launcher's default."""
    if folder is None:
        return
    absolute = Path(folder).absolute()
    fits = False
    with suppress(OSError):  # a name that is too long
        nearest = next(parent for parent in (absolute, *absolute.parents) if parent.exists())
        fits = str(folder).strip() != "" and nearest.is_dir() and os.access(nearest, os.W_OK)
    require(fits, key, folder, "a folder that can be written to")
