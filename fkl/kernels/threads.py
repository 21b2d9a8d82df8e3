"""How many threads the compiled kernels use."""

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
"""Features worth a thread of their own: about 0.2 ms, far more than waking it costs."""

_limit: int | None = None
"""What `at_most` allows; None for all there are."""


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Let compiled kernels use no more than so many threads in this block; None for all there are.

    BLAS is held to one: the compiled kernels call it for tiles of their own threads.
    """
    import numba  # here, as below: a configuration is checked without it

    global _limit
    before, available = _limit, numba.config.NUMBA_NUM_THREADS
    _limit = min(threads or available, available)
    try:
        with _thread_libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
            yield
    finally:
        _limit = before
        numba.set_num_threads(available)


@lru_cache(maxsize=1)
def _thread_libraries(modules: int) -> ThreadpoolController:
    """Libraries with threads of their own; a new import makes another search necessary, which takes some 5 ms."""
    return ThreadpoolController()


def wake_for(elements: int) -> None:
    """Set the number of threads of the next compiled call by the number of features that it computes."""
    import numba

    most = _limit or numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(max(1, min(most, elements // ELEMENTS_A_THREAD)))


def share(work: Callable[..., object], count: int, *arguments: object) -> None:
    """Call compiled `work(begin, end, *arguments)`, free of the GIL, on a part of range(count) in each thread awake.

    For long recursions side by side: they compile in a fraction of the time that numba's own parallel loops take.
    """
    import numba

    threads = min(numba.get_num_threads(), count)
    if threads == 1:
        work(0, count, *arguments)
        return
    ends = [count * part // threads for part in range(threads + 1)]
    *others, mine = pairwise(ends)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    for part in others:  # in the caller's context, which holds what numpy is to do about overflow
        _request_queue().put((copy_context(), done, work, *part, *arguments))
    try:
        work(*mine, *arguments)
    finally:
        raised = [done.get() for _ in others]
    for error in filter(None, raised):
        raise error


def in_parts(work: Callable[[int, int], object], count: int, elements: int | None = None) -> None:
    """Call `work(begin, end)` of numpy on parts of range(count), in as many threads as `elements` are worth.

    numpy lets go of the GIL in its products and factorizations; parts must write to places of their own.
    """
    wake_for(elements if elements is not None else count * ELEMENTS_A_THREAD)
    share(work, count)


@cache
def _request_queue() -> SimpleQueue[Any]:
    """The queue of lasting threads. With new threads, BLAS would set up its buffers at every call.

    It is no executor, since futures and locks of one take a tenth of a short round.
    """
    import numba

    queue: SimpleQueue[Any] = SimpleQueue()
    for _ in range(numba.config.NUMBA_NUM_THREADS):
        Thread(target=_serve_queue, args=(queue,), daemon=True).start()
    return queue


def _serve_queue(queue: SimpleQueue[Any]) -> None:
    while True:
        _run_request(*queue.get())  # in a function, whose arrays are let go of while this waits


def _run_request(context: Context, done: SimpleQueue[Any], work: Callable[..., object], *given: Any) -> None:
    try:
        context.run(work, *given)
        done.put(None)
    except BaseException as error:  # raised where it was asked for
        done.put(error)
