"""A user's YAML, read with limits: errors name the file and line, and no file can block the program."""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from fkl.basics.errors import FklError

LONGEST = 2**18
"""Maximum size of a file in bytes; all of fkl's own files together have a fifth of that."""
MOST = 30_000
"""Maximum number of keys, values and hundreds of letters, after replacing every alias."""
DEEPEST = 50
LONGEST_NUMBER = 1000
"""Maximum length of an integer; Python refuses to write one of more than 4300 digits."""
PLAIN = ("bool", "float", "int", "map", "merge", "null", "seq", "str")
TAGS = {f"tag:yaml.org,2002:{name}" for name in PLAIN}
LETTERS_EACH = 100


def read_text(file: Path) -> str:
    """Text of a file, or one line about why it is not text."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(LONGEST + 1)
    except OSError as error:
        raise FklError(f"{file}: cannot be read ({error.strerror})") from None
    if len(raw) > LONGEST:
        raise FklError(f"{file}: longer than {LONGEST} bytes, which no configuration needs")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FklError(f"{file}, line {line}: byte {raw[error.start]:#x} is not text in UTF-8") from None


@lru_cache(maxsize=256)  # a sweep reads the same files for every job
def read_mapping(text: str, file: Path) -> dict[str, Any]:
    """Keys and values of a YAML text; callers must not change them.

    Raises
    ------
    FklError
        If it is something else; names file and line.
    """
    try:
        loader = _loader()(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode) or not root.value:
            kind = {yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}.get(type(root), "empty")
            raise FklError(f"{file}: {kind}; must be keys and values")
        _require_small(root, file)
        return loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FklError(f"{_place_in_file(file, mark)}: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise FklError(f"{file}, line {line}: {error.character:#x} is no character of a text") from None
    except (ValueError, TypeError) as error:  # too much, a number of 5000 digits, a list as a key
        raise FklError(f"{file}: {error}") from None


@cache
def _loader() -> Any:
    """OmegaConf's loader, with a limit of size."""
    from omegaconf._utils import get_yaml_loader

    class Loader(get_yaml_loader()):  # type: ignore[misc]
        nodes = depth = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            self.nodes += 1
            self.depth += 1
            if self.depth > DEEPEST:
                raise ValueError(f"nested more than {DEEPEST} deep")
            if self.nodes > MOST:
                raise ValueError(f"more than {MOST} keys and values")
            node: yaml.Node | None = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Loader


def _place_in_file(file: Path, mark: yaml.Mark | None) -> str:
    return f"{file}" if mark is None else f"{file}, line {mark.line + 1}"


def _require_small(root: yaml.Node, file: Path) -> None:
    """Refuse tags that name types, aliases that contain themselves, and aliases that are too large."""
    sizes: dict[int, int | None] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node), 0)
        if known is None:
            raise FklError(f"{_place_in_file(file, node.start_mark)}: an alias inside what it names")
        if known:
            return known
        if node.tag not in TAGS:
            kind = node.tag.removeprefix("tag:yaml.org,2002:")
            raise FklError(
                f"{_place_in_file(file, node.start_mark)}: {kind}: no such type; there are {', '.join(PLAIN)}"
            )
        sizes[id(node)] = None
        total = 1
        if isinstance(node, yaml.ScalarNode):
            if node.tag.endswith(":int") and len(node.value) > LONGEST_NUMBER:
                where = _place_in_file(file, node.start_mark)
                raise FklError(f"{where}: a number of more than {LONGEST_NUMBER} letters")
            total += len(node.value) // LETTERS_EACH
        else:
            pairs = isinstance(node, yaml.MappingNode)
            for key, _ in node.value if pairs else ():
                if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":null"):
                    raise FklError(f"{_place_in_file(file, key.start_mark)}: a key must be a word")
            total += sum(size(part) for item in node.value for part in (item if pairs else (item,)))
        if total > MOST:
            raise FklError(
                f"{_place_in_file(file, node.start_mark)}: more than {MOST} keys and values, aliases counted"
            )
        sizes[id(node)] = total
        return total

    size(root)
