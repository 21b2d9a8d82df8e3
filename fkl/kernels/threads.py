"""Threads of the compiled kernels."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache, lru_cache
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any

from threadpoolctl import ThreadpoolController

from fkl.basics.errors import FklError, in_one_line

ELEMENTS_A_THREAD = 250_000
"""Number of features that justifies one more thread: about 0.2 ms of work, far more than waking a thread takes."""

_limit: int | None = None
"""Limit set by `at_most`; None for all threads."""


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Limit compiled kernels to this many threads inside a `with` block; None for all threads.

    BLAS then uses one thread, because the compiled kernels call it for tiles in their own threads.
    """
    import numba  # imported here and below, because a check of a configuration does not need it

    global _limit
    before, available = _limit, numba.config.NUMBA_NUM_THREADS
    _limit = min(threads or available, available)
    try:
        try:
            numba.set_num_threads(available)  # starts them
        except ValueError as error:
            raise FklError(f"NUMBA_THREADING_LAYER={numba.config.THREADING_LAYER}: {in_one_line(error)}") from None
        with _thread_libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
            yield
        numba.set_num_threads(available)
    finally:
        _limit = before


@lru_cache(maxsize=1)
def _thread_libraries(modules: int) -> ThreadpoolController:
    """Libraries that have their own threads; a new import requires another search, of about 5 ms."""
    return ThreadpoolController()


def wake_for(elements: int) -> None:
    """Set the number of threads of the next compiled call according to the number of features that it computes."""
    import numba

    most = _limit or numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(max(1, min(most, elements // ELEMENTS_A_THREAD)))


def share(work: Callable[..., object], count: int, *arguments: object) -> None:
    """Call compiled `work(begin, end, *arguments)`, without the GIL, on a part of range(count) in each active thread.

    This is for long parallel recursions: they compile in a fraction of the time of numba's own parallel loops.
    """
    import numba

    threads = min(numba.get_num_threads(), count)
    if threads == 1:
        work(0, count, *arguments)
        return
    ends = [count * part // threads for part in range(threads + 1)]
    *others, mine = pairwise(ends)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    for part in others:  # in the caller's context, which has numpy's overflow settings
        _request_queue().put((copy_context(), done, work, *part, *arguments))
    try:
        work(*mine, *arguments)
    finally:
        raised = [done.get() for _ in others]
    for error in filter(None, raised):
        raise error


def in_parts(work: Callable[[int, int], object], count: int, elements: int | None = None) -> None:
    """Call numpy code `work(begin, end)` on parts of range(count), in as many threads as `elements` justify.

    numpy releases the GIL in its products and factorisations; parts must write to separate places.
    """
    wake_for(elements if elements is not None else count * ELEMENTS_A_THREAD)
    share(work, count)


@cache
def _request_queue() -> SimpleQueue[Any]:
    """The queue of permanent threads. With new threads, BLAS would allocate its buffers in every call.

    It is not an executor, because its futures and locks take a tenth of a short round.
    """
    import numba

    queue: SimpleQueue[Any] = SimpleQueue()
    for _ in range(numba.config.NUMBA_NUM_THREADS):
        Thread(target=_serve_queue, args=(queue,), daemon=True).start()
    return queue


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_request_queue.cache_clear)  # a forked process does not have the threads


def _serve_queue(queue: SimpleQueue[Any]) -> None:
    while True:
        _run_request(*queue.get())  # in a function, so its arrays are released while this waits


def _run_request(context: Context, done: SimpleQueue[Any], work: Callable[..., object], *given: Any) -> None:
    try:
        context.run(work, *given)
        done.put(None)
    except BaseException as error:  # raised in the calling thread
        done.put(error)
