"""What cannot be is one line that names the key, exit code 2, and nothing left behind."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from broken.refusal import lines, require_refused
from conftest import SMALL, Answer

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # on a terminal it would be one more line
SWEEP = ("run", "-m", *SMALL, "kernels.N=5")
SEEDS = (*SWEEP, "seed=1,2")
SEARCH = (*SWEEP, "objective=mse", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=1")
SAMPLER, ENV = "hydra.sweeper.sampler._target_", '__import__("os").system("touch x")'
REFUSED: dict[tuple[str, ...], dict[str, str]] = {
    ("run", *SMALL): {
        # Keys and choices that there are not
        "+algo._args_=[1]": "algo._args_: no such key",
        "algo='[coke,nope]'": "algo=nope: no such choice",
        "dataset=../algo/coke": "dataset=../algo/coke: no such choice",
        "~algo": "algo._target_=None: must be",
        "~algo=coke": "~algo=coke: algo is pof_mkl",
        # Words that are none, stand for too much or for nothing
        "algo.M": "algo.M: not understood; write KEY=VALUE",
        "algo.M=1,2": "algo.M=1,2: several values need fkl run -m, a run for each; a list is written [1,2]",
        "'algo.M=${algo.xi}' 'algo.xi=${algo.M}'": "algo.M: its interpolation leads back to itself",
        '"seed=\'${oc.create:\\"{a: 1}\\"}\'"': "seed: its interpolation makes keys",
        # Import paths, which must not run what they name
        "algo._target_=joblib.load": "algo._target_=joblib.load: must be the import path of a dataclass",
        # Folders
        f"out={'x' * 5000}": "must be a folder, or null; no name longer than",
        "out=.": "out=.: must be a folder other than the current one",
        "paths.cache=~no.body": "paths.cache=~no.body: must be a folder; no user has this name",
        # Keys that do not fit each other, or the data
        "algo.M=52": "algo.M=52: must be an integer from 1 to kernels.N=51",
        "partition=vertical": "partition=FeatureGroups: must be one of rows, such as iid, for POF-MKL",
        "network.uplink_budget=15": "network.uplink_budget=15: POF-MKL sends 16 scalars a client in round 1",
        "algo=dkla topology=gnm topology.edges=2": "topology.edges=2: must be an integer from 3 to 6 to connect 4",
        "dataset=digits": "dataset=digits: must be one with a numeric target for POF-MKL",
        "algo=rbf_1 kernels=rbf": "kernels.N=51: must be 1: RBF-1 has the one kernel exp(-|x - x'|^2): kernels=rbf_1",
    },
    SWEEP: {
        "'seed=interval(0,1)'": "seed=interval(0,1): must be values; an interval needs hydra/sweeper=optuna",
        "+hydra.callbacks.x._target_=pickle.load seed=1,2": "hydra.callbacks.x._target_=pickle.load: no such key",
        "hydra/launcher=submitit_slurm seed=1,2": "hydra/launcher=submitit_slurm: must be another one, because sbatch",
    },
    (*SEEDS, "hydra/launcher=joblib"): {
        "hydra.launcher.n_jobs=0": "hydra.launcher.n_jobs=0: must be an integer from 1 to 4096, or -1 for all cores",
        f"hydra.launcher.pre_dispatch={shlex.quote(repr(ENV))}": "hydra.launcher.pre_dispatch=__",
    },
    (*SEEDS, "hydra/launcher=submitit_local"): {"+hydra.launcher.setup=[ls]": "hydra.launcher.setup: no such key"},
    (*SEARCH, "algo.eta=interval(0.1,1)"): {
        "hydra.sweeper.storage=nope": "hydra.sweeper.storage=nope: must be the URL of a",
        f"{SAMPLER}=optuna.samplers._base.os.system": "hydra.sweeper.sampler._target_=optuna.samplers._base.os.sys",
        "objective=null": "objective=None: must be a column of summary.csv, which the",
    },
    (): {
        "run --config-dir=nope": "--config-dir=nope: must be a folder that exists",
        "dance": "dance: no such command",
        "table pof_mkl/1": "table: no finished run belongs to it; first fkl run -m +experiment=pof_mkl/table1",
        "figure pof_mkl/../../x": "pof_mkl/../../x: no such figure",
        # Signs that would reach the terminal, are no text, or too much of it
        "'\x1b[2J'": r"\x1b[2J: no such command",
        "run 'nope\u202e=1'": r"nope\u202e=1: not understood",
        "run 'out=a\udcff'": r"out=a\udcff: not text in UTF-8",
        f"run {'x' * 100_000}": "longer than 8192 letters",
        f"run algo.M={'[' * 3000}": "not understood",
    },
}  # fmt: skip
"""For the beginning of a command: more words, and what is said of them."""
CASES = [(upon, words, said) for upon, entries in REFUSED.items() for words, said in entries.items()]


@pytest.mark.parametrize(("upon", "words", "said"), CASES, ids=[words[:50] for _, words, _ in CASES])
def test_words_are_refused(fkl, tmp_path, monkeypatch, upon, words, said):
    monkeypatch.setenv("PATH", "")  # there is no sbatch
    require_refused(fkl(*upon, *shlex.split(words)), tmp_path, re.escape(said), words)


def test_a_link_that_leads_back_to_itself_is_refused_before_the_run(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for word in ("out=loop", "paths.outputs=loop/here"):
        said = f"error: {tmp_path / 'loop'}: cannot be written (it is a link to itself)\n"
        assert fkl("run", *SMALL, word) == (2, "", said)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


@pytest.mark.parametrize("error", [OSError, requests.ConnectionError])
def test_data_that_are_missing_name_folder_files_and_the_way_out(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise error("HTTPSConnectionPool(host='archive.ics.uci.edu', port=443): Max retries exceeded")

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", no_network)
    monkeypatch.setattr("time.sleep", lambda _: None)
    answer = fkl("run", "dataset=naval")
    assert answer.code == 2 and answer.err.count("\n") == 1
    address = "could not fetch https://archive.ics.uci.edu/static/public/316/"
    assert all(part in answer.err for part in (address, "data.txt into data/naval", "dataset=wave_farm"))
    assert error is OSError or ("no connection" in answer.err and "Pool" not in answer.err)
    assert list(tmp_path.rglob("*.*")) == []


def test_keys_that_do_not_fit_are_refused_before_data_are_read(
    fkl: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fkl.data.store.Store.read", None)
    for words, said in {
        ("algo.M=100",): "algo.M=100: must be an integer from 1 to kernels.N=51",
        ("links=failing",): "links=Failing: must be null: POF-MKL has no graph of agents",
    }.items():
        assert fkl("run", "dataset=naval", *words) == (2, "", f"error: {said}\n")


def test_what_is_left_out_takes_its_default(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """A key may be taken away, as may a cache that cannot be kept."""
    answer = fkl("run", *SMALL, "~algo.M", "~seed", "paths.cache=/proc/nope", "out=here")
    assert answer.code == 0
    assert [line for line in lines(answer.err) if " is not below the " not in line] == []
    assert (tmp_path / "here" / "summary.csv").is_file()
