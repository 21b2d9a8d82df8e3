"""`python docs/figures/theory.py`: the tables of docs/theory.md, from runs that take ten minutes."""

import sys
from collections.abc import Iterator

import numpy as np
from scipy import stats
from tabulate import tabulate

from fkl.config import load
from fkl.config.compose import compose
from fkl.runs.prepare import prepare
from fkl.theory.answer import answered, of_replicates

STAR = ("partition=iid", "partition.clients=20", "partition.rounds=500")
STREAM = ("partition=stream", "kernels.D=20", "replicates=6")
POF_MKL = ("algo=pof_mkl", "kernels.D=20", "replicates=6", *STAR)
EXACT = ("algo=rf_gp", "kernels.D=10", "replicates=3", "algo.personal=true", "algo.noise=0.01", *STAR)
RUNS = {
    "POF-MKL, M = 1": (POF_MKL, ("air", "naval", "wave_farm")),
    "POF-MKL, M = 25": ((*POF_MKL, "algo.M=25"), ("air", "naval", "wave_farm")),
    "RF-GP, personal": (EXACT, ("air", "naval", "wave_farm")),
    "DKLA": (("algo=dkla", "kernels.D=20", "replicates=3"), ("wave_farm",)),
    "COKE": (("algo=coke", "kernels.D=20", "replicates=1"), ("wave_farm",)),
    "FDSKL": (("algo=fdskl", "replicates=3"), ("ellipses",)),
    "PF": (("algo=parsimonious_federated", "scaling=none", "replicates=3"), ("ellipses",)),
    "Raker": (("algo=raker", *STREAM), ("airfoil", "diabetes")),
    "FOMD-OMS, J = 2": (("algo=fomd_oms", "kernels.D=20", "replicates=6", *STAR), ("air", "naval", "wave_farm")),
    "FOMD-OMS, J = 25": (
        ("algo=fomd_oms", "algo.J=25", "kernels.D=20", "replicates=6", *STAR),
        ("air", "naval", "wave_farm"),
    ),
    "Fed-POE": (("algo=fed_poe", "kernels.D=20", "replicates=3", *STAR), ("air", "naval", "wave_farm")),
    "OMKL-GF": (("algo=omkl_gf", *STREAM), ("airfoil", "diabetes")),
    "OMKL-SFG": (("algo=omkl_sfg", *STREAM), ("airfoil", "diabetes")),
    "OMKL-SFG-R": (("algo=omkl_sfg_r", *STREAM), ("airfoil", "diabetes")),
}
"""Words of a method's runs, and their data sets."""
SHARES = (1, 2, 4, 8)
"""The horizons of slopes: T divided by these."""
BOUNDS = ("run", "data set", "bound", "left", "right", "right / left", "answer")
IDENTITIES = ("run", "data set", "identity", "left", "right", "answer")
SLOPES = ("run", "data set", "theorem", "slope of log left side over log T", "exponent of the bound")


def slopes(words: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Of every theorem with an exponent: its name, the slope with a 95 % interval, and the exponent.

    The slope is that of each replicate's left side, added over claims, in runs with horizons T / 8 to T, whose rates
    follow from their own horizon.
    """
    longest = prepare(load(compose(*words))).problem.rounds
    horizons = [longest // share for share in SHARES]
    theorems = [[*of_replicates(prepare(load(compose(*words, f"partition.rounds={T}"))))] for T in horizons]
    for of_each in zip(*theorems, strict=True):
        first = of_each[0][0]
        if first.exponent is None:
            continue
        lefts = np.array([[one.left[-1].sum() for one in replicates] for replicates in of_each])
        if (lefts <= 0).any():
            yield first.name, "a left side is not positive", f"{first.exponent:g}"
            continue
        each = np.polyfit(np.log(horizons), np.log(lefts), 1)[0]
        half = stats.t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each))
        yield first.name, f"{each.mean():.2f} ± {half:.2f}", f"{first.exponent:g}"


def main() -> None:
    """Print three tables."""
    bounds, identities, of_slopes = [], [], []
    for name, (words, datasets) in RUNS.items():
        for dataset in datasets:
            print(f"{name}, {dataset}", file=sys.stderr)
            here = *words, f"dataset={dataset}"
            found = answered(load(compose(*here)))
            for one in found.verdicts:
                numbers = (f"{number:.3g}" for number in (one.left, one.right, one.factor))
                bounds.append([name, dataset, f"{one.theorem.name}, {one.form.name}", *numbers, one.answer])
            for same in found.identities:
                numbers, holds = (f"{same.left:.4g}", f"{same.right:.4g}"), "holds" if same.holds else "does not hold"
                identities.append([name, dataset, same.name, *numbers, holds])
            if any(one.theorem.exponent is not None for one in found.verdicts):
                of_slopes += [[name, dataset, *told] for told in slopes(here)]
    for headings, rows in ((BOUNDS, bounds), (IDENTITIES, identities), (SLOPES, of_slopes)):
        print(tabulate(rows, headings, "pipe", disable_numparse=True), "\n")


if __name__ == "__main__":
    main()
