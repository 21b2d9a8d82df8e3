"""A run's model: saved, loaded, refused where it is not as it was written, and asked for predictions."""

import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Answer, words_of
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.conformance import quick_run
from fkl.data.encoder import Encoder
from fkl.data.problem import Scale
from fkl.engines.rounds import LearnedFunction, simulate_run
from fkl.kernels.functions import (
    KINDS,
    Classes,
    FeatureClasses,
    Gaussian,
    Linear,
    NetworkFunction,
    OnFeatures,
    OnPoints,
    SavedFunction,
    Trees,
)
from fkl.runs.model import About, SavedModel, load_model
from fkl.runs.prediction import predict_table
from fkl.runs.prepare import prepare_run

RNG = np.random.default_rng(5)
D, N, K, FEATURES = 3, 4, 2, 6
RUN = ("run", "algo=pof_mkl", "dataset=diabetes", "kernels.N=5", "kernels.D=6", "replicates=3", "partition.rounds=20")


def number(value: float) -> Any:
    return np.array(value)


def drawn(*shape: int) -> Any:
    return RNG.normal(size=shape)


def functions() -> dict[str, SavedFunction]:
    """One of each kind, of three features."""
    frequencies, theta = drawn(N, D, FEATURES).astype(np.float32), drawn(1, N, 2 * FEATURES).astype(np.float32)
    bank = frequencies, np.ones(N, np.float32), np.zeros((N, 0), np.float32), number(N), theta
    covariance = drawn(N, 6 * 13).astype(np.float32)
    x, words, widths = drawn(9, D), np.array(["rbf", "laplacian", "polynomial"]), np.array([0.5, 2.0, 3.0])
    leaves = np.array([-1, -1, -1])
    return {
        "features": OnFeatures(*bank, drawn(K, N), drawn()),
        "gaussian": Gaussian(*bank, np.full((K, N), 1 / N), drawn(), covariance, np.full(N, 0.01)),
        "feature_classes": FeatureClasses(
            *bank[:4], drawn(3, N, 2 * FEATURES).astype(np.float32), drawn(3, N), drawn(), np.array([0.0, 0.5, 1.0])
        ),
        "points": OnPoints(x, words, widths, drawn(K, 3, 9), drawn(K)),
        "classes": Classes(x, words, widths, drawn(3, 3, 9), drawn(3), np.array([0.0, 0.5, 1.0]), np.array(True)),
        "linear": Linear(drawn(D), drawn()),
        "trees": Trees(np.array([0, 3]), np.r_[2, leaves], drawn(4), np.r_[1, leaves], np.r_[2, leaves], drawn(4)),
        "network": NetworkFunction.from_layers([drawn(4, D + 1), drawn(1, 5)]),
    }


def learned(function: SavedFunction, scale: Scale) -> LearnedFunction:
    return LearnedFunction(function, scale, np.ones(function.clients, np.bool_))


def model(
    function: SavedFunction, *, signs: bool = False, labels: tuple[str, ...] = (), replicates: int = 2
) -> SavedModel:
    scale = Scale(drawn(D), np.exp(drawn(D)), 10.0, 4.0)
    about = About("A method", "a data set", ("east", "west")[: max(2, function.clients)], signs)
    return SavedModel((learned(function, scale),) * replicates, Encoder(("a", "b", "c"), labels=labels), about)


def arrays(one: SavedModel) -> list[bytes]:
    """All bytes of a model, with their kinds of number and shapes."""
    parts = [getattr(part, field.name) for every in one.learned for part in every[:2] for field in fields(part)]
    parts += [reached for _, _, reached in one.learned]
    return [f"{np.asarray(part).dtype} {np.shape(part)}".encode() + np.asarray(part).tobytes() for part in parts]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_loaded_bit_by_bit(kind: str, tmp_path: Path) -> None:
    saved = model(functions()[kind])
    for name in ("one.npz", "other.npz"):
        saved.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()
    loaded = load_model(tmp_path / "one.npz")
    assert arrays(loaded) == arrays(saved)
    assert (loaded.about, loaded.encoder) == (saved.about, saved.encoder)
    x = drawn(7, D)
    assert loaded.values(x).tobytes() == saved.values(x).tobytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as numpys:  # it is what its name says
        assert len(numpys.files) == len(arrays(saved)) + 1


class Trap:
    """What a pickle may do when it is read."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("trapped",)


def npy(array: Any, **how: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **how)
    return stream.getvalue()


ENDLESS = npy(np.zeros(3)).replace(b"(3,), }" + b" " * 15, b"(1000000000000000,), }")
HOSTILE: list[tuple[str, str, bytes, str]] = [
    # Kind, member of the file, what it holds, and what is said
    ("linear", "0/w", npy(np.array([Trap()], dtype=object), allow_pickle=True), "an array of objects"),
    ("linear", "0/w", npy(np.zeros(3, np.float16)), "do not fit together"),
    ("linear", "0/w", ENDLESS, "an array of shape (1000000000000000,) cannot have 24 bytes"),
    ("linear", "0/w", npy(np.zeros(3))[:-8], "an array of shape (3,) cannot have 16 bytes"),
    ("linear", "0/w", b"w", "it holds no arrays"),
    ("linear", "2/w", npy(np.zeros(3)), "it has unknown arrays: 2/w"),
    ("linear", "about", npy(np.frombuffer(b"[" * 100_000, np.uint8)), "RecursionError"),
    ("points", "0/families", npy(["rbf", "rbf", "eval"]), "do not fit together"),
    ("trees", "0/left", npy(np.array([0, -1, -1, -1])), "do not fit together"),  # a way without end
    ("network", "0/widths", npy(np.array([3, 4, 4, 1])), "do not fit together"),
    ("features", "0/weights", npy(np.ones((3, 4))), "do not fit together"),
]


@pytest.mark.parametrize(("kind", "member", "content", "said"), HOSTILE, ids=[said for *_, said in HOSTILE])
def test_a_file_that_is_not_as_it_was_written_is_refused_in_a_line(
    kind: str, member: str, content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model(functions()[kind]).save(Path("whole.npz"))
    with zipfile.ZipFile("whole.npz") as whole, zipfile.ZipFile("model.npz", "w") as changed:
        for name in {*whole.namelist(), f"{member}.npy"}:
            changed.writestr(name, content if name == f"{member}.npy" else whole.read(name))
    with pytest.raises(FklError) as refused:
        load_model(Path("model.npz"))
    assert str(refused.value).startswith("model.npz: not a model of this version of fkl: ")
    assert said in str(refused.value)
    assert not Path("trapped").exists()


# --- predictions


FRAME = pd.DataFrame({"b": ["1.5", "-2"], "more": ["x", "y"], "c": ["0", "1e-3"], "a": [" 4", "0"]})
RAW = np.array([[4, 1.5, 0], [0, -2, 1e-3]])


def test_a_number_comes_in_the_targets_own_units_whatever_the_order_of_columns() -> None:
    """Of all replicates the mean, each by its own scale."""
    one = model(functions()["linear"])
    (function, scale, _), _ = one.learned
    other = replace(scale, y_low=np.array(7.0), y_unit=np.array(2.0))
    one = replace(one, learned=(one.learned[0], learned(function, other)))
    f = np.array([((row - scale.x_low) / scale.x_unit) @ function.w + function.bias for row in RAW])
    expected = ((10 + 4 * f) + (7 + 2 * f)) / 2
    assert one.predict(FRAME) == pytest.approx(expected, rel=1e-12)
    assert one.predict(FRAME, replicate=1) == pytest.approx(7 + 2 * f)
    assert one.predict(RAW).tobytes() == one.predict(FRAME).tobytes()


def test_every_client_has_its_own_function_and_none_is_the_mean_of_all() -> None:
    one = model(functions()["features"])
    assert one.personal
    assert not model(functions()["linear"]).personal
    east, west = (one.predict(RAW, client) for client in (0, "west"))
    assert np.abs(east - west).min() > 1e-3
    assert one.predict(RAW) == pytest.approx((east + west) / 2)
    assert one.predict(RAW, ["west", "0"]).tolist() == [west[0], east[1]]
    both = replace(one, about=replace(one.about, sites=("east", "east")))
    assert both.predict(RAW, "east") == pytest.approx((east + west) / 2)
    with pytest.raises(FklError, match="client=5: must be an integer from 0 to 1, or a site: east, west"):
        one.predict(RAW, 5)


@pytest.mark.parametrize("algo", ["ditto", "one_shot_ridge", "pof_mkl", "cta"])
def test_no_model_has_the_function_of_a_client_that_was_never_reached(algo: str, tmp_path: Path) -> None:
    """Of every method whose clients may be absent: its mean is over others, or there is one function for all."""
    rounds = range(1, prepare_run(quick_run(*words_of(algo))).problem.rounds + 1)
    (tmp_path / "trace.csv").write_text("round,client,present\n" + "".join(f"{t},0,0\n" for t in rounds))
    run = quick_run(*words_of(algo), "participation=trace", f"participation.path={tmp_path / 'trace.csv'}")
    experiment = prepare_run(run)
    chunks = simulate_run(experiment, None, None, lambda _: None, keep_functions=True)
    one = SavedModel.from_experiment(experiment, run.dataset, [part for chunk in chunks for part in chunk.learned])
    problem = experiment.problem
    x = problem.x.reshape(-1, problem.dimension)[:5] * problem.scale.x_unit + problem.scale.x_low
    if not one.personal:
        assert one.learned[0].reached.shape == (1,)
        assert (one.values(x, 0) == one.values(x)).all()
        assert np.ptp(one.values(x), axis=1).any()  # the function 0 is a constant
        return
    assert [(~part.reached).nonzero()[0].tolist() for part in one.learned] == [[0]] * one.replicates
    with pytest.raises(FklError, match="client 0 took part in no round"):
        one.values(x, 0)
    others = np.mean([one.values(x, k) for k in range(1, problem.clients)], axis=0)
    assert one.values(x) == pytest.approx(others)


def test_a_normal_distribution_has_an_interval_in_the_targets_own_units() -> None:
    """Of several clients and replicates that of their mixture: its variance is the law of total variance."""
    one = model(functions()["gaussian"])
    two = replace(one, learned=(one.learned[0], model(functions()["gaussian"]).learned[0]))
    means, variances = [], []
    for function, scale, _ in two.learned:
        means += list(scale.y_back(function.predict(scale.x(RAW))))
        variances += list(function.variance(scale.x(RAW)) * scale.y_unit**2)
    expected = np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))
    assert two.deviation(RAW) == pytest.approx(expected, rel=1e-9)
    table = predict_table(two, FRAME)
    assert list(table) == ["prediction", "low", "high"]
    assert ((table["high"] - table["low"]) / 2).to_numpy() == pytest.approx(1.959964 * expected, rel=1e-6)
    assert ((table["high"] + table["low"]) / 2).to_numpy() == pytest.approx(np.mean(means, axis=0), rel=1e-9)
    east = predict_table(two, FRAME, "east", replicate=1)
    assert east["prediction"].to_numpy() == pytest.approx(means[K])
    assert two.deviation(RAW, 0, 1) == pytest.approx(np.sqrt(variances[K]))
    assert model(functions()["features"]).deviation(RAW) is None
    assert replace(two, encoder=replace(two.encoder, labels=("no", "yes"))).deviation(RAW) is None


@pytest.mark.parametrize("labels", [(), ("no", "yes")])
def test_a_sign_becomes_the_class_it_stands_for(labels: tuple[str, ...]) -> None:
    function = Linear(np.array([1.0, 0, 0]), number(-2))
    scale = Scale(y_low=0.5, y_unit=0.5) if labels else Scale(y_low=15.0, y_unit=5.0)
    one = replace(model(function, signs=True, labels=labels), learned=(learned(function, scale),))
    assert one.predict(RAW).tolist() == (["yes", "no"] if labels else [20.0, 10.0])
    table = predict_table(one, FRAME)
    assert table["f"].tolist() == [2.0, -2.0]


# --- runs


def predicted(answer: Answer) -> NDArray[Any]:
    assert answer.code == 0, answer.err
    return pd.read_csv(io.StringIO(answer.out))["prediction"].to_numpy()


def test_a_finished_run_is_given_its_model_when_it_is_asked_for_again(fkl: Callable[..., Answer]) -> None:
    """The same whatever runs together; it predicts rows of a file in their order."""
    assert fkl(*RUN, "out=run").code == 0
    before = {file.name: file.read_bytes() for file in Path("run").iterdir()}
    with pytest.raises(FklError, match="run: a run without a model; the same command with save_model=true adds it"):
        load_model("run")
    assert "run has no model.npz: the run is repeated to save it" in fkl(*RUN, "out=run", "save_model=true").out
    fkl(*RUN, "out=whole", "save_model=true", "chunk=1")
    assert Path("run/model.npz").read_bytes() == Path("whole/model.npz").read_bytes()
    after = {file.name: file.read_bytes() for file in Path("run").iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"model.npz", "provenance.json"}
    assert "finished already" in fkl(*RUN, "out=run", "save_model=true").out
    one = load_model("run")
    rows = pd.DataFrame(drawn(4, 10) / 10, columns=one.encoder.columns).round(4)
    rows[rows.columns[::-1]].to_csv("rows.csv", index=False)
    answer = fkl("predict", "run", "rows.csv")
    assert answer.err == "averaged over 3 replicates and 4 clients\n"
    assert predicted(answer) == pytest.approx(one.predict(rows), rel=1e-9)
    rows.assign(client=[3, 0, 0, 1]).to_csv("rows.csv", index=False)
    assert fkl("predict", "run/model.npz", "rows.csv", "--replicate", "1", "--out", "new/out.csv") == (0, "", "")
    expected = one.predict(rows, [3, 0, 0, 1], replicate=1)
    assert pd.read_csv("new/out.csv")["prediction"].to_numpy() == pytest.approx(expected, rel=1e-9)
    Path("run/model.npz").write_bytes(Path("whole/model.npz").read_bytes()[:-1] + b"1")
    with pytest.raises(FklError, match="has changed since the run ended"):
        load_model("run")


def test_a_row_is_predicted_by_its_sites_function_or_refused(fkl: Callable[..., Answer]) -> None:
    """Words, holes and a feature called client included; a table across shows each function on each site's rows."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"hospital": np.repeat([10, 20, 30], 20), "client": rng.choice(["E", "W"], 60)})
    table["a"] = rng.random(60)
    table = table.assign(y=table["hospital"] * (table["a"] + (table["client"] == "E")))
    table.loc[3, "a"] = None
    table.to_csv("table.csv", index=False)
    file = ("dataset=file", "dataset.path=table.csv", "dataset.target=y", "dataset.site=hospital", "kernels.D=8")
    words = ("dataset.text=one_hot", "dataset.missing=mean", "replicates=2", "save_model=true", "out=run")
    assert fkl("run", "algo=pof_mkl", *file, *words).code == 0
    one, rows = load_model("run"), pd.DataFrame({"a": ["0.5", ""], "client": ["W", "E"]})
    filled = rows.assign(a=[0.5, table["a"].mean()])
    rows.to_csv("rows.csv", index=False)
    assert predicted(fkl("predict", "run", "rows.csv")) == pytest.approx(one.predict(filled), rel=1e-6)
    rows.assign(hospital=[20, 10]).to_csv("rows.csv", index=False)
    expected = [one.predict(filled, 20)[0], one.predict(filled, 10)[1]]
    assert predicted(fkl("predict", "run", "rows.csv")) == pytest.approx(expected, rel=1e-6)
    for new in (1, ""):  # also where it is the number of a client
        rows.assign(hospital=[20, new]).to_csv("rows.csv", index=False)
        answer = fkl("predict", "run", "rows.csv")
        assert answer.code == 2 and "must be a site that the run learned from: 10, 20, 30" in answer.err
    other = pd.DataFrame({"hospital": [20, 40, 10, 20], "client": ["E", "W", "W", "E"], "a": [0.5, 0.3, 0.1, 0.9]})
    other = other.assign(y=[9.0, 8.0, 7.0, 11.0])
    other.to_csv("other.csv", index=False)
    answer = fkl("predict", "run", "other.csv", "--across", "y")
    assert answer.err.startswith("root mean squared errors in the target's own units: one row per model, one c")
    found = pd.read_csv(io.StringIO(answer.out), index_col="function")
    assert ([*found.index], list(found)) == ([10, 20, 30], ["20", "40", "10"])
    for function in found.index:
        off = one.predict(other, str(function)) - other["y"]
        for site in found:
            expected = np.sqrt((off[other["hospital"] == int(site)] ** 2).mean())
            assert found.loc[function, site] == pytest.approx(expected, rel=1e-6)
    answer = fkl("predict", "run", "other.csv", "--across", "z")
    assert "across=z: must be the column of the target: hospital, client, a, y" in answer.err


def test_what_cannot_be_predicted_is_refused_in_a_line(fkl: Callable[..., Answer]) -> None:
    model(functions()["linear"]).save(Path("model.npz"))
    Path("rows.csv").write_text("a,b\n1,2\n")
    for words, said in {
        ("model.npz", "rows.csv"): "rows.csv: no column c; needed: a, b, c",
        ("rows.csv", "rows.csv"): "rows.csv: not a model of this version of fkl: it holds no arrays",
    }.items():
        answer = fkl("predict", *words)
        assert answer.code == 2
        assert answer.err.startswith(f"error: {said}")


def test_clients_that_were_not_there_at_the_end_are_warned_of(fkl: Callable[..., Answer]) -> None:
    """Only where every client has a function of its own, part of which is then older than the rest."""
    short = ("run", "dataset=diabetes", "partition=quantity_skew", "partition.clients=4", "partition.rounds=50")
    small = ("kernels.D=4", "kernels.N=3", "replicates=1", "save_model=true")
    words = "had no sample in the last round: in the model"
    assert words in fkl(*short, "algo=pof_mkl", *small).err
    assert words not in fkl(*short, "algo=vm_kofl", *small).err
