"""What Hydra calls with a configuration: by this name, so that one it cannot compose costs no numerical library."""

import sys

from omegaconf import DictConfig


def job(config: DictConfig) -> float | None:
    """Do a run, see `fkl.sweep.job`."""
    from fkl import sweep

    return sweep.job(config)


def abandon() -> None:
    """Leave nothing of a sweep that ended before its first job did, if one began; see `fkl.sweep.abandon`."""
    if sweep := sys.modules.get("fkl.sweep"):
        sweep.abandon()
