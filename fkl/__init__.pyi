from pathlib import Path

from fkl import estimators as estimators
from fkl.report.api import Result as Result
from fkl.report.api import load as load
from fkl.report.api import load_model as load_model
from fkl.report.api import run as run
from fkl.report.compare import compare as compare
from fkl.report.compare import rounds as rounds

__version__: str

def conf_folder() -> Path: ...
