"""A site: it runs one or several clients with the rows of its own file, and answers one message after another.

Between two messages a site keeps only `SiteMemory`: in Flower's context of the node, and in a file next to the rows,
from which another process of the site can continue.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fkl.basics.errors import FklError, require
from fkl.basics.files import write_sealed, write_text
from fkl.data.encoder import Encoder
from fkl.data.problem import Table
from fkl.engines.rounds import LearnedFunction
from fkl.runs.model import About, SavedModel
from fkl.screen.messages import print_refusal
from fkl.sites.clients import StreamClients, ends_of, kind_of
from fkl.sites.configuration import SharedFacts, in_order, noise_of, own_table, run_of
from fkl.sites.masks import Mask, message_residues
from fkl.sites.messages import ABOUT, MEMORY, Words, known_of
from fkl.sites.states import SiteMemory, of_bytes, read_state, to_arrays, to_bytes
from fkl.wire.packets import read_packets, write_packets


class Site:
    """A site while it answers a message.

    Parameters
    ----------
    context : flwr.app.Context
        Its node's configuration has `path`, the file of rows, `site`, the site's number from 0, and `session` if all
        messages have the same process.
    about : mapping
        Facts in the message.
    """

    def __init__(self, context: Context, about: Mapping[str, Any]) -> None:
        node_config = context.node_config
        self._context, self.run = context, run_of(str(context.run_config["configuration"]))
        number, path = node_config.get("site"), node_config.get("path")
        fits = isinstance(number, int) and number >= 0
        require(fits, "site", number, "the site's number, from 0, in --node-config")
        require(isinstance(path, str), "path", path, "the file of the site's rows, in --node-config")
        self.number, self._path, self.session = int(number), Path(str(path)), str(node_config.get("session", ""))
        self._about = about

    @property
    def clients_per_site(self) -> int:
        """Number of clients of every site."""
        return int(self._context.run_config["clients-per-site"])

    @cached_property
    def own_table(self) -> Table:
        """Its rows, as in the file."""
        return own_table(self.run, str(self._path))

    @cached_property
    def table(self) -> Table:
        """Its rows with the features in the order of all sites."""
        return in_order(self.own_table, self.known.columns)

    @cached_property
    def known(self) -> SharedFacts:
        """The common facts, which the server sends to all sites."""
        return known_of(self._about)

    @cached_property
    def clients(self) -> StreamClients:
        """Its clients and their rows."""
        return kind_of(self.run)(self.run, self.known, self.table, self.number)

    @cached_property
    def memory(self) -> SiteMemory:
        """Its memory of the run; a new one at the beginning."""
        held = self._context.state.get(MEMORY)
        if held is not None:
            return of_bytes(bytes(held["all"]), SiteMemory)
        return read_state(self._file_of_run("memory"), SiteMemory) or SiteMemory(
            {}, np.full(len(self.own_table.y), np.nan)
        )

    def store_memory(self) -> None:
        """Store the memory for the next message, in Flower's context and in a file."""
        self._context.state[MEMORY] = ConfigRecord({"all": to_bytes(self.memory)})
        write_sealed(self._file_of_run("memory"), to_arrays(self.memory))

    def write_predictions(self, predicted: Any) -> None:
        """Write one line for each row with a prediction, in the target's units."""
        y, there = self.table.y, np.flatnonzero(~np.isnan(predicted))
        if self.clients.problem.loss.classes:
            predicted = np.where(predicted > 0, 1.0, -1.0)
        values = zip(there, y[there], self.known.scale.y_back(predicted[there]), strict=True)
        lines = [f"{row + 1},{float(target)!r},{float(guess)!r}" for row, target, guess in values]
        write_text(self._file_of_run("predictions.csv"), "\n".join(["row,target,prediction", *lines, ""]))

    def write_model(self, function: Any) -> None:
        """Write the model of the site's clients, for `fkl predict` and `fkl.load`."""
        encoder = self.table.encoder or Encoder(self.known.columns)
        sites = (str(self.number),) * self.known.clients_per_site
        about = About(self.run.algo.label, self.run.dataset.name, sites, self.clients.problem.loss.classes)
        SavedModel(
            (LearnedFunction(function, self.known.scale, np.ones(function.clients, np.bool_)),), encoder, about
        ).save(self._file_of_run("model.npz"))

    def _file_of_run(self, kind: str) -> Path:
        """Path of a site's file of this run, in a folder next to the rows."""
        return self._path.with_name(f"{self._path.stem}.site{self.number}.{self._about['run']}") / kind


def hello(site: Site, given: Words) -> Words:
    """Report the site's identity, and the facts that all sites need to share."""
    ends, memory = asdict(ends_of(site.run, site.own_table, site.clients_per_site, site.number)), site.memory
    about = {"site": site.number, "session": site.session, "rows": len(site.own_table.y)}
    about |= {"heard": memory.heard, "played": memory.round}
    # Records of Flower can contain lists, but not tuples.
    return about | {name: list(value) if isinstance(value, tuple) else value for name, value in ends.items()}


def turn(site: Site, given: Words) -> Words:
    """Do one exchange of a round: call the contract's function `client` for each client, and return the messages."""
    # A later phase of secure sums has no method in it
    if given.get("phase", 0):
        return {"letter": answer_of_mask(site, given), "seconds": 0.0}
    # The clients of this site that take part
    begun, t, exchange = time.perf_counter(), int(given["round"]), int(given["exchange"])
    memory, numbers = site.memory, site.clients.present(site.known, site.number, len(site.table.y), t)
    states, up = memory.begin(t, exchange, int(given["heard"])), []
    # Client by client: its state, the message down, its turn, the message up
    for number, down in zip(numbers, read_packets(given["arrays"], given["forms"]), strict=True):
        client = site.clients.client(number)
        client.state = states.get(number, client.state)
        packet, shown = client.play(t, exchange, down, int(given["together"]))
        states[number] = client.state
        # What the site remembers: states, numbers of messages, predictions
        memory.sent[number] = memory.sent.get(number, 0) + (packet is not None)
        if shown is not None and "y_hat" in shown:
            memory.store_prediction(site.clients.row(number, t), shown["y_hat"][0])
        up.append(packet)
    memory.end(t, exchange, states)
    # With secure sums, only the sum of the clients goes under the mask
    secure, sends = site.run.conditions.get("secure"), [packet for packet in up if packet is not None]
    if secure is not None and sends:
        of_clients = np.stack([message_residues(packet, secure.bits) for packet in sends])
        memory.mask = Mask(of_clients.sum(axis=0, dtype=np.uint64), int(given["threshold"]))
        letter = answer_of_mask(site, given)
        return {"letter": letter, "seconds": time.perf_counter() - begun}
    site.store_memory()
    arrays, forms = write_packets(up)
    return {"arrays": arrays, "forms": forms, "seconds": time.perf_counter() - begun}


def answer_of_mask(site: Site, given: Words) -> bytes:
    """A site's letter in a phase of a secure sum."""
    mask = site.memory.mask
    if mask is None:
        raise FklError("secure sums: the server asks for a sum that has not begun")
    letter = mask.answer_in_phase(site.number, site.run.conditions["secure"].bits, int(given["phase"]), given["letter"])
    site.store_memory()
    return letter


def results(site: Site, given: Words) -> Words:
    """Write predictions and the model so far; report the number of predicted rows, and sums of their errors.

    With noise on messages, which protects the rows, the sums are not reported.
    """
    # Bring the memory to the last round that the server completed
    memory, clients, scale = site.memory, site.clients, site.known.scale
    memory.settle(int(given["heard"]))  # not stored: a server that ends before it seals its state goes back a round
    # A method with a final function writes it
    function = None
    if memory.state and hasattr(site.run.algo, "functions"):
        server = of_bytes(given["server"], object)
        function = clients.functions(server, memory.state, int(given["played"]))
        site.write_model(function)
    # Predictions of rows, and their errors in the metric of the loss
    predicted = clients.predicted(memory.y_hat, function)
    site.write_predictions(predicted)
    there = ~np.isnan(predicted)
    y = scale.y(site.table.y)[there]
    loss = clients.problem.loss
    error = loss.errors_of_predictions(predicted[there], y)[loss.columns[0]]
    sums = error.sum(), clients.baseline_errors(predicted).sum(), y.sum(), (y**2).sum()
    # With noise, errors would reveal what the noise hides
    noisy = noise_of(site.run) is not None
    names = "error", "baseline", "target", "target_squared"
    said = {name: np.nan if noisy else float(value) for name, value in zip(names, sums, strict=True)}
    return {"rows": int(there.sum()), **said, "sent": max(memory.sent.values(), default=0)}


ANSWERS: Mapping[str, Callable[[Site, Words], Words]] = {
    "query": hello,
    "train": turn,
    "evaluate": results,
}
"""Handlers by type of message."""


def client_app() -> ClientApp:
    """The ClientApp of a project that `fkl flower init` has written."""
    app = ClientApp()
    for kind, answer in ANSWERS.items():
        getattr(app, kind)()(_answer_with(answer))
    return app


def _answer_with(answer: Callable[[Site, Words], Words]) -> Callable[[Message, Context], Message]:
    """The function that Flower calls. Errors are printed only at the site, because a message may quote a cell."""

    def reply(message: Message, context: Context) -> Message:
        # A site answers each message; a fault is an answer, too
        try:
            given = dict(message.content[ABOUT])
            words: Words = answer(Site(context, given), given)
        except FklError as error:
            words = {"refused": "it cannot answer; see the output of fkl flower site there"}
            if isinstance(number := context.node_config.get("site"), int):
                words["site"] = number
            print_refusal(error)
        return Message(RecordDict({ABOUT: ConfigRecord(words)}), reply_to=message)

    return reply
