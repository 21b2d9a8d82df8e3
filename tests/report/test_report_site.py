"""`fkl reproduce --site`: each published cell names the runs behind ours."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from tinyhtml5.parser import HTMLParser

from fkl import cli
from fkl.cli.replay import find_run
from fkl.config.compose import compose_config
from fkl.config.digest import config_identity
from fkl.config.loading import load_run


def test_a_site_has_each_cell_with_its_run_and_asks_nobody(fkl: Callable, of_airfoil: Callable, tmp_path: Path) -> None:
    """Anchors lead somewhere, the page is well formed, and nothing is fetched from anywhere."""
    folders = of_airfoil(tmp_path / "outputs")
    answer = fkl("reproduce", "--site", "pages", "graph_omkl")
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in Path("pages").iterdir()) == ["cells.csv", "index.html"]
    assert [path.name for path in Path("outputs").iterdir()] == ["runs"]
    page = Path("pages/index.html").read_text(encoding="utf-8")
    parser = HTMLParser(namespace_html_elements=False)
    parser.parse(page)
    assert parser.errors == [] and not re.search(r"https?://|<script|@import|url\(", page)
    anchors = set(re.findall(r'id="([^"]+)"', page))
    digests = {folder.name.rpartition("-")[2] for folder in folders[:2]}
    assert {*re.findall(r'href="#([^"]+)"', page)} | {f"run-{digest}" for digest in digests} <= anchors
    cells = pd.read_csv("pages/cells.csv", keep_default_na=False, dtype=str)
    published = pd.read_csv(Path(cli.__file__).parents[1] / "papers" / "graph_omkl" / "published.csv", dtype=str)
    answered = cells[cells["as_described_run"].ne("")]
    assert len(cells) == len(published) and {*answered["as_described_run"]} == digests
    for row in answered[answered["metric"].eq("mse")].to_dict("records"):
        run = find_run(row["as_described_run"], Path("outputs"))
        assert float(row["as_described"]) == pytest.approx(1e3 * run.summary["mse"].mean(), rel=1e-9)
        assert (row["dataset"], row["algorithm"]) == (run.dataset, run.algorithm)
        words = shlex.split(row["command"])
        assert words[:2] == ["fkl", "run"]
        assert config_identity(load_run(compose_config(*words[2:]), words).resolved) == config_identity(run.config)


def test_a_site_of_nothing_is_refused(fkl: Callable) -> None:
    answer = fkl("reproduce", "--site")
    assert (answer.code, Path("site").exists()) == (2, False)
    assert answer.err.startswith("error: --site: no run in outputs/runs answers a published cell")
    assert fkl("reproduce", "--site", "x", "--readings").code == 2
    assert "no such paper" in fkl("reproduce", "--site", "x", "cook").err
