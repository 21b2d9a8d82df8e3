"""Predictions of a saved model for the rows of a file."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fkl.basics.errors import FklError, count_of, require
from fkl.basics.files import write_text
from fkl.data import csv_file, own_file, typed_file
from fkl.data.encoder import Encoder
from fkl.runs.model import CLIENT, SavedModel, load_model
from fkl.runs.tables import FLOATS
from fkl.screen.messages import print_note, show_warning

if TYPE_CHECKING:
    from pandas import DataFrame

WITHIN_95 = 1.959963984540054
"""95 % of a normal distribution lie within this many standard deviations of its mean."""


def write_predictions(
    run: Path,
    rows: Path,
    client: str | None,
    replicate: int | None,
    out: Path | None,
    across: str | None,
    keep: Sequence[str],
    skip_bad_rows: bool,
) -> None:
    """Predict the rows of a file, and print the predictions or write them to a file, in the order of the rows.

    Parameters
    ----------
    run : Path
        Folder of a run, or a model.npz.
    rows : Path
        CSV, Parquet, Feather or npz, with the columns from which the run learned, in any order; others are ignored.
    client, replicate
        As in `Model.predict`. A column ``client``, or the run's column of sites, names the client of each row.
    out : Path or None
        File for the predictions; None prints them.
    across : str or None
        Column of the target. If given, the errors of each site's model on the rows of each site are written instead of
        predictions, see `errors_across`.
    keep : sequence of str
        Columns of the file that are copied before the predictions, such as ids.
    skip_bad_rows : bool
        Whether a row with an unreadable cell gets an empty prediction instead of an error.
    """
    from pandas import DataFrame, concat

    # The model, and arguments that fit together
    model = load_model(run)
    require(across is None or client is None, "client", client, "omitted with --across, which uses all clients")
    require(across is None or not keep, "keep", ", ".join(keep), "omitted with --across, which prints no rows")
    # All cells as a data set's reader returns them, None if they are missing
    raw = own_file.read_bytes(path := str(rows))
    typed = rows.suffix.lower() in typed_file.FORMATS
    file_format = model.encoder.file_format
    columns = (
        typed_file.read_typed_file(path, raw, file_format) if typed else csv_file.read_csv_file(path, raw, file_format)
    )
    csv_file.require_rows(path, columns.rows, least=1)
    columns = columns.with_zeros(model.encoder.columns)
    # The file's own text, but typed numbers and dates as such, which need no notation
    numbers = {*model.encoder.columns} - {*model.encoder.words, *model.encoder.dates}
    cells = {name: column.as_cells(typed and name in numbers) for name, column in columns.by_name.items()}
    # All columns of the file, some of them needed
    whole = frame = DataFrame(cells, dtype=object)
    for name in (*model.encoder.columns, model.column_of_clients(frame)):
        if name is not None and name in columns.by_name and (fault := columns.by_name[name].fault):
            raise FklError(f"{rows}, column {name}: {fault}")
    for name in keep:
        require(name in cells, "keep", name, f"a column of {rows}: {', '.join(cells)}")
    # Predict, collecting warnings, which are printed once each
    try:
        if skip_bad_rows:
            frame = _readable_rows(model, whole)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            if across is None:
                table = predict_table(model, frame, client, replicate).set_index(frame.index).reindex(whole.index)
                table = concat([whole[list(keep)], table], axis=1)
            else:
                table = errors_across(model, frame, across, replicate)
        for text in dict.fromkeys(str(one.message) for one in caught):
            show_warning(text)
    except FklError as error:
        raise FklError(f"{rows}: {error}") from None
    # The functions over which predictions are averaged
    several = [f"{model.replicates} replicates"] * (replicate is None and model.replicates > 1)
    named = client is not None or model.column_of_clients(frame) is not None
    if model.personal and not named:
        clients, reached = len(model.about.sites), np.any([one.reached for one in model.learned], axis=0)
        some = "" if reached.all() else f"{reached.sum()} of "
        several.append(f"{some}{clients} clients{' (the others took part in no round)' * bool(some)}")
    averaged = f"averaged over {' and '.join(several)}" if several else ""
    if across is not None:
        what = "shares of wrong classes" if len(model.classes) else "root mean squared errors in the target's own units"
        print_note(
            f"{what}: one row per model, one column per site's rows{'; predictions ' * bool(averaged)}{averaged}"
        )
    elif averaged:
        print_note(averaged)
    # To the screen or to a file
    text = table.to_csv(index=False, float_format=FLOATS, lineterminator="\n")
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)


def _readable_rows(model: SavedModel, frame: "DataFrame") -> "DataFrame":
    """Rows whose cells can be read; prints a note with the number of other rows and the first one's error."""
    encoders = model.encoders or (model.encoder,)
    readable = np.logical_and.reduce([encoder.readable_rows(frame) for encoder in encoders])
    if not readable.all():
        try:
            for encoder in encoders:
                encoder.x(frame[: int((~readable).argmax()) + 1])
        except FklError as error:
            print_note(f"{count_of(int((~readable).sum()), 'row')} without a prediction; the first: {error}")
    return frame[readable]


def predict_table(
    model: SavedModel, frame: "DataFrame", client: str | None = None, replicate: int | None = None
) -> "DataFrame":
    """A table with a column ``prediction``, and with ``f`` if its sign is the class.

    If the method has a variance, 95 % of targets are expected between the columns ``low`` and ``high``.
    """
    from pandas import DataFrame

    # Columns also for a file without rows
    rows = np.zeros((1, len(model.encoder.feature_names))) if frame.empty else frame  # any row gives the columns
    columns = {"prediction": model.predict(rows, client, replicate)}
    if model.about.signs:
        columns["f"] = model.values(rows, client, replicate).mean(axis=0)
    # Intervals of 95 % if the method has variances
    deviation = model.deviation(rows, client, replicate)
    if deviation is not None:
        columns["low"] = columns["prediction"] - WITHIN_95 * deviation
        columns["high"] = columns["prediction"] + WITHIN_95 * deviation
    return DataFrame(columns)[: len(frame)]


def errors_across(model: SavedModel, frame: "DataFrame", target: str, replicate: int | None = None) -> "DataFrame":
    """The error of each site's model on the rows of each site: one row per model, one column per site's rows.

    If the rows name clients by number, clients replace sites; the rows may also have sites without a model. The error
    is the root mean squared error in the target's own units, or for classes the share of wrong ones. Use rows that are
    not training rows, or the errors are too small.

    Parameters
    ----------
    model : Model
        Model of a run in which every client has its own function.
    frame : DataFrame
        Rows with the target, and a column ``client`` or the run's column of sites.
    target : str
        Column of the target.
    replicate : int or None
        As in `Model.predict`.
    """
    from pandas import DataFrame

    # Only sites with their own models have something to compare
    if not model.personal:
        raise FklError(f"all clients of {model.about.algorithm} share one model, so sites have nothing to compare")
    column = model.column_of_clients(frame)
    names = " or ".join(filter(None, (CLIENT, model.about.site_column)))
    require(column is not None, "columns", ", ".join(map(str, frame)), f"with {names}, the site of each row")
    require(target in frame, "across", target, f"the column of the target: {', '.join(map(str, frame))}")
    # Every row needs a target and a site
    holes = int(frame[target].isna().sum())
    require(holes == 0, target, f"{holes} missing cells", "known in each row")
    whose = frame[column].astype(str)
    # Models by site name, or by client number if the column has numbers
    sites = [*dict.fromkeys(model.about.sites)]
    numbered = column != model.about.site_column and whose.str.isdecimal().all() and not {*whose} <= {*sites}
    functions = [str(number) for number in range(len(model.about.sites))] if numbered else sites
    has_words = model.classes.dtype.kind == "U"
    numbers = Encoder((target,), file_format=model.encoder.file_format)
    targets = frame[target].astype(str).to_numpy() if has_words else numbers.x(frame)[:, 0]
    # Errors of each model on each site's rows
    table: dict[str, list[object]] = {"function": [*functions]}
    predicted = {name: model.predict(frame, name, replicate) for name in functions}
    for site in whose.unique():
        here = (whose == site).to_numpy()
        table[site] = [
            float(np.mean(of[here] != targets[here]))
            if len(model.classes)
            else float(np.sqrt(np.mean((of[here] - targets[here]) ** 2)))
            for of in predicted.values()
        ]
    return DataFrame(table)
