"""`python docs/figures/sends.py`: what each method sends in its small run, for its page: writes docs/sends.csv."""

import csv
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import fkl
from fkl.config import choices

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS.parent / "scripts"))
from gate_scenarios import SMALL  # noqa: E402

COLUMNS = ("algo", "words", "way", "kind", "scalars", "clients", "rounds")


def rows(algo: str, outputs: str) -> list[list[object]]:
    """One row per kind of message: scalars that all parties sent in all rounds of the small run."""
    words = (f"algo={algo}", *SMALL[algo], "replicates=1")
    with warnings.catch_warnings(action="ignore"):
        told = fkl.run(*words, "figures=none", f"paths.outputs={outputs}", quiet=True).provenance
    found = [[*key.split(" ", 1), scalars] for key, scalars in told["scalars_by_kind"].items() if scalars]
    sizes = [told.get("clients", ""), told.get("rounds", "")]
    return [[algo, " ".join(words), *one, *sizes] for one in found or [["", "", 0]]]


if __name__ == "__main__":
    with (DOCS / "sends.csv").open("w", newline="", encoding="utf-8") as file, TemporaryDirectory() as outputs:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in choices.choice_files("algo"):
            writer.writerows(rows(name, outputs))
