"""Variables of the environment, and limits that a shell sets."""

import os
import resource
from pathlib import Path

from fkl.basics.errors import FklError


def environment_variable(name: str, default: str) -> str:
    """Value of a variable; an empty one counts as unset."""
    return os.environ.get(name) or default


def require_address_space(needed: int) -> None:
    """Raise an error if a limit leaves no room for the libraries, which would otherwise crash silently or hang.

    Parameters
    ----------
    needed : int
        MiB of address space; half of them are the process's own data.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the shell's command and the smallest limit that is enough.
    """
    for limit, name, least in ((resource.RLIMIT_AS, "-v", needed), (resource.RLIMIT_DATA, "-d", needed // 2)):
        allowed, _ = resource.getrlimit(limit)
        if allowed != resource.RLIM_INFINITY and allowed < least * 2**20:
            what = f"{allowed // 2**20} MiB of memory, and the libraries alone need {least} MiB"
            raise FklError(f"ulimit {name}: allows {what}: raise it to at least {least * 2**10}")


def current_folder() -> Path:
    """The current folder.

    Raises
    ------
    fkl.basics.errors.FklError
        If it has been deleted, perhaps to make it again.
    """
    try:
        return Path.cwd()
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        what = "has been deleted" if gone else f"cannot be found ({error.strerror})"
        raise FklError(
            f"the current folder {what}: change to another one, or to this one again if it is new"
        ) from error
