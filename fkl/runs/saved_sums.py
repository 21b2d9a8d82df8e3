"""The file of the sums beside a saved model, and whose sums they are."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.sums import Sums
from fkl.basics.errors import BadValue, FklError, in_one_line
from fkl.basics.files import DamagedError, read_arrays, sha256_of, whole_file, write_arrays
from fkl.config.loading import Run, make_object
from fkl.engines.base import Experiment, Numba, make_world
from fkl.runs.folder import SUMS, read_provenance

ABOUT = "about"
"""Name of the array that holds the JSON."""
BAD_JSON = BadValue, ValueError, KeyError, TypeError, AttributeError, RecursionError
OWN_METHODS = "fkl.algorithms.federated."
"""Methods of sums; a file that names another class is refused, because it would import code."""


@dataclass(frozen=True)
class Contributor:
    """A client whose rows are in sums.

    Parameters
    ----------
    name : str
        Its site.
    number : int
        Its number in the run that made its sums.
    rows : int
        Most rows in a replicate; 0 if it never took part.
    source, partition : str
        What the run's rows were, and how they were divided: equal ones have the same rows at the same number.
    """

    name: str
    number: int
    rows: int
    source: str
    partition: str

    def shares_rows(self, other: "Contributor") -> bool:
        """Whether rows may be counted in both."""
        same = self.number == other.number or self.partition != other.partition
        return bool(self.rows and other.rows) and self.source == other.source and same


@dataclass(frozen=True)
class SavedSums:
    """The sums of each replicate, and whose they are.

    Parameters
    ----------
    algo : dict
        The method's node.
    clients : tuple of Contributor
    apart : bool
        Whether each client has its own sums; else there is one total.
    sums : tuple of Sums
        One for each replicate.
    """

    algo: dict[str, Any]
    clients: tuple[Contributor, ...]
    apart: bool
    sums: tuple[Sums, ...]

    @classmethod
    def from_experiment(cls, run: Run, experiment: Experiment, rounds: int) -> Self:
        """The sums that a run's clients have sent in its rounds."""
        problem, every = experiment.problem, []
        for r in range(experiment.replicates):
            world, _ = make_world(replace(experiment, engine=Numba()), (r,))
            every.append(run.algo.client_sums(world, rounds))
        rows = np.max([one.count for one in every], axis=0)
        whose = {"source": run.source_of_rows, "partition": json.dumps(run.resolved["partition"], sort_keys=True)}
        clients = tuple(
            Contributor(str(problem.site_names[site]), k, int(count), **whose)
            for k, (site, count) in enumerate(zip(problem.site, rows, strict=True))
        )
        if getattr(run.algo, "means", False):
            every = [one.per_sample() for one in every]
        saved = cls(run.resolved["algo"], clients, True, tuple(every))
        return saved if run.settings.save_sums == "clients" else replace(saved, apart=False, sums=saved.totals())

    def totals(self, keep: NDArray[np.bool_] | None = None) -> tuple[Sums, ...]:
        """Each replicate's total over the clients that are kept, added by name: then merging has no order."""
        names = [(one.name, one.number, one.source) for one in self.clients]
        order = sorted(range(len(names)), key=names.__getitem__) if self.apart else None
        return tuple(one.sum_clients(keep, order) for one in self.sums)

    @property
    def method(self) -> Any:
        """The method, which solves for a model."""
        target = str(self.algo.get("_target_"))
        if not target.startswith(OWN_METHODS):
            raise DamagedError(f"it is of {in_one_line(target)}, which is not a method of sums")
        return make_object(self.algo, "algo")

    def without(self, keep: NDArray[np.bool_]) -> "SavedSums":
        """Only the clients that are kept."""
        kept = np.flatnonzero(keep)
        parts = tuple(type(one)(*(getattr(one, name)[kept] for name in one.axes)) for one in self.sums)
        return replace(self, clients=tuple(self.clients[k] for k in kept), sums=parts)

    def condition_number(self) -> float:
        """The largest condition number of the equations for theta, over replicates and kernels."""
        method = self.method
        return max(total.condition_number(method.noise_of_sums(total)) for total in self.totals())

    def save(self, file: Path) -> None:
        """Write the file completely or not at all."""
        about = {"algo": self.algo, "clients": [asdict(one) for one in self.clients], "apart": self.apart}
        arrays: dict[str, NDArray[Any]] = {ABOUT: np.frombuffer(json.dumps(about).encode(), np.uint8)}
        for r, one in enumerate(self.sums):
            arrays |= {f"{r}/{name}": getattr(one, name) for name in one.axes}
        with whole_file(file) as stream:
            write_arrays(stream, arrays)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read the file that `save` wrote; nothing in it can run."""
        try:
            arrays = read_arrays(file)
            about = json.loads(arrays.pop(ABOUT).tobytes())
            clients = tuple(Contributor(**one) for one in about["clients"])
            count = len(arrays) // len(Sums.axes)
            sums = tuple(Sums(**{name: arrays.pop(f"{r}/{name}") for name in Sums.axes}) for r in range(count))
            saved = cls(dict(about["algo"]), clients, about["apart"] is True, sums)
            fits = all(one.is_consistent(len(clients) if saved.apart else 1) for one in sums)
            if arrays or not sums or not fits:
                raise DamagedError("its arrays do not fit together")
            _ = saved.method
        except (*BAD_JSON, DamagedError) as error:
            raise FklError(f"{file}: not sums of this version of fkl: {in_one_line(error)}") from None
        return saved


def read_sums(folder: Path) -> SavedSums | None:
    """The sums beside a model; None if there are none."""
    digest = (read_provenance(folder).get("files") or {}).get(SUMS)
    if digest is None:
        return None
    if not (folder / SUMS).is_file() or sha256_of(folder / SUMS) != digest:
        raise FklError(f"{folder / SUMS}: has changed since it was written, or is missing")
    return SavedSums.load(folder / SUMS)
