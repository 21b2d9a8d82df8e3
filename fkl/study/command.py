"""`fkl study`: do the remaining runs of a study, write its files, and print its answer."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from fkl.basics.errors import FklError, requires_extra
from fkl.basics.files import whole_file, write_text
from fkl.screen.messages import say
from fkl.statistics.verdicts import as_table
from fkl.study.answer import Answer, lines, pairs
from fkl.study.plan import Plan
from fkl.study.registered import stamp

FIGURES = {
    "error-against-bytes": "Error of each method against the bytes that its clients send, with one panel per data set",
    "differences": "Difference of the errors of each pair of methods with its interval, on each data set",
}
"""Figures of a study, and their descriptions."""


def command(
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
    if not file.is_file():
        raise FklError(f"{file}: no such file", help=["docs/paper_table.md describes a study's file"])
    with requires_extra("study", "fkl study"):
        import jinja2  # noqa: F401
        import optuna  # noqa: F401
    from fkl.study import progress, registered
    from fkl.study.play import play

    plan = Plan.read(file)
    if status:
        say(*progress.status(Answer.of(plan)))
        return
    progress.check(plan)
    if dry_run:
        say(*progress.dry_run(plan))
        return
    if pilot:
        trial = plan.as_pilot()
        play(trial, words)
        say("", *progress.seeds_wanted(Answer.of(trial)))
        return
    if register:
        say(*registered.register(plan))
        return
    registered.require_unchanged(plan)
    play(plan, words)
    answer = Answer.of(plan)
    files = write(answer)
    say("")
    show(answer)
    say(
        "",
        f"  page   {plan.file.with_suffix('.html')}",
        f"  files  {plan.folder} ({len(files)}): tables, LaTeX, BibTeX",
    )
    say(f"  next   cd {plan.folder} && pdflatex paper && bibtex paper && pdflatex paper && pdflatex paper")


def show(answer: Answer) -> None:
    """Print the answer, the table of errors, and the pairs."""
    from fkl.study.tables import errors, results

    say(*lines(answer))
    frame = errors(answer.judged)
    if len(frame):
        table = results(frame)
        say("")
        table.show()
        say(table.about)
    say("", *pairs(answer))


def write(answer: Answer) -> list[Path]:
    """Write the page, tables, figures and LaTeX, and return the paths of the files."""
    from fkl.report.figures import STYLES
    from fkl.report.html import TEMPLATES, picture
    from fkl.runs.metrics import WORDS
    from fkl.study import paper, tables
    from fkl.study.figure import draw, draw_differences
    from fkl.study.jobs import slug

    plan, folder = answer.plan, answer.plan.folder
    frame = tables.errors(answer.judged)
    named = tables.all_tables(answer, frame)
    apart = as_table(answer.verdicts)
    contents: dict[str, str] = {}
    for name, sheet in named.items():
        contents |= tables.written(sheet, name)
    contents["results.csv"] = frame.to_csv(index=False)  # numbers without units
    contents["differences.csv"] = apart.to_csv(index=False)
    contents["trials.csv"] = tables.trials(plan).to_csv(index=False)
    contents["methods.tex"] = paper.methods_paragraph(answer) + "\n"
    contents["references.bib"] = paper.bibliography(plan)
    metrics = {WORDS.get(one.metric, one.metric) for one in answer.judged}
    label = metrics.pop() if len(metrics) == 1 else "error"
    costs = {style: draw(frame, label, style) for style in STYLES}
    pairs = {style: draw_differences(apart, [*frame["method"]], plan.margin, style) for style in STYLES}
    contents["paper.tex"] = paper.document(answer, named, {"figure": costs["paper"][".txt"].decode().strip()})
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
            pictures[name] = picture(folder / f"{name}.png", FIGURES[name])
    html = plan.file.with_suffix(".html")
    words = {
        "answer": answer,
        "plan": plan,
        "slug": slug,
        "sheets": named,
        "marks": tables.ABOUT_MARKS,
        "stamp": stamp(plan),
        "pictures": pictures,
        "source": lambda one: one.source(html.parent),
    }
    write_text(html, TEMPLATES.get_template("study.html").render(words))
    if (folder / "plan.yaml").resolve() != plan.file.resolve():
        shutil.copyfile(plan.file, folder / "plan.yaml")
    return [html, *files]
