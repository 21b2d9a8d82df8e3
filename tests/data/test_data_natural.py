"""Tables in installed packages, whose clients are natural: the rows are those that pandas reads."""

import bz2
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fkl.basics.errors import FklError
from fkl.config import load
from fkl.config.compose import compose
from fkl.data.store import DataFile, Store
from fkl.runs.prepare import prepare

TABLES = {
    "countymurders": (2197, 37349),
    "mathpnl": (550, 3850),
    "airfare": (1149, 4596),
    "wagepan": (545, 4360),
    "restaurants": (1618, 27178),
    "munnell": (48, 816),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_client_is_a_unit_of_the_table(name: str, tmp_path: Path) -> None:
    run = load(compose(f"dataset={name}", "algo=ofmkl_avg", "kernels.D=2", "replicates=1", f"paths.data={tmp_path}"))
    [file] = run.dataset.files
    if not file.installed:
        pytest.skip(f"{file.package} is not installed: pip install 'federated-kernel-learning[natural]'")
    table = run.dataset.load(Store(tmp_path, offline=True), np.random.default_rng(0))
    [folder] = file.installed
    raw = (folder / file.name).read_bytes() if name == "restaurants" else _unpacked(folder / f"{file.name}.bz2")
    layout = run.dataset.layout
    frame = pd.read_csv(io.BytesIO(raw), na_values="." if name == "countymurders" else None)
    frame = frame.dropna(subset=[*layout.features, layout.target])
    clients, rows = TABLES[name]
    assert len(table.y) == len(frame) and frame[layout.site].nunique() == len(table.site_names) == clients
    np.testing.assert_allclose(table.y, frame[layout.target], rtol=1e-12)
    numbers = [one for one in layout.features if one not in layout.text]
    found = table.x[:, [layout.features.index(one) for one in numbers]]
    np.testing.assert_allclose(found, frame[numbers].to_numpy(np.float64), rtol=1e-12)
    assert [table.site_names[one] for one in table.site] == frame[layout.site].astype(str).tolist()
    experiment = prepare(run)
    assert experiment.problem.clients == clients and int(experiment.problem.present.sum()) == len(frame) <= rows


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    file = DataFile("airfare", "airfare.csv", None, package="no_such_package/datasets")
    with pytest.raises(FklError, match="install it with: pip install no_such_package"):
        Store(tmp_path, offline=True).fetch(file)


def _unpacked(path: Path) -> bytes:
    return bz2.decompress(path.read_bytes())
