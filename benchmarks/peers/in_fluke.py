"""fluke: its federated averaging, with clients whose fit is one step of torch's SGD."""

import torch
from fluke import DDict, FlukeENV
from fluke.algorithms import CentralizedFL
from fluke.client import Client
from fluke.config import OptimizerConfigurator
from fluke.server import Server
from fluke.utils import FederationObserver, ServerObserver
from work import CLIENTS, ETA, LAM, ROUNDS, WIDTH, end, end_round, features, x, y

torch.set_num_threads(1)


class OneSample(Client):
    """Learns from the sample of the round."""

    def fit(self, override_local_epochs=0):
        if self.optimizer is None:
            self.optimizer, self.scheduler = self._optimizer_cfg(self.model)
        z = torch.as_tensor(features(x[self._last_round, self.index]), dtype=torch.float32)
        self.optimizer.zero_grad()
        loss = (self.model(z)[0] - float(y[self._last_round, self.index])) ** 2
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Clock(ServerObserver, FederationObserver):
    """Tells when a round has ended."""

    rounds = 0

    def end_round(self, round):
        if round > self.rounds:  # both observers may hear of it
            self.rounds = round
            end_round()


model = torch.nn.Linear(WIDTH, 1, bias=False)
torch.nn.init.zeros_(model.weight)
how = OptimizerConfigurator(DDict(name="SGD", lr=ETA, weight_decay=2 * LAM))
clients = [OneSample(k, None, None, how, None) for k in range(CLIENTS)]
server = Server(model, None, clients)
FlukeENV().set_device("cpu")
algorithm = CentralizedFL(CLIENTS, None, None, clients=clients, server=server)
algorithm.set_callbacks([Clock()])
algorithm.finalize = lambda: None
algorithm.run(ROUNDS, 1.0)
end(server.model.weight.detach().numpy())
