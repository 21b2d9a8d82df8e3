"""Isolate a party from the others, in an object or in a process; they exchange only bytes.

A party runs in its own temporary folder, so parties cannot share files with relative names by accident.
"""

import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fkl.basics.errors import with_own_line

PRELOADED = ["fkl.conformance", "fkl.conformance.isolated", "fkl.kernels.compiled", "sklearn.svm"]
"""Modules that are imported once for all parties, because numba alone takes 0.4 s of CPU time."""


class PartyError(Exception):
    """A party that failed."""


class PartyObject:
    """A party as an object in this process; it is made from copies, so parties share nothing by accident."""

    separation = "alone"
    why = "a party sees more than its own state, its samples and what it receives"

    def __init__(self, kind: Callable[..., Any], *arguments: Any) -> None:
        self._folder = TemporaryDirectory(prefix="fkl-party-")
        made_of = pickle.loads(_pickled_or_refused(arguments))
        with chdir(self._folder.name):
            self._party = kind(*made_of)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the party."""
        try:
            with chdir(self._folder.name):
                return getattr(self._party, name)(*arguments)
        except Exception as error:
            raise _error_of_party(self._party.who, name, error) from error

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


class PartyProcess:
    """A party in its own process, called through a pipe."""

    separation = "in processes"
    why = "parties share something besides messages, such as a variable of a module"

    def __init__(self, kind: Callable[..., Any], *arguments: Any) -> None:
        self._who = getattr(kind, "who", "a party")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        made_of = _pickled_or_refused((kind, arguments))
        self._pipe, theirs = context.Pipe()
        self._folder = TemporaryDirectory(prefix="fkl-party-")
        # The process finds the same modules as this one, including the module of the method.
        module = type(arguments[0]).__module__
        file = getattr(sys.modules.get(module), "__file__", None)
        own = [] if file is None else [str(Path(file).resolve().parents[module.count(".")])]
        search_path = [*(str(Path(folder).resolve()) for folder in sys.path), *own]
        given = theirs, search_path, self._folder.name
        self._process = context.Process(target=_answer_until_closed, args=given, daemon=True)
        self._process.start()
        theirs.close()
        try:
            self._exchange("begin", made_of)
        except PartyError:
            self.close()
            raise

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the party."""
        return self._exchange(name, pickle.dumps((name, arguments)))

    def close(self) -> None:
        """End the process, and remove its folder."""
        self._pipe.close()
        self._process.join()
        self._folder.cleanup()

    def _exchange(self, what: str, words: bytes) -> Any:
        try:
            self._pipe.send_bytes(words)
            answer = pickle.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._process.join()
            ended = f"its process ended, with exit code {self._process.exitcode}"
            raise PartyError(f"{self._who}, in isolation, cannot {what}: {ended}") from None
        if isinstance(answer, PartyError):
            raise answer
        return answer


PartyClass = type[PartyObject] | type[PartyProcess]
"""Kinds of isolation."""


def _answer_until_closed(pipe: Any, search_path: list[str], folder: str) -> None:
    """Run a party until the pipe is closed."""
    sys.path[:] = search_path
    os.chdir(folder)
    party: Any = None
    while True:
        try:
            message = pipe.recv_bytes()
        except EOFError:
            return
        what = "begin"
        try:
            asked, arguments = pickle.loads(message)
            if party is None:
                party, answer = asked(*arguments), None
            else:
                what, answer = asked, getattr(party, asked)(*arguments)
            said = pickle.dumps(answer)
        except Exception as error:
            said = pickle.dumps(_error_of_party(getattr(party, "who", "a party"), what, error))
        pipe.send_bytes(said)


def _error_of_party(who: str, what: str, error: Exception) -> PartyError:
    return PartyError(f"{who}, in isolation, cannot {what}: {with_own_line(error)}")


def _pickled_or_refused(parts: Any) -> bytes:
    """The parts of a party as bytes.

    Raises
    ------
    PartyError
        For objects that only exist in this process, such as a function inside a function.
    """
    try:
        return pickle.dumps(parts)
    except Exception as error:
        said = f"a party cannot be isolated, because its parts cannot be pickled: {error}"
        raise PartyError(said) from None
