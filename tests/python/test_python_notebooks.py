"""The notebooks run, and print what they show."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from published_files import DATA, need_data

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = {"online_multi_kernel_learning": "file", "table_of_a_paper": "airfoil", "three_hospitals": "file"}
"""And the data set that each needs."""


def printed(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each cell prints and returns, as text; warnings name a file that is never the same."""
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    told = [[one for one in some if one.get("name") != "stderr"] for some in outputs]
    return [[output.get("text") or output["data"]["text/plain"] for output in some] for some in told]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_prints_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_data(NOTEBOOKS[name])
    monkeypatch.setenv("FKL_DATA", str(DATA))
    shown, played = (nbformat.read(FOLDER / f"{name}.ipynb", as_version=4) for _ in range(2))
    NotebookClient(played, timeout=None, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert printed(played) == printed(shown)
    assert any(printed(shown))
