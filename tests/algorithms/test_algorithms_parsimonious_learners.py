"""PF and PC in the loop: one upload, its traffic, one agent, more classes, splits of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fkl.algorithms.base import Fitted
from fkl.algorithms.parsimonious.machines import CascadeMachine, MachineBaseline, PooledMachine
from fkl.algorithms.parsimonious.parsimonious import Centralized, FederatedParsimonious, Parsimonious
from fkl.basics.errors import FklError
from fkl.data.ellipses import Ellipses
from fkl.data.partition import Sites
from fkl.data.problem import Batch, PerReplicate, Table
from fkl.data.store import Store
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.tasks.repeated import FittedJudge
from fkl.wire import Ledger

SMALL = {"steps": 300, "centres": 196, "box": [[-18.0, -8.0], [10.0, 20.0]]}
KEYS: dict[str, Any] = {"gamma": 1.0, "eps": 0.1, **SMALL}


def ellipses(
    method: Parsimonious | MachineBaseline, rows: int = 90, replicates: int = 2, per_side: int = 3
) -> PerReplicate:
    """Simulated samples, others in each replicate."""
    batches = []
    for seed in range(replicates):
        rng = np.random.default_rng(seed)
        table = Ellipses(rows=rows, test_rows=200, per_side=per_side).load(Store(Path("nowhere")), rng)
        batches.append(method.batch(Sites().split(table, rng), rng))
    return PerReplicate(tuple(batches))


def of_classes(count: int) -> PerReplicate:
    """Samples of some classes around points of a circle, two agents."""
    rng = np.random.default_rng(0)
    label = np.arange(120) % count
    angle = 2 * np.pi * label / count
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.15 * rng.standard_normal((120, 2))
    table = Table(x, label.astype(float), np.arange(120) // 60, ("a", "b"), ("one", "two"))
    return PerReplicate((Batch.from_problem(Sites().split(table, rng), 1, 0.25, None, rng),))


def play(
    method: Parsimonious | MachineBaseline, problem: PerReplicate, network: Network | None = None
) -> tuple[Fitted, Ledger]:
    """Play the one round."""
    given = Experiment(problem, Dictionary(), network or Network(), method, 0, len(problem.batches), "float64")
    world, ledger = make_world(given, tuple(range(len(problem.batches))))
    world.channel.open_round(0, problem.present[0])
    _, fitted = method.step(world, method.init(world), 0)
    return fitted, ledger


def correct(fitted: Fitted, problem: PerReplicate, r: int = 0) -> float:
    """Accuracy on a replicate's test samples."""
    x, y, _ = problem.batches[r].part(False)
    return float((fitted.predict[r](x) == y).mean())


def test_agents_send_once_and_what_they_send_is_counted() -> None:
    """A critical sample is d features, a class and lambda; a sample of the centralized learner has no lambda."""
    federated, centralized = FederatedParsimonious(**KEYS), Centralized(**KEYS)
    problem = ellipses(federated)
    for method, scalars in ((federated, 2 + 1 + 1), (centralized, 2 + 1)):
        fitted, ledger = play(method, problem)
        sent = fitted.of_clients["sent_samples"]
        uplink = ledger.tallies["uplink"].by_client
        assert (uplink[..., 1] == sent * scalars).all()
        assert (uplink[..., 0] == (sent > 0)).all()
        assert (uplink[..., 2] == uplink[..., 1] * 8).all()
        assert (fitted.figures["sent_samples"] == sent.sum(axis=1)).all()
        # Every agent is sent the model: a number and a coefficient for each node.
        assert (ledger.tallies["downlink"].by_client[..., 1] == 2 * fitted.figures["active_nodes"][:, None]).all()
    training = np.stack([np.bincount(batch.part(True)[2], minlength=9) for batch in problem.batches])
    assert (sent == training).all()
    assert (play(federated, problem)[0].of_clients["sent_samples"] < training).any()


def test_a_box_that_is_not_given_is_agreed_on() -> None:
    """Two corners up, and two down."""
    method = FederatedParsimonious(**{**KEYS, "box": None})
    problem = ellipses(method)
    fitted, ledger = play(method, problem)
    scalars = 2 * 9 * 4  # of both replicates' agents
    assert ledger.kinds["uplink", "box"] == ledger.kinds["downlink", "box"] == scalars
    assert ledger.kinds["downlink", "model"] == 9 * 2 * fitted.figures["active_nodes"].sum()
    assert ("uplink", "box") not in play(FederatedParsimonious(**KEYS), problem)[1].kinds


def test_machines_send_all_or_their_support_vectors() -> None:
    """One agent's cascade is the machine of its support vectors, which is the pooled one."""
    pooled, cascade = PooledMachine(C=10.0, width=3.0), CascadeMachine(C=10.0, width=3.0)
    problem = ellipses(pooled, rows=360)
    for method in (pooled, cascade):
        fitted, ledger = play(method, problem)
        sent = fitted.of_clients["sent_samples"]
        assert (ledger.tallies["uplink"].by_client[..., 1] == 3 * sent).all()
        down = ledger.tallies["downlink"].by_client[..., 1]
        # features and a weight of each support vector, and the bias
        assert (down == 3 * fitted.figures["support_vectors"][:, None] + 1).all()
        assert all(correct(fitted, problem, r) > 0.88 for r in (0, 1))
        assert (sent.sum(axis=1) == 360).all() == (method is pooled)
    alone = ellipses(pooled, rows=90, per_side=1, replicates=1)
    x = np.random.default_rng(3).uniform(-18, 20, (400, 2))
    width = {"C": 10.0, "width": 3.0}
    one, other = (play(kind(**width), alone)[0].predict[0](x) for kind in (PooledMachine, CascadeMachine))
    assert (one == other).mean() > 0.99


def test_an_agent_of_one_class_sends_all_it_has() -> None:
    x, y, _ = of_classes(2).batches[0].part(True)
    machine = CascadeMachine()
    for label in (0, 1):
        assert machine.samples_to_send(x[y == label], y[y == label]).tolist() == list(range((y == label).sum()))
    assert len(machine.samples_to_send(x, y)) < len(y)


@pytest.mark.parametrize(("count", "width"), [(2, None), (3, 0.7), (5, None)])
def test_clients_decide_as_scikit_learn_by_the_arrays_of_its_machine(count: int, width: float | None) -> None:
    machine, problem = PooledMachine(C=5.0, width=width), of_classes(count)
    fitted, ledger = play(machine, problem)
    x, y, _ = problem.batches[0].part(True)
    trained, _ = machine.train_machine(x, y)
    points = np.random.default_rng(1).standard_normal((2000, 2))
    np.testing.assert_array_equal(fitted.predict[0](points), trained.predict(points))
    pairs, kept = count * (count - 1) // 2, len(trained.support_)
    extra = pairs + (count if count > 2 else 0) + (width is None)
    assert ledger.kinds["downlink", "model"] == 2 * (kept * (2 + count - 1) + extra)


def test_one_agent_is_the_centralized_learner() -> None:
    keys = {**KEYS, "gamma": 0.0, "tolerance": 1e-4, "eps": 0.5}
    federated = FederatedParsimonious(**keys)
    problem = ellipses(federated, rows=40, replicates=1, per_side=1)
    functions = [play(method, problem)[0] for method in (federated, Centralized(**keys))]
    assert all(fitted.figures["converged"][0] == 1 for fitted in functions)
    x = np.random.default_rng(3).uniform(-18, 20, (400, 2))
    classes = [fitted.predict[0](x) for fitted in functions]
    assert (classes[0] == classes[1]).mean() > 0.99
    values = [fitted.figures["dual_value"][0] for fitted in functions]
    assert values[0] == pytest.approx(values[1], rel=1e-2)


@pytest.mark.parametrize("count", [2, 5])
def test_more_classes_are_learned_one_against_the_rest(count: int) -> None:
    keys = {**KEYS, "box": None, "gamma": 0.0}
    problem = of_classes(count)
    for method in (FederatedParsimonious(**keys), Centralized(**keys)):
        fitted, ledger = play(method, problem)
        assert correct(fitted, problem) > 0.9
        if isinstance(method, FederatedParsimonious):
            sent = fitted.of_clients["sent_samples"]
            assert (sent >= 3 * count).all(), "each class has critical samples of its own"
            lambdas = 1 if count == 2 else count
            corners = 2 * 2  # of the box of centres, which is not given
            assert (ledger.tallies["uplink"].by_client[..., 1] == sent * (3 + lambdas) + corners).all()


def test_agents_of_one_class_work() -> None:
    [batch] = of_classes(2).batches
    order = np.argsort(batch.y, kind="stable")
    samples = batch.x[order], batch.y[order], (batch.y[order] > 0).astype(np.int64), batch.training[order]
    one_sided = PerReplicate((Batch(*samples, 1, np.zeros(2, np.int64), ("one", "two")),))
    fitted, _ = play(FederatedParsimonious(**{**KEYS, "box": None, "gamma": 0.0}), one_sided)
    assert correct(fitted, one_sided) > 0.9


def test_the_judge_counts_nan_as_wrong() -> None:
    problem = ellipses(FederatedParsimonious(**KEYS), replicates=1)
    [batch] = problem.batches
    judge = FittedJudge(problem, (0,))

    def half(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.arange(len(x)) % 2 == 0, batch.part(len(x) != 200)[1], np.nan)

    assert judge.enter(0, Fitted((half,), {}, {}))
    assert judge.by_round["test_error"][0, 0] == 0.5
    assert judge.by_client["test_samples"].sum() == 200


def test_a_target_of_one_value_is_refused() -> None:
    with pytest.raises(FklError, match="the target has 1 values; a classifier needs"):
        play(FederatedParsimonious(**KEYS), of_classes(1))


def test_a_box_far_from_the_samples_ends(fkl: Callable[..., Any]) -> None:
    """Kernels that are nearly 0 there let the active set overflow, where a NaN was no reason to stop."""
    words = ("dataset=ellipses", "dataset.rows=90", "scaling=none", "replicates=2", "algo=parsimonious_federated")
    answer = fkl("run", *words, "algo.steps=50", "algo.centres=100", "algo.box=[[0,0],[1,1]]")
    assert answer.code == 2 and "PF diverged in round 1" in answer.err
