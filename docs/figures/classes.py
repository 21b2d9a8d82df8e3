"""`python docs/figures/classes.py`: methods at a server on ten classes, the table of docs/findings/classes.md."""

from tempfile import TemporaryDirectory

import fkl

WORDS = (
    "dataset=digits",
    "partition.clients=10",
    "partition.rounds=179",
    "kernels.D=200",
    "replicates=5",
    "figures=none",
)
PARTITIONS = {"shuffled": ("partition=digits",), "by label": ("partition=dirichlet", "partition.alpha=0.1")}
STEPS = ("algo=fedavg", "algo.iterations=200", "kernels=coke")
METHODS = {
    "Fed3R": ("algo=fed3r",),
    "Fed3R, each client alone": ("algo=fed3r", "learners=alone"),
    "FedAvg, one_vs_rest": (*STEPS, "algo.loss=one_vs_rest", "algo.eta=0.5"),
    "FedAvg, softmax": (*STEPS, "algo.loss=softmax", "algo.eta=5"),
}

if __name__ == "__main__":
    print("| method | " + " | ".join(f"test_error, {name}" for name in PARTITIONS) + " |\n|---|---:|---:|")
    for name, method in METHODS.items():
        cells = []
        for partition in PARTITIONS.values():
            with TemporaryDirectory() as outputs:
                words = (*method, *partition, *WORDS, f"paths.outputs={outputs}")
                cells.append(fkl.run(*words, quiet=True).summary["test_error"])
        print(f"| {name} | " + " | ".join(f"{each.mean():.3f} ± {each.std():.3f}" for each in cells) + " |", flush=True)
