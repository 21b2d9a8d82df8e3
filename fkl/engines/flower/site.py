"""A site: a SuperNode that plays one client, or several, with the rows of its own file, a message after another.

Flower starts a process for every message, so nothing is kept but what `Memory` has: in Flower's own memory of the node,
which a SuperNode that ends takes with it, and in a file beside the rows, from which the next one goes on.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fkl.basics.errors import FklError, require
from fkl.basics.files import write_text
from fkl.config import Run
from fkl.contract.lone_party import LoneClient
from fkl.data.problem import Table
from fkl.engines.flower.configuration import Ends, Known, method_of, noise_of, own_table, run_of
from fkl.engines.flower.memory import Memory, keep, kept, memory_of, to_arrays
from fkl.engines.flower.records import from_records, to_records
from fkl.engines.flower.words import ABOUT, MEMORY, arrays_of, known_of
from fkl.screen.messages import refuse

Told = dict[str, Any]
"""Plain words of a message."""


class Site:
    """What a SuperNode has when a message comes.

    Parameters
    ----------
    context : flwr.app.Context
        Its node's configuration says `path`, of the rows, and `site`, its own number, from 0.
    """

    def __init__(self, context: Context) -> None:
        own = context.node_config
        self._context, self._run = context, run_of(str(context.run_config["configuration"]))
        number, path = own.get("site"), own.get("path")
        fits = isinstance(number, int) and number >= 0
        require(fits, "site", number, "the site's number, from 0, in --node-config")
        require(isinstance(path, str), "path", path, "the file of the site's rows, in --node-config")
        self.number, self._path = int(number), Path(str(path))

    @property
    def run(self) -> Run:
        """The run that all sites play."""
        return self._run

    def table(self) -> Table:
        """Its rows, as they are in the file."""
        return own_table(self._run, str(self._path))

    def memory(self, fresh: Callable[[], Memory]) -> Memory:
        """What it remembers of this run; a fresh memory, where there is none."""
        held = self._context.state.get(MEMORY)
        if held is not None:
            return memory_of({name: array.numpy() for name, array in held.items()})
        return kept(self._file("memory")) or fresh()

    def remember(self, memory: Memory) -> None:
        """Keep it for the next message, here and in a file."""
        self._context.state[MEMORY] = ArrayRecord({name: Array(array) for name, array in to_arrays(memory).items()})
        keep(self._file("memory"), memory)

    def write_predictions(self, table: Table, y_hat: Any, known: Known) -> None:
        """A line for each row that was learned from: what was predicted before its target was known, in its units."""
        there = np.flatnonzero(~np.isnan(y_hat))
        values = zip(there, table.y[there], known.scale.y_back(y_hat[there]), strict=True)
        lines = [f"{row + 1},{float(y)!r},{float(guess)!r}" for row, y, guess in values]
        write_text(self._file("predictions.csv"), "\n".join(["row,target,prediction", *lines, ""]))

    def _file(self, kind: str) -> Path:
        """A file of its own beside the rows, of this run."""
        return self._path.with_name(f"{self._path.stem}.site{self.number}.{self._context.run_id}.{kind}")


def hello(site: Site, message: Message) -> tuple[Told, RecordDict]:
    """Who it is, and what all sites need to have in common."""
    table = site.table()
    ends = asdict(Ends.from_table(table, site.run.settings.scaling))
    memory = site.memory(lambda: Memory({}, np.zeros(0)))
    about = {"site": site.number, "rows": len(table.y), "columns": list(table.feature_names), "heard": memory.heard}
    # A record of Flower holds lists, and no tuples.
    said = {name: list(value) if isinstance(value, tuple) else value for name, value in ends.items()}
    return about | {"played": memory.round} | said, RecordDict()


def turn(site: Site, message: Message) -> tuple[Told, RecordDict]:
    """One exchange of a round: the function of the contract of each client, and what it sends up."""
    begun = time.perf_counter()
    about = dict(message.content[ABOUT])
    known, t, exchange = known_of(about), int(about["round"]), int(about["exchange"])
    common, method, table = known.common(site.run), method_of(site.run), site.table()
    memory = site.memory(lambda: Memory({}, np.full(len(table.y), np.nan)))
    states = memory.begin(t, exchange, int(about["heard"]))
    forms, content = [], RecordDict()
    for number, form in zip(known.present(site.number, len(table.y), t), about["forms"], strict=True):
        client = LoneClient(method, common, number, *known.samples(site.run, table, number))
        client.state = states.get(number, client.state)
        down = from_records(message.content[arrays_of(number)], form)
        up, shown = client.play(t, exchange, down, int(about["together"]))
        states[number] = client.state
        memory.told[number] = memory.told.get(number, 0) + (up is not None)
        if shown is not None and "y_hat" in shown:
            memory.predicted(known.row(number, t), shown["y_hat"][0])
        content[arrays_of(number)], said = to_records(up)
        forms.append(said)
    memory.end(t, exchange, states)
    site.remember(memory)
    return {"forms": forms, "seconds": time.perf_counter() - begun}, content


def goodbye(site: Site, message: Message) -> tuple[Told, RecordDict]:
    """The end: its predictions go into a file, and to the server their number, and how wrong they were.

    Of a run with noise on its messages, which hides what rows are like, the server is not told how wrong they were.
    """
    about = dict(message.content[ABOUT])
    known, table = known_of(about), site.table()
    memory = site.memory(lambda: Memory({}, np.full(len(table.y), np.nan)))
    memory.settle(int(about["heard"]))
    site.remember(memory)
    site.write_predictions(table, memory.y_hat, known)
    errors = (memory.y_hat - known.scale.y(table.y)) ** 2
    counted = int((~np.isnan(errors)).sum())
    error = float(np.nansum(errors)) if noise_of(site.run) is None else float("nan")
    return {"rows": counted, "squared_error": error, "told": max(memory.told.values(), default=0)}, RecordDict()


ANSWERS: Mapping[str, Callable[[Site, Message], tuple[Told, RecordDict]]] = {
    "query": hello,
    "train": turn,
    "evaluate": goodbye,
}
"""By type of message."""


def client_app() -> ClientApp:
    """The ClientApp of a project that `fkl flower init` has written."""
    app = ClientApp()
    for kind, answer in ANSWERS.items():
        getattr(app, kind)()(_answering(answer))
    return app


def _answering(answer: Callable[[Site, Message], tuple[Told, RecordDict]]) -> Callable[[Message, Context], Message]:
    """What Flower calls; one line for what a site's owner can mend, at the site: it may quote a cell of the file."""

    def reply(message: Message, context: Context) -> Message:
        try:
            told, content = answer(Site(context), message)
        except FklError as error:
            told, content = {"refused": "it cannot answer, and its own log says why"}, RecordDict()
            refuse(error)
        content[ABOUT] = ConfigRecord(told)
        return Message(content, reply_to=message)

    return reply
