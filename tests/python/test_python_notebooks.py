"""The notebooks run, and print what they show."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from published_files import DATA, need_data

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDED = {"table_of_a_paper": "airfoil"}


def printed(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each cell prints and returns, as text; warnings name a file that is never the same."""
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    told = [[one for one in some if one.get("name") != "stderr"] for some in outputs]
    return [[output.get("text") or output["data"]["text/plain"] for output in some] for some in told]


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_prints_what_it_shows(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if file.stem in NEEDED:
        need_data(NEEDED[file.stem])
    monkeypatch.setenv("FKL_DATA", str(DATA))
    shown = nbformat.read(file, as_version=4)
    played = nbformat.read(file, as_version=4)
    NotebookClient(played, timeout=None, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert printed(played) == printed(shown)
    assert any(printed(shown))


def test_there_are_notebooks() -> None:
    assert {file.stem for file in NOTEBOOKS} == {"table_of_a_paper", "three_hospitals"}
