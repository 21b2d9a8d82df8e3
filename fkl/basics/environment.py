"""Variables of the environment, and limits that a shell sets."""

import os
import resource

from fkl.basics.errors import FklError


def variable(name: str, default: str) -> str:
    """Value of a variable; an empty one counts as unset."""
    return os.environ.get(name) or default


def require_address_space(needed: int) -> None:
    """Refuse a limit that leaves no room for the libraries, which otherwise end the process without a word, or hang.

    Parameters
    ----------
    needed : int
        MiB of address space; half of them are the process's own data.

    Raises
    ------
    fkl.basics.errors.FklError
        Names the shell's command, and the least limit.
    """
    for limit, name, least in ((resource.RLIMIT_AS, "-v", needed), (resource.RLIMIT_DATA, "-d", needed // 2)):
        allowed, _ = resource.getrlimit(limit)
        if allowed != resource.RLIM_INFINITY and allowed < least * 2**20:
            what = f"{allowed // 2**20} MiB of memory, and the libraries alone need {least} MiB"
            raise FklError(f"ulimit {name}: allows {what}: raise it to {least * 2**10} at least")
