"""`fkl study`: play the rest of a study, write its files, and print its answer."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from fkl.basics.errors import FklError, requires_extra
from fkl.basics.files import whole_file, write_text
from fkl.screen.messages import say
from fkl.study.answer import Answer, lines
from fkl.study.plan import Plan


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
        raise FklError(f"{file}: no such file", help=["what a study's file says: docs/studies.md"])
    with requires_extra("study", "fkl study"):
        import jinja2  # noqa: F401
        import optuna  # noqa: F401
    from fkl.study import progress, registered
    from fkl.study.play import play

    plan = Plan.read(file)
    if status:
        say(*progress.status(plan), "")
        show(Answer.of(plan))
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
    """Print the answer, then the table of errors."""
    from fkl.study.tables import errors, results

    say(*lines(answer))
    frame = errors(answer.judged)
    if len(frame):
        table = results(frame, "Error with half of its 95 % interval over seeds; below mean: below the mean target's.")
        say("")
        table.show()
        say(table.about)


def write(answer: Answer) -> list[Path]:
    """Write the page, tables, figure and LaTeX, and name the files."""
    from fkl.report.figures import STYLES
    from fkl.runs.metrics import WORDS
    from fkl.study import paper, tables
    from fkl.study.figure import draw, draw_differences
    from fkl.study.page import page

    plan, folder = answer.plan, answer.plan.folder
    frame = tables.errors(answer.judged)
    named = tables.all_tables(answer, frame)
    apart = tables.differences(answer)
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
    for name, drawn in {"error-against-bytes": costs, "differences": pairs}.items():
        made = {".png": drawn["screen"].get(".png"), ".pdf": drawn["paper"].get(".pdf")}
        made["-column.pdf"] = drawn["column"].get(".pdf")
        for ending, content in made.items():
            if content is not None:
                files.append(folder / f"{name}{ending}")
                with whole_file(files[-1]) as stream:
                    stream.write(content)
    html = plan.file.with_suffix(".html")
    write_text(html, page(answer, named, *(one["screen"].get(".png", b"") for one in (costs, pairs))))
    if (folder / "plan.yaml").resolve() != plan.file.resolve():
        shutil.copyfile(plan.file, folder / "plan.yaml")
    return [html, *files]
