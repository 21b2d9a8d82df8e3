"""A published data set that a YAML describes; see `fkl.data.table_layout.Layout` for the content of the YAML."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from fkl.basics.errors import key_prefix, require
from fkl.data import readers
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store
from fkl.data.table_layout import ONLY_TOLD, Layout, layout_options

MOST_KEPT = 1 << 27
"""Maximum bytes of a table's features for which the table is kept for the next run."""
_LAST: dict[str, Table] = {}
"""The table that was read last, by its description and its files, since the runs of a sweep or study share it."""


@dataclass(frozen=True)
class TableSet:
    """A published data set, described by its YAML.

    Parameters
    ----------
    table : Layout
        Its files and how they are read. The YAML's other keys, next to `table`, may be set by a user: a field of the
        layout such as `rows`, a switch, or a replacement value; `with_keys` adds them.
    """

    table: Layout = field(default_factory=Layout)

    def __post_init__(self) -> None:
        if not isinstance(self.table, Layout):
            with key_prefix("dataset.table"):
                object.__setattr__(self, "table", Layout(**self.table))
        _ = self.layout  # refuses wrong values of keys at once

    @classmethod
    def with_keys(cls, node: Mapping[str, Any]) -> "type[TableSet]":
        """The class whose fields are the keys of this node."""
        given = layout_options(node)
        for key in given:
            require(key in node, key, None, "given in addition to dataset.table, which names it")
        types = [(key, option.type) for key, option in given.items()]
        made: type[TableSet] = make_dataclass(cls.__name__, types, bases=(cls,), frozen=True, kw_only=True)
        made.__doc__, made.__module__ = cls.__doc__, cls.__module__
        return made

    @cached_property
    def layout(self) -> Layout:
        """How the files are read with the user's keys."""
        return self.table.with_chosen_keys(
            {one.name: getattr(self, one.name) for one in fields(self) if one.name != "table"}
        )

    name, title, licence, shape = (property(attrgetter(f"table.{key}")) for key in ("name", *ONLY_TOLD))
    """Facts that the layout states."""

    @property
    def data_files(self) -> tuple[DataFile, ...]:
        """All its files, also those that are not read with the user's keys."""
        return tuple(readers.data_file(self.table, file) for file in self.table.files)

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the files; `rng` is not used.

        Returns
        -------
        Table
            One row per sample, in the order of the files.

        Raises
        ------
        FklError
            If a file is missing, damaged or not in its published layout.
        """
        layout = self.layout
        # Values that a key replaces, and the state of the files
        replacing = getattr(self, layout.replace["key"]) if layout.replace else None
        places = [store.find_file(readers.data_file(layout, file)) for file in layout.used]
        about = [(place, place.stat().st_mtime_ns, place.stat().st_size) for place in places if place is not None]
        key = repr((layout, store, replacing, about))
        # Keep the last table, since replicates and trials read the same one
        if key not in _LAST:
            table = readers.read_dataset(layout, store, replacing)
            _LAST.clear()
            fetched = len(about) < len(places)
            if fetched or not isinstance(table.x, np.ndarray) or table.x.nbytes > MOST_KEPT:
                return table
            for array in (table.x, table.y, table.site):
                array.flags.writeable = False  # several runs share it
            _LAST[key] = table
        return _LAST[key]
