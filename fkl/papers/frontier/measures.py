"""What is read off a run for the frontier: error on the samples that all are judged on, bytes, seconds, epsilon."""

from typing import Any

import pandas as pd

from fkl.results.finished_runs import FinishedRun

TEST_SHARE = 0.3
"""Share of each client's samples, the last ones, that errors are measured on. A stream predicts them first."""
COMPUTE_S = 0.1
"""Seconds that a client or agent computes in each exchange of a round, all at once."""


def error_of(rounds: pd.DataFrame, summary: pd.DataFrame, at_optimum: bool = False) -> "pd.Series[float]":
    """Error of each replicate on the samples that are judged.

    Parameters
    ----------
    rounds, summary : DataFrame
        Of a run.
    at_optimum : bool
        Of what the method is on its way to, in place of where it has come.

    Returns
    -------
    Series
        Indexed by replicate: mean squared error, of a stream over its last `TEST_SHARE` of the rounds; or share of
        wrong classes.
    """
    by_replicate = summary.set_index("replicate")
    for name in ("test_mse", "test_error"):
        if name in by_replicate:
            return by_replicate[f"{name}_at_optimum" if at_optimum else name]
    last = int(rounds["round"].max())
    first = last - round(TEST_SHARE * last)
    so_far = rounds.pivot(index="replicate", columns="round", values="mse")
    return (last * so_far[last] - first * so_far[first]) / (last - first)


def measured(run: FinishedRun, cell: dict[str, Any]) -> pd.DataFrame:
    """What is compared, a row a replicate.

    Parameters
    ----------
    run : FinishedRun
    cell : dict
        Of its method, as experiments.yaml has it.

    Returns
    -------
    DataFrame
        error
            As `error_of` has it.
        bytes, sent
            Of a client or party in the mean: on all links in all directions; that it sends itself, a broadcast to all
            neighbours once.
        seconds
            On the network that all have, computing included.
        epsilon
            Of a sample; NaN where there is no noise.
    """
    end, clients = run.summary.set_index("replicate"), run.provenance["clients"]
    at_optimum = cell.get("at_optimum", False)
    error, seconds = error_of(run.rounds, run.summary, at_optimum), end["communication_s"]
    if at_optimum:
        # A client's training samples, features and target, as they are, and the theta that comes back. The fit that the
        # run's judge makes of them is no method, and passes no channel.
        scalar = {"float32": 4, "float64": 8}[run.config["precision"]]
        samples = run.clients.groupby("replicate")["training_samples"].mean()
        sent = samples * (run.provenance["features"] + 1) * scalar
        total = sent + 2 * run.config["kernels"]["D"] * scalar
        seconds = _exchanged(run, 1, total)
    elif "uplink_bytes" in end:
        sent = end["uplink_bytes"] / clients
        total = sent + end["downlink_bytes"] / clients
        if "test_mse" in end:
            seconds = seconds + COMPUTE_S * run.provenance["rounds"]
        elif "mse" in end and cell["kind"] != "pooled":
            seconds = _exchanged(run, cell.get("exchanges", 1) * run.provenance["rounds"], total)
    else:
        sent, total = end.get("broadcast_bytes", end["link_bytes"]) / clients, end["link_bytes"] / clients
        if "broadcast_bytes" in end:
            seconds = seconds + COMPUTE_S * run.provenance["rounds"]
    epsilon = end["epsilon_sample"] if "epsilon_sample" in end else float("nan")
    return pd.DataFrame({"error": error, "bytes": total, "sent": sent, "seconds": seconds, "epsilon": epsilon})


def _exchanged(run: FinishedRun, times: int, total: "pd.Series[float]") -> "pd.Series[float]":
    """Seconds of so many exchanges with a server, each down, compute, and up, in which all clients send as much.

    What network.compute_s would tell, which plays replicates one at a time.
    """
    network = run.config["network"]
    return times * (2 * network["latency_s"] + COMPUTE_S) + total / network["bandwidth_bytes_per_s"]
