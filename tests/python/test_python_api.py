"""fkl from Python: the command's runs, and nothing else of the process touched."""

import doctest
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import escape
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import hydra
import pandas as pd
import pytest
from conftest import Answer
from hydra.core.global_hydra import GlobalHydra

import fkl
import fkl.report.api
import fkl.runs.play
from fkl.basics.errors import FklError

WORDS = (
    *("algo=raker", "dataset=diabetes", "partition=stream", "partition.rounds=50"),
    *("kernels.N=4", "kernels.laplacians=1", "kernels.D=5", "replicates=1"),
)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_importing_fkl_costs_no_library_and_no_module_touches_pyplot() -> None:
    """Which chooses a backend and keeps all figures, and in a notebook is the user's."""
    program = """
        import sys, fkl
        assert not {"numpy", "pandas", "hydra", "sklearn", "matplotlib", "numba"} & {*sys.modules}
        assert {"run", "load", "compare"} <= {*dir(fkl)} and not hasattr(fkl, "no_such_name")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
    files = Path(fkl.__file__).parent.rglob("*.py")
    assert [file.name for file in files if "matplotlib.pyplot" in file.read_text(encoding="utf-8")] == []


def test_what_documentation_shows_is_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of all docstrings, README, the page on Python, and the page for authors of methods."""
    pytest.importorskip("river")
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).resolve().parents[2]
    pages = [root / name for name in ("README.md", "docs/python.md", "docs/extending.md")]
    files = [
        file.relative_to(root).with_suffix("") for file in (root / "fkl").rglob("*.py") if ">>> " in file.read_text()
    ]
    with warnings.catch_warnings(action="ignore"):
        modules = [import_module(".".join(file.parts).removesuffix(".__init__")) for file in files]
        told = [doctest.testmod(module) for module in modules]
        told += [doctest.testfile(str(page), False, optionflags=doctest.ELLIPSIS) for page in pages]
    assert sum(ended.failed for ended in told) == 0 < min(ended.attempted for ended in told[-len(pages) :])


def test_a_run_is_that_of_the_command_and_is_not_run_again(fkl: Callable[..., Answer]) -> None:
    from fkl import run

    told = fkl("run", *WORDS)
    assert told.code == 0, told.err
    folder = next(Path("outputs/runs").iterdir())
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    with pytest.warns(UserWarning) if "predicting" in told.err else warnings.catch_warnings():
        result = run(*WORDS, quiet=True)
    assert result.folder == folder.absolute()
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    for name in ("summary", "rounds", "clients"):
        pd.testing.assert_frame_equal(getattr(result, name), pd.read_csv(folder / f"{name}.csv"))
    assert {file.name for file in result.figures.values()} == {file.name for file in folder.glob("*.png")} != set()
    shown = told.out.replace(str(folder), str(result.folder))
    lines = [[line for line in text.splitlines() if not line.startswith("  time")] for text in (repr(result), shown)]
    assert lines[0] == lines[1] and result.config["algo"]["eta"] == 0.1


def test_hydra_is_left_as_the_user_has_it(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.yaml").write_text("mine: 1\n")
    with hydra.initialize_config_dir(str(tmp_path / "own"), version_base="1.2"):
        held, base = GlobalHydra.instance().hydra, hydra.version.getbase()
        fkl.run(*WORDS, quiet=True)
        with pytest.raises(FklError):
            fkl.run("algo=none", quiet=True)
        assert GlobalHydra.instance().hydra is held and hydra.version.getbase() == base
        assert hydra.compose("config", ["mine=2"]) == {"mine": 2}


def test_threads_take_turns_and_leave_the_streams_of_the_process_alone(capsys: pytest.CaptureFixture[str]) -> None:
    words, streams, seen = [(*WORDS, f"seed={seed}") for seed in (1, 2)], (sys.stdout, sys.stderr), set()

    def watch(*_: object, **__: object) -> None:
        seen.add((sys.stdout, sys.stderr))

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        for name in ("prepare_run", "simulate_run"):
            real = getattr(fkl.runs.play, name)
            patch.setattr(fkl.runs.play, name, lambda *told, real=real, **more: (watch(), real(*told, **more))[1])
        together = [*pool.map(lambda some: fkl.run(*some, "paths.outputs=together", quiet=True), words)]
    alone = fkl.run(*words[0], "paths.outputs=alone", quiet=True)
    pd.testing.assert_frame_equal(together[0].rounds, alone.rounds)
    assert not together[1].rounds.equals(alone.rounds)
    assert seen == {streams} and capsys.readouterr() == ("", "")


def test_what_a_run_warns_of_is_a_warning_of_python_s(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here of a logger that fails; it names the line that called `fkl.run`."""
    (tmp_path / "bad_logger.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Bad:\n    def begin(self, run): raise OSError('away')\n"
        "    round = end = fail = begin\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    said = r"logger\.bad is not called again: .*bad_logger\.py, line 4: OSError: away"
    with pytest.warns(UserWarning, match=said) as told:
        fkl.run(*WORDS, "+logger.bad._target_=bad_logger.Bad", quiet=True)
    assert {one.filename for one in told} == {__file__} and "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("algo=none",), "algo=none: no such choice"),
        (("-m", "algo=raker"), "-m: not allowed here; fkl.run accepts only KEY=VALUE words, for one run"),
        ((["algo=raker"],), "word=['algo=raker']: must be text such as"),
    ],
    ids=str,
)
def test_what_the_caller_can_mend_is_an_error_of_one_line(words: tuple[str, ...], line: str) -> None:
    with pytest.raises(FklError) as error:
        fkl.run(*words, quiet=True)
    assert str(error.value).startswith(line) and "\n" not in str(error.value)
    Path("a_folder").mkdir()
    for name in ("a_folder", "nowhere"):
        with pytest.raises(FklError, match=rf"^{name}: .+$"):
            fkl.load(name)


def test_a_notebook_shows_a_comparison_and_figures() -> None:
    """Tables as HTML and text, never the objects behind them; pictures as PNG."""
    results = [fkl.run(*WORDS, f"seed={seed}", quiet=True) for seed in (1, 2)]
    comparison = fkl.compare(results)
    shown = comparison._repr_html_()
    assert ElementTree.fromstring(f"<div>{shown}</div>").find("table/tbody/tr/th") is not None
    assert all(escape(line) in shown for line in comparison.conclusions)
    assert repr(comparison).startswith(repr(comparison.pivot)) and "Cells(" not in repr(comparison)
    pictures = comparison.figures()
    assert len(repr(pictures)) < 200 and pictures._repr_html_().count("data:image/png;base64,") == len(pictures) > 0
    drawn = results[0].plot("uplink_bytes")
    assert drawn._repr_png_()[:4] == b"\x89PNG" and repr(drawn) == "<figure as .png, .pdf>"
    with pytest.raises(FklError, match="metric=none: must be one of"):
        results[0].plot("none")


MODELS = {
    "algo=vm_kofl": "<model of vM-KOFL on diabetes: 10 features, 2 replicates, 4 clients>",
    "algo=ditto": "<model of Ditto on diabetes: 10 features, 2 replicates, 4 clients, each with its own function>",
    "algo=rfomkr partition=stream": "<model of RFOMKR on diabetes: 10 features, 2 replicates, 1 client>",
}


@pytest.mark.parametrize(("words", "said"), MODELS.items(), ids=MODELS)
def test_no_public_object_prints_its_arrays(words: str, said: str) -> None:
    """Neither a model nor its parts, nor a comparison's runs, nor a run."""
    common = ("dataset=diabetes", "partition.rounds=30", "kernels.D=5", "replicates=2", "save_model=true")
    result = fkl.run(*words.split(), *common, "figures=none", quiet=True)
    model = fkl.load_model(result.folder)
    assert repr(model) == str(model) == repr(result.model) == said
    printed = [result, model, model.learned, model.about, fkl.compare(result).cells]
    assert [text for text in map(repr, printed) if "array" in text or len(text) > 1000] == []
