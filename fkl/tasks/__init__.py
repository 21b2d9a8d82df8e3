"""Tasks: each kind of data with its judge, its columns and its memory.

`stream` has a sample for each client and round, `batch` all samples at once, `repeated` a batch for each replicate,
`vertical` features with different parties. No other package asks what kind of data a run has. Begin with `task.Task`.
"""

from typing import Any

from fkl.basics.errors import FklError
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import Judge, Task

__all__ = ["Judge", "Task", "task_of"]


def task_of(algorithm: Any) -> type[Task]:
    """The task that an algorithm or its class names, or else a stream."""
    named = getattr(algorithm, "task", StreamTask)
    if isinstance(named, type) and issubclass(named, Task):
        return named
    raise FklError(f"algo: task of {algorithm.label} is {named!r}, where a class is named that is a fkl.tasks.Task")
