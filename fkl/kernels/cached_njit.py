"""Numba's compiler with a cache on disk that saves time, and that no run depends on."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, NullCache

Function = Callable[..., Any]


def njit_cached(*signatures: str, **options: Any) -> Callable[[Function], Function]:
    """As `numba.njit` with ``cache=True``; where there is no cache, every process compiles the function again."""

    def compiled(function: Function) -> Function:
        made: Any = njit(**options)(function)
        if hasattr(made, "disable_compile"):  # not with NUMBA_DISABLE_JIT
            made._cache = _cache_of(function)
            for one in signatures:
                made.compile(one)
            made.disable_compile(bool(signatures))
        return made

    return compiled


def _cache_of(function: Function) -> Any:
    try:
        return _Cache(function)
    except RuntimeError:  # no folder for it can be written
        _tell("no folder for it can be written")
        return NullCache()


class _Cache(FunctionCache):  # type: ignore[misc]
    """Files that cannot be read or written are as good as none."""

    def load_overload(self, *of_function: Any) -> Any:
        """Code that was compiled before; None if there is none."""
        try:
            return super().load_overload(*of_function)
        except Exception:  # a damaged pickle may raise anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *of_function: Any) -> None:
        """Keep code for other processes."""
        try:
            super().save_overload(*of_function)
        except OSError as error:
            _tell(error.strerror or str(error))


@cache
def _tell(why: str) -> None:
    from fkl.screen.messages import warning

    mend = "set NUMBA_CACHE_DIR to a folder that can be written"
    warning(f"compiled code is not kept, so every process compiles it again ({why}); {mend}")
