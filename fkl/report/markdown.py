"""Markdown of a paper's differences as HTML, with an anchor for every difference."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

IN_SHORT = "In short."
"""Bold first words of the paragraph that the summary of the page shows."""


@dataclass
class LinkedList:
    """The list below a bold line: anchor and first words of each item."""

    title: str
    items: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Prose:
    """A rendered Markdown text.

    Parameters
    ----------
    html : str
        The text without its first heading.
    in_short : str
        The paragraph, as HTML, that begins with `IN_SHORT`; empty if there is none.
    groups : list of Group
    """

    html: str
    in_short: str
    groups: list[LinkedList]

    @property
    def sentence(self) -> str:
        """The first sentence of `in_short`, as HTML."""
        words = self.in_short.removeprefix(f"<strong>{IN_SHORT}</strong>").strip()
        return re.split(r"(?<=[\w)%>][.])\s+(?=[A-Z])", words)[0]


def render_markdown(markdown: str, anchor: str, level: int) -> Prose:
    """Turn Markdown into HTML.

    Parameters
    ----------
    markdown : str
        Its first heading is omitted; the others become headings of `level` and below.
    anchor : str
        Prefix of the ids of its items.
    level : int
    """
    # No HTML from the text, because it may come from a user
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = _without_first_heading(parser.parse(markdown))
    for token in tokens:
        if token.type == "th_open":
            token.attrSet("scope", "col")
        token.children = _without_files(token.children) if token.children else token.children
    # Headings one level deeper, and names for items
    _move_headings(tokens, level)
    groups = _name_items(tokens, anchor)

    def html(part: Sequence[Token]) -> str:
        return str(parser.renderer.render(part, parser.options, {}))

    # The paragraph "In short" stands apart
    short = [at for at, token in enumerate(tokens) if _bold_html(token) == IN_SHORT]
    in_short = "".join(html(tokens[at].children or []) for at in short[:1])
    rest = [token for at, token in enumerate(tokens) if not any(abs(at - middle) <= 1 for middle in short[:1])]
    return Prose(html(rest), in_short, [group for group in groups if group.items])


def inline_html(markdown: str) -> Markup:
    """One line of Markdown as HTML."""
    return Markup(MarkdownIt("commonmark", {"html": False}).renderInline(markdown))


def _without_first_heading(tokens: list[Token]) -> list[Token]:
    """Tokens without the first heading, which is three tokens: open, content, close."""
    return tokens[3:] if tokens and tokens[0].type == "heading_open" else tokens


def _without_files(children: Sequence[Token]) -> list[Token]:
    """Turn links to files into plain text, because these files are not next to the page."""
    kept, inside = [], False
    for child in children:
        inside = inside or (child.type == "link_open" and not re.match("https?:|#", str(child.attrGet("href"))))
        if not inside or child.type not in ("link_open", "link_close"):
            kept.append(child)
        inside = inside and child.type != "link_close"
    return kept


def _move_headings(tokens: list[Token], level: int) -> None:
    """Change the levels of headings, so the highest heading gets `level`."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    highest = min((int(token.tag[1]) for token in headings), default=level)
    for token in headings:
        token.tag = f"h{min(6, int(token.tag[1]) - highest + level)}"


def _name_items(tokens: list[Token], anchor: str) -> list[LinkedList]:
    """Give every item that begins with emphasised words an id from these words."""
    # Groups are bold headings; items are named by their first emphasised words
    groups = [LinkedList("")]
    item: Token | None = None
    for token in tokens:
        if token.type == "list_item_open":
            item = token
        elif token.type == "inline" and token.children:
            if item is None and _bold_html(token):
                groups.append(LinkedList(_bold_html(token)))
            title = _first_words(token, "em_open").rstrip(".:") if item is not None else ""
            if item is not None and title:
                # An id from the words, with a number if it is taken
                name = f"{anchor}-{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}"
                taken = [other for group in groups for other, _ in group.items]
                item.attrSet("id", name if name not in taken else f"{name}-{len(taken)}")
                groups[-1].items.append((str(item.attrGet("id")), title))
            item = None
    return groups


def _bold_html(token: Token) -> str:
    return _first_words(token, "strong_open") if token.type == "inline" else ""


def _first_words(token: Token, kind: str) -> str:
    """Text inside the markup at the beginning of a paragraph, if it is of this kind."""
    children = [child for child in token.children or [] if child.type != "text" or child.content]
    if not children or children[0].type != kind:
        return ""
    end = next(at for at, child in enumerate(children) if child.type == kind.replace("open", "close"))
    return "".join(child.content for child in children[1:end])
