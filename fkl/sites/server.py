"""The server of the contract; it sees only messages of sites, and continues without sites that fail.

A round counts completely or not at all. If a site does not answer in time, the server discards the round and repeats it
without that site; the other sites discard it, too. The missing site is then absent, like an absent client in a
simulation. A site that has restarted in the meantime takes part in the repeated round.

For example, with three sites of 2 clients each, round 5 sends 6 clients' messages to sites 0, 1 and 2. Site 1 does not
answer within timeout-s, so the server restores its state from before the round, and repeats round 5 with 4 clients. The
parts in order: `train` is the run; `_wait_for_sites` waits for all sites, which `_poll_sites` asks and `_admit_site`
checks; a round is `_play_round`, which waits in `_await_sites` and runs `_play_exchanges`; an exchange is
`_exchange_messages`, or with secure sums `_sum_in_secret`, and both send and receive by `_answers_of_sites`;
`_collect_errors` asks for the sites' results.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from flwr.supercore.inflatable.inflatable_utils import pull_objects

from fkl.basics.errors import FklError, count_of, require
from fkl.basics.files import write_sealed
from fkl.basics.plain_data import NotPlainError
from fkl.conditions import accountant
from fkl.conditions.privacy import Central
from fkl.config.loading import Run
from fkl.contract.lone_party import LoneServer
from fkl.sites.clients import kind_of
from fkl.sites.configuration import SharedFacts, SiteRanges, common_scale, method_of, noise_of, require_site, run_of
from fkl.sites.masks import LEAST_OF_SUM, PHASES, Sum, without_padding
from fkl.sites.messages import (
    GONE,
    MessageNotFiniteError,
    Words,
    pull_answers,
    push_messages,
    require_like,
    words_of,
    words_of_answer,
)
from fkl.sites.states import (
    SEALED,
    Member,
    ServerProgress,
    project_of,
    read_state,
    to_arrays,
    to_bytes,
    unfinished_folder,
)
from fkl.sites.tables import Book, Errors, RoundTraffic
from fkl.sites.trial import GOES_ON, MARK
from fkl.wire.packets import Packet, read_packets, write_packets

PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
"""Seconds between two polls for answers, at first and at most; in between, a tenth of the time waited so far."""
ASK_S = 2.0
"""Seconds between two identity requests to a node that is not a site yet, or does not answer."""
LOOK_S = 1.0
"""Seconds between two polls for new nodes."""
WORD_S = 30.0
"""Seconds between two lines about what the server waits for."""
TABLES_S = 5.0
"""Seconds between two writes of the tables."""
BROKEN = (NotPlainError, KeyError, ValueError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""Errors that an answer can cause if it does not come from one of fkl's sites."""
SECURE = "secure sums: the server saw sums over sites, and no site's own message"
OPEN = "no secure sums: the server saw each site's messages; secure=pairwise hides them"
MEND = "its steps, or numbers that a site sent, are too large"


class SitesServer:
    """A server of sites.

    Parameters
    ----------
    run : Run
    grid : flwr.serverapp.Grid
    settings : mapping
        Settings of the project: `sites` (the first round begins when this many have reported their identity),
        `clients-per-site`, `timeout-s` (time limit of an answer), `report-every` (rounds between two reports of sites).
    folder : Path
        Folder of the server's files; its name is the name of the run at all sites.
    say : callable
        Receives one line at a time.
    """

    def __init__(self, run: Run, grid: Grid, settings: Any, folder: Path, say: Callable[[str], None] = print) -> None:
        self._run, self._grid, self._folder, self._say = run, grid, folder, say
        self._sites, self._clients_per_site = int(settings["sites"]), int(settings["clients-per-site"])
        self._timeout, self._report_every = float(settings["timeout-s"]), int(settings["report-every"])
        self._kind, self._project = kind_of(run), project_of(settings)
        self._least = LEAST_OF_SUM if "secure" in run.conditions else 1
        self.members: dict[int, Member] = {}
        self._asked: dict[str, int] = {}  # nodes that have not reported their identity yet, by the request
        self._again: dict[int, float] = {}  # time at which a node is asked again
        self._refused: dict[int, str] = {}
        self._out: dict[int, str] = {}  # sites that were refused twice for the same reason, and that reason
        self._next_word = 0.0
        self._nodes, self._next_look = list[int](), 0.0
        self._ends: dict[int, SiteRanges] = {}
        self._columns: list[str] = []
        self.lost = RoundTraffic()
        self._written = -np.inf

    # --- a run

    def train(self) -> None:
        """Run the remaining rounds, request the sites' results, and write all files."""
        # Continue from the last saved state if the folder has one
        self.now = now = self._wait_for_sites()
        method = method_of(self._run)
        self.server = LoneServer(method, now.known.common_facts(self._run), now.known.clients)
        if now.book.rounds:
            self.server.state = now.server
        self._exchanges, self._hears_silence = method.exchanges, method.called_without_messages
        self._example = self._kind.example(self._run, now.known)
        # A round, and from time to time the errors of all sites
        for t in range(now.book.rounds, now.known.rounds):
            self._say(self._play_round(t))
            if t + 1 == now.known.rounds or (t + 1) % self._report_every == 0:
                now.book.errors[t + 1] = self._collect_errors()
            # Save after each round, so a killed server loses one round at most
            now.server, now.finished = self.server.state, t + 1 == now.known.rounds
            if now.finished or time.monotonic() > self._written + TABLES_S:
                self._write_tables()
            write_sealed(self._folder / SEALED, to_arrays(now))  # after the tables: a finished run has all files
        for line in self._summary_lines():
            self._say(line)

    def _wait_for_sites(self) -> ServerProgress:
        """Wait until all sites have reported their identity, and compute the common facts; or continue a run.

        Raises
        ------
        fkl.basics.errors.FklError
            If a new run has a site that cannot take part.
        """
        # A run that goes on: all sites are away until they report, and count the sums of the interrupted round, which
        # may have been seen
        now = read_state(self._folder / SEALED, ServerProgress)
        if now is not None:
            self._columns, self.members = list(now.known.columns), now.members
            for one in self.members.values():
                one.away, one.session = True, ""
            t = now.book.rounds  # the interrupted round, because its sums may have been seen
            for number in (c for k, one in now.members.items() for c in self._kind.present(now.known, k, one.rows, t)):
                now.summed[number] = now.summed.get(number, 0) + method_of(self._run).exchanges
        # Wait for the sites; a run that goes on does not wait for ever, because rounds do without some sites
        until, self._next_word = np.inf if now is None else time.monotonic() + self._timeout, time.monotonic() + WORD_S
        while missing := [k for k in range(self._sites) if k not in self.members or self.members[k].away]:
            if now is None and self._out:
                reasons = self._reasons_of_sites(sorted(self._out))
                raise FklError(f"the run cannot begin: {reasons}; correct this and start the run again")
            if {*missing} <= {*self._out} or time.monotonic() >= until:
                break
            self._poll_sites()
            self._pause_between_polls(f"waiting for {_names_of_sites(missing)}")
        # A new run: common facts such as the scale follow from all sites' reports
        if now is None:
            ends = [self._ends[k] for k in sorted(self._ends)]
            scale = common_scale(ends, self._run)
            rows = sorted(one.rows for one in self.members.values())
            rounds = self._kind.rounds(self._run, rows[-self._least], self._clients_per_site)
            known = SharedFacts(self._folder.name, self._sites, self._clients_per_site, rounds, ends[0].columns, scale)
            now = ServerProgress(
                self._project, known, None, self.members, Book.empty_record(rounds, self._sites), {}, {}
            )
        # Say what the run is, and how much of it is done
        self._words, self.known = words_of(now.known), now.known
        there = f"{count_of(self._sites, 'site')}, {count_of(self.known.clients, 'client')}"
        rounds_ = f"{count_of(self.known.rounds, 'round')}, {count_of(self.known.dimension, 'feature')}"
        done = f", {now.book.rounds} of them done" if now.book.rounds else ""
        self._say(f"{self._run.algo.label}: {there}, {rounds_}{done}")
        return now

    # --- who is connected

    def _poll_sites(self, silent: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        """Periodically ask unidentified or silent nodes for their identity, and process their answers."""
        # Look for new nodes from time to time, not in every poll
        now, playing = time.monotonic(), {one.node for one in self.members.values() if not one.away} - silent
        if now >= self._next_look:
            self._next_look, self._nodes = now + min(LOOK_S, self._timeout), list(self._grid.get_node_ids())
        # Ask those that are due, and process all answers that have arrived
        due = [n for n in self._nodes if n not in playing and now >= self._again.get(n, now)]
        self._again |= dict.fromkeys(due, now + min(ASK_S, self._timeout))
        question: dict[int, Words] = {n: {"run": self._folder.name} for n in due}
        self._asked |= push_messages(self._grid, question, "query", self._timeout, self.lost)
        for node, answer in pull_answers(self._grid, self._asked, self.lost):
            self._admit_site(node, words_of_answer(answer))

    def _admit_site(self, node: int, about: dict[str, Any]) -> None:
        """Process a node's report of its identity."""
        # Check the report, line by line: any mistake is a refusal with its reason
        k = -1
        try:
            if "site" in about or "refused" not in about:
                k = int(about["site"])
                require(0 <= k < self._sites, "site", k, f"a number from 0 to {self._sites - 1}")
            if "refused" in about:
                raise FklError(str(about["refused"]))
            rows, columns = int(about["rows"]), list(about["columns"])
            require_site(rows, columns, self._columns or columns, self._clients_per_site)
            low, high = (tuple(map(float, about[name])) for name in ("low", "high"))
            ends = SiteRanges(tuple(map(str, columns)), low, high, float(about["norm"]))
            ends.require_finite()
            # It may be a site that was away: then it must have the same rows and the same memory as before
            session, before = str(about["session"]), self.members.get(k, Member(node, rows, away=True))
            if k in self.members and not before.away and before.node != node:
                raise FklError(f"site {k} is node {before.node}, which is still connected")
            if rows != before.rows:
                raise FklError(f"it has {rows} rows, but had {before.rows}")
            if before.heard not in (int(about["heard"]), int(about["played"])):
                raise FklError(f"it has lost its memory of {count_of(before.heard + 1, 'round')}")
        # A refused node is asked again, since its user may correct the fault; the reason is printed once
        except (FklError, *BROKEN) as error:
            line = str(error) if isinstance(error, FklError) else f"its answer is not from fkl ({error})"
            of_ours = 0 <= k < self._sites
            if self._refused.get(node) != line:  # it is asked again and may give the same answer
                self._say(f"{f'site {k} (node {node})' if of_ours else f'node {node}'} cannot take part: {line}")
            elif of_ours and isinstance(error, FklError) and (k not in self.members or self.members[k].away):
                self._out[k] = line
            self._refused[node] = line
            return
        # Accepted: store it as a member, and say so unless nothing has changed
        self._refused.pop(node, None)
        self._out.pop(k, None)
        if (before.node, before.session, before.away) == (node, session, False):
            return  # it is a working member already
        self._columns, self._ends[k] = self._columns or columns, ends
        self._say(f"site {k} is {'back' if k in self.members else 'connected'}, {count_of(rows, 'row')}")
        self.members[k] = Member(node, rows, session, before.heard)

    def _await_sites(self, t: int) -> list[int]:
        """Sites that take part in round t; waits while too few sites with rows left are connected.

        Raises
        ------
        fkl.basics.errors.FklError
            If too many of these sites cannot take part any more.
        """
        self._next_word = 0.0
        # Only sites with clients in this round count, and only those that are connected
        while True:
            self._poll_sites()
            able = sorted(k for k in self.members if self._clients_present(k, t))
            here = [k for k in able if not self.members[k].away]
            if len(here) >= self._least:
                return here
            wanted = f"{count_of(self._least - len(here), 'more site')} with rows left"
            # If too few can ever take part, waiting has no end, so the run ends with the reasons
            out = [k for k in able if k in self._out]
            if len(able) - len(out) < self._least:
                reasons = self._reasons_of_sites(out)
                raise FklError(f"round {t + 1} needs {wanted}: {reasons}; correct this, then {GOES_ON}")
            self._pause_between_polls(f"round {t + 1}: waiting for {wanted}")

    def _reasons_of_sites(self, sites: list[int]) -> str:
        """Reasons why these sites cannot take part."""
        return "; ".join(f"site {k} cannot take part: {self._out[k]}" for k in sites)

    def _pause_between_polls(self, waiting: str) -> None:
        """Pause between two polls; from time to time, print a line about what the server waits for."""
        if time.monotonic() >= self._next_word:
            self._say(waiting)
            self._next_word = time.monotonic() + WORD_S
        time.sleep(PAUSE_S)

    def _clients_present(self, k: int, t: int) -> list[int]:
        """Clients of a site that take part in round t."""
        return self._kind.present(self.known, k, self.members[k].rows, t)

    # --- a round

    def _play_round(self, t: int) -> str:
        """Run one round, and repeat it without the sites that fail in it; return a line about it."""
        # The state from before the round, to which a failed round returns
        begun, state = time.perf_counter(), self.server.state
        while True:
            # Run all exchanges with the sites that are connected
            here = self._await_sites(t)
            asked = {k: replace(self.members[k]) for k in here}
            self.server.state, traffic = state, RoundTraffic()
            failed = self._play_exchanges(t, here, traffic)
            if not failed:
                break
            # A site that failed and is still the same process has not answered in time, so it is away. A site that
            # restarted takes part again
            for k in failed:
                self.members[k].away |= self._is_same_process(k, asked[k])
            gone = [k for k in failed if self.members[k].away]
            without = f"no answer of {_names_of_sites(gone)}; the round is repeated without" if gone else ""
            self._say(f"round {t + 1}: {without or f'{_names_of_sites(failed)} restarted; the round is repeated'}")
            # The round's bytes are lost, but they were sent, so count them
            self.lost.sent, self.lost.heard = self.lost.sent + traffic.sent, self.lost.heard + traffic.heard
        # The round counts: sites keep what they learned, and the book gets its bytes and its time
        for k in here:
            self.members[k].heard = t
        self.now.book.enter(here, traffic, seconds := time.perf_counter() - begun)
        return f"round {t + 1}: {_names_of_sites(here)}, {seconds:.1f} s"

    def _is_same_process(self, k: int, before: Member) -> bool:
        """Whether a site's process is the same as before."""
        return (self.members[k].node, self.members[k].session) == (before.node, before.session)

    def _play_exchanges(self, t: int, here: list[int], traffic: RoundTraffic) -> list[int]:
        """Run all exchanges of a round; return the sites that fail, with which the round is discarded."""
        # Every client has the same share in a mean
        clients = [number for k in here for number in self._clients_present(k, t)]
        share = np.full(len(clients), 1 / max(len(clients), 1))
        for exchange in range(self._exchanges):
            # Messages down, and `like`, the form that every answer must have
            down = dict(zip(clients, self.server.broadcast(t, exchange, clients), strict=True))
            like, _ = self._example.play(t, exchange, down[clients[0]], len(clients))
            answers = self._exchange_messages(t, exchange, here, down, like, traffic)
            # Without one site the round is void, because the messages of its clients would be missing
            failed = [k for k in here if k not in answers]
            if failed:
                return failed
            # Messages of clients that have none to send are None; the server's part of the method takes the others
            up = [packet for k in here for packet in answers[k] if packet is not None]
            for number in clients if up else ():
                self.now.summed[number] = self.now.summed.get(number, 0) + 1
            if here or self._hears_silence:
                self.server.take(t, exchange, up, share, np.array(clients, np.int64))
        return []

    def _exchange_messages(
        self,
        t: int,
        exchange: int,
        here: list[int],
        down: dict[int, Packet | None],
        like: Packet | None,
        traffic: RoundTraffic,
    ) -> dict[int, list[Packet | None]]:
        """Send each site its clients' messages, and return the answers, client by client, without sites that fail.

        All answers must have the form of the packet `like` and finite numbers.
        """
        # Write each site's packets, one for each of its clients
        said, is_secret = {}, like is not None and "secure" in self._run.conditions
        for k in here:
            packets = [down[number] for number in self._clients_present(k, t)]
            if is_secret:
                packets = [None if one is None else without_padding(one) for one in packets]
            arrays, forms = write_packets(packets)
            when = {"round": t, "exchange": exchange, "together": len(down), "heard": self.members[k].heard}
            said[k] = {**self._words, **when, "arrays": arrays, "forms": forms}
            traffic.down[k] = traffic.down.get(k, 0) + sum(one.size for one in packets if one is not None)
        # With secure sums, the server must not see a site's packets, so they are exchanged in phases of their own
        if is_secret and like is not None:
            return self._sum_in_secret(t, exchange, here, said, like, traffic)
        # Read the answers as they arrive, and check them against `like`
        packets_of: dict[int, list[Packet | None]] = {}
        slowest, diverged = 0.0, 0
        for k, about in self._answers_of_sites(said, "train", traffic, str(t + 1)):
            try:
                packets = read_packets(about["arrays"], about["forms"])
                if len(packets) != len(self._clients_present(k, t)):
                    raise ValueError("it does not have one message for each client")
                for packet in packets:
                    require_like(packet, like)
                slowest = max(slowest, float(about["seconds"]))
            # A wrong answer is treated like a missing one
            except BROKEN as error:
                self._say(f"site {k}: its answer is not from fkl ({error})")
                diverged += isinstance(error, MessageNotFiniteError)
                continue
            packets_of[k] = packets
            traffic.up[k] = traffic.up.get(k, 0) + sum(one.size for one in packets if one is not None)
        traffic.played += slowest
        # If all sites diverged, no repetition helps
        if diverged == len(here):
            label = self._run.algo.label
            raise FklError(f"round {t + 1}: no site has finite numbers left, so {label} has diverged; {MEND}")
        return packets_of

    def _sum_in_secret(
        self, t: int, exchange: int, here: list[int], said: dict[int, Words], like: Packet, traffic: RoundTraffic
    ) -> dict[int, list[Packet | None]]:
        """Exchange messages: the first client's one becomes the sum of all, and the others are empty.

        The messages between server and sites are those of `fkl.sites.masks`, not of a method.
        """
        secret = Sum(self._run.conditions["secure"], here, like)
        letters = dict.fromkeys(here, b"")
        # In each phase, every site sends a letter, and the server passes letters on
        for phase in range(PHASES):
            when = {"round": t, "exchange": exchange, "phase": phase, "threshold": secret.threshold}
            words = {k: {**(said[k] if phase == 0 else self._words), **when, "letter": letters[k]} for k in here}
            up: dict[int, bytes] = {}
            for k, about in self._answers_of_sites(words, "train", traffic, str(t + 1)):
                try:
                    secret.require_size(k, phase, letter := about["letter"])
                    traffic.played += float(about["seconds"]) / len(here)
                except BROKEN as error:
                    self._say(f"site {k}: its answer is not from fkl ({error})")
                    continue
                up[k] = letter
            # Bytes in both directions
            for k in here:
                traffic.down[k] = traffic.down.get(k, 0) + len(letters[k])
                traffic.up[k] = traffic.up.get(k, 0) + len(up.get(k, b""))
            # A site that is missing before the last phase makes the round void
            if phase < PHASES - 1:
                if len(up) < len(here):
                    return {k: [] for k in up}
                letters = secret.pass_on(phase, up)
        # The sum is the message of the first client; those of the others are empty
        try:
            packets = iter(secret.summed_packets(up, sum(len(self._clients_present(k, t)) for k in here)))
        except FklError as error:
            self._say(f"round {t + 1}: {error}")
            return {k: [] for k in up}
        return {k: [next(packets) for _ in self._clients_present(k, t)] for k in here}

    def _collect_errors(self) -> dict[int, Errors]:
        """Request the errors so far from the connected sites, which also write their predictions and models."""
        # Ask for errors, predictions and models; a site that is away is not asked
        question = self._words | {"played": self.now.book.rounds, "server": to_bytes(self.server.state)}
        said = {k: question | {"heard": one.heard} for k, one in self.members.items() if not one.away}
        errors_of = {}
        for k, about in self._answers_of_sites(said, "evaluate", self.lost, "results"):
            try:
                # A site cannot have judged more rows than it has
                names = ("error", "baseline", "target", "target_squared")
                errors_of[k] = Errors(int(about["rows"]), *(float(about[name]) for name in names))
                if not 0 <= errors_of[k].rows <= self.members[k].rows:
                    raise ValueError(f"{errors_of.pop(k).rows} rows, but it has {self.members[k].rows}")
                self.now.sent[k] = int(about["sent"])
            except BROKEN as error:
                self._say(f"site {k}: its report is not from fkl ({error})")
        # Name the sites that did not report, so a user knows whose numbers are missing
        if silent := [k for k in said if k not in errors_of]:
            theirs = "its errors, predictions and model" if len(silent) == 1 else "their errors, predictions and models"
            self._say(f"no report of {_names_of_sites(silent)}: {theirs} may be missing")
        return errors_of

    # --- Flower

    def _answers_of_sites(
        self, said: dict[int, Words], kind: str, traffic: RoundTraffic, group: str
    ) -> Iterator[tuple[int, Words]]:
        """Answers of sites as they arrive, until the time limit; none from sites that refuse or have restarted."""
        # Send the messages; a node that plays need not be asked for its identity for a while
        members = {k: replace(self.members[k]) for k in said}
        site_of = {one.node: k for k, one in members.items()}
        contents = {members[k].node: words for k, words in said.items()}
        asked, begun = push_messages(self._grid, contents, kind, self._timeout, traffic, group), time.monotonic()
        self._again |= {node: begun + ASK_S for node in site_of}
        ended: set[int] = set()  # nodes whose site may restart before the time limit
        # Collect answers until none is missing or the time is over
        while (asked or ended) and (waited := time.monotonic() - begun) < self._timeout:
            for node, answer in pull_answers(self._grid, asked, traffic):
                k = site_of[node]
                about = words_of_answer(answer)
                # The node has ended; its site may restart in time, and is then asked again in a repeated round
                if members[k].session and not answer.has_content() and answer.error.code in GONE:
                    ended.add(node)
                elif "refused" in about:
                    self._say(f"site {k}: {about['refused']}")
                else:
                    yield k, about
            # Do not wait for nodes whose site is another process now: it has lost the message
            if silent := ended | set(asked.values()):
                self._poll_sites({node for node in silent if members[site_of[node]].session})
                back = {node for node in silent if not self._is_same_process(k := site_of[node], members[k])}
                asked = {message: node for message, node in asked.items() if node not in back}
                ended -= back
                time.sleep(min(max(PAUSE_S, waited / 10), LONGEST_PAUSE_S))

    # --- files and words

    @property
    def _columns_of_errors(self) -> tuple[str, str]:
        return self._kind.columns(self._run)

    def _write_tables(self) -> None:
        rows, unit = {k: one.rows for k, one in self.members.items()}, float(self.known.scale.y_unit)
        self.now.book.write(self._folder, rows, self._columns_of_errors, unit)
        self._written = time.monotonic()

    def _summary_lines(self) -> Iterator[str]:
        """Lines about the result and its cost."""
        # What the privacy cost, if messages have noise; then errors, bytes and time
        book = self.now.book
        if noise_of(self._run) is not None:
            yield self._privacy_spent()
        yield from book.summary(self._columns_of_errors, float(self.known.scale.y_unit))
        for what, arrays, whole in (("uplink", book.up, book.heard), ("downlink", book.down, book.sent)):
            yield f"{what}: {arrays.sum()} bytes of arrays, in {whole.sum()} bytes of Flower's messages"
        yield (
            f"{book.seconds.sum():.1f} s in {count_of(book.rounds, 'round')}, "
            f"during which the slowest site computed for {book.played.sum():.1f} s"
        )
        yield SECURE if "secure" in self._run.conditions else OPEN
        yield f"files: {self._folder.resolve()}"

    def _privacy_spent(self) -> str:
        """Epsilon of all messages of a client; each sum, or each message, is one mechanism."""
        noise = noise_of(self._run)
        assert noise is not None
        if not accountant.INSTALLED:
            return accountant.MISSING
        is_central = isinstance(noise, Central)
        several = max((self.now.summed if is_central else self.now.sent).values(), default=0)
        epsilon = float(accountant.gaussian_epsilons(noise.noise, np.array([several]), noise.delta)[0])
        what = "sum" if is_central else "message"
        return f"epsilon_client {epsilon:.6g} for delta {noise.delta:g}, of {count_of(several, what)}"


def server_app() -> ServerApp:
    """The ServerApp of a project that `fkl flower init` has written."""
    app = ServerApp()
    app.main()(main)
    return app


def main(grid: Grid, context: Context) -> None:
    """Run the project's configuration, from the beginning or from where the last server ended."""
    given, out = context.run_config, Path(str(context.run_config["out"]))
    if trial := os.environ.get(MARK):
        Thread(target=_end_with, args=(int(trial.partition("-")[0]),), daemon=True).start()
    # If an answer's head arrives before its content, Flower waits a second, or three minutes if the site has ended in
    # between. Only these defaults set the times.
    pull_objects.__kwdefaults__ |= {"initial_backoff": PAUSE_S, "max_time": float(str(given["timeout-s"])) / 4}
    try:
        run = run_of(str(given["configuration"]))
        folder = unfinished_folder(out, given) or out / str(context.run_id)
        SitesServer(run, grid, given, folder, _print_line).train()
    except FklError as error:
        _print_line(f"error: {error}")
        raise


def _end_with(trial: int) -> None:
    """End this process once `fkl flower try` has ended, which does so itself unless it was killed."""
    with suppress(ProcessLookupError):
        while True:
            os.kill(trial, 0)  # sends nothing
            time.sleep(1)
    os._exit(1)  # an interruption would wait for the SuperLink, which was killed as well


def _print_line(line: str) -> None:
    print(line, flush=True)


def _names_of_sites(sites: list[int]) -> str:
    """Sites by their numbers."""
    words = f"site{'s' * (len(sites) > 1)} {', '.join(map(str, sites))}"
    return words if sites else "no site"
