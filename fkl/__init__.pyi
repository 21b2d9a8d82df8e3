from pathlib import Path

from fkl import estimators as estimators
from fkl.report.compare import compare as compare
from fkl.report.compare import rounds as rounds
from fkl.runs.api import Result as Result
from fkl.runs.api import load as load
from fkl.runs.api import load_model as load_model
from fkl.runs.api import run as run

__version__: str

def conf_folder() -> Path: ...
