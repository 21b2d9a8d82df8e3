"""Sums over clients, which decide a model, held to rows, to scikit-learn, and to runs without a client or with all."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from conftest import Answer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import Ridge

from fkl.algorithms.sums import Sums
from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary
from fkl.runs.model import SavedModel, load_model

DIM, P = 3, 12
BANK = Dictionary(N=2, smallest=1.0, largest=3.0, bandwidth_convention="deviation", D=P // 2).bank(
    DIM, Streams(0, (0,)), "float64"
)
METHODS = {
    "rf_gp": ("algo=rf_gp", "dataset=diabetes", "kernels.N=3", "kernels.D=6", "partition.clients=4",
              "partition.rounds=40"),
    "rf_gp, noise": ("algo=rf_gp", "algo.noise=0.01", "algo.flush=3", "dataset=diabetes", "kernels.N=3", "kernels.D=6",
                     "partition.clients=4", "partition.rounds=40"),
    "one_shot_ridge": ("algo=one_shot_ridge", "dataset=diabetes", "kernels.D=6", "partition.clients=4"),
    "fed3r": ("algo=fed3r", "dataset=digits", "partition.clients=4", "partition.rounds=60", "kernels.D=8"),
}  # fmt: skip
QUICK = ("figures=none", "replicates=2", "save_sums=clients", "-q")


def rows_of(seed: int, clients: int) -> list[tuple[Any, Any]]:
    """Samples and two targets of each client; some clients have fewer rows than features, or one."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 40, clients)
    return [(rng.normal(size=(n, DIM)), rng.normal(size=(n, 2))) for n in counts]


def sums_of(rows: list[tuple[Any, Any]]) -> Sums:
    return Sums.side_by_side(Sums.of_samples(BANK, *one) for one in rows)


def stacked(rows: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """All rows' features (N, n, P) and targets."""
    return BANK.features(np.concatenate([x for x, _ in rows]))[0], np.concatenate([y for _, y in rows])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.data())
def test_the_sums_of_some_clients_are_ridge_regression_on_their_stacked_rows(
    seed: int, clients: int, data: st.DataObject
) -> None:
    rows, lam = rows_of(seed, clients), 0.05
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=clients, max_size=clients)))
    keep[data.draw(st.integers(0, clients - 1))] = True
    total = sums_of(rows).sum_clients(keep)
    z, y = stacked([one for one, kept in zip(rows, keep, strict=True) if kept])
    theta = total.solve(lam)
    for i in range(2):
        oracle = Ridge(alpha=lam, fit_intercept=False).fit(z[i], y)
        np.testing.assert_allclose(theta[i], oracle.coef_, rtol=1e-8, atol=1e-9)
        off = ((z[i] @ theta[i].T - y) ** 2).sum() / len(y)
        np.testing.assert_allclose(total.squared_error(theta)[i], off, rtol=1e-8)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20), st.randoms())
def test_any_cut_into_parts_in_any_order_is_one_theta_and_the_same_bits_by_client(
    seed: int, parts: int, numbers: Random
) -> None:
    rows = rows_of(seed, 1)
    x, y = rows[0]
    cut = np.random.default_rng(seed).integers(0, parts, len(x))
    pieces = [(x[cut == part], y[cut == part]) for part in range(parts)]
    order = list(range(parts))
    numbers.shuffle(order)
    whole, by_part = sums_of(rows).solve(0.05), sums_of([pieces[part] for part in order])
    np.testing.assert_allclose(by_part.solve(0.05), whole, rtol=0, atol=1e-9)
    back = [int(place) for place in np.argsort(order)]
    assert by_part.sum_clients(order=back).gram.tobytes() == sums_of(pieces).sum_clients().gram.tobytes()
    half = sum((one for one in map(sums_of, ([piece] for piece in pieces[1:]))), sums_of(pieces[:1]))
    assert half.sum_clients().gram.tobytes() == sums_of(pieces).sum_clients().gram.tobytes()


def test_a_client_that_is_left_out_leaves_the_bits_of_one_that_never_was_and_subtraction_does_not() -> None:
    rows = rows_of(3, 6)
    every, others = sums_of(rows), sums_of(rows[1:])
    keep = np.arange(6) != 0
    left = every.sum_clients(keep)
    assert all(getattr(left, name).tobytes() == getattr(others.sum_clients(), name).tobytes() for name in Sums.axes)
    taken = every.sum_clients() - every.of_client(0)
    assert not np.array_equal(taken.gram, left.gram)
    np.testing.assert_allclose(taken.gram, left.gram, atol=1e-12)
    with pytest.raises(ValueError, match="adds the others anew"):
        _ = every - others


def test_the_evidence_from_sums_is_that_of_the_normal_distribution_of_the_targets() -> None:
    rows = [(x, y[:, :1]) for x, y in rows_of(5, 3)]
    z, y = stacked(rows)
    found = sums_of(rows).log_evidence(np.array([0.04, 0.3]))
    for i, noise in enumerate((0.04, 0.3)):
        normal = stats.multivariate_normal(np.zeros(len(y)), z[i] @ z[i].T + noise * np.eye(len(y)))
        np.testing.assert_allclose(found[i], normal.logpdf(y[:, 0]), rtol=1e-9)


def test_an_error_that_rounding_hides_is_not_reported() -> None:
    [(x, _)] = rows_of(1, 1)
    z = BANK.features(x)[0]
    theta = np.ones((2, 1, P))
    assert np.isnan(Sums.of_samples(BANK, x, z[0] @ theta[0].T).squared_error(theta)[0])


def absent(folder: Path, name: str, clients: list[int], rounds: int) -> str:
    """A trace in which these clients never take part."""
    lines = [f"{t},{k},0" for t in range(1, rounds + 1) for k in clients]
    (folder / name).write_text("\n".join(["round,client,present", *lines]) + "\n")
    return name


def arrays(model: SavedModel) -> list[bytes]:
    return [np.asarray(part).tobytes() for one in model.learned for part in vars(one.function).values()]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
def test_forgetting_and_merging_are_to_the_bit_runs_without_the_client_and_with_all(
    method: str, precision: str, fkl: Callable[..., Answer], tmp_path: Path
) -> None:
    words = ("run", *METHODS[method], f"precision={precision}", *QUICK)
    assert fkl(*words, "out=all").code == 0
    rounds = json.loads(Path("all/provenance.json").read_text())["rounds"]
    for name, gone in {"no2": [2], "low": [2, 3], "high": [0, 1]}.items():
        trace = f"participation.path={absent(tmp_path, f'{name}.csv', gone, rounds)}"
        assert fkl(*words, f"out={name}", trace, "participation=trace").code == 0
    told = fkl("forget", "all", "--client", "2", "--out", "left").out
    assert "grade     bits" in told
    assert "before and after can compute the client's sums" in told
    assert arrays(load_model("left")) == arrays(load_model("no2"))
    written = json.loads(Path("left/forgotten.json").read_text())
    assert written["grade"] == "bits"
    assert written["before"] != written["after"]
    assert [one["number"] for one in written["forgotten"]] == [2]
    for one, other in (("low", "high"), ("high", "low")):
        assert fkl("merge", one, other, "--out", f"{one}{other}").code == 0
        assert arrays(load_model(f"{one}{other}")) == arrays(load_model("all"))
    assert arrays(load_model("low") + load_model("high")) == arrays(load_model("all"))
    refused = fkl("merge", "low", "all", "--out", "twice")
    assert (refused.code, Path("twice").exists()) == (2, False)
    assert "each row may count only once" in refused.err


OWN = ("run", "dataset=file", "dataset.target=stay", "dataset.site=hospital", "dataset.text=one_hot", "partition=sites")


def tables(folder: Path) -> None:
    """Stays of four hospitals in one file; in two, hospital by hospital; and in two, every other row."""
    rng = np.random.default_rng(2)
    rows = [f"{rng.integers(20, 90)},{'fm'[rng.integers(2)]},{rng.normal() + k:.3f},{name}"
            for k, name in enumerate(("Hill", "Lake", "Abbey", "Zoo")) for _ in range(20)]  # fmt: skip
    cuts = {"whole": rows, "first": rows[:40], "second": rows[40:], "even": rows[::2], "odd": rows[1::2]}
    for name, some in cuts.items():
        (folder / f"{name}.csv").write_text("\n".join(["age,sex,stay,hospital", *some]) + "\n")


def test_files_that_are_scaled_alike_merge_to_one_run_on_all_rows(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    tables(tmp_path)
    method = ("algo=rf_gp", "kernels.N=3", "kernels.D=6", "figures=none", "replicates=2", "save_sums=clients", "-q")
    like: tuple[str, ...] = ()
    for name in ("whole", "first", "second", "even", "odd"):
        told = fkl(*OWN, *method, f"dataset.path={name}.csv", f"out={name}", *like)
        assert told.code == 0, told.err
        like = ("like=whole",)
    assert "first.csv" not in fkl("merge", "first", "second", "--out", "halves").err
    assert arrays(load_model("halves")) == arrays(load_model("whole"))
    told = fkl("merge", "even", "odd", "--out", "weeks")
    assert "4 sites in both, with rows of different files: Abbey, Hill, Lake, Zoo" in told.out
    x = np.random.default_rng(0).uniform([20, 0, 0], [90, 1, 1], (50, 3))
    whole, weeks = load_model("whole"), load_model("weeks")
    np.testing.assert_allclose(weeks.values(x), whole.values(x), rtol=0, atol=1e-6)  # theta is float32 in the file
    for saved, other in zip(weeks.sums.totals(), whole.sums.totals(), strict=True):
        np.testing.assert_allclose(saved.solve(0.01), other.solve(0.01), rtol=0, atol=1e-9)
    # A hospital with rows in both files is forgotten in both
    told = fkl("forget", "weeks", "--site", "Lake", "--out", "without")
    assert "forgotten 20 rows of 2 clients" in told.out
    assert "grade     1e-9" in told.out


def test_runs_that_are_not_alike_are_not_merged(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    tables(tmp_path)
    method = ("kernels=rbf", "kernels.N=3", "kernels.D=6", "figures=none", "replicates=1", "-q")
    runs = {
        "first": ("algo=rf_gp", "save_sums=clients"), "second": ("algo=rf_gp", "save_sums=clients"),
        "noise": ("algo=rf_gp", "algo.noise=0.1", "save_sums=total"),
        "seed": ("algo=rf_gp", "seed=1", "save_sums=total"),
        "plain": ("algo=rf_gp", "save_model=true"), "descent": ("algo=pof_mkl", "save_model=true"),
    }  # fmt: skip
    for name, words in runs.items():
        file = name if name in ("first", "second") else "second"
        told = fkl(*OWN, *method, *words, f"dataset.path={file}.csv", f"out={name}")
        assert told.code == 0, told.err
    said = {
        "second": "scales (smallest and largest cells) differ from those of first; run it again with like=first",
        "noise": "algo.noise differs", "seed": "features (seed, kernels or precision) differ",
        "plain": "no sums.npz; the same command with save_sums=total adds it",
        "descent": "POF-MKL cannot be merged exactly: each step was taken at parameters",
        "nowhere": "not the folder of",
    }  # fmt: skip
    for name, why in said.items():
        told = fkl("merge", "first", name, "--out", "merged")
        assert (told.code, Path("merged").exists()) == (2, False)
        assert why in told.err
        assert len(told.err.splitlines()) <= 2
    refused = {
        ("like=first", "seed=1"): "seed=1: must be omitted: like=first decides it",
        ("like=nowhere",): "like=nowhere: must be the folder of a run with kernels and save_model=true",
    }
    for words, why in refused.items():
        told = fkl(*OWN, "algo=rf_gp", "-q", "figures=none", "dataset.path=second.csv", "out=new", *words)
        assert (told.code, Path("new").exists()) == (2, False)
        assert why in told.err
    for words, why in {
        ("noise", "--client", "0"): "has only a total of its sums; the same command with save_sums=clients adds them",
        ("first", "--site", "Zoo"): "--site=Zoo: must be a site of this run: Hill, Lake",
        ("first", "--client", "7"): "--client=7: must be an integer from 0 to 1",
        ("first",): "must be given either --site NAME or --client K",
    }.items():
        told = fkl("forget", *words, "--out", "left")
        assert (told.code, Path("left").exists()) == (2, False)
        assert why in told.err
    told = fkl("forget", "first", "--client", "0", "--out", "second")
    assert (told.code, "--out=second: must be a new or empty folder" in told.err) == (2, True)


NO_SUMS = {
    ("algo=pof_mkl",): "parameters that all clients' rows had moved",
    ("algo=rf_gp", "algo.M=2"): "kernels that algo.M dropped",
    ("algo=rf_gp", "algo.rank=2"): "synthetic samples",
    ("algo=rf_gp", "algo.forget=0.9"): "the age of a sum",
    ("algo=rf_gp", "algo.personal=true"): "algo.personal=true",
    ("algo=falkon", "kernels=rbf_single"): "centres span",
    ("algo=consensus_rf_gp",): "neighbours hold mixtures",
    ("algo=vertical_ridge",): "a party holds features",
    (
        "algo=one_shot_ridge",
        "kernels=coke",
        "privacy=local",
        "privacy.clip=1",
        "privacy.noise=1",
    ): "with privacy, the server learns from other sums",
}


@pytest.mark.parametrize("words", NO_SUMS)
def test_what_is_no_sum_says_why_before_the_run_and_when_it_shall_forget(
    words: tuple[str, ...], fkl: Callable[..., Answer]
) -> None:
    small = () if "vertical" in words[0] else ("kernels.D=6", "partition.rounds=30")
    run = ("run", "dataset=diabetes", *words, "replicates=1", *small, "figures=none", "out=one", "-q")
    told = fkl(*run, "save_sums=clients")
    assert (told.code, Path("one").exists()) == (2, False)
    assert NO_SUMS[words] in told.err
    assert "save_sums=clients: must be false for" in told.err
    assert fkl(*run).code == 0
    told = fkl("forget", "one", "--client", "0", "--out", "two")
    assert (told.code, Path("two").exists()) == (2, False)
    assert NO_SUMS[words] in told.err
    assert len(told.err.splitlines()) <= 2


def test_sums_are_added_to_a_finished_run_and_a_file_of_sums_that_changed_is_refused(
    fkl: Callable[..., Answer],
) -> None:
    words = ("run", *METHODS["one_shot_ridge"], "figures=none", "replicates=1", "-q", "out=one")
    assert fkl(*words, "save_model=true").code == 0
    before = Path("one/summary.csv").read_bytes()
    assert fkl(*words, "save_sums=clients").code == 0
    assert Path("one/summary.csv").read_bytes() == before
    Path(".two.partial").mkdir()  # as a process leaves it that is killed in the middle
    assert fkl("forget", "one", "--client", "1", "--out", "two").code == 0
    assert Path(".two.partial").exists(), "it is of another process"
    assert fkl("forget", "two", "--client", "1", "--out", "three").code == 0  # of the clients that are left
    with Path("one/sums.npz").open("r+b") as stream:
        stream.seek(4000)
        stream.write(b"x")
    told = fkl("forget", "one", "--client", "1", "--out", "four")
    assert (told.code, "sums.npz: has changed" in told.err, Path("four").exists()) == (2, True, False)


def test_the_plan_says_how_large_the_sums_are(fkl: Callable[..., Answer]) -> None:
    words = METHODS["rf_gp"], "replicates=2", "figures=none"
    assert "sums.npz" not in fkl("plan", *words[0], *words[1:]).out
    told = fkl("plan", *words[0], *words[1:], "save_sums=clients").out
    assert f"sums      {8 * 2 * 4 * 3 * (78 + 12) / 1000:.1f} kB in sums.npz" in told  # R K N (P (P + 1) / 2 + P)
    assert fkl("run", *words[0], *words[1:], "save_sums=clients", "out=one", "-q").code == 0
    assert 8 * 2 * 4 * 3 * 90 < Path("one/sums.npz").stat().st_size < 8 * 2 * 4 * 3 * 90 + 6000
