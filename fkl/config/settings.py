"""The keys outside every group, and the names of the groups."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

from fkl.basics.errors import BadValue, require
from fkl.config.choices import CONDITIONS
from fkl.data.dealt_rows import require_part
from fkl.data.normalise import SCALINGS
from fkl.screen.columns import meaning

LEARNERS = ("federated", "alone", "pooled")
"""Who learns together: the clients as the method says, each by itself, or one that has all samples."""
NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
STOP_WHEN = re.compile(r"\s*(\w+)\s*([<>])\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*", re.ASCII)
NODES: tuple[str, ...] = ("algo", "dataset", "partition", "network")
OPTIONAL_NODES = ("kernels", "topology", *CONDITIONS)
ENGINES = {
    "numba": "fkl.engines.local.Numba",
    "numpy": "fkl.engines.local.Numpy",
    "mpi": "fkl.engines.mpi.Mpi",
    "jax": "fkl.engines.jax.Jax",
}
"""Import paths of what plays the rounds, see `fkl.engines.base.Engine`, as `_target_` is one of a node's class."""
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
        What is computed once for many runs; by default the environment's FKL_CACHE, else ``~/.cache/fkl``.
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
        Of random features, of the parameters that go with them, and of scalars on the wire.
    engine : {"numba", "numpy", "mpi", "jax"}
        Compiled loops, or the slow reference in numpy; a method whose loops exist only compiled refuses the latter.
        With mpi, for methods whose clients have a server, the processes that mpirun has started play the clients in
        parts, by the compiled loops, and come to the same bytes. With jax, for methods whose rounds can be traced, they
        are played by one compiled scan, on the device that JAX finds.
    scaling : {"unit_ball", "unit_box", "none"}
        Of features and target, see `fkl.data.normalise.normalise`.
    rows : str
        Which of the data set's rows there are: all; even or odd, every other block of 50 in their order; early or late,
        the first half of each site's rows and the others; tune_N or judge_N, half of the blocks, dealt anew for each
        number N; tune_N_of_G or judge_N_of_G, the same of portion N of G; sealed_0.3, three tenths of the blocks, the
        same in every run, open_0.3, the others, and tune_N_but_0.3 or judge_N_but_0.3, half of these others. What is
        chosen on the one half has seen nothing of the other, not even its scale. A partition's default rounds (of
        by_site, own and other) are then half as many, and of a portion a G-th of that, of sealed rows their share;
        values that you give are taken as they are. With judge and sealed, ``losses.npz`` keeps the loss of each row.
    learners : {"federated", "alone", "pooled"}
        Whether clients learn together as the method says, each by itself, or one learner has all samples. What the
        others reach tells what federating is worth: they send nothing, so that no condition of the network matters.
    stop_when : str or None
        A column of rounds.csv and a number, as ``mse<0.01`` or ``uplink_bytes>1e6``: the run ends after the first round
        at which this holds for the mean over replicates, which all run together.
    metrics : dict of str to str, or None
        Metrics of your own, as ``metrics.mae=my_module.mae``: a function of two arrays (n,), the scaled targets y and
        the predictions y_hat, that returns the loss of each sample. The mean becomes a column of rounds.csv and
        summary.csv: of a stream ``mae``, of all predictions so far; of other methods ``test_mae``, of the test samples.
    threads : int or None
        Threads of the compiled kernels; None for all.
    chunk : int or None
        Replicates that run together; None for as many as a gigabyte holds.
    checkpoint_s : float or None
        Seconds between two savings of what a run has done so far; 0 for every round, None for never.
    objective : str or None
        Column of the summary whose mean a search for hyper-parameters is to make small.
    save_model : bool
        Whether to keep what was learned, in ``model.npz``.
    figures : {"all", "paper", "none"}
        Whether a run draws its figures, which takes longer than the rounds of a small one; with paper they have the
        width of a paper's column, letters of 8 pt, and their captions in .txt files beside them.
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
    """Refuse what names no folder that a file system could hold, with our own files beside it."""
    short = all(len(part.encode()) <= LONGEST_NAME for part in Path(value).parts)
    require(value.strip() != "" and short, key, value, f"{allowed}; no name longer than {LONGEST_NAME} bytes")
    require(value.isprintable(), key, value, f"{allowed}, without control characters")
    home = value.startswith("~") and key != "cache"  # some libraries would take it for a home folder, others not
    require(not home, key, value, f"{allowed}; write $HOME for ~")
