"""Methods with local steps: their transcriptions, limiting cases, and third parties' programs on the same arrays."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import local_training
from literal.worlds import Size, Trace, assert_close, make_dictionary, make_problem, run

from fkl.algorithms.federated.descent import OfmklAvg
from fkl.algorithms.federated.perfedavg import PerFedAvg
from fkl.algorithms.local_training import (
    Ditto,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedProx,
    FedYogi,
    PFedMe,
    QFedAvg,
    Scaffold,
)
from fkl.basics.random_streams import Streams
from fkl.contract.star import Samples, Turn
from fkl.contract.world import FEATURES, ClientRows, Common, SampleCache
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.kernels.losses import LOSSES, Rows

ORACLES = Path(__file__).parents[1] / "oracles"
ROUNDS = 6
NO_LAM = 1e-300
"""Batches need a regulariser; the other programs have none."""

METHODS = [
    FedAvg(),
    FedAvg(eta=0.2, eta_server=0.5, local_steps=3, lam=0.1),
    FedAvgM(beta=0.7, eta_server=0.8),
    FedAdagrad(beta_1=0.2),
    FedAdam(beta_2=0.9, tau=0.1),
    FedYogi(beta_2=0.9, eta_server=0.2),
    FedProx(mu=1.5, lam=0.0),
    Scaffold(eta=0.1, eta_server=0.7),
    QFedAvg(q=0.5),
    QFedAvg(q=3.0, eta=0.1, lam=0.2),
    Ditto(lam_k=0.8, eta_server=0.9),
    PFedMe(lam_k=2.0, eta=0.2, eta_k=0.1, own_steps=3),
]


@pytest.mark.parametrize(
    ("method", "absent", "precision"),
    [*((method, 0.3, "float64") for method in METHODS), (METHODS[0], 0.0, "float64"), (METHODS[0], 0.3, "float32")],
    ids=repr,
)
def test_it_is_its_literal(method: FedAvg, absent: float, precision: str) -> None:
    """Predictions, losses, norms, traffic and the server's theta; the literal forms vectors, not coordinates."""
    size, tolerance = Size(R=2, N=3), {"float64": 1e-10, "float32": 1e-4}[precision]
    problem = make_problem(size, seed=3, absent=absent, precision=precision)
    trace = run(method, problem, make_dictionary(size), seed=5, precision=precision)
    keys = {"eta_k": size.T**-0.5, **vars(method), "eta": method.eta or size.T**-0.5}
    for r in range(size.R):
        expected = local_training.run(trace.data(r), method.label, keys)
        trace.require_literal(expected, r, tolerance)
        assert_close(trace.state.server.theta[r], expected.theta, tolerance, "theta")


def on_stream(method: Any, clients: int = 4) -> Trace:
    """A run on a small stream whose clients miss rounds."""
    size = Size(R=1, K=clients)
    return run(method, make_problem(size, seed=2, absent=0.3), make_dictionary(size), replicates=(0,))


@pytest.mark.parametrize(
    ("method", "other", "clients"),
    [
        (FedAvg(local_steps=4, eta=0.2, lam=0.1), OfmklAvg(local_steps=4, eta=0.2, lam=0.1), 4),
        (FedProx(mu=5, local_steps=1), FedAvg(local_steps=1), 4),
        (QFedAvg(q=0), FedAvg(), 4),
        (Scaffold(), FedAvg(), 1),
        (PFedMe(lam_k=1e-9, eta=1e9, eta_k=0.2), FedAvg(eta=0.2, local_steps=25), 1),
    ],
    ids=repr,
)
def test_limiting_cases(method: Any, other: Any, clients: int) -> None:
    """In a limit, or with one client, it predicts what a simpler method predicts."""
    one, same = on_stream(method, clients), on_stream(other, clients)
    here = one.world.problem.present
    assert_close(one.y_hat[0][here], same.y_hat[0][here], 1e-6 if "PFedMe" in repr(method) else 1e-12, "y_hat")


@dataclass
class Batches:
    """Clients with equally many samples, whose features (K, n, P) are given, and their targets (K, n)."""

    x: Any
    y: Any

    def __post_init__(self) -> None:
        K, _, P = self.x.shape
        self.common = Common(
            Dictionary(N=1, D=P // 2, smallest=1, largest=1), 2, 9, Streams(0, (0,)), "float64", "numpy", K
        )

    def round(self, method: Any, state: tuple[Any, Any], t: int = 0, present: Any = None) -> tuple[Any, Any, Any]:
        """States of the server and of clients after a round, and the clients' message."""
        K, n, _ = self.x.shape
        here = np.ones(K, bool) if present is None else np.isin(np.arange(K), present)
        rows = Rows(self.x[None], self.y[None], np.zeros((1, K)), np.full(K, float(n)))
        held = ClientRows(
            self.x.reshape(K * n, -1),
            self.y.ravel(),
            np.full(K, n),
            here,
            LOSSES["square"],
            cache=SampleCache({FEATURES: rows}),
        )
        turn = Turn(t, 0, self.common.streams, range(K), clients_present=int(here.sum()))
        server, client = state
        down = method.broadcast(self.common, server, turn)
        client, up, _ = method.client(self.common, client, down, held, turn)
        return method.server(self.common, server, up, here / here.sum(), turn), client, up


def drawn_batches(clients: int = 3) -> Batches:
    """Samples of clients with targets of their own."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(clients, 6, 4)) / 2
    return Batches(x, np.einsum("kip,kp->ki", x, rng.normal(size=(clients, 4))))


def test_they_are_fluke_s() -> None:
    """SCAFFOLD and Ditto of fluke 0.8.1, with absent clients: largest difference 2.3e-16."""
    told = json.loads((ORACLES / "fluke_local_training.json").read_text())
    batches = Batches(np.array(told["x"]), np.array(told["y"]))
    keys = {"eta": told["eta"], "local_steps": told["local_steps"], "lam": NO_LAM}
    scaffold, ditto = Scaffold(iterations=ROUNDS, **keys), Ditto(iterations=ROUNDS, **keys, lam_k=told["lam_k"])
    for method, name in ((scaffold, "scaffold"), (ditto, "ditto")):
        state = method.start(batches.common, 3)
        for t, present in enumerate(told["rounds"]):
            *state, _ = batches.round(method, state, t, present)
            np.testing.assert_allclose(state[0].theta[0, 0], told[name][t], rtol=0, atol=1e-14)
            if name == "ditto":
                np.testing.assert_allclose(state[1].own.theta[0, :, 0], told["ditto_own"][t], rtol=0, atol=1e-14)


def test_pfedme_is_its_authors() -> None:
    """The shared and the clients' own models of the authors' program: largest difference 6e-17."""
    told = json.loads((ORACLES / "pfedme.json").read_text())
    batches = Batches(np.array(told["x"]), np.array(told["y"]))
    names = ("eta", "eta_server", "lam_k", "eta_k", "local_steps", "own_steps")
    method = PFedMe(iterations=ROUNDS, **{name: told[name] for name in names}, lam=3 * told["decay"] / 2)
    state = method.start(batches.common, 3)
    for shared, own in zip(told["pfedme"], told["own"], strict=True):
        *state, _ = batches.round(method, state)
        np.testing.assert_allclose(state[0].theta[0, 0], shared, rtol=0, atol=1e-14)
        np.testing.assert_allclose(state[1].own.theta[0, :, 0], own, rtol=0, atol=1e-14)


MOMENTS = {"eta": 0.3, "beta_1": 0.6, "beta_2": 0.8, "tau": 1e-2}


def flwr_strategy(name: str, theta: Any) -> Any:
    """Flower's own strategy, from this theta on."""
    strategies = pytest.importorskip("flwr.server.strategy", reason="needs the extra flower")
    common = pytest.importorskip("flwr.common")
    start = {"initial_parameters": common.ndarrays_to_parameters([theta])}
    keys: dict[str, dict[str, Any]] = {
        "FedAvg": {},
        "FedProx": {"proximal_mu": 0.9},
        "FedAvgM": {"server_learning_rate": 0.7, "server_momentum": 0.8},
        "FedAdagrad": {name: MOMENTS[name] for name in ("eta", "tau")},
        "FedAdam": MOMENTS,
        "FedYogi": MOMENTS,
    }
    return getattr(strategies, name)(**keys[name], **start)


@pytest.mark.parametrize(
    "method",
    [
        FedAvg(iterations=ROUNDS),
        FedProx(iterations=ROUNDS, mu=0.9),
        FedAvgM(iterations=ROUNDS, eta_server=0.7, beta=0.8),
        FedAdagrad(iterations=ROUNDS, eta_server=MOMENTS["eta"], tau=MOMENTS["tau"]),
        FedAdam(iterations=ROUNDS, **{"eta_server" if key == "eta" else key: value for key, value in MOMENTS.items()}),
        FedYogi(iterations=ROUNDS, **{"eta_server" if key == "eta" else key: value for key, value in MOMENTS.items()}),
    ],
    ids=lambda method: method.label,
)
def test_the_server_is_flower_s(method: Any) -> None:
    """Its strategies of the same name, fed with clients' models from a plain loop.

    Flower's v begins at 0, and Reddi et al. want at least tau^2, so it is given that. Its FedAdam multiplies eta by a
    correction of bias, which Algorithm 2 does not have, so it is given eta divided by the correction.
    """
    batches, mu = drawn_batches(), getattr(method, "mu", 0.0)
    method = replace(method, eta=0.3, local_steps=3, lam=NO_LAM)
    state = method.start(batches.common, 3)
    theta = state[0].theta[0, 0]
    strategy = flwr_strategy(method.label.partition(",")[0], theta)
    common = pytest.importorskip("flwr.common")
    if hasattr(strategy, "v_t"):
        strategy.v_t = [np.full_like(theta, MOMENTS["tau"] ** 2)]
    for t in range(ROUNDS):
        results = []
        for x, y in zip(batches.x, batches.y, strict=True):
            one = theta.copy()
            for _ in range(3):
                one = one - 0.3 * (2 * x.T @ (x @ one - y) / len(y) + mu * (one - theta))
            status = common.Status(common.Code.OK, "")
            results.append((None, common.FitRes(status, common.ndarrays_to_parameters([one]), len(y), {})))
        if "FedAdam" in method.label:
            bias = np.sqrt(1 - MOMENTS["beta_2"] ** (t + 2)) / (1 - MOMENTS["beta_1"] ** (t + 2))
            strategy.eta = MOMENTS["eta"] / bias
        [theta] = common.parameters_to_ndarrays(strategy.aggregate_fit(t + 1, results, [])[0])
        *state, _ = batches.round(method, state)
        np.testing.assert_allclose(state[0].theta[0, 0], theta, rtol=0, atol=1e-14)


# --- Local steps in closed form are those taken one by one, and a client that is alone with the server takes them all.

SIZE = Size(R=1, K=3, N=4, D=5, T=6)


def common_of(size: Size, feature_map: str, engine: str = "numpy") -> Common:
    """What the parties of a small world know."""
    dictionary = make_dictionary(size, map=feature_map)
    return Common(dictionary, size.d, size.T, Streams(3, tuple(range(size.R))), "float64", engine)


@settings(max_examples=30)
@given(
    steps=st.integers(1, 9),
    feature_map=st.sampled_from(["pairs", "cosine"]),
    lam=st.sampled_from([0.0, 1e-3, 0.7]),
    eta=st.floats(0.01, 0.45),
    seed=st.integers(0, 99),
    weighed=st.booleans(),
)
def test_the_sum_of_local_gradients_is_that_of_a_loop(
    steps: int, feature_map: str, lam: float, eta: float, seed: int, weighed: bool
) -> None:
    """Dense steps, one after another, of every client and kernel: to 1e-12."""
    common, random = common_of(SIZE, feature_map), np.random.default_rng(seed)
    method = OfmklAvg(eta=eta, step_factor=1.5, lam=lam, local_steps=steps)
    x, y = random.uniform(-1, 1, (SIZE.K, SIZE.d)), random.uniform(0, 1, SIZE.K)
    theta = random.standard_normal((SIZE.R, SIZE.N, common.bank.width))
    weight = random.uniform(0, 3, (SIZE.R, SIZE.K, SIZE.N)) if weighed else None
    f = common.bank.predict(x, theta)
    samples = Samples(x, y, np.ones(SIZE.K, np.bool_))
    told = method.client_gradients(common, samples, theta, f, weight)

    z = common.bank.features(x)
    expected = np.zeros((SIZE.R, SIZE.K, SIZE.N, common.bank.width))
    for k in range(SIZE.K):
        for i in range(SIZE.N):
            own = theta[0, i].copy()
            for _ in range(steps):
                gradient = 2 * (own @ z[0, i, k] - y[k]) * z[0, i, k] + 2 * lam * own
                expected[0, k, i] += gradient * (1.0 if weight is None else weight[0, k, i])
                own -= 1.5 * eta * gradient
    scale = np.abs(expected).max()
    np.testing.assert_allclose(told.dense().values, expected, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(told.mean(np.full(3, 1 / 3)), expected.mean(axis=1), rtol=0, atol=1e-12 * scale)


def repeated(problem: Problem, times: int) -> Problem:
    """Every sample so many times, one after another."""
    x, y, present = (np.repeat(part, times, axis=0) for part in (problem.x, problem.y, problem.present))
    return Problem(x, y, present, problem.site)


def test_a_lone_client_of_perfedavg_takes_all_steps() -> None:
    """Five are five rounds on the same sample; of several clients, the server steps by the mean of theirs."""
    size, method = replace(SIZE, R=2, K=1, T=8), PerFedAvg(eta=0.05, alpha=0.02, parameters=40)
    problem, dictionary = make_problem(size, 5), make_dictionary(size)
    local = run(replace(method, local_steps=5), problem, dictionary)
    rounds = run(method, repeated(problem, 5), dictionary)
    np.testing.assert_allclose(local.y_hat, rounds.y_hat[:, ::5], rtol=0, atol=1e-12)

    whole = make_problem(replace(size, K=3), 5)

    def first_round(clients: list[int]) -> Problem:
        streams = (part[:1, clients] for part in (whole.x, whole.y, whole.present))
        return Problem(*streams, whole.site[clients])

    steps = replace(method, local_steps=4)
    together = run(steps, first_round([0, 1, 2]), dictionary).state.server.layers
    alone = [run(steps, first_round([k]), dictionary) for k in range(3)]
    for number, layer in enumerate(together):
        mean = np.mean([one.state.server.layers[number] for one in alone], axis=0)
        np.testing.assert_allclose(layer, mean, rtol=0, atol=1e-13)
