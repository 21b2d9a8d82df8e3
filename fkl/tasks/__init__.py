"""Tasks: each kind of data with its judge, its columns, its memory and what the conformance suite varies of it."""

from typing import Any

from fkl.basics.errors import FklError
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import Judge, Task

__all__ = ["Judge", "Task", "task_of"]


def task_of(algorithm: Any) -> type[Task]:
    """The task of an algorithm or of its class: the one that it names, or else a stream."""
    named = getattr(algorithm, "task", StreamTask)
    if isinstance(named, type) and issubclass(named, Task):
        return named
    raise FklError(f"algo: task of {algorithm.label} is {named!r}, where a class is named that is a fkl.tasks.Task")
