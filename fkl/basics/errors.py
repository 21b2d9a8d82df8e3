"""One-line errors that the user can correct, with suggestions; `fkl` prints them and exits with code 2."""

import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from opcode import opname
from pathlib import Path

from fkl.basics.field_words import field_words

TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "Maximum allowed size exceeded")
"""Beginnings of numpy's messages about an array that is too large for any memory."""
NO_ROOM = "failed to map segment from shared object"
"""Part of the system's message about a library for which there is no memory."""
LETTERS_SHOWN = 200
"""Maximum letters of a value in a message: enough for a file name, but not for a number of a thousand digits."""


class FklError(Exception):
    """Anything the user can correct: a configuration key, a file, a row, a missing network.

    Parameters
    ----------
    *args
        The message.
    help : iterable of str
        Lines about what to do, printed below the message.
    """

    def __init__(self, *args: object, help: Iterable[str] = ()) -> None:
        super().__init__(*args)
        self.help = tuple(help)


class BrokenPromiseError(FklError):
    """An algorithm breaks a promise that all algorithms keep, see `fkl.conformance`."""


class BadValue(FklError):
    """A configuration value that is not allowed.

    Parameters
    ----------
    key : str
        The key inside its own group, for example ``"M"``, or ``".words.icd"`` for a name in the mapping ``words``;
        `key_prefix` puts the group before it. A key of another group already has its group, for example
        ``"kernels.N"``.
    value : object
        The given value.
    allowed : str
        Allowed values, for example ``"an integer from 1 to 51"``.
    help : iterable of str
        Lines about what to do, printed below the message.
    """

    def __init__(self, key: str, value: object, allowed: str, help: Iterable[str] = ()) -> None:
        super().__init__(key, value, allowed, help=help)
        self.key, self.value, self.allowed = key.removeprefix("."), value, allowed
        self.has_group = "." in self.key and self.key == key

    def __str__(self) -> str:
        return f"{self.key}={in_one_line(self.value)}: must be {self.allowed}"


def in_one_line(value: object) -> str:
    """Short form of a value for a message of one line."""
    return cut_text(" ".join(str(value).split()), LETTERS_SHOWN)


def cut_text(text: str, most: int) -> str:
    """A text, cut after this number of letters."""
    return text if len(text) <= most else text[:most] + "..."


def count_of(number: int, what: str) -> str:
    """A number and a noun, with a plural s if needed."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def printable_text(text: str) -> str:
    """Text for a terminal: control characters are shown by their numbers."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def own_lines(error: BaseException) -> list[traceback.FrameSummary]:
    """The lines of the user's own modules in a traceback: not those of fkl, of Python or of an installed library."""
    installed = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib", "scripts"))
    others = [place.resolve() for place in (Path(__file__).parents[1], *map(Path, installed))]
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if (file := Path(frame.filename)).is_file() and not any(map(file.resolve().is_relative_to, others))
    ]


def with_own_line(error: BaseException) -> str:
    """An error of the user's own code in one line: ``my_module.py, line 12: ValueError: its text``.

    Raise the new error ``from`` this one to keep the traceback.
    """
    return own_place(error) + " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())


def own_place(error: BaseException) -> str:
    """The innermost of `own_lines`, as ``"my_module.py, line 12: "``; empty if there is none."""
    own = own_lines(error)
    if not own:  # such as a compiled function
        return ""
    file = Path(own[-1].filename)
    here = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f"{here}, line {own[-1].lineno}: "


@contextmanager
def key_prefix(group: str) -> Iterator[None]:
    """Add the configuration group to the message of a `BadValue` or a memory error that this block raises."""
    try:
        yield
    except BadValue as error:
        key = error.key if error.has_group else f"{group}.{error.key}"
        raise BadValue(key, error.value, error.allowed, error.help) from error.__cause__
    except MemoryError as error:
        mend = f"lower the numbers under {group}, kernels.D or replicates"
        raise FklError(f"{group}: needs more memory than is available ({error}); {mend}") from error
    except ValueError as error:
        if not str(error).startswith(TOO_LARGE):
            raise
        raise FklError(f"{group}: needs more memory than any machine has ({error})") from error


def install_hint(extra: str) -> str:
    """The command that installs an extra. fkl is not on PyPI, where another project has this name."""
    return f"pip install -e '.[{extra}]' in a checkout of fkl"


@contextmanager
def requires_extra(name: str, what: str) -> Iterator[None]:
    """Report how to install an optional library that an import in this block does not find.

    Parameters
    ----------
    name : str
        Extra of fkl that installs it, see pyproject.toml.
    what : str
        The feature that the user requested, for example ``"report"``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "fkl":
            raise
        raise FklError(f"{what}: needs {error.name}, which comes with {install_hint(name)}") from None


def require(condition: bool, key: str, value: object, allowed: str) -> None:
    """Raise `BadValue` unless the condition holds."""
    if not condition:
        raise BadValue(key, value, allowed)


def library_error(error: BaseException) -> FklError | None:
    """A one-line error for a library that fkl cannot load or for too little memory; None for any other error."""
    if isinstance(error, MemoryError) or NO_ROOM in str(error):
        why = f" ({in_one_line(error)})" if str(error) else ""
        return FklError(f"out of memory{why}: free some, raise the limit of this process (ulimit -v), or lower sizes")
    library = getattr(error, "name", None) if isinstance(error, ImportError) else None
    at, importing = error.__traceback__, False
    while at is not None:
        code, module = at.tb_frame.f_code, str(at.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if not code.co_filename.startswith("<frozen importlib"):
            if importing and module != "fkl":
                library = module
                break
            importing = module == "fkl" and opname[code.co_code[at.tb_lasti]].startswith("IMPORT_")
        at = at.tb_next
    if not importing or library is None or library.partition(".")[0] == "fkl":
        return None
    said = in_one_line(f"{type(error).__name__}: {error}")
    why = "it is damaged or missing, or does not accept a variable of the environment"
    return FklError(f"the library {library} cannot be loaded ({said}): {why}")


MOST = 3
ALIKE, NEARLY = 0.7, 0.12
"""Minimum similarity by difflib, and how much less similar than the nearest name another one may be."""


def did_you_mean(name: str, names: Iterable[str], where: str = "", start: str = "") -> list[str]:
    """Lines of help: what fkl calls a word of the field, at most three similar names, and where all names are listed.

    Parameters
    ----------
    name : str
    names : iterable of str
    where : str
        How to list all names.
    start : str
        Prefix of each name.

    Examples
    --------
    >>> did_you_mean("POFMKL", ["pof_mkl", "coke"], "all methods: fkl list algo")
    ['did you mean pof_mkl? all methods: fkl list algo']
    >>> did_you_mean("lr", ["seed", "threads"])
    ['lr in fkl: algo.eta (algo.gamma of fdskl and dsg; a method with a closed form, such as rf_gp, has none)']
    """
    letters = _visible_letters(name)
    shares = {one: SequenceMatcher(None, letters, _visible_letters(one)).ratio() for one in names}
    least = max(ALIKE, max(shares.values(), default=0) - NEARLY)
    near = sorted((one for one, share in shares.items() if share >= least), key=lambda one: -shares[one])[:MOST]
    meant = [f"did you mean {' or '.join(start + one for one in near)}?"] if near else []
    line = " ".join([*meant, where]).strip()
    return [*(text for text, _ in field_words(name)), *([line] if line else [])]


def _visible_letters(name: str) -> str:
    return re.sub(r"[^a-z0-9=./]", "", name.lower())
