"""Tasks: a class for each kind of data, with its judge, its columns and its memory.

`stream` has a sample for each client and round, `batch` all samples at once, `repeated` a batch for each replicate,
`vertical` features at different parties. No other package checks which kind of data a run has. Start with `task.Task`.
"""

from typing import Any

from fkl.basics.errors import FklError
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import Judge, Task

__all__ = ["Judge", "Task", "task_of"]


def task_of(algorithm: Any) -> type[Task]:
    """The task that an algorithm or its class names, else `StreamTask`."""
    named = getattr(algorithm, "task", StreamTask)
    if isinstance(named, type) and issubclass(named, Task):
        return named
    raise FklError(f"algo: task of {algorithm.label} is {named!r}; it must be a subclass of fkl.tasks.Task")
