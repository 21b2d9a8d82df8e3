"""Play several configurations, one after another, some on a few of the ranks: a start of MPI for all of them.

The file that is named has pairs of ranks and of the words that these play, while the others go on to what is theirs.
Each rank leaves its process in `pid.RANK`, and how many rounds it opened in `rounds.RANK`.
"""

import json
import os
import sys
from pathlib import Path

from mpi4py import MPI

from fkl.config import load
from fkl.config.compose import compose
from fkl.engines import mpi
from fkl.engines.mpi import NUMBERS, Ranks, hush
from fkl.runs.execute import execute
from fkl.wire import Channel

sys.path.insert(0, str(Path(__file__).parents[1]))  # a rank knows nothing of where pytest finds its modules
import blank

blank.begin()
hush()
number = next(os.environ[name] for name in NUMBERS if name in os.environ)
Path(f"pid.{number}").write_text(str(os.getpid()))
opened, open_round = [], Channel.open_round


def noted(channel: Channel, t: int, present: object) -> None:
    """Open a round, and remember it."""
    opened.append(t)
    open_round(channel, t, present)


Channel.open_round = noted
for playing, configurations in json.loads(Path(sys.argv[1]).read_text()):
    if int(number) in playing:
        world = MPI.COMM_WORLD
        some = world if len(playing) == world.size else world.Create_group(world.group.Incl(playing))
        mpi.started = lambda some=some: Ranks(some)
        for words in configurations:
            execute(load(compose(*words)))
Path(f"rounds.{number}").write_text(str(len(opened)))
