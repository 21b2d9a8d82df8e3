"""What cannot be composed, or makes no sense together: one line, exit code 2, and nothing written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broken.refusal import lines, require_refused
from conftest import SMALL, Answer

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # on a terminal it would be one more line
UNREADABLE = {
    "algo": "algo: not understood; write KEY=VALUE",
    "algo.M": "algo.M: not understood; write KEY=VALUE",
    "algo.M==1": "algo.M==1: not understood",
    "algo.M={a:1": "algo.M={a:1: not understood",
    "algo.M='1": "algo.M='1: not understood",
    "algo.M=1,2": "algo.M=1,2: several values are for fkl run -m",
    "algo.M=${nope}": "algo.M: Interpolation key 'nope' not found",
    "algo.M=${oc.env:NO_SUCH_VARIABLE}": "algo.M: .*'NO_SUCH_VARIABLE' not found",
    "algo.M=???": "algo.M: Missing mandatory value",
    "algo=''": "algo=: no such choice",
    "algo=5": "algo=5: must be the name of a choice",
    "algo=[a,b]": "algo=b: no such choice",
    "+algo=coke": "algo: chosen twice, as pof_mkl and coke",
    "~algo": "algo._target_=None: must be",
    "~dataset": "dataset._target_=None: must be",
    "~partition": "partition._target_=None: must be",
    "~network": "network._target_=None: must be",
    "~paths": "paths=None: must be folders",
    "~nope": "nope: no such key",
    "network=5": "network._target_=None: must be",
    "paths=3": "paths=3: must be folders",
    "experiment=nope": "experiment=nope: the configuration has no experiment; to add it, write",
    "+experiment=nope": "experiment=nope: no such choice",
    "--nope": "--nope: no such option",
    "--cfg=nope": "Invalid value for '-c' / '--cfg': 'nope' is not 'job'",
    "--config-dir=nowhere": "--config-dir=nowhere: must be a folder that is there",
    "--config-name=nope": "--config-name: no such option",
    "hydra.nope=1": "hydra.nope=1: a key of hydra's is for a sweep, fkl run -m",
    "dataset._target_=null": "dataset._target_=None: must be the import path",
    "dataset._target_=fkl": "dataset._target_=fkl: must be the import path",
    "dataset._target_=fkl.network.Network": "must be a class for dataset: this one has no name, files, load",
    "algo._target_=os.getcwd": "algo._target_=os.getcwd: must be the import path of a dataclass",
    "algo._target_=fkl.algorithms.federated.descent.Descent": "this one has no label",
    "kernels._target_=fkl.data.partition.Iid": "this one has no bank, gram",
    "out=/etc/hostname": "out=/etc/hostname: must be a new or empty folder",
    f"out={'x' * 5000}": "out=x*...: must be a folder, or null; no name longer than",
    "scaling='unit\n_ball'": "scaling=unit _ball: must be",
    "kernels=poly_2": "kernels.family=polynomial: must be rbf or laplacian",
    "partition=by_site": "partition=by_site: diabetes has one site only",
}
"""What each call is refused with."""


@pytest.mark.parametrize("words", UNREADABLE)
def test_what_cannot_be_composed_is_refused(fkl: Callable[..., Answer], tmp_path: Path, words: str) -> None:
    require_refused(fkl("run", *SMALL, *words.split(" ")), tmp_path, UNREADABLE[words])


def test_what_is_left_out_takes_its_default(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """A key may be taken away, as may a cache that cannot be kept."""
    answer = fkl("run", *SMALL, "~algo.M", "~seed", "paths.cache=/proc/nope", "out=here")
    assert answer.code == 0
    assert [line for line in lines(answer.err) if " is not below the " not in line] == []
    assert (tmp_path / "here" / "summary.csv").is_file()
