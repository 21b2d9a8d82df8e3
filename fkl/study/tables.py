"""The tables of a study: errors and costs, setup, and a triangle of tests."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from fkl.basics.files import read_arrays
from fkl.data.baselines import CONSTANTS
from fkl.report.compare.pivot import BEATEN
from fkl.runs.finished_runs import read_run
from fkl.runs.folder import read_provenance
from fkl.runs.tables import LOSSES
from fkl.screen.sheet import BEST, Sheet, SheetCell, SheetColumn
from fkl.screen.units import bytes_of, number_text, seconds_text, with_spread
from fkl.statistics.intervals import half_width
from fkl.statistics.verdicts import BETTER, BEYOND, CANNOT_TELL, EQUAL, PairVerdict, percent_of_ratio
from fkl.study.answer import StudyAnswer
from fkl.study.dealt import how_dealt, partition_of
from fkl.study.jobs import StudyJob, file_slug, last_wave, searched_space
from fkl.study.plan import Plan
from fkl.study.registered import registration_stamp
from fkl.study.results import BASELINES, SENT, Judged

MARKS = {EQUAL: " =", BEYOND: " ††", BETTER: " †", CANNOT_TELL: ""}
"""Marks of verdicts in the triangle of tests."""
ABOUT_MARKS = "†† differs by more than the margin, † differs, = practically equal, no mark: cannot tell"
LINES = (240.0, 345.0)
"""Line widths in points: a column of a two-column paper, and LaTeX's article."""
RECEIVED = ("downlink_bytes",)


def errors_frame(judged: Sequence[Judged]) -> pd.DataFrame:
    """One row per data set and method: its error, its costs, and a comparison with the mean of the training targets.

    Columns are numbers, NaN if unknown for a method; `half` is half of the error's 95 % interval over seeds.
    """
    # One row for each method with at least one finished or failed run
    rows = []
    for results_of in judged:
        for method, notes in results_of.notes.items():
            ended = [note for note in notes if note is not None]
            if not ended:
                continue
            # A mean with failed runs would be too small, so their number is shown instead
            values = results_of.errors(method)
            whole = bool(np.isfinite(values).all())  # a mean over the finished runs would be too small
            baseline, of_baseline = results_of.first_of(method, BASELINES)
            rows.append({
                "data set": results_of.dataset.name,
                "method": method,
                "partition": partition_of(results_of.plan, results_of.dataset),
                "tuned": method not in results_of.plan.not_tuned(results_of.dataset),
                "error": results_of.level(method),
                "averaged": results_of.averaged,
                "compared": method in results_of.methods or bool(np.isinf(values).any()),
                "sd": float(values.std(ddof=1)) if whole and len(values) > 1 else np.nan,
                "half": half_width(values),
                "failed": int(np.isinf(values).sum()),
                "of": len(ended),
                "r2": results_of.mean(method, "r2"),
                "rmse_in_units": results_of.mean(method, "rmse_in_units"),
                "uplink_bytes": results_of.first_of(method, SENT)[1],
                "downlink_bytes": results_of.first_of(method, RECEIVED)[1],
                "seconds": results_of.mean(method, "runtime_s"),
                "baseline": baseline,
                "mean_error": of_baseline,
                "below_mean_percent": 100 * results_of.below_baseline(method),
                "beats_baselines": not results_of.not_beaten(method),
            })  # fmt: skip
    return pd.DataFrame(rows)


def results_sheet(frame: pd.DataFrame, about: str = "") -> Sheet:
    """The table of errors, with half of their intervals, and of costs; each data set is a subheading."""
    # What the columns mean
    how = " or ".join(frame["averaged"].unique())
    caption = f"Error: {how}, with half of its 95 % interval over seeds (Student's t); sent: by all clients"
    constants_words = {name: said for constants in CONSTANTS.values() for name, said in constants.items()}
    if of := [constants_words[name] for name in frame["baseline"].unique() if name]:
        caption += f"; below baseline: by how much the error is below that of predicting {' or '.join(of)}"
    columns = {
        "method": SheetColumn("method"),
        "error": SheetColumn("error", True),
        "in units": SheetColumn("in units", True, 1),
        "sent": SheetColumn("sent", True),
        "below mean": SheetColumn("below baseline", True, 2),
        "R2": SheetColumn("R²", True, 3),
        "time": SheetColumn("time", True, 4),
        "received": SheetColumn("received", True, 5),
    }
    # Units of the target, if they are known
    if not frame["beats_baselines"].all():
        caption += f"; {BEATEN}: does not beat every baseline"
    if frame["rmse_in_units"].notna().any():
        caption += "; in units: the root of the mean squared error, in the target's units"
    else:
        del columns["in units"]
    # Data sets one after another, each under its name
    rows: list[list[SheetCell]] = []
    groups: dict[int, str] = {}
    for name, same in frame.groupby("data set", sort=False):
        groups[len(rows)] = str(name)
        # The smallest error of a data set is bold, if it is compared
        least = same[(same["failed"] == 0) & same["compared"]]["error"].min()
        for _, row in same.iterrows():
            # Error with half of its interval, or how many runs failed
            error = SheetCell(f"{row['failed']} of {row['of']} failed")
            if not row["failed"]:
                text, _, half = with_spread(row["error"], row["half"]).partition(" ± ")
                text, half = (f"{text} ± {half}", "") if text.startswith("(") else (text, half)
                weight = BEST * bool(row["compared"] and row["error"] == least)
                error = SheetCell(text, weight, BEATEN * (not row["beats_baselines"]), half)
            cells = {
                "method": SheetCell(row["method"] + ", not tuned" * (not row["tuned"])),
                "error": error,
                "in units": SheetCell(_known_text(row["rmse_in_units"], number_text)),
                "sent": SheetCell(_known_text(row["uplink_bytes"], bytes_of)),
                "below mean": SheetCell(_known_text(np.round(row["below_mean_percent"]), "{:.0f} %".format)),
                "R2": SheetCell(_known_text(np.round(row["r2"], 2), "{:.2f}".format)),
                "time": SheetCell(_known_text(row["seconds"], seconds_text)),
                "received": SheetCell(_known_text(row["downlink_bytes"], bytes_of)),
            }
            rows.append([cells[key] for key in columns])
    caption = f"{caption}. {about}".strip()
    return Sheet([*columns.values()], rows, "Errors and costs", caption, groups=groups, frame=frame)


def _known_text(value: float, words: Callable[[float], str]) -> str:
    """A number as text; empty if it is unknown."""
    return "" if np.isnan(value) else words(value + 0.0).replace("-", "−")


def searched_frame(plan: Plan, judged: Sequence[Judged]) -> pd.DataFrame:
    """One row per key of a method on a data set: its range, and the median, smallest and largest value found."""
    # The values of all finished searches of a key
    rows = []
    for one in judged:
        for method in plan.all_methods:
            values_found = [note["values"] for note in one.notes[method.name] if note is not None and note["values"]]
            spaces = searched_space(plan, one.dataset, method)
            for key, space in spaces.items():
                values = [some[key] for some in values_found]
                # Numbers as median and range, other values as a list
                chosen = ", ".join(sorted({str(value) for value in values}))
                if values and all(isinstance(value, int | float) for value in values):
                    chosen = f"{np.median(values):.3g} [{min(values):.3g}, {max(values):.3g}]"
                # How many values are at an end, where the range may be too narrow
                for end in ("low", "high"):
                    if number := sum(space.end_of(value) == end for value in values):
                        chosen += f", {number} of {len(values)} at the {end} end"
                about = {"data set": one.dataset.name, "method": method.name}
                rows.append({**about, "key": key, "range": str(space), "found": chosen})
    return pd.DataFrame(rows)


def setup_frame(plan: Plan, judged: Sequence[Judged]) -> pd.DataFrame:
    """Features D per kernel, kernels N, clients K, rounds T, rows, trials and seeds, by data set and method.

    A data set has one row if these are the same for all methods.
    """
    # From the first finished run of each method: sizes do not change with the seed
    rows = []
    for results_of in judged:
        same = []
        for method in plan.all_methods:
            ended = [note for note in results_of.notes[method.name] if note is not None and note["error"] is not None]
            if not ended:
                continue
            folder, seeds = plan.folder / "runs" / ended[0]["folder"], [*filter(None, results_of.notes[method.name])]
            facts, config = read_provenance(folder), read_run(folder, ("config.yaml",)).config
            kernels = config.get("kernels") or {}
            same.append({
                "data set": results_of.dataset.name,
                "method": method.name,
                "D": str(kernels.get("D", "")),
                "N": str(kernels.get("N", "")),
                "K": str(facts["clients"]),
                "T": str(facts["rounds"]),
                "partition": partition_of(plan, results_of.dataset),
                "rows": f"{len(read_arrays(folder / LOSSES)['row'])}" if (folder / LOSSES).exists() else "",
                "trials": str(plan.trials_each) if plan.search_space(results_of.dataset, method) else "not tuned",
                "seeds": str(len(seeds)),
            })  # fmt: skip
        # Equal rows become one
        alike = len(same) > 1 and all(row | {"method": ""} == same[0] | {"method": ""} for row in same)
        rows += [same[0] | {"method": f"all {len(same)}"}] if alike else same
    return pd.DataFrame(rows)


def verdict_triangle(methods: Sequence[str], verdicts: Sequence[PairVerdict]) -> pd.DataFrame:
    """Tests of every two methods: below the diagonal, the row's difference from the column, and the verdict."""
    by_pair = {frozenset((one.a, one.b)): one for one in verdicts}
    rows = []
    for place, method in enumerate(methods):
        said = {other: by_pair.get(frozenset((method, other))) for other in methods[:place]}
        rows.append(
            {"": method, **{other: _cell_of_test(method, one) for other, one in said.items() if one is not None}}
        )
    return pd.DataFrame(rows[1:]).fillna("")


def _cell_of_test(method: str, verdict: PairVerdict) -> str:
    """Difference of a method's error from the other's, and a mark for its verdict."""
    of, mark = verdict.difference, MARKS[verdict.outcome]
    if of.failed:
        return f"ranks{mark}"
    apart = percent_of_ratio(of.m if verdict.a == method else -of.m)
    return f"{'' if apart.startswith('−') else '+'}{apart} %{mark}"


def _text_sheet(table: pd.DataFrame, title: str, caption: str, numbers: bool = False) -> Sheet:
    """A table of text, with data sets as subheadings; columns after the first may be numbers."""
    named = table.pop("data set").tolist() if "data set" in table else []
    groups = {at: name for at, name in enumerate(named) if at == 0 or named[at - 1] != name}
    columns = [SheetColumn(str(name), numbers and at > 0) for at, name in enumerate(table)]
    return Sheet(
        columns, [[SheetCell(str(value)) for value in row] for row in table.to_numpy()], title, caption, groups=groups
    )


def all_tables(answer: StudyAnswer, frame: pd.DataFrame) -> dict[str, Sheet]:
    """Every table of a study, by file name."""
    # The tables by file name: errors, tests of each data set, searches, setup
    plan, judged = answer.plan, answer.judged
    about = f"{answer.dealt} {registration_stamp(plan)}"
    sheets = {"results": results_sheet(frame, about)}
    plain = [file_slug(one.dataset.name) for one in judged]
    for place, one in enumerate(judged):
        verdicts = answer.verdicts.get(one.dataset.name, [])
        names = [name for name in one.methods if any(name in (each.a, each.b) for each in verdicts)]
        # Tests of a data set, if it has verdicts
        if verdicts:
            title = f"{one.dataset.name}: by how much the error of the row's method is above that of the column's"
            alike = plain.count(plain[place]) > 1 or not plain[place]  # names that differ only in signs
            name = "-".join(["tests", *filter(None, [plain[place]]), *[str(place + 1)] * alike])
            said = f"{title}. {ABOUT_MARKS}. {how_dealt(plan, [one.dataset])} {registration_stamp(plan)}".strip()
            sheets[name] = _text_sheet(verdict_triangle(names, verdicts), title, said, numbers=True)
    said = f"Ranges, and the values found: median over seeds [least, largest]. {about}".strip()
    sheets["searched"] = _text_sheet(searched_frame(plan, judged), "Searched ranges and values found", said)
    sizes = "D features of each of N kernels, K clients, T rounds, rows judged in a seed, partition that dealt them"
    sheets["setup"] = _text_sheet(
        setup_frame(plan, judged), "Setup", f"Setup of the study: {sizes}. {about}".strip(), True
    )
    return sheets


def trials_frame(plan: Plan) -> pd.DataFrame:
    """Every trial of every search: data set, method, seed, wave, values, error, state."""
    # All trials of all waves, in order
    rows = []
    for dataset, method in product(plan.datasets, plan.all_methods):
        for wave, seed in product(range(last_wave(plan, dataset, method) + 1), plan.searches):
            note = StudyJob(plan, dataset, method, seed, wave).note
            for at, trial in enumerate(note["trials"] if note else []):
                about = {"data set": dataset.name, "method": method.name, "seed": seed, "wave": wave, "trial": at}
                values = "; ".join(f"{key}={value}" for key, value in trial["values"].items())
                outcome = {key: trial[key] for key in ("error", "state", "reason")}
                rows.append({**about, "values": values, **outcome})
    return pd.DataFrame(rows)


def table_files(sheet: Sheet, name: str) -> dict[str, str]:
    """Contents of a table's files by name: CSV, Markdown, and LaTeX for both line widths."""
    sheet = replace(sheet, label=f"study-{name}")
    texts = {f"{name}.csv": sheet.csv, f"{name}.md": sheet.markdown}
    return texts | {f"{name}-{line:.0f}pt.tex": sheet.latex_floats(line) for line in LINES}
