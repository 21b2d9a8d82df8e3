"""Play several configurations, one after another, on as many ranks as there are: a start of MPI for all of them."""

import json
import sys
from pathlib import Path

import blank
import matplotlib.figure

from fkl.composing.loader import compose
from fkl.config import load
from fkl.execution import execute
from fkl.hushed import hush

matplotlib.figure.Figure.savefig = blank.savefig
hush()
for words in json.loads(Path(sys.argv[1]).read_text()):
    execute(load(compose(*words)))
