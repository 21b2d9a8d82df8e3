"""What the columns of a run's tables mean: for `fkl describe COLUMN`, headings and the documentation."""

import re

TARGETS = "the scaled target"
SQUARED = f"mean squared error, in squares of {TARGETS}"
COLUMNS = {
    "replicate": "number of the replicate, from 0",
    "round": "number of the round, or iteration, from 1",
    "client": "number of the client, agent or party, from 0",
    "site": "site of the data that the client's samples come from",
    "rounds": "rounds in which the client had a sample",
    "mse": f"{SQUARED}: of all predictions so far, each made before its target was seen",
    "train_mse": f"{SQUARED}: of the training samples",
    "test_mse": f"{SQUARED}: of the test samples, from which nothing is learned",
    "train_error": "share of training samples in the wrong class",
    "test_error": "share of test samples in the wrong class",
    "train_loss": "mean loss of the training samples",
    "test_loss": "mean loss of the test samples",
    "mse_running_mean": f"baseline: {SQUARED}, of predicting each client's mean target so far",
    "mse_last_value": f"baseline: {SQUARED}, of predicting each client's last target",
    "test_mse_training_mean": f"baseline: {SQUARED}, of predicting the mean target of the training samples",
    "test_error_majority": "baseline: share of test samples outside the class that most training samples have",
    "r2": "R², 1 - error / variance of the targets: 1 is perfect, 0 is what the best constant has",
    "rmse_in_units": "root mean squared error, in the units of the data file",
    "regret_best_kernel": (
        "regret against the client's best single kernel as that kernel learned online, mean over clients, in units of "
        "squared error (POF-MKL, eq. 11)"
    ),
    "regret_hindsight": (
        "regret against the best kernel ridge fit to all clients' data in hindsight, mean over clients, in units of "
        "squared error (POF-MKL, eq. 12)"
    ),
    "regret_linear": "regret against the least squares fit with intercept to all clients' data",
    "regret_dynamic": "regret against the expected target of each round, known for generated data",
    "log_score": "mean log density of the targets under the predicted distribution, in nats; larger is better",
    "consensus_error": "distance of the agents' parameters theta from their mean, root mean square over agents",
    "distance": "distance of the agents' parameters theta from the optimum of all agents, root mean square",
    "functional_distance": "root mean square, over training samples, of the agents' functions minus the best function",
    "functional_distance_worst": "the largest functional distance of an agent, over its own training samples",
    "train_mse_at_optimum": f"{SQUARED}: of the training samples, with the optimum of all agents",
    "test_mse_at_optimum": f"{SQUARED}: of the test samples, with the optimum of all agents",
    "transmissions": "broadcasts to all neighbours, of all agents; a broadcast counts once",
    "iterations": "iterations done so far",
    "training_samples": "samples that are learned from",
    "test_samples": "samples that are only tested on",
    "communication_s": "seconds that the messages take, by the links' latency and bandwidth",
    "runtime_s": "seconds of computing for one replicate: the run's time divided by its replicates",
    "runtime_per_client_s": "seconds of computing for one replicate and client",
    "elapsed_s": "seconds of computing so far",
    "epsilon": "privacy spent so far: epsilon of (epsilon, delta)-differential privacy",
    "active_nodes": "samples that the function keeps, with non-zero weights",
    "support_vectors": "samples that the function keeps",
    "regions": "regions of equal predicted class that the function has",
    "peaks": "local extremes that the function has",
    "sent_samples": "samples that the agents uploaded",
    "gap": "duality gap of the problem in units of its cost, the largest over classes: 0 is solved",
    "agents_gap": "the largest duality gap of the agents' problems",
    "dual_value": "value of the dual problem",
    "converged": "share of problems whose duality gap is at most algo.tolerance",
    "agents_converged": "share of the agents' problems whose duality gap is at most algo.tolerance",
    "violation": "how far the function is outside its constraints",
    "slackness": "how far the function is from complementary slackness",
}
WHO = {
    "uplink": "from all clients to the server",
    "downlink": "from the server to all clients",
    "link": "from agent to agent, to each neighbour",
    "broadcast": "from an agent to all its neighbours, counted once",
}
WHAT = {"messages": "messages", "scalars": "numbers", "bytes": "bytes"}
TRAFFIC = re.compile(r"(lost_)?(uplink|downlink|link|broadcast)_(messages|scalars|bytes)")
ENDINGS = {
    "_worst_tenth_sites": "mean over the worst 10 % of sites of {}",
    "_gini_sites": "inequality between sites, 0 is equal, of {} (Gini coefficient)",
    "_worst_tenth": "mean over the worst 10 % of clients of {}",
    "_gini": "inequality between clients, 0 is equal, of {} (Gini coefficient)",
    "_at_optimum": "{}, with the optimum of all agents",
}


def meaning(name: str) -> str | None:
    """What a column means, in one line; None for a name that no table has.

    Examples
    --------
    >>> meaning("uplink_bytes")
    'bytes sent from all clients to the server'
    >>> meaning("mse_gini")
    'inequality between clients, 0 is equal, of mse (Gini coefficient)'
    """
    if name in COLUMNS:
        return COLUMNS[name]
    if found := TRAFFIC.fullmatch(name):
        lost = ", lost by the network" if found[1] else ""
        return f"{WHAT[found[3]]} sent {WHO[found[2]]}{lost}"
    if found := re.fullmatch(r"coverage_(\d+)", name):
        return f"share of targets inside the predicted central {found[1]} % interval; {int(found[1]) / 100:g} is exact"
    for ending, words in ENDINGS.items():
        if name.endswith(ending) and (of := name.removesuffix(ending)) in COLUMNS:
            return words.format(of)
    return None
