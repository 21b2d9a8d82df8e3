"""From a table's cells to numbers: the codes of words, for encoding later rows in the same way."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line

if TYPE_CHECKING:
    from pandas import DataFrame

WORDS_SHOWN = 20


@dataclass(frozen=True)
class Encoder:
    """How columns of a table become features, and words of its target become numbers.

    Parameters
    ----------
    columns : tuple of str
        Columns that features are made of, in their order.
    words : mapping of str to tuple of str
        Words that each column of text was learned with, in the order of their codes.
    labels : tuple of str
        Words of the target in the order of their numbers 0, 1, ...; none where it is a number itself.
    one_hot : bool
        A feature a word, which is 1 where the row has it; else a column's words are numbered 0, 1, ... .
    fill : mapping of str to float
        What a missing cell of a column of numbers becomes; where none is given there may be none.
    """

    columns: tuple[str, ...]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    one_hot: bool = False
    fill: Mapping[str, float] = field(default_factory=dict)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that come out."""
        names: list[str] = []
        for column in self.columns:
            words = self.words.get(column, ()) if self.one_hot else ()
            names += [f"{column}={word}" for word in words] or [column]
        return tuple(names)

    def as_json(self) -> str:
        """All of it as text, for a file."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> "Encoder":
        """What `as_json` wrote."""
        told = json.loads(text)
        words = {column: tuple(words) for column, words in told["words"].items()}
        return cls(tuple(told["columns"]), words, tuple(told["labels"]), told["one_hot"], told["fill"])

    def x(self, frame: "DataFrame") -> NDArray[np.float64]:
        """Features (n, d) of rows, not scaled; columns that are not needed are passed over.

        Raises
        ------
        fkl.basics.errors.FklError
            If a column is not there, or a cell is no finite number or no word that was learned with.
        """
        lacking = [column for column in self.columns if column not in frame]
        if lacking:
            raise FklError(f"no column {in_one_line(lacking[0])}; needed are {in_one_line(', '.join(self.columns))}")
        from pandas import to_numeric

        parts = []
        for column in self.columns:
            cells = frame[column]
            if words := self.words.get(column, ()):
                code = {word: float(number) for number, word in enumerate(words)}
                values = np.array([code.get(str(cell).strip(), np.nan) for cell in cells], np.float64)
            else:
                values = to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
                values = np.where(cells.isna(), self.fill.get(column, np.nan), values)
            bad = ~np.isfinite(values)
            if bad.any():
                row = int(bad.argmax())
                more = f" and {len(words) - WORDS_SHOWN} more" if len(words) > WORDS_SHOWN else ""
                allowed = f"one of {', '.join(words[:WORDS_SHOWN])}{more}" if words else "a finite number"
                cell = in_one_line(cells.iloc[row])
                raise FklError(f"row {row + 1}, column {in_one_line(column)}: {cell} must be {allowed}")
            one_hot = words and self.one_hot
            parts.append((values[:, None] == np.arange(len(words))).astype(np.float64) if one_hot else values[:, None])
        return np.concatenate(parts, axis=1)
