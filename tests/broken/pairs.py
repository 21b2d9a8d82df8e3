"""Methods with dictionaries that they are not named after, and what is said about each."""

RBF_1, POLY_2 = (
    r"RBF-1 has the one kernel exp\(-\|x - x'\|\^2\): kernels=rbf_1",
    r"POLY-2 has the one kernel \(x'x'\)\^2",
)
DEGREES = "must be degrees that are integers from 1 to 100"

PAIRS = {
    "algo=rbf_1 kernels=rbf": f"kernels.N=51: must be 1: {RBF_1}",
    "algo=rbf_1 kernels=laplacian": f"kernels.N=51: must be 1: {RBF_1}",
    "algo=rbf_1 kernels=omkr": f"kernels.N=76: must be 1: {RBF_1}",
    "algo=rbf_1 kernels=graph_omkl": f"kernels.N=76: must be 1: {RBF_1}",
    "algo=rbf_1 kernels.N=2": f"kernels.N=2: must be 1: {RBF_1}",
    "algo=rbf_1 kernels=rbf_single": f"kernels.smallest=10.0: must be such that {RBF_1}",
    "algo=rbf_1 kernels=coke": f"kernels.smallest=1.0: must be such that {RBF_1}",
    "algo=rbf_1 kernels=poly_2": f"kernels.family=polynomial: must be rbf: {RBF_1}",
    "algo=rbf_1 kernels.family=laplacian": f"kernels.family=laplacian: must be rbf: {RBF_1}",
    "algo=rbf_1 kernels.laplacians=1": f"kernels.family=laplacian: must be rbf: {RBF_1}",
    "algo=rbf_1 kernels.bandwidth_convention=variance": f"kernels.smallest=1.0: must be such that {RBF_1}",
    "algo=rbf_1 kernels.bandwidth_convention=deviation": f"kernels.smallest=1.0: must be such that {RBF_1}",
    "algo=rbf_1 kernels.smallest=2 kernels.largest=2": f"kernels.smallest=2.0: must be such that {RBF_1}",
    "algo=rbf_1 kernels.smallest=1.001 kernels.largest=1.001": f"kernels.smallest=1.001: must be such that {RBF_1}",
    "algo=poly_2 kernels=rbf": f"kernels.N=51: must be 1: {POLY_2}",
    "algo=poly_2 kernels=omkr": f"kernels.N=76: must be 1: {POLY_2}",
    "algo=poly_2 kernels=rbf_1": f"kernels.family=rbf: must be polynomial: {POLY_2}",
    "algo=poly_2 kernels.family=laplacian": f"kernels.family=laplacian: must be polynomial: {POLY_2}",
    "algo=poly_2 kernels.N=3 kernels.smallest=1 kernels.largest=4": f"kernels.N=3: must be 1: {POLY_2}",
    "algo=poly_2 kernels.smallest=3 kernels.largest=3": f"kernels.smallest=3.0: must be such that {POLY_2}",
    "algo=poly_2 kernels.smallest=1 kernels.largest=1": f"kernels.smallest=1.0: must be such that {POLY_2}",
    "algo=omkr kernels=rbf kernels.family=polynomial": f"kernels.smallest=0.01: {DEGREES}",
    "algo=omkr kernels=poly_2 kernels.N=3 kernels.largest=5": f"kernels.smallest=2.0: {DEGREES}",
    "algo=poly_2 kernels.smallest=1.5 kernels.largest=1.5": f"kernels.smallest=1.5: {DEGREES}",
    "algo=poly_2 kernels.smallest=1e-30 kernels.largest=1e-30": f"kernels.smallest=1e-30: {DEGREES}",
    "algo=poly_2 kernels.smallest=1000 kernels.largest=1000": f"kernels.smallest=1000.0: {DEGREES}",
    "algo=rfomkr kernels=poly_2": "kernels.family=polynomial: must be rbf or laplacian: it has no random features",
    "algo=raker kernels=poly_2": "kernels.family=polynomial: must be rbf or laplacian: it has no random features",
    "algo=ofskl kernels=rbf partition=iid partition.clients=4 partition.rounds=9": "kernels.N=51: must be 1 for OFSKL",
    "algo=ofskl kernels=omkr partition=iid partition.clients=4 partition.rounds=9": "kernels.N=76: must be 1 for OFSKL",
    "algo=dkla kernels=rbf partition=agents": "kernels.N=51: must be 1: DKLA learns one kernel",
    "algo=coke kernels=graph_omkl partition=agents": "kernels.N=76: must be 1: COKE learns one kernel",
}
"""Overrides, beside a small data set and, unless they choose a partition, one learner."""
