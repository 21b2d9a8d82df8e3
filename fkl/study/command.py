"""`fkl study`: do the remaining runs of a study, write its files, and print its answer."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from fkl.basics.errors import FklError, requires_extra
from fkl.basics.files import whole_file, write_text
from fkl.screen.messages import print_lines
from fkl.statistics.verdicts import as_table
from fkl.study.answer import StudyAnswer, answer_lines, pair_lines
from fkl.study.plan import Plan
from fkl.study.registered import registration_stamp

FIGURES = {
    "error-against-bytes": "Error of each method against the bytes that its clients send, with one panel per data set",
    "differences": "Difference of the errors of each pair of methods with its interval, on each data set",
}
"""Figures of a study, and their descriptions."""


def study_command(
    file: Path,
    words: Sequence[str] = (),
    *,
    dry_run: bool = False,
    pilot: bool = False,
    status: bool = False,
    register: bool = False,
) -> None:
    """Do the work of ``fkl study``; parameters as on the command line.

    Raises
    ------
    fkl.basics.errors.FklError
        For any error that the user can correct.
    """
    # Refuse a wrong path and missing packages before anything is read
    if not file.is_file():
        raise FklError(f"{file}: no such file", help=["docs/paper_table.md describes a study's file"])
    with requires_extra("study", "fkl study"):
        import jinja2  # noqa: F401
        import optuna  # noqa: F401
    from fkl.study import progress, registered
    from fkl.study.play import run_study

    # Each option ends the command after its own work
    plan = Plan.read(file)
    if status:
        print_lines(*progress.status_lines(StudyAnswer.compare_ended(plan)))
        return
    progress.check_study(plan)
    if dry_run:
        print_lines(*progress.dry_run(plan))
        return
    if pilot:
        trial = plan.as_pilot()
        run_study(trial, words)
        print_lines("", *progress.seeds_wanted(StudyAnswer.compare_ended(trial)))
        return
    if register:
        print_lines(*registered.register_study(plan))
        return
    # A registered study must not change; then run what is left
    registered.require_unchanged(plan)
    run_study(plan, words)
    # The answer from all notes, as files and on the screen
    answer = StudyAnswer.compare_ended(plan)
    files = write_answer(answer)
    print_lines("")
    print_answer(answer)
    print_lines(
        "",
        f"  page   {plan.file.with_suffix('.html')}",
        f"  files  {plan.folder} ({len(files)}): tables, LaTeX, BibTeX",
    )
    print_lines(f"  next   cd {plan.folder} && pdflatex paper && bibtex paper && pdflatex paper && pdflatex paper")


def print_answer(answer: StudyAnswer) -> None:
    """Print the answer, the table of errors, and the pairs."""
    from fkl.study.tables import errors_frame, results_sheet

    # The answer in sentences, then the table of errors, then the pairs
    print_lines(*answer_lines(answer))
    frame = errors_frame(answer.judged)
    if len(frame):
        table = results_sheet(frame, answer.dealt)
        print_lines("")
        table.print_sheet()
        print_lines(table.about)
    print_lines("", *pair_lines(answer))


def write_answer(answer: StudyAnswer) -> list[Path]:
    """Write the page, tables, figures and LaTeX, and return the paths of the files."""
    from fkl.report.figures import STYLES
    from fkl.report.html import TEMPLATES, picture_of_png
    from fkl.runs.metrics import WORDS
    from fkl.study import paper, tables
    from fkl.study.figure import draw_differences, draw_error_over_bytes
    from fkl.study.jobs import file_slug

    # Everything is made from the same frame of errors and the same verdicts
    plan, folder = answer.plan, answer.plan.folder
    frame = tables.errors_frame(answer.judged)
    named = tables.all_tables(answer, frame)
    apart = as_table(answer.verdicts)
    # Text files by name: tables, sheets for programs, and LaTeX
    contents: dict[str, str] = {}
    for name, sheet in named.items():
        contents |= tables.table_files(sheet, name)
    contents["results.csv"] = frame.to_csv(index=False)  # numbers without units
    contents["differences.csv"] = apart.to_csv(index=False)
    contents["trials.csv"] = tables.trials_frame(plan).to_csv(index=False)
    contents["methods.tex"] = paper.methods_paragraph(answer) + "\n"
    contents["references.bib"] = paper.study_bibliography(plan)
    # Figures in three styles; all data sets share one axis label if they have one metric
    metrics = {WORDS.get(one.metric, one.metric) for one in answer.judged}
    label = metrics.pop() if len(metrics) == 1 else "error"
    costs = {style: draw_error_over_bytes(frame, label, style) for style in STYLES}
    pairs = {style: draw_differences(apart, [*frame["method"]], plan.margin, style) for style in STYLES}
    about = f"{costs['paper']['.txt'].decode().strip()} {answer.dealt}"
    contents["paper.tex"] = paper.latex_document(answer, named, {"figure": about})
    # Write the texts, then the pictures that could be drawn
    files = [folder / name for name in contents]
    for path, text in zip(files, contents.values(), strict=True):
        write_text(path, text)
    pictures = {}
    for name, drawn in {"error-against-bytes": costs, "differences": pairs}.items():
        made = {".png": drawn["screen"].get(".png"), ".pdf": drawn["paper"].get(".pdf")}
        made["-column.pdf"] = drawn["column"].get(".pdf")
        for ending, content in made.items():
            if content is not None:
                files.append(folder / f"{name}{ending}")
                with whole_file(files[-1]) as stream:
                    stream.write(content)
        if made[".png"] is not None:
            pictures[name] = picture_of_png(folder / f"{name}.png", FIGURES[name])
    # The page with everything, next to the plan
    html = plan.file.with_suffix(".html")
    context = {
        "answer": answer,
        "plan": plan,
        "slug": file_slug,
        "sheets": named,
        "marks": tables.ABOUT_MARKS,
        "stamp": registration_stamp(plan),
        "pictures": pictures,
        "source": lambda one: one.source(html.parent),
    }
    write_text(html, TEMPLATES.get_template("study.html").render(context))
    # The folder has its own copy of the plan, so it can be given away
    if (folder / "plan.yaml").resolve() != plan.file.resolve():
        shutil.copyfile(plan.file, folder / "plan.yaml")
    return [html, *files]
