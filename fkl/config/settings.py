"""The keys outside every group, and the names of the groups."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

from fkl.basics.errors import BadValue, require
from fkl.basics.keys import Keys, key
from fkl.config.choices import CONDITIONS, REQUIRED
from fkl.data.dealt_rows import require_part
from fkl.data.normalise import SCALINGS
from fkl.screen.columns import column_meaning

LEARNERS = ("federated", "alone", "pooled")
"""Which parties learn together: clients as in the method, each client alone, or one learner with all samples."""
NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
STOP_WHEN = re.compile(r"\s*(\w+)\s*([<>])\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*", re.ASCII)
NODES: tuple[str, ...] = (*REQUIRED, "network")
OPTIONAL_NODES = ("kernels", "topology", *CONDITIONS, "intervals")
ENGINES = {
    "numba": "fkl.engines.base.Numba",
    "numpy": "fkl.engines.base.Numpy",
    "jax": "fkl.engines.jax.Jax",
}
"""Import paths of the engines that run the rounds, see `fkl.engines.base.Engine`."""
MOST_REPLICATES = 1_000_000
LONGEST_NAME = 200


@dataclass(frozen=True)
class Paths(Keys):
    """Folders that runs read from and write to."""

    data: str = key("data", "Data files; by default the environment's FKL_DATA, else ``data``.")
    outputs: str = key("outputs", "Runs, tables and figures.")
    cache: str = key(
        "~/.cache/fkl", "Results that many runs share; by default the environment's FKL_CACHE, else ``~/.cache/fkl``."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in fields(self):
            _require_folder(setting.name, getattr(self, setting.name), "a folder")
        try:
            Path(self.cache).expanduser()
        except RuntimeError:
            raise BadValue("cache", self.cache, "a folder; no user has this name") from None


@dataclass(frozen=True)
class Settings(Keys):
    """The keys outside every group."""

    seed: int = key(
        0,
        "Decides every random draw of the run.",
        min=0,
        below=9_223_372_036_854_775_808,
        must="an integer >= 0, below 2^63",
    )
    replicates: int = key(20, "Independent sets of random features.", min=1, max=MOST_REPLICATES)
    precision: str = key(
        "float32",
        "Precision of random features, of their parameters, and of scalars on the wire.",
        choices=("float32", "float64"),
    )
    engine: str = key(
        "numba",
        "``numba`` runs compiled loops, ``numpy`` the slow reference, which methods with only compiled loops "
        "refuse. ``jax``, for methods whose rounds can be traced, runs one compiled scan on the device that JAX "
        "finds.",
        choices=ENGINES,
    )
    scaling: str = key(
        "unit_ball",
        "Scaling of features and target, see `fkl.data.normalise.normalise_table`. The default is unit_box for "
        "dataset=file, whose features have different units, and unit_ball for all other data sets.",
        choices=SCALINGS,
    )
    rows: str = key(
        "all",
        "Rows of the data set that the run uses: all; even or odd, every other block of 50 rows; early or late, "
        "the first or the second half of each site's rows; tune_N or judge_N, half of the blocks, with a new "
        "split for each number N; tune_N_of_G or judge_N_of_G, the same for portion N of G; judge_N_one_in_2.5, "
        "one in 2.5 of these blocks. A choice made on one half does not depend on the other half, not even on "
        "its scale, means, words or classes. A half also halves a partition's default rounds (of by_site: own and "
        "other), and a portion divides them by G; your own values are used unchanged. With judge, ``losses.npz`` "
        "stores the loss of each row.",
    )
    learners: str = key(
        "federated",
        "Clients learn together as in the method (federated), each client learns alone (alone), or one learner "
        "has all samples (pooled). A comparison with the last two shows the benefit of federation. These two "
        "send nothing, so network conditions have no effect.",
        choices=LEARNERS,
    )
    stop_when: str | None = key(
        None,
        "A column of rounds.csv and a number, such as ``mse<0.01`` or ``uplink_bytes>1e6``: the run ends after "
        "the first round in which this holds for the mean over replicates. All replicates then run together.",
        must="a column of rounds.csv, < or >, and a number, or null",
    )
    metrics: dict[str, str] | None = key(
        None,
        "Metrics of your own, as ``metrics.mae=my_module.mae``: a function of two arrays (n,), the scaled targets "
        "y and the predictions y_hat, that returns the loss of each sample. The mean becomes a column of "
        "rounds.csv and summary.csv: for streams ``mae``, over all predictions so far; for other methods "
        "``test_mae``, over the test samples.",
        must="names that differ from fkl's columns, each with a function, MODULE.FUNCTION",
    )
    threads: int | None = key(None, "Threads of the compiled kernels; None for all.", min=1)
    chunk: int | None = key(None, "Replicates that run together; None for as many as fit in a gigabyte.", min=1)
    checkpoint_s: float | None = key(
        30.0,
        "Seconds between two checkpoints of a run; 0 for every round, or the rounds played at once, None for never.",
        min=0,
        must="seconds >= 0, or null",
    )
    objective: str | None = key(
        None,
        "Column of the summary whose mean a hyperparameter search minimises.",
        must="a column of summary.csv, or null",
    )
    save_model: bool = key(
        False, "Whether to save the learned model in ``model.npz``.", must="false without learners=federated"
    )
    save_sums: bool | str = key(
        False,
        "Whether to save, in ``sums.npz`` beside the model, the float64 sums over samples of which the model is a "
        "function: their total, enough for `fkl merge`, or those of each client, for `fkl forget` as well. The saved "
        "model is then computed from these sums, added client after client. The sums of few rows are the rows "
        "themselves, so the file is as confidential as the data.",
        must="false, total or clients",
    )
    like: str | None = key(
        None,
        "Folder of a run with a model. Seed, replicates, precision, scaling and kernels are those of its settings, "
        "and the scale, words and values for missing cells are those of its model, whatever the new rows are, so "
        "`fkl merge` can add both.",
        must="the folder of a run with save_model=true, or null",
    )
    figures: str = key(
        "all",
        "Whether a run draws its figures as PNG, which takes longer than a small run itself. With paper, it also "
        "writes PDF files as wide as a paper's column, with 8-point letters, and captions in .txt files.",
        choices=("all", "paper", "none"),
    )
    out: str | None = key(
        None, "Folder for this run's files; None for one named after the configuration.", must="a folder, or null"
    )

    @property
    def saves_model(self) -> bool:
        """Whether the run writes its model; sums are never without it."""
        return self.save_model or bool(self.save_sums)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_part(self.rows)
        federated = self.learners == "federated"
        require(federated or not self.save_model, "save_model", True, f"false with learners={self.learners}")
        self.require(self.save_sums in (False, "total", "clients"), "save_sums")
        require(federated or not self.save_sums, "save_sums", self.save_sums, f"false with learners={self.learners}")
        may = self.stop_when is None or STOP_WHEN.fullmatch(self.stop_when) is not None
        self.require(may, "stop_when")
        for name, path in (self.metrics or {}).items():
            new = (
                NAME.fullmatch(name) is not None
                and column_meaning(name) is None
                and column_meaning(f"test_{name}") is None
            )
            require(new, "metrics", name, "a name of letters, digits and _ that differs from fkl's columns")
            require("." in path.strip("."), f"metrics.{name}", path, "the import path of a function, MODULE.FUNCTION")
        self.require(self.objective is None or self.objective.strip() != "", "objective")
        if self.out is not None:
            _require_folder("out", self.out, "a folder, or null")


def _require_folder(key: str, value: str, allowed: str) -> None:
    """Refuse names that are impossible for a folder and for our files next to it."""
    short = all(len(part.encode()) <= LONGEST_NAME for part in Path(value).parts)
    require(value.strip() != "" and short, key, value, f"{allowed}; no name longer than {LONGEST_NAME} bytes")
    require(value.isprintable(), key, value, f"{allowed}, without control characters")
    home = value.startswith("~") and key != "cache"  # some libraries would expand it to a home folder, others not
    require(not home, key, value, f"{allowed}; write $HOME for ~")
