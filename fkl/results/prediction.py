"""Predictions of a saved model for the rows of a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from fkl.basics.errors import FklError
from fkl.basics.files import write_text
from fkl.data import csv_file, own_file, typed_file
from fkl.results.model import Model, load
from fkl.results.tables import FLOATS
from fkl.screen.messages import note

if TYPE_CHECKING:
    from pandas import DataFrame

CLIENT = "client"
"""Column of rows that says whose function predicts, where every client has its own."""


def write_predictions(
    run: Path, rows: Path, client: str | None = None, replicate: int | None = None, out: Path | None = None
) -> None:
    """Predict the rows of a file, and print the predictions or write them to a file, in the order of the rows.

    Parameters
    ----------
    run : Path
        Folder of a run, or a model.npz.
    rows : Path
        CSV, Parquet, Feather or npz, with the columns that the run learned from, in any order; others are passed over.
    client, replicate
        As in `Model.predict`; rows with a column ``client``, or the run's column of sites, name their own.
    out : Path or None
        None for the terminal.
    """
    from pandas import DataFrame

    model = load(run)
    # All cells as a data set's reader finds them, None where they are missing
    raw = own_file.read(path := str(rows))
    typed = rows.suffix.lower() in typed_file.FORMATS
    columns = typed_file.read(path, raw) if typed else csv_file.read(path, raw, least=1)
    cells = {
        name: [None if hole else cell for cell, hole in zip(column.cells, column.holes, strict=True)]
        for name, column in columns.by_name.items()
    }
    frame = DataFrame(cells, dtype=object)
    try:
        table = predictions(model, frame, client, replicate)
    except FklError as error:
        raise FklError(f"{rows}: {error}") from None
    # What predictions are the mean of
    several = [f"{model.replicates} replicates"] * (replicate is None and model.replicates > 1)
    named = client is not None or _column_of_clients(model, frame) is not None
    several += [f"{len(model.about.sites)} clients"] * (model.personal and not named)
    if several:
        note(f"averaged over {' and '.join(several)}")
    text = table.to_csv(index=False, float_format=FLOATS, lineterminator="\n")
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)


def predictions(
    model: Model, frame: "DataFrame", client: str | None = None, replicate: int | None = None
) -> "DataFrame":
    """A table with a column ``prediction``, and with ``f`` where its sign is the class."""
    from pandas import DataFrame

    named = _column_of_clients(model, frame)
    whose = client if client is not None or named is None else list(frame[named])
    columns = {"prediction": model.predict(frame, whose, replicate)}
    if model.about.signs:
        columns["f"] = model.values(frame, whose, replicate).mean(axis=0)
    return DataFrame(columns)


def _column_of_clients(model: Model, frame: "DataFrame") -> str | None:
    """The column that says whose function predicts, where it matters."""
    names = (CLIENT, model.about.site_column) if model.personal else ()
    return next((name for name in names if name in frame), None)
