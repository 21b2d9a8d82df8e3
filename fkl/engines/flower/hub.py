"""The server: it plays the server of the contract with messages of sites alone, and goes on without those that fail.

A round counts whole or not at all. Where a site does not answer in time, the server forgets the round and plays it
again without that site; the sites that were heard forget it, too. So a site that was away was absent, as clients of a
simulation are, and nothing else.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from fkl.basics.errors import FklError, plural, require
from fkl.basics.files import write_sealed, write_text
from fkl.basics.plain_data import NotPlainError
from fkl.conditions import accountant
from fkl.conditions.privacy import Central
from fkl.config import Run
from fkl.contract.lone_party import LoneServer
from fkl.engines.flower.configuration import Ends, Known, common_scale, method_of, noise_of, require_columns, run_of
from fkl.engines.flower.memory import to_arrays
from fkl.engines.flower.records import from_records, size_of, to_records
from fkl.engines.flower.words import ABOUT, arrays_of, words_of
from fkl.wire.packets import Packet

PAUSE_S = 0.2
"""Between two looks for answers."""
BROKEN = (NotPlainError, KeyError, ValueError, TypeError, AttributeError)
"""What an answer that no site of ours has made leads to."""
COLUMNS = ("round", "sites", "uplink_bytes", "downlink_bytes", "sent_by_flower", "heard_by_flower", "seconds")
"""Of rounds.csv."""


@dataclass
class Member:
    """A site that has said who it is.

    Parameters
    ----------
    node : int
        Of Flower.
    rows : int
    heard : int
        The last round that it was heard in, from 0; -1 for none.
    away : bool
        Whether it did not answer, and has not been back since.
    """

    node: int
    rows: int
    heard: int = -1
    away: bool = False


@dataclass
class Traffic:
    """Bytes and seconds of a round: of the arrays, which the ledger counts, and of Flower's messages in all.

    Parameters
    ----------
    up, down : dict of int to int
        Bytes of arrays by site.
    sent, heard : int
        Bytes of Flower's messages, serialised, the arrays among them, those that are equal once in each.
    seconds, played : float
        Of the round; of it those that the slowest site computed.
    """

    up: dict[int, int] = field(default_factory=dict)
    down: dict[int, int] = field(default_factory=dict)
    sent: int = 0
    heard: int = 0
    seconds: float = 0.0
    played: float = 0.0


class Hub:
    """A server of sites.

    Parameters
    ----------
    run : Run
    grid : flwr.serverapp.Grid
    sites : int
        How many there are: the first round begins when all have said who they are.
    clients_per_site : int
        How many clients each of them plays.
    timeout_s : float
        How long an answer is waited for.
    say : callable
        Told a line at a time.
    """

    def __init__(
        self,
        run: Run,
        grid: Grid,
        sites: int,
        clients_per_site: int,
        timeout_s: float,
        say: Callable[[str], None] = print,
    ) -> None:
        self._run, self._grid, self._timeout, self._say = run, grid, timeout_s, say
        self._sites, self._clients_per_site = sites, clients_per_site
        self.members: dict[int, Member] = {}
        self._asked: dict[str, int] = {}  # by message, nodes that were asked who they are, and have not said yet
        self._again: dict[int, float] = {}  # by node, when it is asked once more
        self._refused: dict[int, str] = {}
        self._ends: dict[int, Ends] = {}
        self._columns: list[str] = []
        self.rounds: list[tuple[list[int], Traffic]] = []
        self.lost = Traffic()
        self._summed: dict[int, int] = {}  # by client, sums that it was in, of rounds that did not count, too
        self._told = 0

    def train(self, after: Callable[[], object] = lambda: None) -> None:
        """Play all rounds, and call `after` at the end of each."""
        # Wait until all sites have said who they are, and find what they have in common.
        while len(self.members) < self._sites:
            self._poll_sites()
            time.sleep(PAUSE_S)
        rows, ends = [one.rows for one in self.members.values()], [self._ends[k] for k in sorted(self._ends)]
        scale = common_scale(ends, self._run.settings.scaling)
        length = -(-max(rows) // self._clients_per_site)
        known = Known(self._sites, self._clients_per_site, length, ends[0].columns, scale)
        self._words, self.known = words_of(known), known
        self.server = LoneServer(method := method_of(self._run), known.common(self._run), known.clients)
        self._exchanges, self._hears_silence = method.exchanges, method.called_without_messages
        there = f"{plural(self._sites, 'site')}, {plural(known.clients, 'client')}"
        rounds = f"{plural(known.rounds, 'round')}, {plural(known.dimension, 'feature')}"
        self._say(f"{self._run.algo.label}: {there}, {rounds}")
        for t in range(known.rounds):
            self._say(self._play_round(t))
            after()

    # --- who is there

    def _poll_sites(self) -> None:
        """Ask nodes that play no site who they are, now and then, and take in the answers that there are by now."""
        now, playing = time.monotonic(), {one.node for one in self.members.values() if not one.away}
        due = [n for n in self._grid.get_node_ids() if n not in playing and now >= self._again.get(n, now)]
        self._again |= dict.fromkeys(due, now + self._timeout)
        self._asked = {message: node for message, node in self._asked.items() if node not in due}
        self._asked |= self._push_messages(
            {n: RecordDict({ABOUT: ConfigRecord()}) for n in due}, "query", self._timeout
        )
        for node, answer in self._pull_answers(self._asked):
            self._admit_site(
                node, dict(answer.content[ABOUT]) if answer.has_content() else {"refused": str(answer.error)}
            )

    def _admit_site(self, node: int, about: dict[str, Any]) -> None:
        """Take in what a node says of itself."""
        try:
            if "refused" in about:
                raise FklError(str(about["refused"]))
            k, rows, columns = int(about["site"]), int(about["rows"]), list(about["columns"])
            require(0 <= k < self._sites, "site", k, f"a number from 0 to {self._sites - 1}")
            enough = f"at most {rows}, the rows of site {k}"
            require(self._clients_per_site <= rows, "clients-per-site", self._clients_per_site, enough)
            self._columns = self._columns or columns
            require_columns(columns, self._columns)
            before = self.members.get(k, Member(node, rows))
            if rows != before.rows:
                raise FklError(f"site {k} has {rows} rows, where it had {before.rows}")
            if before.heard not in (about["heard"], about["played"]):
                raise FklError(f"site {k} has lost its memory of {plural(before.heard + 1, 'round')}, and stays out")
        except FklError as error:
            if self._refused.get(node) != str(error):  # it is asked again, and may well say the same
                self._say(f"a node is not taken in: {error}")
            self._refused[node] = str(error)
            return
        self._ends[k] = Ends(tuple(columns), tuple(about["low"]), tuple(about["high"]), float(about["norm"]))
        self._say(f"site {k} is {'back' if k in self.members else 'there'}, {plural(rows, 'row')}")
        self.members[k] = Member(node, rows, before.heard)

    def _await_sites(self, t: int) -> list[int]:
        """Sites that play round t; where all that have a row left are away, the first of them that is back."""
        said = False
        while True:
            self._poll_sites()
            here = sorted(k for k, one in self.members.items() if not one.away and self._present(k, t))
            if here:
                return here
            if not said:
                self._say(f"round {t + 1}: no site with rows left is connected; waiting")
            said = True
            time.sleep(PAUSE_S)

    def _present(self, k: int, t: int) -> list[int]:
        """Clients of a site that play round t."""
        return self.known.present(k, self.members[k].rows, t)

    # --- a round

    def _play_round(self, t: int) -> str:
        """Play one round, again and again without those that fail in it, and tell of it."""
        begun, state = time.perf_counter(), self.server.state
        while True:
            here = self._await_sites(t)
            self.server.state, traffic = state, Traffic()
            failed = self._play_exchanges(t, here, traffic)
            if not failed:
                break
            for k in failed:
                self.members[k].away = True
            self._say(f"round {t + 1}: no answer of {_names_of_sites(failed)}; it is played again without")
            self.lost.sent, self.lost.heard = self.lost.sent + traffic.sent, self.lost.heard + traffic.heard
        for k in here:
            self.members[k].heard = t
        traffic.seconds = time.perf_counter() - begun
        self.rounds.append((here, traffic))
        return f"round {t + 1}: {_names_of_sites(here)}, {traffic.seconds:.1f} s"

    def _play_exchanges(self, t: int, here: list[int], traffic: Traffic) -> list[int]:
        """All exchanges of a round; those who do not answer, and then nothing of it counts."""
        clients = [number for k in here for number in self._present(k, t)]
        share = np.full(len(clients), 1 / max(len(clients), 1))
        for exchange in range(self._exchanges):
            down = dict(zip(clients, self.server.broadcast(t, exchange, clients), strict=True))
            answers = self._exchange(t, exchange, here, down, traffic)
            failed = [k for k in here if k not in answers]
            if failed:
                return failed
            up = [packet for k in here for packet in answers[k] if packet is not None]
            for number in clients if up else ():
                self._summed[number] = self._summed.get(number, 0) + 1
            if here or self._hears_silence:
                self.server.take(t, exchange, up, share, np.array(clients, np.int64))
        return []

    def _exchange(
        self, t: int, exchange: int, here: list[int], down: dict[int, Packet | None], traffic: Traffic
    ) -> dict[int, list[Packet | None]]:
        """What comes up from each site, client by client, of what went down; without sites that are too late."""
        said, of_node = {}, {self.members[k].node: k for k in here}
        for node, k in of_node.items():
            forms, content = [], RecordDict()
            for number in self._present(k, t):
                content[arrays_of(number)], form = to_records(down[number])
                forms.append(form)
            when = {"round": t, "exchange": exchange, "together": len(down), "heard": self.members[k].heard}
            content[ABOUT] = ConfigRecord({**self._words, **when, "forms": forms})
            traffic.down[k] = traffic.down.get(k, 0) + sum(map(size_of, content.array_records.values()))
            said[node] = content
        found: dict[int, list[Packet | None]] = {}
        slowest = 0.0
        for node, answer in self._answers(said, "train", traffic, str(t + 1)):
            k = of_node[node]
            try:
                about = dict(answer.content[ABOUT])
                if "refused" in about:
                    raise FklError(str(about["refused"]))
                each = zip(self._present(k, t), about["forms"], strict=True)
                found[k] = [from_records(answer.content[arrays_of(number)], form) for number, form in each]
                slowest = max(slowest, float(about["seconds"]))
            except (FklError, *BROKEN) as error:
                self._say(f"site {k}: {error}")
                continue
            traffic.up[k] = traffic.up.get(k, 0) + sum(map(size_of, answer.content.array_records.values()))
        traffic.played += slowest
        return found

    def collect_results(self) -> dict[int, tuple[int, float]]:
        """Rows predicted and summed squared error of each site that is there at the end, by its number."""
        here = {one.node: k for k, one in self.members.items() if not one.away}
        said = {
            node: RecordDict({ABOUT: ConfigRecord({**self._words, "heard": self.members[k].heard})})
            for node, k in here.items()
        }
        told = {}
        for node, answer in self._answers(said, "evaluate", self.lost, "end"):
            about = dict(answer.content[ABOUT]) if answer.has_content() else {}
            if "rows" in about:
                told[here[node]] = int(about["rows"]), float(about["squared_error"])
                self._told = max(self._told, int(about["told"]))
        return told

    # --- Flower

    def _answers(
        self, said: dict[int, RecordDict], kind: str, traffic: Traffic, group: str
    ) -> Iterator[tuple[int, Message]]:
        """Answers of nodes as they come, for as long as is waited for them."""
        asked, until = self._push_messages(said, kind, self._timeout, traffic, group), time.monotonic() + self._timeout
        while asked and time.monotonic() < until:
            for node, answer in self._pull_answers(asked, traffic):
                if answer.has_content():
                    yield node, answer
                else:
                    self._say(f"node {node}: {answer.error.reason.partition('. ')[0]}")
            if asked:
                time.sleep(PAUSE_S)

    def _push_messages(
        self,
        said: dict[int, RecordDict],
        kind: str,
        ttl: float | None,
        traffic: Traffic | None = None,
        group: str = "",
    ) -> dict[str, int]:
        """Send each node what is for it; nodes by the identity of the message that they were sent."""
        traffic, messages = traffic or self.lost, []
        for node, content in said.items():
            messages.append(Message(content, dst_node_id=node, message_type=kind, ttl=ttl, group_id=group))
        if not messages:
            return {}
        sent = dict(zip(self._grid.push_messages(messages), said, strict=True))
        traffic.sent += sum(map(serialised, messages))
        return sent

    def _pull_answers(self, asked: dict[str, int], traffic: Traffic | None = None) -> list[tuple[int, Message]]:
        """Answers that have come, which are asked for no more."""
        traffic, came = traffic or self.lost, []
        for answer in self._grid.pull_messages(list(asked)) if asked else ():
            node = asked.pop(answer.metadata.reply_to_message_id, None)
            if node is not None:
                traffic.heard += serialised(answer)
                came.append((node, answer))
        return came

    # --- what is left of it

    def write(self, folder: Path, told: dict[int, tuple[int, float]]) -> None:
        """Leave rounds.csv, sites.csv and server.sealed, what the server has learned, in a folder."""
        rows = [
            (t + 1, " ".join(map(str, here)), sum(one.up.values()), sum(one.down.values()), one.sent, one.heard)
            for t, (here, one) in enumerate(self.rounds)
        ]
        seconds = [one.seconds for _, one in self.rounds]
        lines = [",".join(map(str, (*row, f"{took:.3f}"))) for row, took in zip(rows, seconds, strict=True)]
        write_text(folder / "rounds.csv", "\n".join([",".join(COLUMNS), *lines, ""]))
        lines = ["site,rows,rounds,uplink_bytes,downlink_bytes,mse"]
        for k, one in sorted(self.members.items()):
            up, down = (sum(getattr(each, name).get(k, 0) for _, each in self.rounds) for name in ("up", "down"))
            rounds = sum(k in here for here, _ in self.rounds)
            mse = told[k][1] / max(told[k][0], 1) if k in told else float("nan")
            lines.append(f"{k},{one.rows},{rounds},{up},{down},{mse!r}")
        write_text(folder / "sites.csv", "\n".join([*lines, ""]))
        write_sealed(folder / "server.sealed", to_arrays(self.server.state))

    def summary(self, told: dict[int, tuple[int, float]]) -> Iterator[str]:
        """What it came to, and beside it what Flower itself took."""
        traffic = [one for _, one in self.rounds]
        rows, error = sum(one[0] for one in told.values()), sum(one[1] for one in told.values())
        if noise_of(self._run) is not None:
            yield self._privacy_spent()
        elif rows:
            yield f"mse {error / rows:.6g}, of {plural(rows, 'prediction')} at {plural(len(told), 'site')}"
        for what, name, whole in (("uplink", "up", "heard"), ("downlink", "down", "sent")):
            arrays = sum(sum(getattr(one, name).values()) for one in traffic)
            messages = sum(getattr(one, whole) for one in traffic)
            beside = "bytes of Flower's messages, each with equal arrays once"
            yield f"{what}: {arrays} bytes of arrays, {messages} {beside}"
        seconds, played = sum(one.seconds for one in traffic), sum(one.played for one in traffic)
        yield f"{seconds:.1f} s in {plural(len(traffic), 'round')}, of which the slowest site computed {played:.1f} s"

    def _privacy_spent(self) -> str:
        """What the noise is worth, of all that a client has sent: one mechanism for each sum, or for each message."""
        noise = noise_of(self._run)
        assert noise is not None
        if not accountant.INSTALLED:
            return accountant.MISSING
        several = max(self._summed.values(), default=0) if isinstance(noise, Central) else self._told
        epsilon = float(accountant.epsilons(noise.noise, np.array([several]), noise.delta)[0])
        what = "sum" if isinstance(noise, Central) else "message"
        return f"epsilon_client {epsilon:.6g} for delta {noise.delta:g}, of {plural(several, what)}"


def serialised(message: Any) -> int:
    """Bytes of a message as Flower stores and sends it: of all that it holds, what is the same once."""
    return sum(_objects(message).values())


def _objects(holder: Any) -> dict[str, int]:
    """Bytes of an object of Flower and of all that it holds, by what tells objects apart."""
    found = {holder.object_id: len(holder.deflate())}
    for child in (holder.children or {}).values():
        found |= _objects(child)
    return found


def server_app() -> ServerApp:
    """The ServerApp of a project that `fkl flower init` has written."""
    app = ServerApp()
    app.main()(main)
    return app


def main(grid: Grid, context: Context) -> None:
    """Play the run that the project's configuration says."""
    given = context.run_config
    run = run_of(str(given["configuration"]))
    hub = Hub(run, grid, int(given["sites"]), int(given["clients-per-site"]), float(given["timeout-s"]), _say)
    folder = Path(str(given["out"])) / str(context.run_id)
    hub.train(after=lambda: hub.write(folder, {}))  # so that something is left of a run that is stopped
    told = hub.collect_results()
    hub.write(folder, told)
    for line in hub.summary(told):
        _say(line)
    _say(f"files: {folder}")


def _say(line: str) -> None:
    print(line, flush=True)


def _names_of_sites(sites: list[int]) -> str:
    """Sites by their numbers."""
    words = f"site{'s' * (len(sites) > 1)} {', '.join(map(str, sites))}"
    return words if sites else "nobody"
