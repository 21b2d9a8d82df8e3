"""A learned model in one file of arrays: saving, loading, and predictions in the target's own units."""

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fkl import __version__
from fkl.basics.errors import FklError, count_of, in_one_line, require
from fkl.basics.files import DamagedError, read_arrays, sha256_of, whole_file, write_arrays
from fkl.data.encoder import Encoder, whole_number, word_of
from fkl.data.problem import Scale
from fkl.engines.base import Experiment
from fkl.engines.rounds import LearnedFunction
from fkl.kernels.functions import KINDS, NAMES_CLASSES, Gaussian, SavedFunction
from fkl.runs.folder import DERIVED, FINISHED, MODEL, read_provenance
from fkl.runs.saved_sums import ABOUT, BAD_JSON, SavedSums, read_sums

if TYPE_CHECKING:
    from pandas import DataFrame

FAR = 10.0
"""A sample with a larger scaled feature is far outside the training rows, whose scaled features lie in [-1, 1]."""
FORMAT = 2
"""Version of the file's format; files with another version are refused."""
CLIENT = "client"
"""Name of the column with the client whose model predicts a row, if every client has its own."""


@dataclass(frozen=True)
class About:
    """Information about a model.

    Parameters
    ----------
    algorithm, dataset : str
    sites : tuple of str
        Site of each client.
    signs : bool
        Whether the sign of a prediction is a class of the target.
    site_column : str
        Column of the table with the sites; empty if there is none.
    fkl : str
        Version of fkl that wrote it.
    """

    algorithm: str
    dataset: str
    sites: tuple[str, ...]
    signs: bool
    site_column: str = ""
    fkl: str = __version__


@dataclass(frozen=True, repr=False)
class SavedModel:
    """Learned functions of a run, with the conversion from a table's cells and back.

    Parameters
    ----------
    learned : tuple of Learned
        One function for each replicate, with the scale of its samples.
    encoder : Encoder
        Encoder of the first replicate.
    about : About
    encoders : tuple of Encoder
        One for each replicate if they differ because replicates have different training rows; else empty.
    sums_at : callable or None
        Reads the sums that decide the model, if they were saved.

    Examples
    --------
    >>> model = load_model("outputs/runs/air-pof_mkl-0123456789ab")  # doctest: +SKIP
    >>> model.predict(frame, client="Beijing")  # doctest: +SKIP
    """

    learned: tuple[LearnedFunction, ...]
    encoder: Encoder
    about: About
    encoders: tuple[Encoder, ...] = ()
    sums_at: Callable[[], SavedSums | None] | None = field(default=None, compare=False)

    @classmethod
    def from_experiment(cls, experiment: Experiment, dataset: Any, learned: Iterable[LearnedFunction]) -> Self:
        """The model that an experiment learned from a data set."""
        problem = experiment.problem
        names = [str(number) for number in range(problem.dimension)]
        encoder = getattr(problem, "encoder", None) or Encoder(tuple(names))
        sites = tuple(str(problem.site_names[site]) for site in problem.site)
        column = getattr(dataset, "site", None) or ""
        functions = tuple(learned)
        signs = experiment.task.signs and not any(isinstance(one.function, NAMES_CLASSES) for one in functions)
        about = About(experiment.algorithm.label, dataset.name, sites, signs, column)
        encoders = tuple(experiment.task.encoder(replicate) or encoder for replicate in range(len(functions)))
        return cls(functions, encoders[0], about, () if all(one == encoders[0] for one in encoders) else encoders)

    def __repr__(self) -> str:
        about, features = self.about, count_of(len(self.encoder.feature_names), "feature")
        clients = count_of(len(about.sites), "client") + (", each with its own function" if self.personal else "")
        what = in_one_line(f"{about.algorithm} on {about.dataset}")
        return f"<model of {what}: {features}, {count_of(self.replicates, 'replicate')}, {clients}>"

    @cached_property
    def sums(self) -> SavedSums | None:
        """The sums over clients that decide the model; None if they were not saved."""
        return None if self.sums_at is None else self.sums_at()

    def __add__(self, other: "SavedModel") -> "SavedModel":
        """The model of all rows of both, exactly, if both have the same features, scale and words, see `fkl merge`."""
        return merge_models(self, other)

    def of_sums(self, sums: SavedSums, keep: NDArray[np.bool_] | None = None) -> "SavedModel":
        """The model of the clients that are kept, (K,), in the features and scales of this one."""
        method = sums.method
        kept = [one for k, one in enumerate(sums.clients) if keep is None or keep[k]]
        learned = tuple(
            one._replace(function=method.function_of_sums(one.function, total))
            for one, total in zip(self.learned, sums.totals(keep), strict=True)
        )
        about = replace(self.about, sites=tuple(one.name for one in kept))
        return replace(self, learned=learned, about=about, sums_at=lambda: sums)

    @property
    def replicates(self) -> int:
        """Number of functions."""
        return len(self.learned)

    @property
    def personal(self) -> bool:
        """Whether every client has its own function."""
        return self._clients > 1

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Classes of the target: their names or values, ascending; empty for a numeric target."""
        values: set[float] = set()
        for function, scale, _ in self.learned:
            if self.about.signs:
                values |= _target_values(scale, np.array([-1.0, 1.0]))
            elif isinstance(function, NAMES_CLASSES):
                values |= _target_values(scale, function.classes)
        if self.encoder.labels:
            return np.array(self.encoder.labels)
        return np.array(sorted(values))

    def predict(
        self,
        rows: "DataFrame | NDArray[Any] | Sequence[Any]",
        client: int | str | Sequence[int | str] | None = None,
        replicate: int | None = None,
    ) -> NDArray[Any]:
        """Predictions in the target's own units, or predicted classes, (n,).

        Parameters
        ----------
        rows : DataFrame or array (n, d)
            Cells of a table by column name (other columns are ignored), or features as in the data set, before scaling.
            A table of pyarrow counts as a frame.
        client : int, str, a sequence of n of these, or None
            The client whose model predicts, if every client has its own: its number, or a site, over whose clients
            predictions are averaged. None uses the column of `column_of_clients`, or else the average over all clients.
            It has no effect if all clients share one model.
        replicate : int or None
            The replicate whose model predicts; None for all: their mean, or the most frequent class.

        Warns
        -----
        UserWarning
            If rows are far outside the training rows.

        Raises
        ------
        fkl.basics.errors.FklError
            If there is no row, a column is missing or occurs twice, a cell is neither a number nor a known word, or the
            client or replicate does not exist.
        """
        # f of each replicate, with warnings about rows that the model has hardly seen
        f = self.values(rows, client, replicate)
        for text in (self._far_outside(rows), self._passed_over(rows)):
            if text:
                warnings.warn(text, stacklevel=2)
        # Signs of the mean; or the mean itself; or the class number nearest to the mean
        if self.about.signs:
            return self.classes[(f.mean(axis=0) > 0).astype(np.int64)]
        if not len(self.classes):
            return f.mean(axis=0)
        if not isinstance(self.learned[0].function, NAMES_CLASSES):  # a number: the method learned the classes' values
            return self.classes[np.clip(np.rint(f.mean(axis=0)), 0, len(self.classes) - 1).astype(np.int64)]
        # The most frequent class over replicates, the first of ties; for undecided rows NaN or no word
        if self.encoder.labels:
            named = np.rint(f)
        else:
            near = np.abs(f[..., None] - self.classes).argmin(axis=-1).astype(np.float64)
            named = np.where(np.isnan(f), np.nan, near)
        votes = (named[..., None] == np.arange(len(self.classes))).sum(axis=0)
        unknown = "" if self.classes.dtype.kind == "U" else np.nan
        return np.where(votes.any(axis=-1), self.classes[votes.argmax(axis=-1)], unknown)

    def values(
        self,
        rows: "DataFrame | NDArray[Any] | Sequence[Any]",
        client: int | str | Sequence[int | str] | None = None,
        replicate: int | None = None,
    ) -> NDArray[np.float64]:
        """Each replicate's predictions (R, n): numbers in the target's own units, or f, whose sign is the class.

        Parameters and errors are those of `predict`; a class is its number in the data set.
        """
        # Functions and raw features of the wanted replicates
        learned, features = self._of_replicate(replicate), self._raw_features(rows, replicate)
        weights = self._weights_of_rows(client, len(features[0]), rows)
        values = []
        for (function, scale, reached), raw in zip(learned, features, strict=True):
            # A client's own function, or the mean of clients by their weights
            f = _evaluate_function(function, "predict", scale.x(raw))
            of_one = f[0] if len(f) == 1 else np.einsum("kn,kn->n", _of_reached(weights, reached), f)
            values.append(of_one if self.about.signs else scale.y_back(of_one))
        return np.stack(values)

    def deviation(
        self,
        rows: "DataFrame | NDArray[Any] | Sequence[Any]",
        client: int | str | Sequence[int | str] | None = None,
        replicate: int | None = None,
    ) -> NDArray[np.float64] | None:
        """Standard deviation of each row's target about `predict`, (n,); None if the method has none, and for classes.

        Parameters and errors are those of `predict`. Predictions of several clients or replicates count as a mixture.
        """
        # Only methods with variances have a deviation
        learned = self._of_replicate(replicate)
        if not isinstance(learned[0].function, Gaussian) or len(self.classes):
            return None
        features = self._raw_features(rows, replicate)
        n = len(features[0])
        given, middle = self._weights_of_rows(client, n, rows), self.predict(rows, client, replicate)
        total = np.zeros(n)
        # Variance of the mixture over clients: their variances, and the distances of their means
        for (function, scale, reached), raw in zip(learned, features, strict=True):
            weights = np.broadcast_to(_of_reached(given, reached), (self._clients, n))
            off = scale.y_back(_evaluate_function(function, "predict", scale.x(raw))) - middle
            variance = _evaluate_function(function, "variance", scale.x(raw)) * scale.y_unit**2
            total += np.einsum("kn,kn->n", weights, variance + off**2)
        return np.sqrt(total / len(learned))

    def save(self, file: Path) -> None:
        """Write the file completely or not at all: arrays, and JSON as an array of bytes."""
        # Description as JSON, arrays by replicate and name
        kinds = [one.function.kind for one in self.learned]
        encoder = [one.as_json() for one in self.encoders] or self.encoder.as_json()
        description = {"format": FORMAT, **asdict(self.about), "functions": kinds, "encoder": encoder}
        arrays: dict[str, NDArray[Any]] = {ABOUT: np.frombuffer(json.dumps(description).encode(), np.uint8)}
        for r, (function, scale, reached) in enumerate(self.learned):
            for part in (function, scale):
                arrays |= {f"{r}/{field.name}": np.asarray(getattr(part, field.name)) for field in fields(part)}
            arrays[f"{r}/reached"] = reached
        with whole_file(file) as stream:
            write_arrays(stream, arrays)

    def _raw_features(self, rows: Any, replicate: int | None = None) -> list[NDArray[np.float64]]:
        """Raw features (n, d) of rows, for each replicate."""
        # The replicates that are asked for
        chosen = range(self.replicates)[slice(None) if replicate is None else slice(replicate, replicate + 1)]
        rows = _without_arrow(rows)
        if hasattr(rows, "__len__") and not len(rows):
            raise FklError("0 rows where at least 1 are needed")
        # A data frame is encoded by column names; an array must have the features in order
        if hasattr(rows, "columns"):
            if not self.encoders:
                return [self.encoder.x(rows)] * len(chosen)
            return [self.encoders[number].x(rows) for number in chosen]
        names = {one.feature_names for one in self.encoders or (self.encoder,)}
        require(len(names) == 1, "rows", "an array", "a data frame: replicates have features for different words")
        d = len(self.encoder.feature_names)
        try:
            raw = np.asarray(rows, np.float64)
        except (TypeError, ValueError):
            raise FklError("rows must be numbers, or a data frame with the columns' names") from None
        require(raw.ndim == 2 and raw.shape[1] == d, "rows", f"an array {raw.shape}", f"an array (n, {d})")
        require(bool(np.isfinite(raw).all()), "rows", "an array with NaN or infinity", "finite numbers")
        return [raw] * len(chosen)

    def _passed_over(self, rows: Any) -> str:
        """Warning about rows with words that no training row had; empty if there are none."""
        rows = _without_arrow(rows)
        return self.encoder.passed_over(rows) if hasattr(rows, "columns") else ""

    def _far_outside(self, rows: Any) -> str:
        """Warning about rows far outside the training rows, as far as the scaling shows it; empty if there are none."""
        # In each replicate's own scale
        names = [one.feature_names for one in self.encoders] or [self.encoder.feature_names] * self.replicates
        rows_far, cell = np.zeros(1, np.bool_), ""
        for (_, scale, _), raw, features in zip(self.learned, self._raw_features(rows), names, strict=True):
            if np.any(scale.x_unit != 1) and (far := np.abs(scale.x(raw)) > FAR).any():  # scaled samples lie in [-1, 1]
                row, column = np.argwhere(far)[0]
                cell = cell or f"row {row + 1}, column {features[column]}, {raw[row, column]:.6g}"
                rows_far = rows_far | far.any(axis=1)
        if not cell:
            return ""
        count = int(np.sum(rows_far))
        return f"{count} row{' is' if count == 1 else 's are'} far outside the training rows: {cell}"

    @property
    def _clients(self) -> int:
        return self.learned[0].function.clients

    def _of_replicate(self, replicate: int | None) -> tuple[LearnedFunction, ...]:
        """Learned functions of one replicate, or of all."""
        if replicate is None:
            return self.learned
        allowed = f"an integer from 0 to {self.replicates - 1}"
        require(0 <= replicate < self.replicates, "replicate", replicate, allowed)
        return self.learned[replicate : replicate + 1]

    def column_of_clients(self, rows: Any) -> str | None:
        """The column that names the client or site whose model predicts each row; None if all share one model.

        It is the run's column of sites, or else a column ``client`` with numbers or sites that is not a feature.
        """
        names = (self.about.site_column, *({CLIENT} - {*self.encoder.columns})) if self.personal else ()
        return next((name for name in names if name in getattr(rows, "columns", ())), None)

    def _weights_of_rows(self, client: Any, n: int, rows: Any) -> NDArray[np.float64]:
        """Weight of each client's function in each row, (K, n) or (K, 1)."""
        rows = _without_arrow(rows)
        # Each row's site or client, from a column of the rows
        if client is None and (column := self.column_of_clients(rows)) is not None:
            cells = [word_of(cell) for cell in rows[column]]
            if column == self.about.site_column:
                of_site = {cell: self._weight_of_site(column, cell) for cell in dict.fromkeys(cells)}
                return np.stack([of_site[cell] for cell in cells], axis=1)
            client = cells
        # Without a client, the mean of all; with one, the same for all rows
        if client is None:
            return np.full((self._clients, 1), 1 / self._clients)
        if isinstance(client, str) or np.ndim(client) == 0:
            return self._weight_of_clients(client)[:, None]
        require(len(client) == n, "client", f"{len(client)} of them", f"one, or one for each of {n} rows")
        weight_of = {one: self._weight_of_clients(one) for one in dict.fromkeys(client)}
        return np.stack([weight_of[one] for one in client], axis=1) if n else np.zeros((self._clients, 0))

    def _weight_of_site(self, column: str, site: str) -> NDArray[np.float64]:
        """Weight of each client's function for a row of a site, (K,)."""
        sites = list(dict.fromkeys(self.about.sites))
        if site not in sites:  # 1.0 is the site 1
            site = next((one for one in sites if whole_number(one) == whole_number(site)), site)
        require(site in sites, column, site, f"a site that the run learned from: {in_one_line(', '.join(sites))}")
        return self._weight_of_clients(site)

    def _weight_of_clients(self, client: Any) -> NDArray[np.float64]:
        """Weight of each client's function, (K,)."""
        sites, K = self.about.sites, len(self.about.sites)
        here = np.array([site == str(client) for site in sites])
        if not here.any():
            number = int(client) if str(client).strip().isdecimal() else -1
            here = np.arange(K) == number
        names = ", ".join(dict.fromkeys(sites))
        require(bool(here.any()), "client", client, f"an integer from 0 to {K - 1}, or a site: {in_one_line(names)}")
        return here[: self._clients] / here.sum() if self.personal else np.ones(1)


def _without_arrow(rows: Any) -> Any:
    """A table of pyarrow as a frame; anything else unchanged."""
    return rows.to_pandas() if hasattr(rows, "to_pandas") else rows


def _of_reached(weights: NDArray[np.float64], reached: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights (K, n or 1) for the clients that have learned a model, which share the weights of the others."""
    if reached.all():
        return weights
    learned = weights * reached[:, None]
    total = learned.sum(axis=0)
    if not total.all():
        k = int(weights[:, int((total == 0).argmax())].argmax())
        raise FklError(f"client {k} took part in no round, so it has no model; choose other clients, or all")
    return learned / total


def _evaluate_function(function: SavedFunction, what: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """`predict` or `variance` (K or 1, n), in double precision for samples that overflow the function's precision."""
    with np.errstate(all="ignore"):
        f: NDArray[np.float64] = getattr(function, what)(x)
        far = ~np.isfinite(f).all(axis=0)
        if far.any() and not isinstance(function, NAMES_CLASSES):  # NaN is the correct answer for undecided classes
            f[:, far] = getattr(function.in_double(), what)(x[far])
            if not np.isfinite(f).all():
                raise FklError(f"row {int((~np.isfinite(f).all(axis=0)).argmax()) + 1}: its numbers are too large")
    return f


def _target_values(scale: Scale, classes: NDArray[np.float64]) -> set[float]:
    """Values of the target, without digits lost in scaling."""
    return {float(f"{value:.12g}") for value in scale.y_back(classes)}


def load_model(path: str | Path) -> SavedModel:
    """The model of a run, from its folder or from a model.npz anywhere.

    Nothing in the file can run: it holds numbers and text, no objects.

    Raises
    ------
    fkl.basics.errors.FklError
        If there is no model, or it has changed since it was written.
    """
    # A folder must be a finished run with a model, whose hash must be right
    folder = Path(path)
    file = folder / MODEL if folder.is_dir() else folder
    if not folder.exists():
        raise FklError(f"{folder}: not the folder of a run (it does not exist)")
    if folder.is_dir():
        facts = read_provenance(folder)
        if facts.get("state") not in (FINISHED, DERIVED):
            raise FklError(f"{folder}: not the folder of a finished run")
        digest = facts["files"].get(MODEL) if isinstance(facts.get("files"), dict) else None
        if digest is None:
            raise FklError(f"{folder}: a run without a model; the same command with save_model=true adds it")
    try:
        if folder.is_dir() and sha256_of(file) != digest:
            raise FklError(f"{file}: has changed since the run ended")
        model = _read_model(read_arrays(file))
        return replace(model, sums_at=partial(read_sums, folder)) if folder.is_dir() else model
    except DamagedError as error:
        raise FklError(f"{file}: not a model of this version of fkl: {error}") from None


def _read_model(arrays: dict[str, NDArray[Any]]) -> SavedModel:
    """Build a model from a file's arrays, and check each of them."""
    # JSON first: format, encoders, kinds of functions
    try:
        description = json.loads(arrays.pop(ABOUT).tobytes())
        if description["format"] != FORMAT:
            raise DamagedError(f"it is of format {in_one_line(description['format'])}, and this version reads {FORMAT}")
        kinds, several = description["functions"], isinstance(description["encoder"], list)
        encoders = tuple(map(Encoder.of_json, description["encoder"] if several else [description["encoder"]]))
        of_about = {field.name: description[field.name] for field in fields(About)}
        sites = tuple(map(str, of_about["sites"]))
        about = About(**{**of_about, "sites": sites, "signs": of_about["signs"] is True})
        learned = tuple(
            LearnedFunction(
                _make_from_arrays(KINDS[kind], arrays, r),
                _make_from_arrays(Scale, arrays, r),
                arrays.pop(f"{r}/reached"),
            )
            for r, kind in enumerate(kinds)
        )
    except BAD_JSON as error:
        raise DamagedError(f"{type(error).__name__}: {in_one_line(error)}") from None
    # Everything in it must be text or numbers, because any file may be given
    for encoder in encoders:
        texts = [*encoder.columns, *encoder.labels, *encoder.words, *encoder.fill]
        texts += [*encoder.dates, *encoder.dates.values(), *encoder.new_words]
        texts += [word for column in encoder.words.values() for word in column]
        numbers = all(isinstance(value, float) for value in encoder.fill.values())
        if not (all(isinstance(word, str) for word in texts) and numbers and isinstance(encoder.one_hot, bool)):
            raise DamagedError("its columns and words are not text, or a fill value is not a number")
    if len(encoders) != (len(learned) if several else 1):
        raise DamagedError("it does not have one encoder for each function")
    if not learned or arrays:
        raise DamagedError(
            "it has no functions" if not learned else f"it has unknown arrays: {in_one_line(min(arrays))}"
        )
    # The arrays of each replicate must fit together
    of_each = encoders if several else encoders * len(learned)
    for r, ((function, scale, reached), encoder) in enumerate(zip(learned, of_each, strict=True)):
        d = len(encoder.feature_names)
        shapes = {"x_low": ((), (d,)), "x_unit": ((), (d,)), "y_low": ((),), "y_unit": ((),)}
        ends = {name: np.asarray(getattr(scale, name)) for name in shapes}
        scale_fits = all(end.dtype == np.float64 and end.shape in shapes[name] for name, end in ends.items())
        some = reached.dtype == np.bool_ and reached.shape == (function.clients,) and reached.any()
        if not function.is_function_of(d) or function.clients not in (1, len(about.sites)) or not (scale_fits and some):
            raise DamagedError(f"the arrays of replicate {r} do not fit together")
    return SavedModel(learned, encoders[0], about, encoders if several else ())


def _make_from_arrays(kind: type, arrays: dict[str, NDArray[Any]], r: int) -> Any:
    """A replicate's function or scale."""
    return kind(**{field.name: arrays.pop(f"{r}/{field.name}") for field in fields(kind)})


def merge_models(first: SavedModel, second: SavedModel, names: Sequence[str] = ("A", "B")) -> SavedModel:
    """The model of all rows of two models of sums.

    Raises
    ------
    fkl.basics.errors.FklError
        If a model has no sums, features, scale, words or the method's keys differ, or a client is in both.
    """
    one, two = first.sums, second.sums
    for name, saved in zip(names, (one, two), strict=True):
        if saved is None:
            raise FklError(f"{name}: has no sums to merge; load the folder of a run with save_sums=total or clients")
    assert one is not None
    assert two is not None
    # Everything that was chosen before the sums must be the same
    differs = [f"algo.{key}" for key in {**one.algo, **two.algo} if one.algo.get(key) != two.algo.get(key)]
    if differs:
        raise FklError(
            f"{names[1]}: {differs[0]} differs from that of {names[0]}; both must have the same keys of algo"
        )
    if what := _first_difference(first, second):
        raise FklError(f"{names[1]}: {what} differ from those of {names[0]}; run it again with like={names[0]}")
    for client in two.clients:
        if common := next((other for other in one.clients if client.shares_rows(other)), None):
            who = f"client {common.number} ({in_one_line(common.name)})"
            raise FklError(f"{names[1]}: {who} has the same rows in {names[0]}; each row may count only once")
    # Clients stay apart if both know them; those without rows have nothing to add
    apart = one.apart and two.apart
    if apart:
        one, two = (saved.without(np.array([client.rows > 0 for client in saved.clients])) for saved in (one, two))
    pairs = zip(one.sums, two.sums, strict=True) if apart else zip(one.totals(), two.totals(), strict=True)
    sums = tuple(a + b if apart else (a + b).sum_clients() for a, b in pairs)
    merged = SavedSums(one.algo, one.clients + two.clients, apart, sums)
    datasets = dict.fromkeys((*first.about.dataset.split(" + "), *second.about.dataset.split(" + ")))
    return replace(first, about=replace(first.about, dataset=" + ".join(datasets))).of_sums(merged)


def _first_difference(first: SavedModel, second: SavedModel) -> str:
    """The first of two models' features, scales, columns and words that differ; empty if none does."""
    if len(first.learned) != len(second.learned):
        return "replicates"
    encoders = (first.encoders or (first.encoder,)), (second.encoders or (second.encoder,))
    if encoders[0] != encoders[1]:
        return "columns, words or values for missing cells"
    for (f, scale, _), (g, other, _) in zip(first.learned, second.learned, strict=True):
        drawn = ("rho", "scale", "phase", "narrow")
        if not _are_equal(getattr(f, "classes", 0), getattr(g, "classes", 0)):
            return "classes"
        if type(f) is not type(g) or not all(_are_equal(getattr(f, name), getattr(g, name)) for name in drawn):
            return "features (seed, kernels or precision)"
        for end in fields(scale):
            if not _are_equal(getattr(scale, end.name), getattr(other, end.name)):
                return "scales (smallest and largest cells)"
    return ""


def _are_equal(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and np.array_equal(one, other)
