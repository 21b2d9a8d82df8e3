"""Files of a study for a paper: a paragraph of methods, BibTeX, and a LaTeX file that compiles."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from fkl.config.compose import read_words
from fkl.data.dealt_rows import BLOCK
from fkl.screen.sheet import escape_latex
from fkl.statistics.differences import OF_TRAINING, ROW_BLOCKS, Difference
from fkl.study.answer import CLAIMS, StudyAnswer, factors_of, looks_of
from fkl.study.dealt import row_order_of
from fkl.study.jobs import are_drawn, draws_blocks, searched_space
from fkl.study.plan import Plan, PlannedPart

REFERENCES = Path(__file__).with_name("references.bib")
FKL = "fkl"
"""Key of fkl itself. Every study cites it, and the other keys of `ALWAYS`: Optuna and the statistics."""
ALWAYS = (FKL, "akiba2019optuna", "holm1979")
CLUSTERING = "cameron2011"
"""Key of two-way clustering, for claims about rows that seeds share."""


TESTS = {
    "rows": f"The uncertainty of a mean log ratio of errors is {OF_TRAINING:g} times the variance over {ROW_BLOCKS}"
    f" blocks of neighbouring rows plus that over seeds (two-way clustering~\\cite{{{CLUSTERING}}}), with"
    " Satterthwaite's degrees of freedom",
    "seed": "Means of log ratios of errors were compared by Student's t over seeds",
    "portion": "Means of log ratios of errors were compared by Student's t over portions",
    "client": "Log ratios of errors were averaged within clients; their uncertainty is the variance over clients plus"
    f" that over seeds (two-way clustering~\\cite{{{CLUSTERING}}}), with Satterthwaite's degrees of freedom",
    "block": "Mean differences of losses in ten blocks of rounds were compared by Student's t",
    "failed": "Where a run failed, methods were compared by exact signed ranks",
}
"""A sentence for each test of two methods, by the unit of its difference."""


def methods_paragraph(answer: StudyAnswer) -> str:
    """The protocol in plain English, with citations in LaTeX."""
    # What was compared, with citations
    plan, judged = answer.plan, answer.judged
    methods = ", ".join(f"{escape_latex(one.name)}{_cited_keys('methods', one)}" for one in plan.methods)
    datasets = ", ".join(f"{escape_latex(one.name)}{_cited_keys('data', one)}" for one in plan.datasets)
    said = [
        f"We compared {methods} on {datasets} with fkl~\\cite{{{FKL}}}.",
        f"The claim is about {CLAIMS[plan.claim]}.",
    ]
    # How rows were divided for tuning and judging
    if plan.claim == "time":
        said.append(
            "Methods were tuned on the first half of the rows and judged on the rest, without the block between."
        )
    drawn = [escape_latex(one.dataset.name) for one in judged if are_drawn(plan, one.dataset)]
    # Data sets that are drawn anew have no rows to divide
    divided = [name for one in judged if (name := escape_latex(one.dataset.name)) not in drawn]
    if plan.claim != "time" and divided:
        blocks = (
            f"blocks of {BLOCK} rows or more, or of a quarter of a site's rows where it has fewer than {4 * BLOCK},"
        )
        how = f"half of the rows, in {blocks} were for tuning, the other half for judging."
        if not plan.once:
            seeds = f"in each of {'at most ' * bool(plan.looks)}{plan.seeds} seeds"
            how = f"{seeds}, {blocks} were divided anew, half for tuning and half for judging, equally for all methods."
        where = f"on {', '.join(divided)}, {how}" if drawn else how
        said.append(where[0].upper() + where[1:])
    if drawn:
        said.append(f"On {', '.join(drawn)}, rows were drawn anew for each search and each run that was judged.")
    # Portions and blocks, on the data sets that have them
    portions = [escape_latex(one.dataset.name) for one in judged if one.portions]
    if portions:
        said.append(f"On {', '.join(portions)}, each seed had its own portion of the rows, which no other seed had.")
    if drawing := [escape_latex(one.dataset.name) for one in judged if draws_blocks(plan, one.dataset)]:
        said.append(f"On {', '.join(drawing)}, a run read as many blocks as it needed, drawn at random from its half.")
    said.append(escape_latex(answer.dealt))
    orders = [f"On {one.dataset.name}, {order}." for one in judged if (order := row_order_of(one))]
    said += [escape_latex(order) for order in orders]
    said += _of_searches(answer)
    # Limits that made runs fail
    if plan.limit_s is not None:
        said.append(f"A run of more than {plan.limit_s:g} seconds counted as failed.")
    if plan.budget:
        limits = " and ".join(f"{name.replace('_', ' ')} of at most {value:g}" for name, value in plan.budget.items())
        said.append(f"Runs had {limits}; those with more counted as failed.")
    # The tests that were made; if they differ, with the data sets of each
    by_test: dict[str, list[str]] = {}  # a sentence for each test that was made, whatever the claim
    for name, verdicts in answer.verdicts.items():
        for test in dict.fromkeys(_test_of(one.difference) for one in verdicts):
            by_test.setdefault(test, []).append(escape_latex(name))
    for test, names in by_test.items():
        said.append(TESTS[test] + f" on {', '.join(names)}" * (len(by_test) > 1) + ".")
    if factors := factors_of(answer):
        said.append(f"The variance over blocks is {escape_latex(factors)}.")
    if answer.over:
        said.append("Over data sets, the mean log ratio of each was compared by Student's t.")
    if looks := looks_of(answer):
        said.append(f"{looks[0].upper()}{escape_latex(looks[1:])}.")
    # Sentences about the variance, corrections and intervals, where they apply
    elif by_test:
        said.append("P values are corrected by Holm~\\cite{holm1979} for the pairs of a data set, intervals are not.")
    levels = sorted({one.level for some in answer.verdicts.values() for one in some if not one.difference.failed})
    if levels:
        shares = " or ".join(f"{100 * (1 - 2 * level):g}\\,\\%" for level in levels)
        said.append(
            f"Two methods are called practically equal if the {shares} interval lies within"
            f" {100 * plan.margin:g}\\,\\%."
        )
    if answer.failures:
        said.append("A failed run has the worst rank, and its method has no mean.")
    return " ".join(said)


def _of_searches(answer: StudyAnswer) -> list[str]:
    """Sentences on the searches that were made: their methods, their keys, and ranges that were widened."""
    # Which keys were searched, by which methods and on which data sets
    plan, data = answer.plan, [one.dataset for one in answer.judged]
    keys: dict[tuple[str, ...], dict[str, list[str]]] = {}  # keys, methods, data sets
    widened: dict[str, list[str]] = {}
    for dataset in data:
        for method in plan.all_methods:
            keys.setdefault((*plan.search_space(dataset, method),), {}).setdefault(method.name, []).append(dataset.name)
            first, last = plan.search_space(dataset, method), searched_space(plan, dataset, method)
            for key in (key for key in first if first[key] != last[key]):
                widened.setdefault(f"{key} of {method.name}", []).append(dataset.name)

    def where(names: list[str]) -> str:
        """On which data sets, unless on all."""
        return f" on {' and '.join(names)}" if len(names) < len(data) else ""

    def whose(methods: dict[str, list[str]]) -> str:
        return ", ".join(f"{name}{where(names)}" for name, names in methods.items())

    # Methods without keys are not tuned
    untuned = keys.pop((), {})
    said = []
    if keys:
        who = f"Every method except {whose(untuned)}" if untuned else "Every method"
        which = "one search for all seeds" if plan.once else "its own search in each seed"
        over = "; ".join(f"{' and '.join(some)} ({whose(methods)})" for some, methods in keys.items())
        said = [
            f"{escape_latex(who)} had {which}, of {plan.trials_each} trials of Optuna's tree-structured Parzen "
            "estimator~\\cite{akiba2019optuna}; the values it found were judged with another seed.",
            f"The searches were over {escape_latex(over)}; all other keys had the same values in all seeds.",
        ]
    if untuned:
        said.append(f"{escape_latex(whose(untuned))}: not tuned.")
    # Ranges that were widened, and those that still end near a limit
    if widened:
        ranges = ", ".join(f"{name}{where(names)}" for name, names in widened.items())
        searches = f"the first {plan.stops[0]} searches" if plan.looks and not plan.once else "the searches"
        said.append(
            f"Where more than a third of {searches} ended near a limit of a range, it was widened and searched"
            f" again: {escape_latex(ranges)}."
        )
    if answer.ends:
        ends = ", ".join(f"{key} of {method} on {dataset}" for dataset, method, key, _ in answer.ends)
        said.append(
            f"These ended near a limit all the same, so no verdict calls their methods worse: {escape_latex(ends)}."
        )
    return said


def _test_of(difference: Difference) -> str:
    """Name of the test of a difference, a key of `TESTS`."""
    return "failed" if difference.failed else "rows" if difference.blocks else difference.unit


def study_bibliography(plan: Plan) -> str:
    """BibTeX entries for the methods, data sets, software and statistics of a study."""
    clustering = [CLUSTERING] if plan.claim in ("rows", "clients") else []
    keys = [*ALWAYS, *clustering, *_keys_of_parts(plan.methods, "methods"), *_keys_of_parts(plan.datasets, "data")]
    known_entries = reference_entries()
    return "\n".join(known_entries[key][1] for key in dict.fromkeys(keys) if key in known_entries)


@cache
def reference_entries() -> dict[str, tuple[dict[str, list[str]], str]]:
    """Entries of references.bib by key: the choices named in the comment before each, and the entry."""
    # Entries follow comments with the choices that they belong to
    entry_of: dict[str, tuple[dict[str, list[str]], str]] = {}
    of: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in REFERENCES.read_text(encoding="utf-8").splitlines():
        if line.startswith("%"):
            kind, _, names = line.lstrip("% ").partition(":")
            of[kind] = names.replace(",", " ").split()
        elif line:
            lines.append(line)
            if line == "}":
                key = lines[0].partition("{")[2].rstrip(",")
                entry_of[key] = of, "\n".join(lines) + "\n"
                of, lines = {}, []
    return entry_of


def _keys_of_parts(parts: Iterable[PlannedPart], kind: str) -> list[str]:
    group = {"methods": "algo", "data": "dataset"}[kind]
    names = {str(word.value) for part in parts for word in read_words(part.words) if word.key == group}
    return [key for key, (of, _) in reference_entries().items() if names & {*of.get(kind, ())}]


def _cited_keys(kind: str, part: PlannedPart) -> str:
    keys = _keys_of_parts([part], kind)
    return f"~\\cite{{{','.join(keys)}}}" if keys else ""


def latex_document(answer: StudyAnswer, tables: Iterable[str], captions: dict[str, str]) -> str:
    """A LaTeX file with everything, to be compiled in the study's folder: pdflatex, bibtex, pdflatex twice."""
    # Tables and figures are files of their own, which LaTeX includes
    plan = answer.plan
    inputs = "\n".join(rf"\input{{{name}-345pt.tex}}" for name in tables)
    title = escape_latex(plan.question or f"{' and '.join(one.name for one in plan.methods)} compared")
    said = "\n".join(f"{escape_latex(one)}\n" for one in answer.sentences)
    notes = "\n".join(f"{escape_latex(one)}\n" for one in answer.notes)
    return rf"""\documentclass{{article}}
\usepackage[T1]{{fontenc}}
\usepackage{{booktabs,graphicx,textcomp}}
\renewcommand{{\topfraction}}{{0.9}} \renewcommand{{\textfraction}}{{0.1}} \renewcommand{{\floatpagefraction}}{{0.8}}
\setcounter{{topnumber}}{{4}} \setcounter{{totalnumber}}{{6}}
\title{{{title}}}
\author{{}}
\date{{}}
\begin{{document}}
\maketitle

\section*{{Answer}}
{said}
\section*{{Methods}}
\input{{methods.tex}}

\section*{{Results}}
The tables have errors and costs, tests of every two methods, ranges, and the setup.
Figure~\ref{{fig:study}} shows errors and bytes.
{notes}
{inputs}
\begin{{figure}}
\centering
\includegraphics[width=\linewidth]{{error-against-bytes.pdf}}
\caption{{{escape_latex(captions["figure"])}}}
\label{{fig:study}}
\end{{figure}}

\bibliographystyle{{plain}}
\bibliography{{references}}
\end{{document}}
"""
