"""Of several processes that do one run together, the first one speaks."""

import os
import sys
import traceback

from fkl.environment import variable
from fkl.errors import FklError

_LOUD = [2]
"""File descriptors of stderr; the last one is heard."""


def hush() -> None:
    """Let all but the first of the processes that an MPI has started say nothing, unless they end all."""
    number = next(filter(None, (variable(name, "") for name in NUMBERS)), "0")
    if number != "0" and len(_LOUD) == 1:
        _LOUD.append(os.dup(2))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)


NUMBERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Where MPICH, those that speak PMIx, and Open MPI say which of its processes this is."""


def say(error: BaseException) -> None:
    """One line for what the user can mend, and all there is to know of anything else."""
    print(end="", file=sys.stdout, flush=True)
    words = f"fkl: {' '.join(str(error).split())}\n" if isinstance(error, FklError) else traceback.format_exc()
    os.write(_LOUD[-1], words.encode())
