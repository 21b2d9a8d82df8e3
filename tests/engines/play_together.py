"""Play several configurations, one after another, on as many ranks as there are: a start of MPI for all of them.

Each rank leaves its process in `pid.RANK`, and how many rounds it opened in `rounds.RANK`.
"""

import json
import os
import sys
from pathlib import Path

from fkl.composing.loader import compose
from fkl.config import load
from fkl.execution import execute
from fkl.hushed import NUMBERS, hush
from fkl.network import Channel

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
for words in json.loads(Path(sys.argv[1]).read_text()):
    execute(load(compose(*words)))
Path(f"rounds.{number}").write_text(str(len(opened)))
