"""FedJAX: its federated averaging, whose clients take one step on one sample."""

import jax
import jax.numpy as jnp
import numpy as np
from fedjax import ClientDataset, ShuffleRepeatBatchHParams
from fedjax.algorithms.fed_avg import federated_averaging
from fedjax.core.optimizers import sgd
from work import CLIENTS, ETA, LAM, ROUNDS, WIDTH, end, end_round, frequencies, x, y

jax.tree_map = jax.tree_util.tree_map  # which FedJAX still calls by its old name
frequencies = jnp.asarray(frequencies, jnp.float32)


def loss(theta, batch, rng):
    """Mean loss of a batch."""
    angle = batch["x"] @ frequencies
    z = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1) / np.sqrt(frequencies.shape[1])
    return jnp.mean((z @ theta - batch["y"]) ** 2) + LAM * theta @ theta


algorithm = federated_averaging(jax.grad(loss), sgd(ETA), sgd(1.0), ShuffleRepeatBatchHParams(batch_size=1))
state, keys = algorithm.init(jnp.zeros(WIDTH)), jax.random.split(jax.random.PRNGKey(0), CLIENTS)
x, y = x.astype(np.float32), y.astype(np.float32)
for t in range(ROUNDS):
    clients = [(k, ClientDataset({"x": x[t, [k]], "y": y[t, [k]]}), keys[k]) for k in range(CLIENTS)]
    state, _ = algorithm.apply(state, clients)
    state.params.block_until_ready()
    end_round()
end(np.asarray(state.params))
