"""All that is wrong with the files of a user's table, what is decided about each column, and how its sites differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, plural
from fkl.data.columns import Column, Columns, short
from fkl.data.encoder import in_brackets
from fkl.data.table_file import TableFile, site_of

FEWEST_ROWS = 5
"""A site with fewer rows of a column is not compared with the others."""
FAR = 2.0
"""So many times the width of the others' middle half is far from their median."""
ROWS_COMPARED = 1000
"""Number of first rows of each site that are compared."""
WORDS_SHOWN = 3


class ColumnDecision(NamedTuple):
    """What a column is used as (``target``, ``feature``, ...), what its cells are read as, and why."""

    column: str
    used_as: str
    read_as: str
    why: str


class SiteColumn(NamedTuple):
    """A column at one site, as text: what it holds, its median and range, and what is special there."""

    column: str
    site: str
    kind: str
    median: str
    range: str
    missing: str
    only_there: str


@dataclass(frozen=True)
class CheckedFiles:
    """All files of a table, read one by one.

    Parameters
    ----------
    faults : tuple of str
        All that would stop a run, one line each: of each column of each file the first fault.
    columns : Columns
        All columns that can be read, of all files.
    decisions : tuple of ColumnDecision
    site : (n,) int64
        Site of each row of `columns`.
    site_names : tuple of str
    """

    faults: tuple[str, ...]
    columns: Columns
    decisions: tuple[ColumnDecision, ...]
    site: NDArray[np.int64]
    site_names: tuple[str, ...]

    def by_site(self) -> list[SiteColumn]:
        """Each used column at each site."""
        rows = []
        for one in self.decisions:
            column = self.columns.by_name[one.column]
            if one.used_as in ("target", "feature"):
                rows += [self._at_site(one, column, number) for number in range(len(self.site_names))]
        return rows

    def _at_site(self, decided: ColumnDecision, column: Column, number: int) -> SiteColumn:
        here = self.site == number
        there = here & ~column.holes
        missing = f"{int((here & column.holes).sum())} of {int(here.sum())}"
        numbers = column.numbers[there & np.isfinite(column.numbers)]
        low, middle, high = np.quantile(numbers, [0, 0.5, 1]) if len(numbers) else (np.nan,) * 3
        only, span = "", f"{low:.5g} to {high:.5g}"
        if decided.read_as.startswith("words"):
            elsewhere = {*column.words(~here)}
            own = [word for word in column.words(here) if word not in elsewhere]
            only = ", ".join(map(short, own[:WORDS_SHOWN])) + f" and {len(own) - WORDS_SHOWN} more" * (
                len(own) > WORDS_SHOWN
            )
            middle, span = np.nan, plural(len(column.words(here)), "word")
        known = bool(there.any())
        median = "" if np.isnan(middle) else f"{middle:.5g}"
        return SiteColumn(
            decided.column, self.site_names[number], decided.read_as, median, span if known else "", missing, only
        )

    def apart(self) -> list[str]:
        """A line for each column in which a site's numbers lie far from the others'."""
        used = [one.column for one in self.decisions if one.used_as in ("target", "feature")]
        numeric = {name: self.columns.by_name[name] for name in used if not self.columns.by_name[name].text}
        return sites_apart({name: one.numbers for name, one in numeric.items()}, self.site, self.site_names)


def sites_apart(
    columns: dict[str, NDArray[np.float64]], site: NDArray[np.int64], site_names: Sequence[str]
) -> list[str]:
    """A line for each column in which a site's numbers do not touch the others', as those in another unit.

    They do not if the ranges have no number in common, or if the site's median is further from that of all others than
    twice the width of the others' middle half. The first 1000 rows of each site are compared.
    """
    first = np.concatenate([np.flatnonzero(site == number)[:ROWS_COMPARED] for number in range(len(site_names))])
    rows, lines = np.sort(first), []
    for name, numbers in columns.items():
        known = rows[np.isfinite(numbers[rows])]
        values, of = numbers[known], site[known]
        found = []
        for number in range(len(site_names)):
            own, others = values[of == number], values[of != number]
            if min(len(own), len(others)) < FEWEST_ROWS:
                continue
            low, quarter, middle, three_quarters, high = np.quantile(others, [0, 0.25, 0.5, 0.75, 1])
            median = float(np.median(own))
            far = abs(median - middle) > FAR * (three_quarters - quarter) > 0
            if far or own.min() > high or own.max() < low:
                found.append((site_names[number], median, f"{low:.5g} to {high:.5g}", middle))
        if 2 * len(found) > len(site_names) > 2:  # such as the altitude of each site
            lines.append(f"{short(name)} differs by site: {len(found)} of {len(site_names)} lie apart from the others")
        elif found:
            where, median, span, middle = found[0]
            more = f", and so do {len(found) - 1} more" if len(found) > 1 else ""
            lines.append(
                f"{short(name)} of {short(where)} lies apart{more}: its median is {median:.5g}, "
                f"that of all other sites {middle:.5g} (range {span}); is it in another unit?"
            )
    return lines


def check_files(data: TableFile, tables: Path | None) -> CheckedFiles:
    """Read all files of a table, and find all faults of all of them.

    Parameters
    ----------
    data : TableFile
    tables : Path or None
        Folder of the parsed copies of tables.

    Raises
    ------
    FklError
        If no file can be read, or a key of the data set names what no file has.
    """
    paths, faults = [*data.paths, *data.test_paths], list[str]()

    def found(step: Callable[[], object]) -> bool:
        """Whether a step succeeds; its error is one of the faults."""
        try:
            step()
        except FklError as error:
            faults.append(str(error))
            return False
        return True

    parts: list[Columns] = []
    for path in paths:
        found(lambda path=path: parts.append(data.read_file(path, tables)))  # type: ignore[misc]
    if not parts:
        raise FklError("; ".join(faults))
    if parts[0].zeros_left_out:
        data = replace(data, target=data.target or "label")
    named: list[Columns] = []
    if not found(lambda: named.extend(data.named_like_the_first(parts))):
        named = parts
    if len(named) == 1 and not faults:
        data.with_used_columns(named)  # refuses keys that name no column, as a run does
    dropped = {*(data.drop or ()), *data.names_of_rows(named)}
    of_file = {one.path: [name for name in one.by_name if name not in dropped] for one in named}
    faults += _lacking_columns(data, named, of_file)
    words: set[str] = set()
    dates: dict[str, str] = {}
    prepared = []
    for one in named:
        columns = dict(one.by_name)
        for name in of_file[one.path]:
            try:
                columns |= _checked(data, name, replace(one, by_name={name: columns[name]}), words, dates)
            except FklError as error:
                faults.append(str(error))
        if all(name in one.by_name for name in data.times):
            found(lambda one=one: data.times and data.times_of_rows(one))  # type: ignore[misc]
        prepared.append(replace(one, by_name=columns))
    names = list(dict.fromkeys(name for one in prepared for name in one.by_name))
    whole = prepared[0].with_holes(names).followed_by([one.with_holes(names) for one in prepared[1:]])
    decisions = tuple(_decided(data, name, whole, words, dates, dropped) for name in names)
    site, site_names = np.zeros(whole.rows, np.int64), tuple(["all"])
    if data.is_pattern:
        site = np.repeat(np.arange(len(prepared)), [one.rows for one in prepared])
        site_names = tuple(site_of(one.path) for one in prepared)
    elif data.site is not None and data.site in whole.by_name:
        column = whole.by_name[data.site]
        site_names = tuple(column.words(np.ones(whole.rows, np.bool_)))
        site = np.nan_to_num(column.codes(np.arange(whole.rows), site_names), nan=-1).astype(np.int64)
    return CheckedFiles(tuple(dict.fromkeys(faults)), whole, decisions, site, site_names)


def _checked(data: TableFile, name: str, alone: Columns, words: set[str], dates: dict[str, str]) -> dict[str, Column]:
    """One column of a file, with its dates as days; the first of its faults is raised."""
    if name in data.times:
        return {}
    if fault := alone.by_name[name].fault:
        raise FklError(f"{alone.path}, column {short(name)}: {fault}; dataset.drop=[{in_brackets(name)}] leaves it out")
    dated, formats = data.with_dates(alone)
    dates |= formats
    column = dated.by_name[name]
    if data.is_of_words(name, column, dated):
        words.add(name)
    elif name != data.site:
        data.numbers_of_column(name, column, dated)
    if data.missing == "refuse" and column.holes.any() and name not in (data.fill or ()):
        raise FklError(data.missing_cell(name, column, int(column.holes.argmax()), dated))
    return {name: column}


def _lacking_columns(data: TableFile, parts: Sequence[Columns], of_file: dict[str, list[str]]) -> list[str]:
    """A line for each column that some files lack, or that only few of them have."""
    lines = []
    for name in dict.fromkeys(name for one in parts for name in one.by_name if name in of_file[one.path]):
        lacking = [path for path, names in of_file.items() if name not in names]
        having = [path for path in of_file if path not in lacking]
        out = f"dataset.drop=[{in_brackets(name)}] leaves it out"
        if name in (data.fill or ()) or parts[0].zeros_left_out:
            continue
        if len(having) < len(lacking):
            lines += [
                f"{path}: has a column {short(name)}, which {len(lacking)} other files lack; {out}" for path in having
            ]
        elif lacking:
            fill = (
                f"dataset.fill={{{in_brackets(name)}:VALUE}} fills it"
                if name not in data.columns_beside_features
                else ""
            )
            use = "; ".join(filter(None, [fill, out if fill else "each file needs it"]))
            lines += [
                f"{path}: has no column {short(name)}, which {len(having)} other files have; {use}" for path in lacking
            ]
    return lines


def _decided(
    data: TableFile, name: str, file: Columns, words: set[str], dates: dict[str, str], dropped: set[str]
) -> ColumnDecision:
    """What is decided about a column of all files."""
    column, used_as = file.by_name[name], data.columns_beside_features.get(name, "feature")
    missing = int(column.holes.sum())
    lack = f"; {missing} missing, the first in {_place(file, int(column.holes.argmax()))}" if missing else ""
    if name in dropped:
        why = "dataset.drop" if name in (data.drop or ()) else "names of rows: the first column, without a name"
        return ColumnDecision(name, "dropped", "", why)
    if name in words or used_as == "site":
        odd, padded = column.first_odd_row, None if column.text else column.padded
        row = odd if padded is None else padded
        why = "dataset.words" if name in (data.words or ()) else f"dataset.{used_as}"
        if row is not None and name not in (data.words or ()):
            reason = "is no number" if padded is None else "begins with 0, as ids do"
            why = f"{short(column.word(row))!r} in {_place(file, row)} {reason}"
        count = plural(len(column.words(~column.holes)), "word")
        is_dropped = data.text == "drop" and used_as == "feature"
        return ColumnDecision(name, "dropped" if is_dropped else used_as, f"words ({count})", why + lack)
    if name in dates:
        return ColumnDecision(name, used_as, "date", f"dataset.date_format={dates[name]}{lack}")
    if name in data.times:
        return ColumnDecision(name, used_as, "date" if column.text else "number", f"orders the rows{lack}")
    known = column.numbers[~column.holes]
    whole = len(known) > 0 and bool((np.isfinite(known) & (known % 1 == 0)).all())
    why = "no row has a value" if missing == file.rows else "all cells are numbers"
    if whole and {*known.tolist()} <= {0.0, 1.0} and not column.word(int((~column.holes).argmax())).isdecimal():
        why = "true is 1, false is 0"
    if data.holds_rounded_ids(column):
        why += ", above 2^53: ids have lost digits"
    if column.first_odd_row is not None:
        why = f"most cells are numbers, {short(column.word(column.first_odd_row))!r} in "
        why += f"{_place(file, column.first_odd_row)} is not"
    return ColumnDecision(name, used_as, "whole number" if whole else "number", why + lack)


def _place(file: Columns, row: int) -> str:
    """The line of a row, with the name of its file if there are several."""
    path, _, line = file.place(row).rpartition(", ")
    return line if path == file.path else f"{line} of {Path(path).name}"
