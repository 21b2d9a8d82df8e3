"""Numba's compiler with a cache on disk, which saves time but which no run needs."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, NullCache

Function = Callable[..., Any]


def njit_cached(*signatures: str, **options: Any) -> Callable[[Function], Function]:
    """Compile with `numba.njit` and a cache on disk; without one, every process compiles the function again."""

    def compiled(function: Function) -> Function:
        made: Any = njit(**options)(function)
        # Signatures given in advance are compiled at once, so the first call in a run does not wait
        if hasattr(made, "disable_compile"):  # not with NUMBA_DISABLE_JIT
            made._cache = _cache_of(function)
            for signature in signatures:
                made.compile(signature)
            made.disable_compile(bool(signatures))
        return made

    return compiled


def _cache_of(function: Function) -> Any:
    try:
        return _Cache(function)
    except RuntimeError:  # it finds no writeable folder
        _tell_reason("no folder for the cache is writeable")
        return NullCache()


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache that treats files that it cannot read or write as missing."""

    def load_overload(self, *of_function: Any) -> Any:
        """Code that was compiled earlier; None if there is none."""
        try:
            return super().load_overload(*of_function)
        except Exception:  # a damaged pickle may raise anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *of_function: Any) -> None:
        """Store compiled code for other processes."""
        try:
            super().save_overload(*of_function)
        except OSError as error:
            _tell_reason(error.strerror or str(error))


@cache
def _tell_reason(why: str) -> None:
    from fkl.screen.messages import show_warning

    mend = "set NUMBA_CACHE_DIR to a writeable folder"
    show_warning(f"compiled code is not kept, so every process compiles it again ({why}); {mend}")
