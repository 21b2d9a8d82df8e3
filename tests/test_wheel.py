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
    papers = {f"fkl/papers/pof_mkl/{name}" for name in ("published.csv", "experiments.yaml")}
    assert {"fkl/conf/config.yaml", "fkl/report/templates/page.html", "fkl/py.typed", *papers} <= {*names}
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "scripts", "data", "outputs"))]
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    elsewhere.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def said(*command: str) -> str:
        asked = subprocess.run(command, cwd=elsewhere, env=environment, check=True, capture_output=True, text=True)
        return asked.stdout

    assert said(sys.executable, "-c", "import fkl; print(fkl.__file__)").startswith(str(site))
    script = str(site / "bin" / "fkl")
    said(script, "run", "dataset=diabetes", "kernels.D=5", "replicates=1", "engine=numpy", "out=here")
    assert (elsewhere / "here" / "summary.csv").is_file()
