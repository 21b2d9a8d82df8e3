"""What is composed from memory is what Hydra composes anew: every value, type and flag of it."""

import shutil
from pathlib import Path
from typing import Any

import hydra
import pytest
from conftest import ALGORITHMS
from hydra._internal.defaults_list import create_defaults_list as hydra_s_own
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig

from fkl import conf_folder
from fkl.composing import known
from fkl.composing.loader import compose, guarded

WORDS = [
    *((f"algo={algo}", "seed=3") for algo in ALGORITHMS[::9]),
    ("algo=pof_mkl", "algo.eta=1", "+kernels.new=[1,{a: 2}]"),
    ("algo=coke", "topology=ring"),
    ("algo=coke", "~topology"),
    ("+as_published=fdskl", "dataset=phishing"),
    ("+experiment=coke/bandwidth",),
    ("privacy=local", "compression=sign", "participation=share"),
    ("hydra/launcher=joblib", "hydra/sweeper=optuna", "hydra/job_logging=stdout"),
    ("seed=1,2", "algo=ofskl,raker"),
]


def composed(*words: str) -> Any:
    """All of a configuration, Hydra's part, too; a sweep's where there are commas."""
    mode = RunMode.MULTIRUN if any("," in word.replace("[1,", "") for word in words) else RunMode.RUN
    with guarded(), hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        loaded = GlobalHydra.instance().hydra
        assert loaded is not None
        return _all_of(loaded.compose_config("config", [*words], mode, from_shell=False))


def _all_of(node: Any) -> Any:
    known_times = {"resolver_cache": None}  # of ${now:...}
    kinds = node._metadata.__dict__ | {"flags": node._metadata.flags or {}} | known_times
    value = node.__dict__["_content"] if isinstance(node, DictConfig | ListConfig) else node._value()
    if isinstance(value, dict):
        value = {key: _all_of(inner) for key, inner in value.items()}
    elif isinstance(value, list):
        value = [_all_of(inner) for inner in value]
    return kinds, value


def test_it_is_what_hydra_composes_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in WORDS:
        composed(*words)
    from_memory = [composed(*words) for words in WORDS]
    monkeypatch.setattr(known, "_all_own", lambda _: False)
    monkeypatch.setattr(known.hydra_internals, "create_defaults_list", hydra_s_own)
    for words, found in zip(WORDS, from_memory, strict=True):
        assert found == composed(*words), words


def test_the_same_choices_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever values keys have; and nobody's changes are another's."""
    compose("algo=ofskl").algo.eta = 7
    monkeypatch.setattr(known.hydra_internals, "create_defaults_list", None)
    monkeypatch.setattr(known.pickle, "dumps", None)
    assert compose("algo=ofskl", "seed=5").seed == 5
    assert compose("algo=ofskl").algo.eta != 7


def test_a_file_that_changes_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    shutil.copytree(conf_folder(), folder)
    for module in ("fkl.composing.known", "fkl.composing.loader"):
        monkeypatch.setattr(f"{module}.conf_folder", lambda: folder)
    lam = compose("algo=ofskl").algo.lam
    file = folder / "algo" / "ofskl.yaml"
    file.write_text(file.read_text().replace(f"lam: {lam}", "lam: 0.125"))
    assert lam != 0.125 == compose("algo=ofskl").algo.lam


def test_what_is_registered_later_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    compose("algo=ofskl")
    monkeypatch.setattr(ConfigStore.instance(), "repo", ConfigStore.instance().repo | {})
    ConfigStore.instance().store(group="topology", name="registered", node={"here": True}, provider="mine")
    assert compose("algo=ofskl", "topology=registered").topology.here


def test_defaults_may_name_what_others_chose(tmp_path: Path) -> None:
    """As Hydra has it: ``${mine}`` in a list of defaults is the choice of that group."""
    (tmp_path / "mine").mkdir()
    for topology in ("ring", "complete"):
        file = tmp_path / "mine" / f"{topology}.yaml"
        file.write_text("# @package mine\ndefaults:\n  - /topology@graph: ${mine}\n")
        config = compose(f"hydra.searchpath=[{tmp_path}]", "algo=coke", f"topology={topology}", f"+mine={topology}")
        assert config.mine.graph == config.topology


def test_another_folder_s_files_are_composed_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(known._CONFIGS, "get", None)
    compose("algo=ofskl", f"hydra.searchpath=[{tmp_path}]")


def test_no_more_is_kept_than_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "MOST", 2)
    kept = known._Kept()
    for key in (1, 2, 1, 3, 1, 4):
        kept.get(key, lambda _: None, lambda: "made")
    assert [*kept._made] == [1, 4]
