"""`python docs/figures/d_rf_gp.py`: D-RF-GP and Consensus RF-GP on graphs, for docs/findings/gaussian_processes.md."""

from tempfile import TemporaryDirectory

import fkl

WORDS = ("kernels.D=10", "replicates=3", "algo.noise=0.01", "figures=none")
GRAPHS = ("path", "ring", "tree", "erdos_renyi", "complete")
METHODS = ("d_rf_gp", "consensus_rf_gp")


def mse(*words: str) -> float:
    """Mean squared error x 1e-3 over agents, rounds and replicates."""
    with TemporaryDirectory() as outputs:
        found = fkl.run(*words, *WORDS, f"paths.outputs={outputs}", quiet=True).summary["mse"]
    return 1e3 * float(found.mean())


if __name__ == "__main__":
    print(
        "| data | graph | D-RF-GP | Consensus RF-GP | difference | RF-GP at a server |\n|---|---|---:|---:|---:|---:|"
    )
    for data in ("naval", "wave_farm"):
        server = mse("algo=rf_gp", f"dataset={data}")
        for graph in GRAPHS:
            theirs, ours = (mse(f"algo={algo}", f"dataset={data}", f"topology={graph}") for algo in METHODS)
            change = f"{100 * (ours / theirs - 1):+.1f} %"
            print(f"| {data} | {graph} | {theirs:.3f} | {ours:.3f} | {change} | {server:.3f} |", flush=True)
