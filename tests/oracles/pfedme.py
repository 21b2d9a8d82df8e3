"""pFedMe of its authors (github.com/CharlieDinh/pFedMe at caf24b1), unchanged, on a linear model: writes its JSON.

git clone https://github.com/CharlieDinh/pFedMe && python3.11 -m venv ENV && ENV/bin/pip install torch torchvision h5py
PYTHONPATH=pFedMe ENV/bin/python tests/oracles/pfedme.py
"""

import json
from pathlib import Path

import numpy as np
import torch
from FLAlgorithms.servers.serverbase import Server
from FLAlgorithms.users.userpFedMe import UserpFedMe

CLIENTS, SAMPLES, WIDTH, ROUNDS = 3, 8, 4, 5
KEYS = {"eta": 0.1, "eta_server": 0.6, "lam_k": 3.0, "eta_k": 0.07, "local_steps": 3, "own_steps": 4}
DECAY = 1e-3
"""Its optimiser's weight decay."""


class Watched(UserpFedMe):
    """Notes its own model before train() ends, which puts the shared model into the same parameters."""

    def update_parameters(self, new_params):
        """Note, then put in."""
        self.own = self.model.weight.detach().numpy().ravel().tolist()
        super().update_parameters(new_params)


def main() -> None:
    """Play all rounds."""
    torch.set_default_dtype(torch.float64)
    rng = np.random.default_rng(44)
    x = rng.normal(size=(CLIENTS, SAMPLES, WIDTH)) / 2
    y = np.einsum("kip,kp->ki", x, rng.normal(size=(CLIENTS, WIDTH))) + rng.normal(size=(CLIENTS, SAMPLES)) / 10
    model = torch.nn.Linear(WIDTH, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    eta, beta, lam, eta_k, steps, own_steps = KEYS.values()
    learning = (SAMPLES, eta, beta, lam)
    server = Server("cpu", "", "pFedMe", model, *learning, ROUNDS, steps, "", CLIENTS, 0)
    for k in range(CLIENTS):
        rows = list(zip(torch.as_tensor(x[k]), torch.as_tensor(y[k, :, None]), strict=True))
        user = Watched("cpu", k, rows, rows, (model, ""), *learning, steps, "", own_steps, eta_k)
        user.loss = torch.nn.MSELoss()
        server.users.append(user)
    server.selected_users = server.users
    shared, own = [], []
    for _ in range(ROUNDS):
        server.send_parameters()
        for user in server.users:
            user.train(steps)
        own.append([user.own for user in server.users])
        server.persionalized_aggregate_parameters()
        shared.append(server.model.weight.detach().numpy().ravel().tolist())
    told = {"commit": "caf24b1", **KEYS, "decay": DECAY, "x": x.tolist(), "y": y.tolist(), "pfedme": shared, "own": own}
    Path(__file__).with_suffix(".json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
