"""How a study dealt rows to clients: the partition of each data set, and the order of rows where it matters."""

import re
from collections.abc import Sequence
from functools import cache

from fkl.config.loading import import_object
from fkl.data.partition import Partition
from fkl.runs.folder import read_provenance
from fkl.study.jobs import words_to_try
from fkl.study.plan import Plan, PlannedPart
from fkl.study.results import Judged


def partition_of(plan: Plan, dataset: PlannedPart) -> str:
    """Name of the partition that deals the rows of a data set, such as iid or blocks."""
    kind = _class_of_partition(plan, dataset)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    return "vertical" if getattr(kind, "of_features", False) else name


def how_dealt(plan: Plan, datasets: Sequence[PlannedPart]) -> str:
    """A sentence for captions: the key that deals rows, with its value on each data set."""
    by_words: dict[str, list[str]] = {}
    for dataset in datasets:
        kind = _class_of_partition(plan, dataset)
        in_order = issubclass(kind, Partition) and kind.in_file_order
        order = f" ({'in file order' if in_order else 'at random'})" * issubclass(kind, Partition)
        by_words.setdefault(f"partition={partition_of(plan, dataset)}{order}", []).append(dataset.name)
    where = len(by_words) > 1
    said = [words + f" on {', '.join(names)}" * where for words, names in by_words.items()]
    return f"Rows were dealt by {'; '.join(said)}." if said else ""


def row_order_of(judged: Judged) -> str:
    """What the judged runs say of the order of their rows; empty where it does not matter."""
    notes = (note for of_method in judged.notes.values() for note in of_method if note is not None)
    folders = (judged.plan.folder / "runs" / note["folder"] for note in notes if note["error"] is not None)
    told = (read_provenance(folder).get("row_order") for folder in folders)
    return str(next(filter(None, told), ""))


@cache
def _class_of_partition(plan: Plan, dataset: PlannedPart) -> type:
    node = plan.config(words_to_try(plan, dataset))["partition"]
    found: type = import_object("_target_", str(node["_target_"]), "class")
    return found
