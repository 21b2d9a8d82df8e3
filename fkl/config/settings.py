"""The keys outside every group, and the names of the groups."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

from fkl.basics.errors import BadValue, require
from fkl.config.choices import CONDITIONS, REQUIRED
from fkl.data.dealt_rows import require_part
from fkl.data.normalise import SCALINGS
from fkl.screen.columns import meaning

LEARNERS = ("federated", "alone", "pooled")
"""Who learns together: the clients as in the method, each by itself, or one learner with all samples."""
NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
STOP_WHEN = re.compile(r"\s*(\w+)\s*([<>])\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*", re.ASCII)
NODES: tuple[str, ...] = (*REQUIRED, "network")
OPTIONAL_NODES = ("kernels", "topology", *CONDITIONS, "intervals")
ENGINES = {
    "numba": "fkl.engines.base.Numba",
    "numpy": "fkl.engines.base.Numpy",
    "disk": "fkl.engines.disk.Disk",
    "jax": "fkl.engines.jax.Jax",
}
"""Import paths of the engines that play the rounds, see `fkl.engines.base.Engine`."""
MOST_REPLICATES = 1_000_000
LONGEST_NAME = 200


@dataclass(frozen=True)
class Paths:
    """Folders.

    Parameters
    ----------
    data : str
        Data files; by default the environment's FKL_DATA, else ``data``.
    outputs : str
        Runs, tables and figures.
    cache : str
        Results that many runs share; by default the environment's FKL_CACHE, else ``~/.cache/fkl``.
    """

    data: str = "data"
    outputs: str = "outputs"
    cache: str = "~/.cache/fkl"

    def __post_init__(self) -> None:
        for one in fields(self):
            _require_folder(one.name, getattr(self, one.name), "a folder")
        try:
            Path(self.cache).expanduser()
        except RuntimeError:
            raise BadValue("cache", self.cache, "a folder; there is no user of this name") from None


@dataclass(frozen=True)
class Settings:
    """The keys outside every group.

    Parameters
    ----------
    seed : int
        Decides every random draw of the run.
    replicates : int
        Independent sets of random features.
    precision : {"float32", "float64"}
        Precision of random features, of their parameters, and of scalars on the wire.
    engine : {"numba", "numpy", "disk", "jax"}
        Compiled loops, or the slow reference in numpy; a method whose loops exist only compiled refuses the latter.
        With disk, for methods whose clients have a server, the clients play in parts, one after another, with samples
        and states in files, and give the same bytes. With jax, for methods whose rounds can be traced, one compiled
        scan plays them on the device that JAX finds.
    scaling : {"unit_ball", "unit_box", "none"}
        Scaling of features and target, see `fkl.data.normalise.normalise`; if not given, unit_box for dataset=file,
        whose features have units of their own, and unit_ball for all others.
    rows : str
        Which of the data set's rows there are: all; even or odd, every other block of 50 in their order; early or late,
        the first half of each site's rows and the others; tune_N or judge_N, half of the blocks, with a new split for
        each number N; tune_N_of_G or judge_N_of_G, the same of portion N of G; judge_N_one_in_2.5, one in 2.5 of these
        blocks. A choice made on one half does not depend on the other half, not even on its scale. A partition's
        default rounds (of by_site, own and other) are then half as many, and of a portion a G-th of that; your own
        values are used unchanged. With judge, ``losses.npz`` keeps the loss of each row.
    learners : {"federated", "alone", "pooled"}
        Whether clients learn together as in the method, each by itself, or one learner has all samples. A comparison
        with the last two shows the benefit of federation. They send nothing, so conditions of the network have no
        effect.
    stop_when : str or None
        A column of rounds.csv and a number, such as ``mse<0.01`` or ``uplink_bytes>1e6``: the run ends after the first
        round in which this holds for the mean over replicates, which all run together.
    metrics : dict of str to str, or None
        Metrics of your own, as ``metrics.mae=my_module.mae``: a function of two arrays (n,), the scaled targets y and
        the predictions y_hat, that returns the loss of each sample. The mean becomes a column of rounds.csv and
        summary.csv: for streams ``mae``, over all predictions so far; for other methods ``test_mae``, over the test
        samples.
    threads : int or None
        Threads of the compiled kernels; None for all.
    chunk : int or None
        Replicates that run together; None for as many as fit in a gigabyte.
    checkpoint_s : float or None
        Seconds between two checkpoints of a run; 0 for every round, None for never.
    objective : str or None
        Column of the summary whose mean a hyperparameter search minimises.
    save_model : bool
        Whether to save the learned model in ``model.npz``.
    figures : {"all", "paper", "none"}
        Whether a run draws its figures, which takes longer than the rounds of a small run. With paper, they have the
        width of a paper's column, letters of 8 pt, and captions in .txt files next to them.
    out : str or None
        Folder for this run's files; None for one named after the configuration.
    """

    seed: int = 0
    replicates: int = 20
    precision: str = "float32"
    engine: str = "numba"
    scaling: str = "unit_ball"
    rows: str = "all"
    learners: str = "federated"
    stop_when: str | None = None
    metrics: dict[str, str] | None = None
    threads: int | None = None
    chunk: int | None = None
    checkpoint_s: float | None = 30.0
    objective: str | None = None
    save_model: bool = False
    figures: str = "all"
    out: str | None = None

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**63, "seed", self.seed, "an integer >= 0, below 2^63")
        allowed = f"an integer from 1 to {MOST_REPLICATES}"
        require(1 <= self.replicates <= MOST_REPLICATES, "replicates", self.replicates, allowed)
        require(self.precision in ("float32", "float64"), "precision", self.precision, "float32 or float64")
        require(self.engine in ENGINES, "engine", self.engine, ", ".join(ENGINES))
        require(self.figures in ("all", "paper", "none"), "figures", self.figures, "all, paper or none")
        require(self.scaling in SCALINGS, "scaling", self.scaling, ", ".join(SCALINGS))
        require_part(self.rows)
        require(self.learners in LEARNERS, "learners", self.learners, ", ".join(LEARNERS))
        federated = self.learners == "federated"
        require(federated or not self.save_model, "save_model", True, f"false with learners={self.learners}")
        may = self.stop_when is None or STOP_WHEN.fullmatch(self.stop_when) is not None
        require(may, "stop_when", self.stop_when, "a column of rounds.csv, < or >, and a number, or null")
        for name, path in (self.metrics or {}).items():
            new = NAME.fullmatch(name) is not None and meaning(name) is None and meaning(f"test_{name}") is None
            require(new, "metrics", name, "a name of letters, digits and _, which is no column of fkl's")
            require("." in path.strip("."), f"metrics.{name}", path, "the import path of a function, MODULE.FUNCTION")
        require(self.threads is None or self.threads >= 1, "threads", self.threads, "an integer >= 1, or null")
        require(self.chunk is None or self.chunk >= 1, "chunk", self.chunk, "an integer >= 1, or null")
        every = self.checkpoint_s
        require(every is None or 0 <= every < float("inf"), "checkpoint_s", every, "seconds >= 0, or null")
        named = self.objective is None or self.objective.strip() != ""
        require(named, "objective", self.objective, "a column of summary.csv, or null")
        if self.out is not None:
            _require_folder("out", self.out, "a folder, or null")


def _require_folder(key: str, value: str, allowed: str) -> None:
    """Refuse names that are impossible for a folder and for our files next to it."""
    short = all(len(part.encode()) <= LONGEST_NAME for part in Path(value).parts)
    require(value.strip() != "" and short, key, value, f"{allowed}; no name longer than {LONGEST_NAME} bytes")
    require(value.isprintable(), key, value, f"{allowed}, without control characters")
    home = value.startswith("~") and key != "cache"  # some libraries would expand it to a home folder, others would not
    require(not home, key, value, f"{allowed}; write $HOME for ~")
