"""All that is wrong with the files of a user's table, what is decided about each column, and how its sites differ."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, count_of, in_one_line
from fkl.data.columns import FileColumn, FileColumns, Place, cut_cell
from fkl.data.encoder import EPOCH, in_brackets
from fkl.data.libsvm import LABEL
from fkl.data.sites_apart import sites_apart
from fkl.data.table_file import TableFile, site_of
from fkl.screen.sheet import Sheet

WORDS_SHOWN, PLACES_SHOWN = 3, 20
PLACE = re.compile(r"((?:line|row) \d+)")
"""Where a fault is in a file, at the beginning of its message."""
KEYS_OF_FILE = re.compile(r"dataset\.files=\{(.*?:\{.*?\})\}")
QUOTED, NUMBERS = re.compile(r"'[^']*'|\"[^\"]*\""), re.compile(r"-?\d[\d.,]*")
"""What differs between messages about the same kind of fault."""


ROWS_SHOWN = 30
"""Number of columns up to which a table shows all of them."""


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


class FileFault(NamedTuple):
    """What would stop a run: where it is in a file (empty for the whole file), the column if any, and what is wrong."""

    path: str
    place: str
    column: str
    message: str

    def __str__(self) -> str:
        place = f"{self.path}, {self.place}".removesuffix(", ")
        return f"{place}, column {cut_cell(self.column)}: {self.message}" if self.column else f"{place}: {self.message}"


@dataclass(frozen=True)
class CheckedFiles:
    """All files of a table, read one by one.

    Parameters
    ----------
    faults : tuple of FileFault
        Of each column of each file the first fault.
    columns : Columns
        All columns that can be read, of all files.
    decisions : tuple of ColumnDecision
    site : (n,) int64
        Site of each row of `columns`.
    site_names : tuple of str
    """

    faults: tuple[FileFault, ...]
    columns: FileColumns
    decisions: tuple[ColumnDecision, ...]
    site: NDArray[np.int64]
    site_names: tuple[str, ...]

    def fault_lines(self) -> list[str]:
        """A line for each kind of fault of a column, with all places that have it."""
        # Faults of one kind and column make one line
        alike: dict[tuple[str, str], list[FileFault]] = {}
        for fault in self.faults:
            kind = QUOTED.sub("", fault.message, count=1).replace(Path(fault.path).name, "")
            alike.setdefault((fault.column, NUMBERS.sub("", kind)), []).append(fault)
        # A single fault is shown as it is, several with their places
        lines = []
        for (column, _), faults in alike.items():
            if len(faults) == 1:
                lines.append(str(faults[0]))
                continue
            places = [" ".join([Path(one.path).name, one.place]).rstrip() for one in faults]
            more = f" and {len(places) - PLACES_SHOWN} more" if len(places) > PLACES_SHOWN else ""
            where, message = f"column {cut_cell(column)}, " if column else "", faults[0].message
            keys = [match[1] for one in faults if (match := KEYS_OF_FILE.search(one.message))]
            if len(keys) > 1:
                message = KEYS_OF_FILE.sub(lambda _, keys=keys: f"dataset.files={{{','.join(keys)}}}", message, count=1)  # type: ignore[misc]
            lines.append(f"{where}{', '.join(places[:PLACES_SHOWN])}{more}: {message}")
        return lines

    def by_site(self) -> list[SiteColumn]:
        """Each used column at each site."""
        used = [one for one in self.decisions if one.used_as in ("target", "feature")]
        return [self._at_site(one, number) for one in used for number in range(len(self.site_names))]

    def _at_site(self, decided: ColumnDecision, number: int) -> SiteColumn:
        # The column's rows at this site
        column, here = self.columns.by_name[decided.column], self.site == number
        there = here & ~column.holes
        rows, missing = int(there.sum()), f"{int((here & column.holes).sum())} of {int(here.sum())}"
        column_and_site = decided.column, self.site_names[number]
        if not rows:
            return SiteColumn(*column_and_site, "", "", "", missing, "")
        numbers = column.numbers[there & np.isfinite(column.numbers)]
        # Words: how many, and which ones no other site has
        if decided.read_as.startswith("words") or 2 * len(numbers) < rows:
            elsewhere = {*column.words(~here)}
            own_words = [cut_cell(word) for word in column.words(here) if word not in elsewhere]
            more = f" and {len(own_words) - WORDS_SHOWN} more" if len(own_words) > WORDS_SHOWN else ""
            only = " | ".join(own_words[:WORDS_SHOWN]) + more
            return SiteColumn(*column_and_site, "words", "", count_of(len(column.words(here)), "word"), missing, only)
        # Numbers or dates: median and range
        low, middle, high = np.quantile(numbers, [0, 0.5, 1]).tolist()
        if decided.read_as == "date":
            low, middle, high = ((EPOCH + timedelta(one)).date() for one in (low, middle, high))
            return SiteColumn(*column_and_site, "date", f"{middle}", f"{low} to {high}", missing, "")
        kind = "whole" if (numbers % 1 == 0).all() else "number"
        return SiteColumn(*column_and_site, kind, f"{middle:.5g}", f"{low:.5g} to {high:.5g}", missing, "")

    def columns_apart(self) -> list[str]:
        """A line for each column in which a site's numbers lie far from the others'."""
        used = [one for one in self.decisions if one.used_as in ("target", "feature") and "number" in one.read_as]
        numbers = {one.column: self.columns.by_name[one.column].numbers for one in used}
        return sites_apart(numbers, self.site, self.site_names)


def columns_sheet(decisions: Sequence[ColumnDecision]) -> Sheet:
    """A table with what is decided about each column; of many columns, only those that are no plain numbers."""
    odd = [one for one in decisions if one.used_as != "feature" or "all cells" not in one.why or ";" in one.why]
    shown = decisions if len(decisions) <= ROWS_SHOWN else odd[:ROWS_SHOWN]
    rows = [[in_one_line(cell) for cell in one] for one in shown]
    if len(shown) < len(decisions):
        rows.append([f"... and {len(decisions) - len(shown)} more", "", "", ""])
    return Sheet.from_rows(["column", "used as", "read as", "why"], rows, [])


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
    # Read all files; a file that cannot be read is one fault among others
    data.require_files_of_keys()
    paths, faults = [*data.paths, *data.test_paths], list[FileFault]()
    parts: list[FileColumns] = []
    for path in paths:
        try:
            parts.append(data.read_file(path, tables))
        except FklError as error:
            faults.append(_fault_of_error(path, "", error))
    if not parts:
        raise FklError("; ".join(map(str, faults)))
    if parts[0].zeros_left_out:
        data = replace(data, target=data.target or LABEL)
    # Names of columns, as a run takes them from the first file
    try:
        parts = data.named_like_the_first(parts)
    except FklError as error:
        faults.append(_fault_of_error("", "", error))
    if len(paths) == len(parts) == 1:
        data.with_used_columns(parts)  # refuses keys that name no column, as a run does
    # Columns that are used, and faults of those that some files lack
    dropped = {*(data.drop or ()), *data.names_of_rows(parts)}
    of_file = {part.path: [name for name in part.by_name if name not in dropped] for part in parts}
    faults += _lacking_columns(data, parts, of_file)
    # Check every column of every file, and collect words and dates
    columns_of_words: set[str] = set()
    dates: dict[str, str] = {}
    prepared = []
    for part in parts:
        columns = dict(part.by_name)
        for name in of_file[part.path]:
            try:
                columns |= _check_column(
                    data, name, replace(part, by_name={name: columns[name]}), columns_of_words, dates
                )
            except FklError as error:
                faults.append(_fault_of_error(part.path, name, error))
        try:
            if data.times and all(name in part.by_name for name in data.times):
                data.times_of_rows(part)
        except FklError as error:
            faults.append(_fault_of_error(part.path, " and ".join(data.times), error))
        prepared.append(replace(part, by_name=columns))
    # Dates in some files only
    for part in prepared:
        for name in set(part.by_name) & {*dates} - dropped:
            if (odd := data.not_a_date(name, dates[name], part)) and not any(
                (fault.path, fault.column) == (part.path, name) for fault in faults
            ):
                faults.append(_fault_of_error(part.path, name, FklError(odd)))
    # All files as one table, and what is decided about its columns
    names = list(dict.fromkeys(name for part in prepared for name in part.by_name))
    whole = prepared[0].with_holes(names).followed_by([part.with_holes(names) for part in prepared[1:]])
    decisions = tuple(_decide_column(data, name, whole, columns_of_words, dates, dropped) for name in names)
    # The site of each row, for the comparison of sites
    site, site_names = np.zeros(whole.rows, np.int64), tuple(["all"])
    if data.is_pattern:
        site = np.repeat(np.arange(len(prepared)), [part.rows for part in prepared])
        site_names = tuple(site_of(part.path) for part in prepared)
    elif data.site is not None and data.site in whole.by_name:
        column = whole.by_name[data.site]
        site_names = tuple(column.words(np.ones(whole.rows, np.bool_)))
        site = np.nan_to_num(column.codes_in(np.arange(whole.rows), site_names), nan=-1).astype(np.int64)
    return CheckedFiles(tuple(faults), whole, decisions, site, site_names)


def _fault_of_error(path: str, column: str, error: FklError) -> FileFault:
    """The fault that an error names, without the names of the file and the column."""
    place, message = "", str(error).removeprefix(path).lstrip(":, ")
    if match := PLACE.match(message):
        place, message = match[1], message[match.end() :]
    return FileFault(path, place, column, message.removeprefix(f", column {cut_cell(column)}").lstrip(":, "))


def _check_column(
    data: TableFile, name: str, alone: FileColumns, words: set[str], dates: dict[str, str]
) -> dict[str, FileColumn]:
    """One column of a file, with its dates as days; the first of its faults is raised."""
    # Times are checked together, not column by column
    if name in data.times:
        return {}
    if fault := alone.by_name[name].fault:
        raise FklError(
            f"{alone.path}, column {cut_cell(name)}: {fault}; dataset.drop=[{in_brackets(name)}] leaves it out"
        )
    # Dates first, because they are text that becomes numbers
    dated, formats = data.with_dates(alone)
    dates |= formats
    column = dated.by_name[name]
    # Words, or numbers; then missing cells
    if data.is_of_words(name, column, dated):
        words.add(name)
    elif name != data.site:
        data.numbers_of_column(name, column, dated)
    if data.missing == "refuse" and column.holes.any() and name not in (data.fill or ()):
        raise FklError(data.missing_cell(name, column, int(column.holes.argmax()), dated))
    return {name: column}


def _lacking_columns(data: TableFile, parts: Sequence[FileColumns], of_file: dict[str, list[str]]) -> list[FileFault]:
    """A fault for each column that some files lack, or that only few of them have."""
    # Column by column: which files have it, and which do not
    faults = []
    for name in dict.fromkeys(name for names in of_file.values() for name in names):
        lacking = [path for path, names in of_file.items() if name not in names]
        having = [path for path in of_file if path not in lacking]
        if name in (data.fill or ()) or parts[0].zeros_left_out:
            continue
        # What the user can do about it
        out = f"dataset.drop=[{in_brackets(name)}] leaves it out"
        if name in data.columns_beside_features:
            out = "each file needs it"
        elif lacking:
            out += f", dataset.fill={{{in_brackets(name)}:VALUE}} fills it"
        # Blame the smaller group of files
        if len(having) < len(lacking):
            faults += [
                FileFault(path, "", name, f"{len(lacking)} other files have no such column; {out}") for path in having
            ]
        else:
            faults += [
                FileFault(path, "", name, f"no such column, {len(having)} other files have it; {out}")
                for path in lacking
            ]
    return faults


def _decide_column(
    data: TableFile, name: str, file: FileColumns, words: set[str], dates: dict[str, str], dropped: set[str]
) -> ColumnDecision:
    """What is decided about a column of all files."""
    # How the column is used, and how many cells are missing
    column, used_as = file.by_name[name], data.columns_beside_features.get(name, "feature")
    missing = int(column.holes.sum())
    lack = f"; {missing} missing, the first in {_line_of_row(file, int(column.holes.argmax()))}" if missing else ""
    # Dropped, words, dates, times, or numbers, in the order in which a run decides
    if name in dropped:
        why = "dataset.drop" if name in (data.drop or ()) else "names of rows: the first column, without a name"
        return ColumnDecision(name, "dropped", "", why)
    if name in words or used_as == "site" or ((column.text or column.padded is not None) and name not in dates):
        odd, padded = column.first_odd_row, None if column.text else column.padded
        row = odd if padded is None else padded
        why = "dataset.words" if name in (data.words or ()) else f"dataset.{used_as}, as the file has them"
        if row is not None and name not in (data.words or ()):
            reason = "is no number" if padded is None else "begins with 0, as ids do"
            why = f"{cut_cell(column.word_of_cell(row))!r} in {_line_of_row(file, row)} {reason}"
        count = count_of(len(column.words(~column.holes)), "word")
        is_dropped = data.text == "drop" and used_as == "feature"
        return ColumnDecision(name, "dropped" if is_dropped else used_as, f"words ({count})", why + lack)
    if name in dates:
        return ColumnDecision(name, used_as, "date", f"dataset.date_format={dates[name]}{lack}")
    if name in data.times:
        return ColumnDecision(name, used_as, "date" if column.text else "number", f"orders the rows{lack}")
    # Numbers: whole or not, and what may be wrong with them
    numbers = column.numbers[~column.holes]
    whole = len(numbers) > 0 and bool((np.isfinite(numbers) & (numbers % 1 == 0)).all())
    why = "no row has a value" if missing == file.rows else "all cells are numbers"
    if (
        whole
        and {*numbers.tolist()} <= {0.0, 1.0}
        and not column.word_of_cell(int((~column.holes).argmax())).isdecimal()
    ):
        why = "true is 1, false is 0"
    if data.holds_rounded_ids(column):
        why += ", above 2^53: ids have lost digits"
    if column.first_odd_row is not None:
        why = f"most cells are numbers, {cut_cell(column.word_of_cell(column.first_odd_row))!r} in "
        why += f"{_line_of_row(file, column.first_odd_row)} is not"
    return ColumnDecision(name, used_as, "whole number" if whole else "number", why + lack)


def _line_of_row(file: FileColumns, row: int) -> str:
    """The line of a row, with the name of its file if there are several."""
    path, _, line = file.place(row).rpartition(", ")
    return line if isinstance(file.place, Place) else f"{line} of {Path(path).name}"
