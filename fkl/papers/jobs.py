"""Jobs of a paper's experiment, with the same configurations as in `fkl run`."""

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Any

from fkl.config import experiments
from fkl.config.choices import Choices
from fkl.config.compose import Word, compose_read, each_value, read_words
from fkl.config.loading import resolve_config


@dataclass(frozen=True)
class PaperJob:
    """One job of an experiment.

    Parameters
    ----------
    words : tuple of str
        Its words on the command line.
    config : dict
        Its configuration as plain data, without paths.
    cell : dict
        Position of its run in the paper's tables and figures.
    """

    words: tuple[str, ...]
    config: dict[str, Any]
    cell: dict[str, Any]


@cache
def experiment_jobs(experiment: str) -> tuple[PaperJob, ...]:
    """All jobs of an experiment, named PAPER/NAME."""
    [chosen] = read_words([f"+{experiments.GROUP}={experiment}"])
    # One job for each combination of the swept words
    jobs_made = []
    for swept_words in product(*_swept_words(experiment)):
        composed = compose_read([chosen, *swept_words])
        del composed.config["paths"]
        config = resolve_config(composed.config)
        # A cell can refer to values of the configuration, for example ``M={algo[M]}``
        cell = {
            key: value.format(**config) if isinstance(value, str) else value for key, value in composed.cell.items()
        }
        jobs_made.append(PaperJob(tuple(word.text for word in (chosen, *swept_words)), config, cell))
    return tuple(jobs_made)


def count_jobs(experiment: str) -> int:
    """Number of jobs in an experiment, without composing them."""
    return prod(len(values) for values in _swept_words(experiment))


def _swept_words(experiment: str) -> list[list[Word]]:
    """For each key of the sweep, one word for each of its values."""
    node: Any = experiments.paper_choice(f"{experiments.GROUP}/{experiment}")
    return [read_words(each_value(f"{key}={value}", Choices().names)) for key, value in node["sweep"].items()]
