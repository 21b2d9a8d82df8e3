"""`python docs/figures/theory.py`: the table of docs/theory.md, from five runs that take two minutes."""

import sys

from tabulate import tabulate

from fkl.basics.errors import plural
from fkl.config import load
from fkl.config.compose import compose
from fkl.theory.answer import answered

RUNS = {
    "POF-MKL, wave_farm, M = 1": ("algo=pof_mkl", "dataset=wave_farm", "kernels.D=20", "replicates=6"),
    "POF-MKL, wave_farm, M = 25": ("algo=pof_mkl", "dataset=wave_farm", "kernels.D=20", "replicates=6", "algo.M=25"),
    "Raker, airfoil": ("algo=raker", "dataset=airfoil", "kernels.D=20", "replicates=1"),
    "OMKL-GF, airfoil": ("algo=omkl_gf", "dataset=airfoil", "kernels.D=20", "replicates=3"),
    "OMKL-SFG, airfoil": ("algo=omkl_sfg", "dataset=airfoil", "kernels.D=20", "replicates=3"),
    "OMKL-SFG-R, airfoil": ("algo=omkl_sfg_r", "dataset=airfoil", "kernels.D=20", "replicates=3"),
    "FOMD-OMS, wave_farm, J = 2": ("algo=fomd_oms", "dataset=wave_farm", "kernels.D=20", "replicates=6"),
    "FOMD-OMS, wave_farm, J = 25": ("algo=fomd_oms", "dataset=wave_farm", "kernels.D=20", "replicates=6", "algo.J=25"),
    "Fed-POE, wave_farm": ("algo=fed_poe", "dataset=wave_farm", "kernels.D=20", "replicates=1"),
    "RF-GP, wave_farm": ("algo=rf_gp", "dataset=wave_farm", "kernels.D=10", "replicates=1", "algo.personal=true"),
    "RF-GP, diabetes": (
        *("algo=rf_gp", "dataset=diabetes", "partition=stream", "replicates=1"),
        *("algo.personal=true", "algo.noise=0.01", "precision=float64"),
    ),
}
HEADINGS = ("run", "claim", "left", "right", "right / left", "answer")


def rows() -> list[list[str]]:
    """One for each bound and each identity."""
    told = []
    for name, words in RUNS.items():
        run = load(compose(*words))
        answer = answered(run)
        print(f"{name}: {plural(run.settings.replicates, 'replicate')}", file=sys.stderr)
        for one in answer.verdicts:
            numbers = (f"{number:.3g}" for number in (one.left, one.right, one.factor))
            told.append([name, f"{one.theorem.name}, {one.form.name}", *numbers, one.answer])
        for same in answer.identities:
            numbers = (f"{same.value:.3g}", f"{same.expected:.3g}")
            told.append([name, f"identity: {same.name}", *numbers, "", "holds" if same.holds else "does not hold"])
    return told


if __name__ == "__main__":
    print(tabulate(rows(), HEADINGS, "pipe", disable_numparse=True))
