"""The wheel alone is enough: configuration inside, the script works from any folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_wheel_installs_elsewhere_and_its_script_runs(tmp_path: Path) -> None:
    """Build it, install it into an empty folder, and use `fkl` there without the checkout."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = tmp_path.glob("federated_kernel_learning-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "fkl/conf/config.yaml" in names
    assert "fkl/papers/pof_mkl/published.csv" in names
    assert "fkl/papers/pof_mkl/experiments.yaml" in names
    assert "fkl/report/templates/page.html" in names
    assert {"fkl/py.typed", "fkl/__init__.pyi"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "scripts", "data", "outputs"))]

    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site)}
    where = subprocess.run(
        [sys.executable, "-c", "import fkl; print(fkl.__file__)"],
        cwd=elsewhere, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert where.stdout.startswith(str(site))
    script = site / "bin" / "fkl"
    listed = subprocess.run(
        [script, "list"], cwd=elsewhere, env=environment, check=True, capture_output=True, text=True
    )
    assert "pof_mkl" in listed.stdout
    run = [script, "run", "dataset=diabetes", "kernels.D=5", "replicates=1", "engine=numpy", "out=here"]
    subprocess.run(run, cwd=elsewhere, env=environment, check=True, capture_output=True)
    assert (elsewhere / "here" / "summary.csv").is_file()
    subprocess.run([script, "report"], cwd=elsewhere, env=environment, check=True, capture_output=True)
    assert "Not run yet" in (elsewhere / "outputs" / "report.html").read_text(encoding="utf-8")
