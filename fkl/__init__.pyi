from pathlib import Path

from fkl import estimators as estimators
from fkl.api import Result as Result
from fkl.api import load as load
from fkl.api import load_model as load_model
from fkl.api import run as run
from fkl.comparison import compare as compare

__version__: str

def conf_folder() -> Path: ...
