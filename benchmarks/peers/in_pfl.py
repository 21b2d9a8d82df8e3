"""pfl-research in numpy: an algorithm of its own, played by its simulated backend."""

import numpy as np
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import FederatedAlgorithm
from pfl.callback.base import TrainingProcessCallback
from pfl.common_types import Population
from pfl.context import CentralContext
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import MinimizeReuseUserSampler
from pfl.hyperparam.base import AlgorithmHyperParams, ModelHyperParams
from pfl.internal.ops import numpy_ops
from pfl.internal.ops.selector import set_framework_module
from pfl.metrics import Metrics
from pfl.model.base import Model
from pfl.stats import MappedVectorStatistics
from work import CLIENTS, ETA, ROUNDS, WIDTH, end, end_round, gradient

set_framework_module(numpy_ops)


class Weights(Model):
    """Theta, which moves against the mean gradient."""

    theta = np.zeros(WIDTH)

    def apply_model_update(self, statistics):
        self.theta = self.theta - ETA * statistics["theta"]
        return self, Metrics()


class Descent(FederatedAlgorithm):
    """One gradient of every client a round."""

    def get_next_central_contexts(self, model, iteration, algorithm_params, model_train_params, model_eval_params=None):
        if iteration == ROUNDS:
            return None, model, Metrics()
        context = CentralContext(iteration, False, CLIENTS, Population.TRAIN, algorithm_params, model_train_params)
        return (context,), model, Metrics()

    def simulate_one_user(self, model, user_dataset, central_context):
        slope = gradient(model.theta, central_context.current_central_iteration, user_dataset.user_id)
        return MappedVectorStatistics({"theta": slope}, weight=1.0), Metrics()

    def process_aggregated_statistics(self, central_context, aggregate_metrics, model, statistics):
        statistics.average()
        return model.apply_model_update(statistics)


class Clock(TrainingProcessCallback):
    """Tells when a round has ended."""

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        end_round()
        return False, Metrics()


users = FederatedDataset(lambda k: Dataset([np.zeros(1)], user_id=k), MinimizeReuseUserSampler(list(range(CLIENTS))))
backend, parameters = SimulatedBackend(users, users), (AlgorithmHyperParams(), ModelHyperParams())
model = Descent().run(parameters[0], backend, Weights(), parameters[1], callbacks=[Clock()])
end(model.theta)
