"""What the code of Llorente, Waxman and Djuric predicts: writes decentralized_online_gps.json, which tests compare.

    git clone https://github.com/FLlorente/DecentralizedOnlineGPs FOLDER  # commit 0296b45a
    PYTHONPATH=.:tests python tests/oracles/decentralized_online_gps.py FOLDER

Their classes run unchanged, on the samples and frequencies of a small world of fkl, on a graph with unequal degrees.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from literal.common import frequencies
from literal.worlds import Size, make_dictionary, make_problem

from fkl.basics.random_streams import Streams

FILE = Path(__file__).with_suffix(".json")
SIZE = Size(R=1, K=5, N=3, D=4, T=10)
GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (1, 3)])
RHO, ETA_L, ETA_G, NOISE = 0.2, 1.5, 2.0, 0.03


def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples x (T, K, d), targets (T, K) and frequencies (N, D, d)."""
    problem = make_problem(SIZE, 0)
    bank = make_dictionary(SIZE).bank(SIZE.d, Streams(0, (0,)), "float64", "numpy")
    return problem.x, problem.y, np.array([omega.T for omega in frequencies(bank.rho[0], bank.scale)])


def gaussian(modules: Any, x: np.ndarray, y: np.ndarray, omega: np.ndarray, network: np.ndarray) -> dict[str, Any]:
    """Predictions (T, K) of the ensemble, and each kernel's mean, variance and log weight (T, K, N)."""
    models = []
    for v in omega:
        model = modules.distributed_rf_gp(SIZE.K, network, SIZE.D, SIZE.d, 1.0, NOISE, 1.0)
        model.v = v
        models.append(model)
    ensemble, found = modules.E_drfgp(models), {"y_hat": [], "mean": [], "variance": [], "log_w": []}
    for rows, targets in zip(x, y, strict=True):
        each = [row[None] for row in rows]
        alone = [[model.predict_with_agent(k, each[k]) for model in models] for k in range(SIZE.K)]
        found["y_hat"].append([float(ensemble.ensemble_prediction_at_agent(k, each[k])) for k in range(SIZE.K)])
        found["mean"].append([[float(mean) for mean, _ in row] for row in alone])
        found["variance"].append([[float(variance[0]) for _, variance in row] for row in alone])
        found["log_w"].append([ensemble.get_bma_weights_at_agent(k).tolist() for k in range(SIZE.K)])
        ensemble.step_models(each, [target.reshape(1, 1) for target in targets])
    return found


def domkl(modules: Any, x: np.ndarray, y: np.ndarray, omega: np.ndarray, network: np.ndarray) -> dict[str, Any]:
    """Predictions (T, K) with the weights q, in the order of the steps of main_domkl_test.py."""
    K, N, D = SIZE.K, SIZE.N, SIZE.D
    theta, dual = np.zeros((K, N, 2 * D, 1)), np.zeros((K, N, 2 * D, 1))
    log_ws, qs, y_hat = np.zeros((K, N)), np.full((K, N), 1 / N), []
    for rows, targets in zip(x, y, strict=True):
        new, row = np.zeros_like(theta), []
        for k in range(K):
            each, target = rows[k][None], targets[k].reshape(1, 1)
            log_ws[k], f = modules.update_w(k, each, target, log_ws, theta, ETA_G, omega, D)
            row.append(float(qs[k] @ f[:, 0]))
            for p in range(N):
                given = theta[:, p], dual[:, p], omega[p], D, RHO, ETA_L, network
                new[k, p] = modules.update_theta(k, each, target, *given)
        theta = new
        for k in range(K):
            qs[k] = modules.update_q(k, log_ws, network)
            for p in range(N):
                dual[k, p] = modules.update_lambda(k, theta[:, p], dual[:, p], RHO, network)
        y_hat.append(row)
    return {"y_hat": y_hat}


def main(folder: str) -> None:
    """Run both, and write the file."""
    sys.path.insert(0, folder)
    from modules import domkl_funs, drfgp  # type: ignore[import-not-found]

    x, y, omega = inputs()
    network = nx.to_numpy_array(GRAPH, nodelist=range(SIZE.K)) + np.eye(SIZE.K)
    commit = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    told = {
        "source": "github.com/FLlorente/DecentralizedOnlineGPs", "commit": commit, "omega": omega.tolist(),
        "d_rf_gp": gaussian(drfgp, x, y, omega, network), "domkl": domkl(domkl_funs, x, y, omega, network),
    }  # fmt: skip
    FILE.write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
