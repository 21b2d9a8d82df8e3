"""`python docs/figures/theory.py`: the table of docs/theory.md, from its runs take three minutes."""

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
    "DKLA, wave_farm": ("algo=dkla", "dataset=wave_farm", "kernels.D=20", "replicates=3"),
    "COKE, wave_farm": ("algo=coke", "dataset=wave_farm", "kernels.D=20", "replicates=1"),
    "FDSKL, ellipses": ("algo=fdskl", "dataset=ellipses", "replicates=3"),
    "PF, ellipses": ("algo=parsimonious_federated", "dataset=ellipses", "scaling=none", "replicates=3"),
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
