"""Meanings of the columns of a run's tables and of kinds of messages, for `fkl describe NAME` and the documentation."""

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
    "error": "share of mistakes of all predictions so far, each made before its class was seen; 0 is a mistake",
    "accuracy": "share of right classes of all predictions so far, 1 - error",
    "pinball": f"mean pinball loss, of {TARGETS}, of all predictions so far; the quantile at algo.level has the least",
    "below": "share of targets so far that are at most the prediction; algo.level is exact",
    "loss": "mean of algo.loss of all predictions so far, without its regularisation",
    "train_mse": f"{SQUARED}: of the training samples",
    "test_mse": f"{SQUARED}: of the test samples, from which nothing is learned",
    "train_error": "share of training samples in the wrong class",
    "test_error": "share of test samples in the wrong class",
    "train_accuracy": "share of training samples in the right class, 1 - train_error",
    "test_accuracy": "share of test samples in the right class, 1 - test_error",
    "train_loss": "mean loss of the training samples",
    "test_loss": "mean loss of the test samples",
    "mse_running_mean": f"baseline: {SQUARED}, of predicting each client's mean target so far",
    "mse_last_value": f"baseline: {SQUARED}, of predicting each client's last target",
    "error_majority": "baseline: share of mistakes of predicting the class that most of a client's samples so far have",
    "error_last_class": "baseline: share of mistakes of predicting each client's last class",
    **dict.fromkeys(
        ("mse_best_constant", "error_best_constant", "pinball_best_constant"),
        "baseline: that of the best constant for all clients in hindsight; an error above it has learned nothing",
    ),
    "pinball_running_quantile": "baseline: pinball of predicting each client's quantile at algo.level so far",
    "pinball_last_value": "baseline: pinball of predicting each client's last target",
    "test_mse_training_mean": f"baseline: {SQUARED}, of predicting the mean target of the training samples",
    "test_error_majority": "baseline: share of test samples outside the class that most training samples have",
    "r2": "R², 1 - error / variance of the targets: 1 is perfect, 0 is that of the best constant",
    "rmse_in_units": "root mean squared error, in the units of the data file",
    "regret_best_kernel": (
        "regret against the client's best single kernel as that kernel learned online, mean over clients, in units of "
        "the loss (POF-MKL, eq. 11)"
    ),
    "regret_hindsight": (
        "regret against the best kernel's fit of the loss to all clients' data in hindsight, mean over clients, in "
        "units of the loss (POF-MKL, eq. 12)"
    ),
    "regret_linear": "regret against the least squares fit with intercept to all clients' data",
    "regret_dynamic": "regret against the expected target of each round, known for generated data",
    "log_score": "mean log density of the targets under N(prediction, variance), in nats; larger is better",
    "log_score_mixture": "mean log density of the targets under the method's own predictive distribution, in nats",
    "consensus_error": "distance of the agents' parameters theta from their mean, root mean square over agents",
    "distance": "distance of the agents' parameters theta from the optimum of all agents, root mean square",
    "functional_distance": "root mean square, over training samples, of the agents' functions minus the best function",
    "functional_distance_worst": "the largest functional distance of an agent, over its own training samples",
    "train_mse_at_optimum": f"{SQUARED}: of the training samples, with the optimum of all agents",
    "test_mse_at_optimum": f"{SQUARED}: of the test samples, with the optimum of all agents",
    "transmissions": "broadcasts to all neighbours, of all agents; a broadcast counts once",
    "iterations": "iterations done so far",
    "training_samples": "number of training samples",
    "test_samples": "number of test samples",
    "communication_s": "seconds that the messages take, by the links' latency and bandwidth",
    "stopped_at": "round after which stop_when ended the run; empty if the condition never held",
    "runtime_s": "seconds of computing for one replicate: the run's time divided by its replicates",
    "runtime_per_client_s": "seconds of computing for one replicate and client",
    "epsilon_sample": "privacy of a sample so far: epsilon of (epsilon, privacy.delta)-differential privacy",
    "epsilon_client": "privacy of a client so far: epsilon of (epsilon, privacy.delta)-differential privacy",
    "epsilon_upper": "the stated epsilon of audit.level after the last round, which an audit tries to contradict",
    "epsilon_lower": "epsilon is at least this, as the audit's canaries show with 95 % confidence",
    "epsilon_lower_guesses": "the same, from guesses of which canaries are in, for any scores and stated normal noise",
    "epsilon_upper_sums": "the stated epsilon against an adversary who sees only secure sums of all clients' messages",
    "canaries": "canaries that the audit scores, each in or out by a coin",
    "canaries_in": "canaries that are in",
    "score_in": "mean score of canaries that are in, in standard deviations of the stated noise",
    "score_out": "mean score of canaries that are out, in standard deviations of the stated noise",
    "noise_ratio": "standard deviation of the audit's scores divided by the stated one: 1 for the stated noise",
    "scores_p": "smallest p-value of the audit's checks of its scores, times their number",
    "features": "features that the party holds",
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
LOST = {"lost": "that the network lost"}
WHAT = {"messages": "messages", "scalars": "numbers", "bytes": "bytes"}
TRAFFIC = re.compile(r"(lost_)?(uplink|downlink|link|broadcast)_(messages|scalars|bytes)")
KINDS = {
    "angles": "masked sums of the parties' parts of the angles of random features",
    "box": "lower and upper corner of a box that holds the client's samples; back: of the box of all clients",
    "centres": "samples that clients give away as centres of the function",
    "control": "control variates of the server; up: changes of the clients' control variates",
    "curvature": "for each kernel, the client's part of the number by which the server divides its step (q-FedAvg)",
    "distances": "masked sums of squared distances of samples to landmarks",
    "features": "a sample without its target",
    "function part": "a party's part of the function's values at some samples",
    "gram": "second moments Z'Z / n of the client's random features",
    "grams": "second moments of the agent's and the neighbour's random features at the neighbour",
    "index": "which kernel was drawn (eM-KOFL), or predicts (FOMD-OMS); the rows and the seed of an iteration (FDSKL)",
    "key": "the public key of the cipher, sent once",
    "keys": "public keys by which clients agree on masks",
    "landmarks": "which samples are landmarks",
    "left": "which samples of a node go left, one bit each",
    "log_w": "logarithms of the kernels' weights",
    "losses": "the client's losses with each kernel",
    "mask sum": "sums of the masks, without which masked sums reveal nothing",
    "masked sum": "sums of the parties' parts of angles, under masks",
    "matrix": "masked sums of the parties' parts of the kernel matrix",
    "model": "the learned function: which nodes or samples it keeps, and their coefficients",
    "moments": "second moments of random features, and their products with the targets, of each kernel",
    "network": "weights of the neural network; up: their gradients",
    "noise": "variance of the noise of each kernel's Gaussian process",
    "omega": "frequencies of the agent's random features",
    "phase": "phases of the agent's random features",
    "prediction": "what the server predicts for the client's sample",
    "products": "a party's part of w'x of some samples",
    "pull": "products Z'y / n of the client's random features with its targets",
    "quantile": "a rank of the client's errors for each level of intervals; back: half the length of each interval",
    "root": "root of each kernel's posterior covariance",
    "samples": "samples with their targets; for RF-GP, made-up samples with nearly the same sums",
    "shares": "shares of keys, with which masks of clients that leave can be removed",
    "shrink": "factor by which all coefficients shrink",
    "slopes": "derivatives of the loss at some samples",
    "split": "the feature and the edge at which a node is split",
    "statistics": "encrypted first and second derivatives of the loss at all samples",
    "sums": "encrypted sums of the derivatives in each bin of a party's features",
    "survivors": "which clients are still present",
    "target": "the target of the client's sample",
    "theta": "parameters of the function on random features, or their gradients or changes",
    "totals": "number of samples, and sum of their squared targets",
    "unmasking": "shares that remove the masks of clients that left",
    "vector": "a vector with an entry for each centre: of coefficients, or a product with the kernel matrix",
    "weights": "weights of the kernels",
    "z": "auxiliary variables of the link between two agents",
}
"""Content of messages, by kind; `scalars_by_kind` of provenance.json has the kind after the direction."""
DIRECTION = re.compile(r"(uplink|downlink|link|broadcast|lost) ")
CONFORMAL = {
    "coverage": "share of targets inside the conformal interval of {} %",
    "length": "mean length of bounded conformal intervals of {} %, in the scaled target's units",
    "unbounded": "share of conformal intervals of {} % that are unbounded, because there were too few errors",
}
ENDINGS = {
    "_worst_tenth_sites": "mean over the worst 10 % of sites of {}",
    "_gini_sites": "inequality between sites, 0 is equal, of {} (Gini coefficient)",
    "_worst_tenth": "mean over the worst 10 % of clients of {}",
    "_gini": "inequality between clients, 0 is equal, of {} (Gini coefficient)",
    "_at_optimum": "{}, with the optimum of all agents",
}


def column_meaning(name: str) -> str | None:
    """Meaning of a column in one line; None for an unknown name.

    Examples
    --------
    >>> column_meaning("uplink_bytes")
    'bytes sent from all clients to the server'
    >>> column_meaning("mse_gini")
    'inequality between clients, 0 is equal, of mse (Gini coefficient)'
    """
    if name in COLUMNS:
        return COLUMNS[name]
    if found := TRAFFIC.fullmatch(name):
        lost = ", lost by the network" if found[1] else ""
        return f"{WHAT[found[3]]} sent {WHO[found[2]]}{lost}"
    if found := re.fullmatch(r"lost_(messages|scalars|bytes)", name):
        return f"{WHAT[found[1]]} that the network lost"
    if found := re.fullmatch(r"coverage_(\d+)", name):
        return f"share of targets inside the predicted central {found[1]} % interval; {int(found[1]) / 100:g} is exact"
    if found := re.fullmatch(r"conformal_(coverage|length|unbounded)_(\d+)", name):
        return CONFORMAL[found[1]].format(found[2])
    for ending, text in ENDINGS.items():
        if name.endswith(ending) and (of := name.removesuffix(ending)) in COLUMNS:
            return text.format(of)
    return None


def kind_meaning(name: str) -> str | None:
    """Content of messages of a kind in one line; None for an unknown kind.

    Parameters
    ----------
    name : str
        For example ``"theta"``, or ``"uplink theta"`` as in provenance.json.

    Examples
    --------
    >>> kind_meaning("uplink losses")
    "in messages from all clients to the server, the client's losses with each kernel"
    >>> kind_meaning("losses")
    "in messages, the client's losses with each kernel"
    """
    direction, kind = DIRECTION.match(name), DIRECTION.sub("", name)
    if kind not in KINDS:
        return None
    way = f" {(WHO | LOST)[direction[1]]}" if direction else ""
    return f"in messages{way}, {KINDS[kind]}"
