"""Flower: its FedAvg and its simulation, with clients that take one step."""

import numpy as np
from flwr.client import ClientApp, NumPyClient
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation
from work import CLIENTS, ETA, ROUNDS, WIDTH, end, end_round, gradient

newest = []


class OneSample(NumPyClient):
    """Learns from the sample of the round."""

    def __init__(self, number):
        self.number = number

    def fit(self, parameters, config):
        [theta] = parameters
        return [theta - ETA * gradient(theta, config["round"] - 1, self.number)], 1, {}


class Timed(FedAvg):
    """FedAvg that tells when a round has ended."""

    def aggregate_fit(self, server_round, results, failures):
        made = super().aggregate_fit(server_round, results, failures)
        newest[:] = parameters_to_ndarrays(made[0])
        end_round()
        return made


def components(context):
    """All clients in every round, and no evaluation."""
    strategy = Timed(
        fraction_evaluate=0.0,
        min_fit_clients=CLIENTS,
        min_available_clients=CLIENTS,
        initial_parameters=ndarrays_to_parameters([np.zeros(WIDTH)]),
        on_fit_config_fn=lambda server_round: {"round": server_round},
    )
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=ROUNDS))


client = ClientApp(client_fn=lambda context: OneSample(int(context.node_config["partition-id"])).to_client())
resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
run_simulation(ServerApp(server_fn=components), client, CLIENTS, backend_config=resources)
end(newest[0])
