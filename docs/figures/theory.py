"""`python docs/figures/theory.py`: the tables of docs/findings/theory.md, from runs that take half an hour."""

import sys

import numpy as np
from scipy import stats

from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.runs.prepare import prepare_run
from fkl.screen.sheet import Sheet
from fkl.theory.answer import answer_run, repeat_replicates
from fkl.theory.base import FormVerdict

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
    "FDSKL, independent rows": (
        ("algo=fdskl", "algo.rows=iid", "algo.lam=0.5", "algo.gamma=1e-4", "algo.iterations=40000", "replicates=3"),
        ("ellipses",),
    ),
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
    **{
        f"{label}, one rate": (("+experiment=graph_omkl/in_theory", f"+graph_omkl/in_theory={name}"), ("airfoil",))
        for label, name in (("OMKL-GF", "omkl_gf"), ("OMKL-SFG", "omkl_sfg"), ("OMKL-SFG-R", "omkl_sfg_r"))
    },
}
"""Words of a method's runs, and their data sets."""
SHARES = (1, 2, 4, 8)
"""The horizons of slopes: T divided by these."""
BOUNDS = ("run", "bound", "right / left", "slope of log left over log T", "exponent")
IDENTITIES = ("run", "identity", "left and right")


def slopes(words: tuple[str, ...]) -> dict[str, str]:
    """Of every theorem with an exponent the slope, with a 95 % interval.

    The slope is that of each replicate's left side, added over claims, in runs with horizons T / 8 to T, whose rates
    follow from their own horizon.
    """
    longest = prepare_run(load_run(compose_config(*words))).problem.rounds
    horizons = [longest // share for share in SHARES]
    theorems = [
        repeat_replicates(prepare_run(load_run(compose_config(*words, f"partition.rounds={T}"))))[0] for T in horizons
    ]
    found = {}
    for of_each in zip(*theorems, strict=True):
        lefts = np.array([[one.left[-1].sum() for one in replicates] for replicates in of_each])
        name = of_each[0][0].name
        if (lefts <= 0).any():
            found[name] = "left not positive"
            continue
        each = np.polyfit(np.log(horizons), np.log(lefts), 1)[0]
        half = stats.t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each))
        found[name] = f"{each.mean():.2f} ± {half:.2f}"
    return found


def cell(one: FormVerdict) -> str:
    """Right / left, and the answer if it is not `holds`."""
    factor = f"{one.factor:.3g}" if np.isfinite(one.factor) else "left not positive"
    return factor if one.answer == "holds" else f"{factor} ({one.answer.removeprefix('holds, ')})"


def main() -> None:
    """Print two tables."""
    bounds, identities = [], []
    for name, (words, datasets) in RUNS.items():
        cells, of_slopes, exponents, same = {}, {}, {}, {}
        for dataset in datasets:
            print(f"{name}, {dataset}", file=sys.stderr)
            here = *words, f"dataset={dataset}"
            found = answer_run(load_run(compose_config(*here)))
            for one in found.verdicts:
                cells.setdefault(one.name, []).append(f"{dataset} {cell(one)}")
                exponents[one.theorem.name] = one.theorem.exponent
            for one in found.identities:
                sides = f"{one.left:.4g} and {one.right:.4g}" + ", does not hold" * (not one.holds)
                same.setdefault(one.name, []).append(f"{dataset} {sides}")
            if any(exponent is not None for exponent in exponents.values()):
                for theorem, slope in slopes(here).items():
                    of_slopes.setdefault(theorem, []).append(f"{dataset} {slope}")
        for bound, told in cells.items():
            theorem = bound.rpartition(", ")[0]
            exponent = exponents[theorem]
            slope = "" if exponent is None else ", ".join(of_slopes.pop(theorem, ()))  # in the theorem's first row
            bounds.append([name, bound, ", ".join(told), slope, f"{exponent:g}" if slope else ""])
        identities += [[name, identity, ", ".join(told)] for identity, told in same.items()]
    for headings, rows in ((BOUNDS, bounds), (IDENTITIES, identities)):
        print(Sheet.from_rows(headings, rows).markdown)


if __name__ == "__main__":
    main()
