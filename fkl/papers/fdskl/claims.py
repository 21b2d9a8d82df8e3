"""What the paper claims of Figures 3 to 6, of which it prints no value, and what came out."""

from fkl.algorithms.vertical.sum_trees import STRUCTURES, seconds_of_sum
from fkl.network.response_times import CostModel
from fkl.papers.fdskl.chosen import SHARE, Key, samples
from fkl.papers.fdskl.figures import SCALED, SUMMED, WORKERS, most_samples
from fkl.results.finished_runs import FinishedRun

KERNEL_METHODS = ("FDSKL", "DSG", "LIBSVM", "PP-SVMV")
TOO_FEW = "too few systems were run to tell"
IN_THE_PAPER = (*KERNEL_METHODS, "FD-SVRG", "SecureBoost")


def fastest(by_key: dict[Key, FinishedRun]) -> str:
    """What to say below Figure 3."""
    first, of = 0, 0
    for dataset in {key[0] for key in by_key}:
        took = {name: run.summary["runtime_s"].mean() for name, run in most_samples(dataset, by_key).items()}
        took = {name: time for name, time in took.items() if name in KERNEL_METHODS}
        if "FDSKL" in took and len(took) > 1:
            first, of = first + (min(took, key=lambda name: took[name]) == "FDSKL"), of + 1
    others = ", ".join(name for name in KERNEL_METHODS if name != "FDSKL")
    here = f"FDSKL computes for less time than {others} on {first} of {of} data sets" if of else TOO_FEW
    return f"The paper: FDSKL converges fastest of all kernel methods. Here: {here}."


def lowest_sum(by_key: dict[Key, FinishedRun]) -> str:
    """What to say below Figure 4."""
    full = {key[0]: run for key, run in by_key.items() if key[2] == SHARE and key[0] in SUMMED}
    first = 0
    for run in full.values():
        network, size = run.config["network"], 8.0 * samples(run) ** 2
        cost = CostModel(network["latency_s"], network["bandwidth_bytes_per_s"])
        took = {structure: seconds_of_sum(structure, WORKERS[-1], size, cost) for structure in STRUCTURES}
        first += min(took, key=lambda name: took[name]) == "tree"
    here = f"by the cost model it is the lowest with {WORKERS[-1]} workers on {first} of {len(full)} data sets"
    return f"The paper: with more workers the tree costs the least time. Here: {here}."


def growth(by_key: dict[Key, FinishedRun]) -> str:
    """What to say below Figure 5."""
    said = []
    for dataset in SCALED:
        words = []
        for system in ("FDSKL", "PP-SVMV"):
            runs = sorted((run for key, run in by_key.items() if key[:2] == (dataset, system)), key=samples)
            if len(runs) > 1:
                more = samples(runs[-1]) / samples(runs[0])
                longer = runs[-1].summary["runtime_s"].mean() / runs[0].summary["runtime_s"].mean()
                words.append(f"{system} takes {longer:.1f} times as long for {more:.1f} times the samples")
        said += [f"{', '.join(words)} ({dataset})"] if words else []
    here = "; ".join(said) or TOO_FEW
    return f"The paper: FDSKL scales better than PP-SVMV, which runs out of memory. Here: {here}."


def lowest_error(by_key: dict[Key, FinishedRun]) -> str:
    """What to say below Figure 6."""
    lowest, steadiest, of = 0, 0, 0
    for dataset in {key[0] for key in by_key}:
        errors = {name: run.summary["test_error"] for name, run in most_samples(dataset, by_key).items()}
        errors = {name: values for name, values in errors.items() if name in IN_THE_PAPER}
        if "FDSKL" in errors and len(errors) > 1:
            lowest += min(errors, key=lambda name: errors[name].mean()) == "FDSKL"
            steadiest += min(errors, key=lambda name: errors[name].std(ddof=1)) == "FDSKL"
            of += 1
    here = f"lowest mean error on {lowest}, smallest variance on {steadiest} of {of} data sets" if of else TOO_FEW
    return f"The paper: FDSKL always has the lowest test error and variance. Here: {here}."
