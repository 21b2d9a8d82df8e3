"""Peak memory of runs in a process of their own, and chunks that change nothing."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

GIB = 2**30


def peak_memory(folder: Path, *arguments: str) -> int:
    """Bytes that `fkl run` needed at most."""
    report = "import resource, sys; from fkl.cli import main; main(); "
    report += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=open('peak', 'w'))"
    subprocess.run([sys.executable, "-c", report, "run", *arguments], cwd=folder, check=True, capture_output=True)
    peak = folder / "peak"
    kibibytes = int(peak.read_text())
    peak.unlink()
    return kibibytes * 1024


@pytest.mark.slow
def test_the_wec_shape_with_100_features_stays_under_one_and_a_half_gib(tmp_path: Path) -> None:
    """560 clients, d = 48, D = 100, 51 kernels, 20 replicates; rounds add only rows of records."""
    size = ("dataset=wave_farm", "dataset.rows_per_site=2800", "partition.clients_per_site=140", "partition.own=14")
    assert peak_memory(tmp_path, *size, "partition.other=2", "kernels.D=100", "out=here") < 1.5 * GIB
    assert len(pd.read_csv(tmp_path / "here" / "clients.csv")) == 20 * 560


@pytest.mark.slow
def test_20000_clients_stay_under_4_gib_and_chunks_change_nothing(tmp_path: Path) -> None:
    """Chosen chunks, one replicate at a time and all at once give the same bytes."""
    size = ("dataset=synthetic", "dataset.rows=60000", "partition.clients=20000", "partition.rounds=3", "replicates=4")
    for name, chunk in {"chosen": "null", "one": "1", "all": "4"}.items():
        assert peak_memory(tmp_path, *size, "kernels.D=20", f"chunk={chunk}", f"out={name}") < 4 * GIB
    for table in ("rounds.csv", "clients.csv"):
        chosen = (tmp_path / "chosen" / table).read_bytes()
        assert (tmp_path / "one" / table).read_bytes() == chosen
        assert (tmp_path / "all" / table).read_bytes() == chosen
