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

ELEMENTS_A_THREAD = 250_000
"""Number of features that justifies one more thread: about 0.2 ms of work, far more than waking a thread takes."""

_limit: int | None = None
"""Limit set by `at_most`; None for all threads."""


def available_threads() -> int:
    """Number of threads outside `at_most`: NUMBA_NUM_THREADS, by default one per core."""
    from numba import config  # imported here, because a check of a configuration does not need it

    return int(config.NUMBA_NUM_THREADS)


def largest_threads() -> int:
    """Largest number of threads that now work at once."""
    return available_threads() if _limit is None else _limit


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Limit compiled kernels to this many threads inside a `with` block; None for all threads.

    BLAS then uses one thread, because the compiled kernels call it for tiles in their own threads.
    """
    global _limit
    # BLAS must not start threads of its own inside ours
    before, _limit = _limit, min(threads or available_threads(), available_threads())
    try:
        with _thread_libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
            yield
    finally:
        _limit = before


@lru_cache(maxsize=1)
def _thread_libraries(modules: int) -> ThreadpoolController:
    """Libraries that have their own threads; a new import requires another search, of about 5 ms."""
    return ThreadpoolController()


def share_work(work: Callable[..., object], count: int, elements: int, *arguments: object) -> None:
    """Call `work(begin, end, *arguments)`, without the GIL, on parts of range(count), each in a thread.

    Parts must write to separate places. Numba's own parallel loops would take many times longer to compile.

    Parameters
    ----------
    work : callable
        Compiled code, or numpy code that consists of products and factorisations, in which numpy releases the GIL.
    count : int
    elements : int
        Number of features that all parts compute, or of operations that take as long; it decides how many threads work.
    """
    # Little work is done here, because handing it to threads would take longer
    threads = min(largest_threads(), elements // ELEMENTS_A_THREAD, count)
    if threads <= 1:
        work(0, count, *arguments)
        return
    # Equal parts; the calling thread does the last one
    ends = [count * part // threads for part in range(threads + 1)]
    *others, mine = pairwise(ends)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    for part in others:  # in the caller's context, which has numpy's overflow settings
        _request_queue().put((copy_context(), done, work, *part, *arguments))
    try:
        work(*mine, *arguments)
    # Wait for all parts, also if one has failed, because they write to the caller's arrays
    finally:
        raised = [done.get() for _ in others]
    for error in filter(None, raised):
        raise error


def in_parts(work: Callable[[int, int], object], count: int, elements: int | None = None) -> None:
    """Divide `work` among threads; without `elements`, each of the `count` pieces of work is worth a thread."""
    share_work(work, count, count * ELEMENTS_A_THREAD if elements is None else elements)


@cache
def _request_queue() -> SimpleQueue[Any]:
    """The queue of permanent threads. With new threads, BLAS would allocate its buffers in every call.

    It is not an executor, because its futures and locks take a tenth of a short round.
    """
    queue: SimpleQueue[Any] = SimpleQueue()
    for _ in range(available_threads()):
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
