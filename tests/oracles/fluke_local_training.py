"""SCAFFOLD and Ditto of fluke (GPL-3.0), unchanged, on a linear model and full batches: writes its JSON.

python3.11 -m venv ENV && ENV/bin/pip install torch fluke-fl==0.8.1
ENV/bin/python tests/oracles/fluke_local_training.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from fluke import DDict, FlukeENV
from fluke.algorithms.ditto import DittoClient
from fluke.algorithms.scaffold import SCAFFOLDClient, SCAFFOLDServer
from fluke.config import OptimizerConfigurator
from fluke.data import FastDataLoader
from fluke.server import Server

CLIENTS, SAMPLES, WIDTH, STEPS = 3, 8, 4, 3
ETA, LAM = 0.2, 0.7
ROUNDS = [[0, 1, 2], [0, 2], [1, 2], [0, 1], [0, 1, 2]]
"""Clients that take part in each round."""


def linear() -> torch.nn.Module:
    """A linear model of zeros, without bias."""
    model = torch.nn.Linear(WIDTH, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    return model


def weights(model: torch.nn.Module) -> list[float]:
    """Its weights."""
    return model.weight.detach().numpy().ravel().tolist()


def main() -> None:
    """Play all rounds of both methods."""
    torch.set_default_dtype(torch.float64)
    rng = np.random.default_rng(43)
    x = rng.normal(size=(CLIENTS, SAMPLES, WIDTH)) / 2
    y = np.einsum("kip,kp->ki", x, rng.normal(size=(CLIENTS, WIDTH))) + rng.normal(size=(CLIENTS, SAMPLES)) / 10
    loaders = [
        FastDataLoader(*map(torch.as_tensor, (one, target[:, None])), num_labels=1, batch_size=SAMPLES, shuffle=False)
        for one, target in zip(x, y, strict=True)
    ]
    FlukeENV().set_device("cpu")
    FlukeENV().set_eval_cfg(pre_fit=False, post_fit=False, locals=False, server=False)
    sgd, loss = OptimizerConfigurator(DDict(name="SGD", lr=ETA)), torch.nn.MSELoss()
    given = {"optimizer_cfg": sgd, "loss_fn": loss, "local_epochs": STEPS}
    scaffold = [SCAFFOLDClient(k, loader, None, **given) for k, loader in enumerate(loaders)]
    ditto = [DittoClient(k, linear(), loader, None, **given, tau=STEPS, lam=LAM) for k, loader in enumerate(loaders)]
    servers = {
        "scaffold": SCAFFOLDServer(linear(), None, scaffold, weighted=False),
        "ditto": Server(linear(), None, ditto, weighted=False),
    }
    told: dict[str, object] = {"scaffold": [], "ditto": [], "ditto_own": []}
    for t, some in enumerate(ROUNDS):
        for name, clients in (("scaffold", scaffold), ("ditto", ditto)):
            server, chosen = servers[name], [clients[k] for k in some]
            for client in chosen:
                client.set_channel(server.channel)
            server.broadcast_model(chosen)
            for client in chosen:
                client.local_update(t + 1)
            server.aggregate(chosen, server.receive_client_models(chosen, state_dict=False))
            told[name].append(weights(server.model))
        told["ditto_own"].append([weights(client.personalized_model) for client in ditto])
    keys = {"eta": ETA, "lam_k": LAM, "local_steps": STEPS, "rounds": ROUNDS}
    told = {"fluke-fl": version("fluke-fl"), **keys, "x": x.tolist(), "y": y.tolist(), **told}
    Path(__file__).with_suffix(".json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
