"""Seals: which rows are refused to whom, and what is told of a seal that is damaged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fkl.basics.errors import FklError
from fkl.data import seals
from fkl.data.seals import Seal, require_open

GROUP = np.repeat([0, 1], 500)


@pytest.fixture
def seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seal:
    monkeypatch.setenv("FKL_SEALS", str(tmp_path / "seals"))
    return sealed(tmp_path, "first", "1")


def sealed(folder: Path, name: str, date: str) -> Seal:
    """A study's seal of data with the digest d."""
    file = folder / f"{name}.yaml"
    file.write_text(name)
    one = Seal(str(file), str(folder / name), 0.3, seals.layout_of(GROUP), date)
    seals.write(seals.path_of("d", file), one)
    return one


def marked(seal: Seal, **stages: str) -> None:
    seals.write(seals.path_of("d", Path(seal.study)), replace(seal, **stages))  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", ["all", "even", "late", "judge_3", "judge_3_but_0.2", "sealed_0.1", "open_0.2"])
def test_sealed_rows_are_refused_in_one_line(seal: Seal, rows: str) -> None:
    with pytest.raises(FklError, match=r"sealed by .*first.yaml; rows=open_0.3 may be read, and fkl study .* opens"):
        require_open("d", rows, GROUP, Path("elsewhere"))
    require_open("other data", rows, GROUP, Path("elsewhere"))
    with seals.lifted():
        require_open("d", rows, GROUP, Path("elsewhere"))


@pytest.mark.parametrize("rows", ["open_0.3", "tune_7_but_0.3", "judge_1_of_2_but_0.3", "open_0.4"])
def test_open_rows_are_read(seal: Seal, rows: str) -> None:
    require_open("d", rows, GROUP, Path("elsewhere"))


def test_data_that_are_read_in_another_way_are_refused(seal: Seal) -> None:
    with pytest.raises(FklError, match="as read with other keys of dataset"):
        require_open("d", "open_0.3", GROUP * 0, Path("elsewhere"))


def test_a_broken_seal_is_the_study_s_and_a_spent_one_nobody_s(seal: Seal) -> None:
    marked(seal, broken="2")
    require_open("d", "sealed_0.3", GROUP, Path(seal.folder))
    with pytest.raises(FklError, match="sealed by"):
        require_open("d", "sealed_0.3", GROUP, Path("elsewhere"))
    marked(seal, broken="2", spent="3")
    require_open("d", "all", GROUP, Path("elsewhere"))


def test_of_two_seals_the_older_one_is_read_first(seal: Seal, tmp_path: Path) -> None:
    second = sealed(tmp_path, "second", "2")
    marked(seal, broken="3")
    marked(second, broken="3")
    require_open("d", "sealed_0.3", GROUP, Path(seal.folder))
    with pytest.raises(FklError, match=r"sealed by .*first.yaml"):
        require_open("d", "sealed_0.3", GROUP, Path(second.folder))
    marked(seal, broken="3", spent="4")
    require_open("d", "sealed_0.3", GROUP, Path(second.folder))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"study": 3'])
def test_a_damaged_seal_refuses_its_data(seal: Seal, text: str) -> None:
    seals.path_of("d", Path(seal.study)).write_text(text)
    with pytest.raises(FklError, match="a damaged seal"):
        require_open("d", "open_0.3", GROUP, Path("elsewhere"))
    require_open("e", "all", GROUP, Path("elsewhere"))
