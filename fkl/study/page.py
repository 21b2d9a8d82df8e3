"""The page of a study: its answer first, then the table, the figure, tests, setup and notes."""

import base64
from collections.abc import Mapping

from fkl.screen.sheet import Sheet
from fkl.study.answer import CLAIMS, Answer
from fkl.study.registered import stamp
from fkl.study.tables import ABOUT_MARKS


def page(answer: Answer, sheets: Mapping[str, Sheet], figure: bytes, differences: bytes) -> str:
    """The page as one file with embedded pictures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("fkl.study"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return made.get_template("study.html").render(
        answer=answer,
        plan=answer.plan,
        claim=CLAIMS[answer.plan.claim],
        sheets=sheets,
        tests={name: sheet for name, sheet in sheets.items() if name.startswith("tests-")},
        marks=ABOUT_MARKS,
        stamp=stamp(answer.plan),
        figure=base64.b64encode(figure).decode(),
        differences=base64.b64encode(differences).decode(),
    )
