"""`fkl reproduce --site`: each published cell names the runs behind ours, and these come out again."""

import math
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from published_files import DATA, need_data
from tinyhtml5.parser import HTMLParser

from fkl import cli
from fkl.cli.replay import found, replay
from fkl.config.compose import compose
from fkl.config.digest import identity
from fkl.config.loading import load

RUNS = ("+graph_omkl/data=airfoil", "+experiment=graph_omkl/exact", "+graph_omkl/exact=poly_2,rbf_1")


@pytest.fixture(scope="module")
def finished(sweeping: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of graph-aided OMKL, with fewer replicates than the paper's."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "files").mkdir()
    np.savetxt(folder / "files" / "airfoil_self_noise.dat", np.random.default_rng(0).random((1503, 6)), delimiter="\t")
    return sweeping(folder, RUNS)


def test_a_site_has_each_cell_with_its_run_and_asks_nobody(runs: Callable) -> None:
    """Anchors lead somewhere, the page is well formed, and nothing is fetched from anywhere."""
    answer = runs("reproduce", "--site", "pages", "graph_omkl")
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in Path("pages").iterdir()) == ["cells.csv", "index.html"]
    assert [path.name for path in Path("outputs").iterdir() if path.name in ("tables", "figures", "report.html")] == []
    page = Path("pages/index.html").read_text(encoding="utf-8")
    parser = HTMLParser(namespace_html_elements=False)
    parser.parse(page)
    assert parser.errors == []
    assert not re.search(r"https?://|<script|@import|url\(", page)
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert {*re.findall(r'href="#([^"]+)"', page)} <= anchors

    cells = pd.read_csv("pages/cells.csv", keep_default_na=False, dtype=str)
    published = pd.read_csv(Path(cli.__file__).parents[1] / "papers" / "graph_omkl" / "published.csv", dtype=str)
    assert len(cells) == len(published)
    answered = cells[cells["as_described_run"].ne("")]
    digests = {folder.name.rpartition("-")[2] for folder in Path("outputs/runs").iterdir()}
    assert {*answered["as_described_run"]} == digests
    assert {f"run-{digest}" for digest in digests} <= anchors
    for row in answered[answered["metric"].eq("mse")].to_dict("records"):
        run = found(row["as_described_run"], Path("outputs"))
        assert float(row["as_described"]) == pytest.approx(1e3 * run.summary["mse"].mean(), rel=1e-9)
        assert (row["dataset"], row["algorithm"]) == (run.dataset, run.algorithm)
        words = shlex.split(row["command"])
        assert words[:2] == ["fkl", "run"]
        assert identity(load(compose(*words[2:]), words).resolved) == identity(run.config)


def test_a_site_of_nothing_is_refused(fkl: Callable) -> None:
    answer = fkl("reproduce", "--site")
    assert (answer.code, Path("site").exists()) == (2, False)
    assert answer.err.startswith("error: --site: no run in outputs/runs answers a published cell")
    assert fkl("reproduce", "--site", "x", "--readings").code == 2
    assert "no such paper" in fkl("reproduce", "--site", "x", "cook").err


@pytest.mark.slow
def test_a_random_tenth_of_a_papers_cells_comes_out_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of DeKRR-DDRF on air quality: all its runs are made, and a tenth of those that cells name are played again."""
    need_data("airquality")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FKL_DATA", str(DATA))
    for words in (
        *(
            ("run", "-m", "-q", f"+experiment=dekrr/{name}", "figures=none")
            for name in ("airquality", "airquality_dkla")
        ),
        ("reproduce", "--site", "site", "dekrr"),
    ):
        monkeypatch.setattr(sys, "argv", ["fkl", *words])
        cli.main()
    cells = pd.read_csv("site/cells.csv", keep_default_na=False, dtype=str)
    digests = sorted({*cells["as_described_run"], *cells["by_one_reading_run"]} - {""})
    assert len(digests) == 12
    drawn = np.random.default_rng(0 if "CI" in os.environ else None)
    for digest in drawn.choice(digests, math.ceil(len(digests) / 10), replace=False):
        again = replay(found(str(digest), Path("outputs")), progress=False)
        assert again.same, again.words
