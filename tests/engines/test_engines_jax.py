"""engine=jax: rounds as one compiled scan show what the readable reference does, and the ledger is the same."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import ALGORITHMS, LOCAL_BATCHES, LOCAL_TRAINING, Answer

from fkl.basics.errors import BadValue, install_hint
from fkl.basics.random_streams import Streams
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.base import DivergedError
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.rounds import Chunk, simulate_run
from fkl.kernels import Dictionary
from fkl.runs.folder import read_provenance
from fkl.runs.prepare import prepare_run

jax = pytest.importorskip("jax", reason="needs the extra jax")
JaxBank = pytest.importorskip("fkl.kernels.jax_bank").JaxBank
SMALL = ("dataset=diabetes", "kernels.N=5", "kernels.D=4", "replicates=2", "partition.rounds=13")
"""4 clients; rounds that no scan has as many of."""
ONE_KERNEL = ("kernels=rbf_single", "dataset=diabetes", "kernels.D=4", "replicates=2", "partition.rounds=13")
BATCH = (*ONE_KERNEL[:-1], "algo.iterations=13")
OF_ONE = ("ofskl", "odkla", "qc_odkla")
STAR = ("em_kofl", "fed_poe", "fomd_oms", "nco_oms", "ofmkl_avg", "perfedavg", "pof_mkl", "vm_kofl", "domkl")
CASES: dict[str, tuple[str, ...]] = {algo: (f"algo={algo}", *SMALL) for algo in (*STAR, *LOCAL_TRAINING)}
CASES |= {algo: (f"algo={algo}", *ONE_KERNEL) for algo in OF_ONE}
CASES |= {algo: (f"algo={algo}", *BATCH) for algo in ("dkla", "coke", "cta", "link_dkla")}
CASES |= {name: (*words, *BATCH) for name, words in LOCAL_BATCHES.items()}
CASES["raker"] = ("algo=raker", *SMALL, "kernels.laplacians=2", "partition=stream", "partition.rounds=70")
CASES["rfomkr"] = (*CASES["raker"][1:], "algo=rfomkr", "algo.normalised=false")
CASES["push_cta"] = ("algo=push_cta", *BATCH, "topology=directed")
CASES["rf_gp"] = ("algo=rf_gp", *SMALL, "kernels.N=2")
SCANNED = tuple(CASES)
RARELY = ("participation=share", "participation.share=0.2")
NOISE, LOST = ("privacy.clip=0.5", "privacy.noise=0.1"), ("network.loss=0.2", "participation=share")
RING = ("dataset=synthetic", "dataset.rows=1200", "partition.rounds=30", "partition=iid", "partition.clients=30")
RING += ("topology=ring",)
"""Of so many agents that the graph's matrix is a sparse one."""
MANY = ("dataset=synthetic", "dataset.rows=9000", "partition=quantity_skew", "partition.rounds=5", "partition.alpha=5")
MORE = {
    "coke-ring": ("coke", *RING, "algo.censored=relative_norm", "algo.mu=1", "algo.v=0.1"),
    "tiles": ("pof_mkl", *MANY, "partition.clients=700", "algo.xi=0.5"),  # three, and most clients are gone in the end
    "pof_mkl-bins": ("pof_mkl", "algo.xi=0.5", "algo.M=2", "algo.local_steps=3", "kernels.map=cosine"),
    "pof_mkl-noise": ("pof_mkl", "privacy=central", *NOISE, *RARELY),
    "vm_kofl-bits": ("vm_kofl", "compression=uniform", "compression.bits=4", "compression.down=true"),
    "cta-lost": ("cta", *LOST),
    "scaffold_batches-absent": ("scaffold_batches", "participation=share"),
    "fedavg-classes": ("fedavg_batches", "algo.loss=softmax", "dataset=digits"),
    "rf_gp-personal": ("rf_gp", "algo.personal=true", "algo.forget=0.9", "participation=share"),
    "dkla-few-samples": ("dkla", "kernels.D=40", "algo.test_share=0.95"),
    "cta-steps": ("cta", *RING, "algo.local_steps=3"),
    "link_dkla-ring": ("link_dkla", *RING),
    "em_kofl-copy": ("em_kofl", "algo.predictor=copy", "algo.losses=sum", "algo.local_steps=2"),
    "perfedavg-steps": ("perfedavg", "algo.local_steps=2"),
    "nco_oms-balls": ("nco_oms", "algo.U=0.01", "kernels.shared=true"),
    "fed_poe-noise": ("fed_poe", "privacy=local", *NOISE, "compression=sign"),
    "rf_gp-clipped": ("rf_gp", "privacy=local", "privacy.clip=0.5"),
    "em_kofl-top": ("em_kofl", "compression=top_k", "compression.down=true"),
    "raker-quantile": ("raker", "algo.loss=quantile", "algo.level=0.9"),
    "em_kofl-huber": ("em_kofl", "algo.loss=huber", "algo.delta=0.1"),
    "fed_poe-logistic": ("fed_poe", "algo.loss=logistic", "dataset=ellipses", "partition=iid", "partition.clients=4"),
    "latency": ("vm_kofl", "network.latency_s=0.01", "network.bandwidth_bytes_per_s=1e6"),
    **{f"{algo}-lost": (algo, *LOST) for algo in ("odkla", "domkl", "dkla", "link_dkla")},
    **{f"{algo}-failing": (algo, "links=failing") for algo in ("odkla", "coke", "push_cta", "link_dkla")},
}
ALWAYS = tuple(MORE)[:8]
"""Those of `make test`: a sparse graph, more than a tile, bins, noise, few bits, lost messages, batches, classes. All
are `make test-slow`.
"""
CASES |= {name: (*CASES[of], *words) for name, (of, *words) in MORE.items()}
TOLERANCE = 1e-9
PATHS = os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[1], Path(__file__).parents[2])))
SOONEST = "jax_persistent_cache_min_compile_time_secs"


class Played(NamedTuple):
    """What a run shows, by name, and what its ledger counted."""

    columns: dict[str, Any]
    counts: dict[str, Any]


def played(words: Iterable[str], advance: Callable[[int], object] = id, checkpoint: Checkpoint | None = None) -> Played:
    """Play a run, of whose replicates all that run together are told one after another."""
    experiment = prepare_run(load_run(compose_config(*words)))
    chunks = list(simulate_run(experiment, 1, None, advance, checkpoint))
    columns, counts = {}, {}
    for chunk in chunks:
        for part, values in experiment.task.columns(chunk.judge, chunk.seconds_per_replicate())._asdict().items():
            columns |= {f"{chunk.first} {part} {name}": value for name, value in values.items()}
        counts |= {f"{chunk.first} {name}": count for name, count in counted(chunk).items()}
    return Played(columns, counts)


def counted(chunk: Chunk) -> dict[str, Any]:
    """All that a ledger holds."""
    found: dict[str, Any] = {"kinds": chunk.ledger.kinds, "seconds": chunk.ledger.seconds}
    for direction, tally in chunk.ledger.tallies.items():
        found |= {f"{direction} by round": tally.by_round, f"{direction} by client": tally.by_client}
    return found


def require_near(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    """Refuse numbers that are further apart than the tolerance, times those that are larger than 1."""
    assert list(found) == list(expected)
    for name, values in expected.items():
        room = tolerance * np.maximum(1, np.abs(np.nan_to_num(values)))
        assert np.array_equal(np.isnan(found[name]), np.isnan(values)), name
        assert (np.abs(np.nan_to_num(found[name] - values)) <= room).all(), name


def same(one: Played, other: Played) -> bool:
    """Whether two runs are alike to the last bit."""
    found, expected = one.columns | one.counts, other.columns | other.counts
    return list(found) == list(expected) and all(alike(found[name], expected[name]) for name in expected)


def alike(one: Any, other: Any) -> bool:
    """Whether two arrays are the same, or two of whatever else."""
    return np.array_equal(one, other, equal_nan=True) if isinstance(other, np.ndarray) else bool(one == other)


@pytest.fixture(autouse=True, scope="module")
def _programs_are_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """In .pytest_cache: the next session compiles none of them anew, and none that another worker has compiled."""
    kept = getattr(request.config, "cache", None)
    before = {name: getattr(jax.config, name) for name in ("jax_compilation_cache_dir", SOONEST)}
    jax.config.update("jax_compilation_cache_dir", None if kept is None else str(kept.mkdir("jax")))
    jax.config.update(SOONEST, 0.0)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.parametrize("case", [pytest.param(one, marks=[pytest.mark.slow] * (one not in ALWAYS)) for one in CASES])
def test_a_scan_shows_what_the_reference_does(case: str) -> None:
    words = (*CASES[case], "precision=float64")
    expected, found = (played((*words, f"engine={engine}")) for engine in ("numpy", "jax"))
    require_near(found.columns, expected.columns, TOLERANCE)
    for name, counts in expected.counts.items():
        assert alike(found.counts[name], counts), name


@pytest.mark.parametrize("options", [{"map": "cosine"}, {"family": "laplacian"}])
def test_the_bank_is_the_reference_however_much_of_it_is_made_at_once(options: dict[str, Any]) -> None:
    """In float32, of clients that are more than a tile, with one kernel at a time and with all."""
    dictionary, streams, generator = (
        Dictionary(N=3, bandwidth_convention="variance", D=5, **options),
        Streams(1, (0, 1)),
        np.random.default_rng(0),
    )
    reference = dictionary.bank(4, streams, "float32", "numpy")
    x, update = generator.random((300, 4), np.float32), generator.random((2, 300, 3))
    theta = generator.standard_normal((2, 3, reference.width))
    own = np.repeat(theta[:, :, None], 300, axis=2).astype(np.float32)
    step = x, x[:, 0], np.arange(300.0) % 2, own, 0.1, 0.01  # every second client is absent
    with jax.enable_x64(True):
        for at_once in (1, 2**20):
            arrays = (reference.rho, reference.scale, reference.phase)
            bank = JaxBank(*arrays, precision=np.dtype(np.float32), at_once=at_once)
            assert np.asarray(bank.predict(x, theta)) == pytest.approx(reference.predict(x, theta), abs=1e-5)
            assert np.asarray(bank.accumulate(x, update)) == pytest.approx(reference.accumulate(x, update), abs=1e-4)
            stepped = bank.descend(*step), reference.descend(*step[:3], own.copy(), *step[4:])
            for ours, expected in zip(*stepped, strict=True):
                assert np.asarray(ours) == pytest.approx(expected, abs=1e-4)


SCANS = (*CASES["pof_mkl-bins"], "engine=jax", "precision=float32")


class _KilledError(Exception):
    """In place of a signal."""


def test_a_run_that_is_killed_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the last scan that was kept, whose arrays were JAX's; however many rounds a scan has."""
    whole = played(SCANS)
    monkeypatch.setattr("fkl.engines.jax_world.MOST_ROUNDS", 5)
    told: list[int] = []

    def kill_in_the_second(rounds: int) -> None:
        told.append(rounds)
        if len(told) == 2:
            raise _KilledError

    with pytest.raises(_KilledError):
        played(SCANS, kill_in_the_second, Checkpoint(tmp_path / "kept", 0, "this run"))
    went_on: list[int] = []
    assert same(played(SCANS, went_on.append, Checkpoint(tmp_path / "kept", 0, "this run")), whole)
    assert went_on[0] == told[0]  # what was done already
    assert sum(went_on) == 2 * 13


def test_a_method_that_diverges_does_so_in_its_round() -> None:
    """And what was before it is known."""
    rounds, before = [], []
    for engine in ("numpy", "jax"):
        with pytest.raises(DivergedError) as error:
            played((*CASES["ofmkl_avg"], "algo.eta=1e18", "precision=float64", f"engine={engine}"))
        rounds.append(error.value.t)
        before.append(error.value.failed.judge.of_rounds["mse"][: error.value.t])
    assert rounds[0] == rounds[1] > 1
    assert before[1] == pytest.approx(before[0], rel=1e-9)


def test_a_run_says_and_keeps_what_it_ran_on(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    answer = fkl("run", *CASES["vm_kofl"], "engine=jax", "save_model=true", "logger=jsonl", f"out={tmp_path / 'run'}")
    assert answer.code == 0
    [said] = [line for line in answer.out.splitlines() if line.startswith("engine=jax")]
    assert said == f"engine=jax: on {read_provenance(tmp_path / 'run')['device']}"
    assert (tmp_path / "run" / "model.npz").exists()


def test_without_jax_the_extra_is_named(fkl: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    for name in ("fkl.engines.jax_world", "fkl.kernels.jax_bank"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    answer = fkl("run", *CASES["pof_mkl"], "engine=jax")
    assert (answer.code, answer.err) == (2, f"error: engine=jax: needs jax, which comes with {install_hint('jax')}\n")


EIGHT = """
import sys
import numpy as np
from fkl.engines.devices import Devices
from test_engines_jax import CASES, TOLERANCE, alike, played, require_near
placed = Devices(4, 10).place_arrays(np.zeros((3, 4, 10, 7)), 1)
assert {shard.data.shape for shard in placed.addressable_shards} == {(3, 1, 5, 7)}
assert len({shard.device for shard in placed.addressable_shards}) == 8
for case in sys.argv[1:]:
    words = (*CASES[case], "replicates=4", "precision=float64")
    expected, found = (played((*words, f"engine={engine}")) for engine in ("numpy", "jax"))
    require_near(found.columns, expected.columns, TOLERANCE)
    assert all(alike(found.counts[name], counts) for name, counts in expected.counts.items())
"""


@pytest.mark.slow
def test_eight_devices_show_what_the_reference_does() -> None:
    """Each has one of four replicates, and half of the clients, who are three tiles."""
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "PYTHONPATH": PATHS}
    command = [sys.executable, "-c", EIGHT, "tiles"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("algo", sorted(set(ALGORITHMS) - {*SCANNED}))
def test_what_cannot_be_traced_is_refused_with_the_reason(algo: str) -> None:
    run = load_run(compose_config(f"algo={algo}"))
    with pytest.raises(BadValue, match=rf"^engine=jax: must be numba( or numpy)? for {run.algo.label}: it"):
        load_run(compose_config(f"algo={algo}", "engine=jax"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((*CASES["dkla"], "algo.loss=logistic"), "DKLA: its agents search for the minimum of a logistic loss"),
        ((*CASES["rf_gp"], "algo.flush=null"), "RF-GP: its messages differ between rounds"),
        *((("algo=pof_mkl", word), "POF-MKL: JAX cannot trace [a-z]+") for word in (
            "secure=pairwise", "aggregate=median", "attack=zero", "late=updates", "late=labels", "network.compute_s=1"
        )),
    ],
)  # fmt: skip
def test_keys_with_which_a_method_cannot_be_traced_are_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(BadValue, match=rf"^engine=jax: must be numba or numpy for {why}"):
        load_run(compose_config(*words, "engine=jax"))
