"""Real sites under Flower, played in this process: what each predicts and sends is what the simulation says."""

import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import LOCAL_TRAINING

pytest.importorskip("flwr", reason="needs the extra flower")
from flwr.app import ConfigRecord, Message, RecordDict
from sites.played import ROWS, WORDS, InProcess, compared, simulated, write_files

import fkl
from fkl.basics.errors import FklError
from fkl.basics.plain_data import NotPlainError
from fkl.basics.random_streams import Role, Streams
from fkl.conditions import accountant
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.runs.model import load_model
from fkl.sites.configuration import OfSites, run_of
from fkl.sites.masks import message_residues
from fkl.sites.server import SitesServer
from fkl.sites.site import client_app
from fkl.sites.states import unfinished_folder
from fkl.sites.trial import GOES_ON
from fkl.wire.packets import Packet, read_packets, write_packets
from fkl.wire.payloads import to_bits

RUN = "left"
"""Name of the run: that of the server's folder."""
METHODS = {
    "em_kofl": (),
    "em_kofl-copy": ("algo.predictor=copy", "algo.losses=sum"),
    "fed_poe": (),
    "fomd_oms": (),
    "nco_oms": (),
    "ofmkl_avg": (),
    "ofskl": ("kernels=rbf_single",),
    "perfedavg": ("algo.local_steps=2", "scaling=unit_ball"),
    "pof_mkl": (),
    "pof_mkl-bins": ("algo.M=5", "algo.xi=0.5", "scaling=unit_box", "engine=numpy"),
    "pof_mkl-clipped": ("privacy=central", "privacy.clip=0.5"),
    "pof_mkl-bits": ("compression=uniform", "scaling=none"),
    "pof_mkl-median": ("aggregate=median",),
    "rf_gp": (),
    "vm_kofl": (),
    **dict.fromkeys(LOCAL_TRAINING, ()),
}
"""Every method that sites can play, by a name that begins with its own."""

ALWAYS = ("em_kofl", "em_kofl-copy", "pof_mkl-bins")
"""Those of `make test`: two that answer twice a round, and one whose sites draw. All are `make test-slow`."""
LONE = ("perfedavg", "pof_mkl-bins", "pof_mkl-bits")
"""Some that answer once a round."""


def each(*cases: tuple[Any, ...] | str) -> list[Any]:
    """Arguments of a test, slow where their method, which comes first, is not one of those that are always played."""
    of = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] not in ALWAYS)) for case in of]


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of sites in this process are there at once, or never come."""
    for name, seconds in (("PAUSE_S", 0.001), ("LOOK_S", 0.0), ("ASK_S", 0.0)):
        monkeypatch.setattr(f"fkl.sites.server.{name}", seconds)


def words_of(name: str) -> tuple[str, ...]:
    """Words for `fkl run`."""
    own = METHODS[name]
    fixed = [word for word in WORDS if not any(other.startswith("kernels=") and word == "kernels=rbf" for other in own)]
    return (f"algo={name.partition('-')[0]}", *fixed, *own)


def begun(
    words: tuple[str, ...],
    files: list[Path],
    fails: Callable[[int, Message], bool] = lambda node, message: False,
    timeout_s: float = 0.1,
    **more: Any,
) -> tuple[SitesServer, InProcess, list[str]]:
    """A server and its sites in this process, and the lines that the server will say."""
    own = {"sites": len(files), "clients-per-site": 1, "timeout-s": timeout_s, "report-every": 100}
    given = {
        "configuration": yaml.safe_dump(load_run(compose_config(*words)).resolved),
        **own,
        **more,
    }  # as of `fkl flower init`
    said: list[str] = []
    grid = InProcess(client_app(), given, files, fails)
    if hasattr(fails, "grid"):
        fails.grid = grid
    return SitesServer(run_of(given["configuration"]), grid, given, files[0].with_name(RUN), said.append), grid, said


def played(words: tuple[str, ...], files: list[Path], *fails: Any, **more: Any) -> tuple[SitesServer, list[str]]:
    """A whole run."""
    server, _, said = begun(words, files, *fails, **more)
    server.train()
    return server, said


def require_equal(server: SitesServer, words: tuple[str, ...], files: list[Path], per_site: int = 1) -> float:
    """Compare predictions to 1e-9 and bytes exactly; the largest difference."""
    largest, same, there = compared(words, files, files[0].with_name(RUN), RUN, per_site)
    assert largest < 1e-9
    assert same
    assert there.tolist() == present(server).tolist()
    return float(largest)


def present(server: SitesServer) -> np.ndarray:
    """Which sites counted in each round, (T, K)."""
    there: np.ndarray = server.now.book.here
    return there


@pytest.mark.parametrize("name", each(*METHODS))
def test_sites_predict_and_send_what_the_simulation_says(name: str, tmp_path: Path) -> None:
    """To 1e-9 and to the byte, though one site's rows are used up before the others'."""
    words, files = words_of(name), write_files(tmp_path)
    server, _ = played(words, files)
    assert sum(one.rows for one in server.now.book.last_errors.values()) == sum(ROWS)
    print(f"{name}: largest difference {require_equal(server, words, files):.1e}")


def test_sites_learn_two_classes(tmp_path: Path) -> None:
    """As the simulation does; the classes are the smallest and the largest target of all sites."""
    files, words = write_files(tmp_path), (*words_of("pof_mkl"), "algo.loss=logistic", "algo.eta=5")
    for file in files:
        rows = pd.read_csv(file)
        rows.assign(y=(rows["y"] > 10).astype(int)).to_csv(file, index=False)
    server, said = played(words, files)
    expected, _, _ = simulated(words, files, present(server))
    for k, file in enumerate(files):
        own = file.with_name(f"{file.stem}.site{k}.{RUN}")
        rows = pd.read_csv(own / "predictions.csv")
        f = np.array([expected.shown[row - 1]["y_hat"][k] for row in rows["row"]])
        assert rows["prediction"].tolist() == (f > 0).astype(int).tolist()
        told = server.now.book.last_errors[k]
        mistakes = np.where(f == 0, 0.5, rows["target"] != (f > 0))  # f = 0 names no class
        assert told.error == pytest.approx(mistakes.sum())
        assert load_model(own / "model.npz").classes.tolist() == [0, 1]
    assert any(line.startswith("all sites: error 0.") and "error_majority" in line for line in said)


@pytest.mark.parametrize("name", each("em_kofl", "fomd_oms", "pof_mkl-bins", "pof_mkl-bits", "rf_gp"))
def test_a_site_plays_several_clients(name: str, tmp_path: Path) -> None:
    """Each with every fourth of its rows: five rounds, the last one or two without some of them; and one misses two."""
    words, files = words_of(name), write_files(tmp_path)
    server, _ = played(words, files, Away(2, 1, 0, 2), **{"clients-per-site": 4})
    assert server.now.book.rounds == 5
    require_equal(server, words, files, per_site=4)
    assert not present(server)[1:3, 2].any() and present(server)[4, 2]


class Away:
    """A site whose node ends in a round, in one of its exchanges, and is back as another node some rounds later.

    Parameters
    ----------
    site, node : int
        What it is, and the node that it comes back as.
    begin, exchange : int
        From which of its messages on nothing comes.
    rounds : int
        For how many rounds.
    """

    def __init__(self, site: int, begin: int, exchange: int, rounds: int, node: int = 200) -> None:
        self.site, self.begin, self.exchange, self.node = site, begin, exchange, node
        self.end, self.gone = begin + rounds, False
        self.grid: Any = None

    def __call__(self, node: int, message: Message) -> bool:
        """Whether this message stays without an answer."""
        about = message.content["about"]
        now = int(about.get("round", -1)), int(about.get("exchange", 0))
        if now[0] >= self.end and self.node not in self.grid.nodes:
            self.comes_back()
        if node != 100 + self.site:
            return False
        if now == (self.begin, self.exchange):
            self.gone = True
            self.grid.app(message, self.grid.nodes[node])  # it has learned, and nobody hears of it
        return self.gone

    def comes_back(self) -> None:
        """As a new node, that knows only what is in its file."""
        old = self.grid.nodes[100 + self.site].node_config
        self.grid.nodes[self.node] = self.grid.context(self.node, self.site, Path(str(old["path"])))


@pytest.mark.parametrize(
    ("name", "exchange"),
    each(("em_kofl", 0), ("em_kofl", 1), ("em_kofl-copy", 1), *((name, 0) for name in LONE)),
)
def test_a_site_that_was_away_was_absent(name: str, exchange: int, tmp_path: Path) -> None:
    """And nothing else: a round in which it fails is played again without it, and it goes on from its file."""
    words, files = words_of(name), write_files(tmp_path)
    away = Away(2, 5, exchange, 4)
    server, said = played(words, files, away)
    there = present(server)
    missed = np.flatnonzero(~there[:, 2])
    assert missed[0] == 5 and len(missed) >= 4 and there[-1, 2] and there[:, 0].all()
    assert "round 6: no answer of site 2; the round is repeated without" in said
    assert "site 2 is back, 20 rows" in said
    require_equal(server, words, files)


@pytest.mark.parametrize(
    ("lines", "said"),
    [("", "it has lost its memory of 5 rounds"), ("1,2,3,4\n", "it has 21 rows, but had 20")],
)
def test_a_site_that_comes_back_without_its_memory_or_with_another_file_stays_out(
    lines: str, said: str, tmp_path: Path
) -> None:
    words, files = words_of("pof_mkl"), write_files(tmp_path)

    class Changed(Away):
        def comes_back(self) -> None:
            files[2].write_text(files[2].read_text() + lines)
            if not lines:
                (tmp_path / f"site2.site2.{RUN}" / "memory").unlink()
            super().comes_back()

    server, told = played(words, files, Changed(2, 5, 0, 4))
    assert not present(server)[5:, 2].any()
    assert f"site 2 (node 200) cannot take part: {said}" in told


BATCHES = {
    "falkon": ("algo=falkon",),
    "scaffold": ("algo=scaffold", "algo.iterations=20", "algo.eta=0.5", "kernels=coke"),
}


@pytest.mark.parametrize("name", [*BATCHES, "pof_mkl"])
def test_what_the_server_and_its_sites_leave(name: str, tmp_path: Path) -> None:
    """Errors and bytes of a simulation whose clients are the sites, and models that predict as it does."""
    words, errors = words_of("pof_mkl"), ["mse", "mse_running_mean"]
    if name in BATCHES:  # which are tested on each client's last rows
        fixed = (word for word in WORDS if not word.startswith("kernels"))
        words, errors = (*BATCHES[name], *fixed, "algo.test_on=last", "algo.test_share=0.25"), ["test_mse"]
    files = write_files(tmp_path)
    _, said = played(words, files)
    whole = tmp_path / "whole.csv"
    pd.concat([pd.read_csv(file).assign(site=k) for k, file in enumerate(files)]).to_csv(whole, index=False)
    run = fkl.run(*words, f"dataset.path={whole}", "dataset.site=site", f"paths.outputs={tmp_path}", "save_model=true")
    rounds, sites = (pd.read_csv(tmp_path / RUN / f"{table}.csv") for table in ("rounds", "sites"))
    names = [*errors, "rmse_in_units", "r2"]
    np.testing.assert_allclose(rounds[names].iloc[-1], run.summary[names].iloc[0].astype(float), rtol=1e-8)
    np.testing.assert_allclose(sites[errors], run.clients.sort_values("site")[errors], rtol=1e-8)
    assert rounds["uplink_bytes"].sum() == sites["uplink_bytes"].sum() == run.summary["uplink_bytes"].iloc[0]
    assert (rounds["heard_by_flower"] > rounds["uplink_bytes"]).all()
    assert name != "pof_mkl" or sites["rounds"].tolist() == sites["predicted"].tolist() == list(ROWS)
    assert any(line.startswith("all sites: error ") for line in said)
    for k, file in enumerate(files):
        rows = pd.read_csv(file)
        model = load_model(tmp_path / f"site{k}.site{k}.{RUN}" / "model.npz")
        np.testing.assert_allclose(model.predict(rows), run.model.predict(rows, client=str(k)), rtol=1e-7)


SECURE = ("secure=pairwise", "secure.bits=48", "secure.fraction=30")


class GoneInPhase:
    """Sites that do not answer one phase of a secure sum, once."""

    def __init__(self, gone: dict[int, int]) -> None:
        self.gone = gone  # phase, by node

    def __call__(self, node: int, message: Message) -> bool:
        """Whether this message stays without an answer."""
        about = message.content["about"]
        if about.get("round") != 5 or about.get("phase") != self.gone.get(node):
            return False
        del self.gone[node]
        return True


@pytest.mark.parametrize("name", ["em_kofl", "vm_kofl"])
def test_secure_sums_are_those_of_the_simulation(name: str, tmp_path: Path) -> None:
    """Predictions, and the bytes of all letters: keys, shares, masked sums and what takes the masks off."""
    words, files = (*words_of(name), *SECURE), write_files(tmp_path, (9, 9, 9))
    server, _ = played(words, files)
    assert server.now.book.rounds == 9
    require_equal(server, words, files)


@pytest.mark.parametrize("phase", range(4))
def test_a_site_that_drops_out_of_a_secure_sum(phase: int, tmp_path: Path) -> None:
    """Before the last phase the round is played again with new masks; in the last the others' shares suffice."""
    words, files = (*words_of("vm_kofl"), *SECURE), write_files(tmp_path, (9,) * 5)
    server, said = played(words, files, GoneInPhase({102: phase}))
    assert ("round 6: no answer of site 2; the round is repeated without" in said) == (phase < 3)
    assert present(server).all()  # it answers again at once
    largest, same, _ = compared(words, files, tmp_path / RUN, RUN)
    assert largest < 1e-9
    assert same == (phase < 3)  # the last letter of site 2 is missing


@pytest.mark.parametrize("condition", [(), SECURE])
def test_the_server_holds_no_single_message(
    condition: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With secure sums neither what comes to it nor its files have a site's numbers; without them they do."""
    vectors, seen = list[bytes](), list[bytes]()

    def noted(packets: list[Packet | None]) -> Any:
        vectors.extend(write_packets([packet])[0] for packet in packets)
        return write_packets(packets)

    def residues_noted(packet: Packet, bits: int) -> Any:
        vector = message_residues(packet, bits)
        vectors.append(to_bits(vector, bits))
        return vector

    def pulled(grid: InProcess, names: list[str]) -> list[Message]:
        came = [grid.answers.pop(name) for name in names if name in grid.answers]
        seen.extend(one.content["about"].deflate() for one in came)
        return came

    monkeypatch.setattr("fkl.sites.site.write_packets", noted)
    monkeypatch.setattr("fkl.sites.site.message_residues", residues_noted)
    monkeypatch.setattr(InProcess, "pull_messages", pulled)
    played((*words_of("vm_kofl"), *condition), write_files(tmp_path, (4, 4, 4)))
    whole = b"".join([*seen, *(file.read_bytes() for file in (tmp_path / RUN).iterdir())])
    assert [vector in whole for vector in vectors] == [not condition] * 12


class Killed(Exception):
    """The server has ended."""


class Kills:
    """Ends processes when messages are sent, and starts them again: of the server, or of the site that is asked.

    Parameters
    ----------
    at : dict of int to str
        By the number of a message to play a round, from 0: "server", "site" before it has played, or "played", the site
        after it has, before anybody hears of it. If there are any, the server also ends once in each report, after a
        site has written its own.
    """

    def __init__(self, at: dict[int, str]) -> None:
        self.at, self.number, self.sessions, self.reports = at, -1, 0, 0
        self.grid: Any = None

    def __call__(self, node: int, message: Message) -> bool:
        """Whether this message stays without an answer."""
        self.reports += message.metadata.message_type == "evaluate"
        if self.at and message.metadata.message_type == "evaluate" and self.reports % 5 == 2:  # 2 sites and 3 again
            raise Killed
        if "round" not in message.content["about"]:
            return False
        self.number += 1
        what = self.at.get(self.number)
        if what == "server":
            raise Killed
        if what == "played":
            self.grid.app(message, self.grid.nodes[node])
        if what is not None:
            self.sessions += 1
            own = self.grid.nodes[node].node_config
            self.grid.nodes[node] = self.grid.context(node, own["site"], Path(own["path"]), f"session {self.sessions}")
        return what is not None


def files_left(folder: Path) -> dict[str, bytes]:
    """What a run has left, without seconds, and bytes of Flower's messages, some of which are digits of identities."""
    rounds = pd.read_csv(folder / RUN / "rounds.csv", dtype=str).drop(columns=["seconds", "heard_by_flower"])
    found = {"rounds": rounds.to_csv().encode()}
    for file in sorted(folder.glob("**/*")):
        if file.name in ("model.npz", "predictions.csv", "sites.csv"):
            found[str(file.relative_to(folder))] = file.read_bytes()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["em_kofl", "pof_mkl-bins"])
def test_kills_at_random_moments_change_nothing(name: str, tmp_path: Path) -> None:
    """Server and sites end at thirty moments, the same project is started again, and all bytes are as undisturbed."""
    words, left = words_of(name), []
    rng = np.random.default_rng(5)
    for folder, count in ((tmp_path / "calm", 0), (tmp_path / "killed", 30)):
        folder.mkdir()
        moments = rng.choice(150, count, replace=False)
        kills = Kills({int(n): str(rng.choice(["server", "site", "played"])) for n in moments})
        files = write_files(folder)
        server, grid, _ = begun(words, files, kills, timeout_s=20.0, **{"report-every": 7})
        restarts = 0
        while True:
            try:
                server.train()
                break
            except Killed:
                restarts += 1
                for node, k in zip(grid.nodes, range(3), strict=True):  # a new run of Flower has new contexts
                    grid.nodes[node] = grid.context(node, k, files[k], grid.nodes[node].node_config["session"])
                grid.answers.clear()
                server = SitesServer(
                    run_of(grid.configuration["configuration"]), grid, grid.configuration, folder / RUN, id
                )
        assert (restarts > 3) == (kills.sessions > 0) == (kills.reports == 15) == bool(count)
        left.append(files_left(folder))
    assert left[0] == left[1]
    assert server.now.book.here[:17].all()


def test_a_server_that_ends_before_its_last_tables_writes_them_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command goes on with the run: it has not ended without its tables."""
    words, files = words_of("pof_mkl-bins"), write_files(tmp_path, (2, 2, 2))
    write = SitesServer._write_tables

    def killed(server: SitesServer) -> None:
        if server.now.finished:
            raise Killed
        write(server)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(SitesServer, "_write_tables", killed)
        played(words, files)
    server, grid, _ = begun(words, files)
    assert unfinished_folder(tmp_path, grid.configuration) == tmp_path / RUN
    server.train()
    assert unfinished_folder(tmp_path, grid.configuration) is None
    require_equal(server, words, files)


NUMBERS = (math.nan, math.inf, -1, 2**64 - 1, 1.5, "word", [], True, b"bytes")


class Attacker:
    """A site whose answers to half of its messages are not what the method wants.

    Parameters
    ----------
    rng : numpy.random.Generator
    node : int
        Of the attacker.
    """

    def __init__(self, rng: np.random.Generator, node: int) -> None:
        self.rng, self.node, self.attacks = rng, node, 0
        self.grid: Any = None

    def __call__(self, node: int, message: Message) -> bool:
        """Whether the message stays without an answer; the attacker answers by itself."""
        if node != self.node or self.rng.random() < 0.5:
            return False
        self.attacks += 1
        answer = self.grid.app(message, self.grid.nodes[node])
        about = dict(answer.content["about"])
        name = str(self.rng.choice([*about, "forms", "arrays", "forms", "arrays"]))
        about[name] = self.changed(about[name]) if name in about else None
        if about[name] is None:
            del about[name]
        content = {"about": ConfigRecord(about)} if self.rng.random() < 0.95 else {}
        self.grid.answers[message.metadata.message_id] = Message(RecordDict(content), reply_to=message)
        return True

    def changed(self, value: Any) -> Any:
        """Another value, or None for none."""
        rng, kind = self.rng, self.rng.integers(4)
        if kind == 0:
            return None
        if isinstance(value, bytes) and value and kind < 3:
            cut = int(rng.integers(len(value)))
            return rng.choice([rng.bytes(len(value)), value[:cut], value * 2, b"\xff" * len(value)])
        if isinstance(value, str) and kind < 3:
            places = [place for place, letter in enumerate(value) if letter.isalnum()] or [0]
            place = int(rng.choice(places))
            return value[:place] + str(rng.choice([*"0179x-{", "999999999999", ""])) + value[place + 1 :]
        return NUMBERS[rng.integers(len(NUMBERS))]


def test_answers_that_no_site_would_give_end_in_a_line(tmp_path: Path) -> None:
    """Sixty random ones: each is refused or harmless, and other sites go on, unless its numbers are too large."""
    rng, attacks, diverged, number = np.random.default_rng(3), 0, 0, 0
    while attacks < 60:
        (folder := tmp_path / str(number)).mkdir()
        words, files = words_of(("em_kofl", "pof_mkl-bins", "vm_kofl")[number % 3]), write_files(folder)
        attacker, number = Attacker(rng, 101), number + 1
        with np.errstate(over="ignore"):
            try:
                server, said = played(words, files, attacker)
            except FklError as error:
                assert "no site has finite numbers left" in str(error)
                diverged += 1
                continue
            finally:
                attacks += attacker.attacks
        missed = int((~present(server)[:17, 1]).sum())
        assert present(server)[:, [0, 2]].all()
        named = [line for line in said if "site 1: " in line or re.search(r"node 101\)? cannot take part", line)]
        assert named or not missed
        assert np.isfinite([server.now.book.last_errors[k].error for k in (0, 2)]).all()
    assert diverged < number / 2


def test_a_site_that_sends_no_report_is_named(tmp_path: Path) -> None:
    """The errors of all sites are then those of the others."""

    def silent(node: int, message: Message) -> bool:
        return node == 101 and message.metadata.message_type == "evaluate"

    _, said = played(words_of("em_kofl"), write_files(tmp_path), silent)
    assert "no report of site 1: its errors, predictions and model may be missing" in said
    assert [line.startswith("site 1: error") for line in said].count(True) == 0


def test_a_file_that_cannot_be_read_is_refused_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At its site: the line may quote a cell. A site whose file is mended at once is taken in."""
    files = write_files(tmp_path)
    good = files[1].rename(tmp_path / "good.csv")
    pd.read_csv(good).assign(a="word").to_csv(files[1], index=False)
    server, _, said = begun(words_of("pof_mkl"), files, timeout_s=0.5)
    server._poll_sites()
    assert list(server.members) == [0, 2]
    [refused] = [one for one in said if "cannot take part" in one]
    assert refused == "site 1 (node 101) cannot take part: it cannot answer; see the output of fkl flower site there"
    assert "column a: 'word' is not a number" in capsys.readouterr().err
    good.rename(files[1])
    time.sleep(0.5)
    server._poll_sites()
    assert sorted(server.members) == [0, 1, 2]


def trained(server: SitesServer) -> FklError:
    """The error with which a run ends; one that waits for ever is a fault, and stays behind as a daemon."""
    ended: list[BaseException] = []

    def train() -> None:
        try:
            server.train()
        except BaseException as error:
            ended.append(error)

    thread = Thread(target=train, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "the server waits for ever"
    [error] = ended
    assert isinstance(error, FklError), error
    return error


@pytest.mark.parametrize(
    ("features", "per_site", "reason"),
    [
        ("zbc", 1, "its features are z, b, c, where the first site has a, b, c"),
        ("abc", 20, "clients-per-site=20: must be at most 17, the rows of the site"),
    ],
)
def test_a_run_with_a_site_that_cannot_take_part_ends(
    features: str, per_site: int, reason: str, tmp_path: Path
) -> None:
    """It does not wait for ever, and its last line names the site and the reason."""
    files = write_files(tmp_path)
    pd.read_csv(files[1]).set_axis([*features, "y"], axis=1).to_csv(files[1], index=False)
    server, _, said = begun(words_of("pof_mkl"), files, timeout_s=0.5, **{"clients-per-site": per_site})
    line = f"the run cannot begin: site 1 cannot take part: {reason}; correct this and start the run again"
    assert str(trained(server)) == line
    assert f"site 1 (node 101) cannot take part: {reason}" in said


def test_a_round_that_needs_a_site_which_cannot_come_back_ends(tmp_path: Path) -> None:
    """Of a secure sum three must take part; the third one has lost its memory."""
    files = write_files(tmp_path)

    def fails(node: int, message: Message) -> bool:
        if node == 102 and message.content["about"].get("round") == 5 and 200 not in grid.nodes:
            (tmp_path / f"site2.site2.{RUN}" / "memory").unlink()
            grid.nodes[200] = grid.context(200, 2, files[2])
        return node == 102 and 200 in grid.nodes

    server, grid, _ = begun((*words_of("vm_kofl"), *SECURE), files, fails, timeout_s=0.5)
    reason = "site 2 cannot take part: it has lost its memory of 5 rounds"
    line = f"round 6 needs 1 more site with rows left: {reason}; correct this, then {GOES_ON}"
    assert str(trained(server)) == line


@pytest.mark.parametrize(
    ("own", "line"),
    [
        ({"path": "rows.csv"}, "site=None: must be the site's number"),
        ({"site": 0}, "path=None: must be the file of the site's rows"),
        ({"site": 5, "path": ""}, "site=5: must be a number from 0 to 2"),
    ],
)
def test_a_node_that_does_not_say_who_it_is(
    own: dict[str, Any], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_files(tmp_path)
    server, grid, said = begun(words_of("pof_mkl"), files, timeout_s=0.5)
    grid.nodes[100].node_config = own | ({"path": str(files[0])} if own.get("path") == "" else {})
    server._poll_sites()
    assert line in "".join(said) + capsys.readouterr().err
    assert list(server.members) == [1, 2]


NOISY = ("privacy.clip=1", "privacy.noise=2", "scaling=none")


@pytest.mark.parametrize(("condition", "played_again"), [("central", 0), ("local", 1)])
def test_noise_is_counted_message_by_message(condition: str, played_again: int, tmp_path: Path) -> None:
    """By the accountant of simulations; of local noise also what was sent in a round that did not count."""
    words = (*words_of("pof_mkl"), f"privacy={condition}", *NOISY)
    server, said = played(words, write_files(tmp_path), Away(2, 5, 0, 1))
    rounds, again = int(present(server)[:, 0].sum()), played_again
    epsilon = float(accountant.gaussian_epsilons(2.0, np.array([rounds + again]), 1e-5)[0])
    what = "sums" if condition == "central" else "messages"
    assert f"epsilon_client {epsilon:.6g} for delta 1e-05, of {rounds + again} {what}" in said
    assert all(np.isnan(one.error) for one in server.now.book.last_errors.values())


@pytest.mark.parametrize("condition", ["central", "local"])
def test_noise_never_comes_again_and_all_else_does(condition: str, tmp_path: Path) -> None:
    """Though the seed is the same: sites know it."""
    words, thetas = (*words_of("pof_mkl"), f"privacy={condition}", *NOISY), []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        server, _ = played(words, write_files(tmp_path / name, (3, 3, 3)))
        held = server.server.state
        thetas.append(held.method.theta if hasattr(held, "method") else held.theta)
    assert not np.isclose(thetas[0], thetas[1], rtol=1e-12, atol=0).any(where=thetas[0] != 0)
    streams = OfSites(0, (0,))
    same = [streams.vectors(Role.SELECTION, 3, range(2), 50) for _ in range(2)]
    assert same[0].tobytes() == same[1].tobytes() == Streams(0, (0,)).vectors(Role.SELECTION, 3, range(2), 50).tobytes()
    other = [streams.own(range(1)).vectors(Role.PRIVACY, 3, range(1), 10000) for _ in range(2)]
    assert not (other[0] == other[1]).any()
    assert abs(np.corrcoef(other[0].ravel(), other[1].ravel())[0, 1]) < 0.06  # six standard deviations


@pytest.mark.parametrize("name", each("pof_mkl-bins"))
def test_sites_with_words_missing_cells_and_another_order_predict_what_the_simulation_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration says words and values; features are in the order of site 0, though site 2 reports first."""
    monkeypatch.setattr(InProcess, "get_node_ids", lambda grid: list(grid.nodes)[::-1])
    fixed = ("dataset.text=one_hot", "dataset.words={ward:[icu,other]}", "dataset.fill={a:0.5,ward:other}")
    words, files = (*words_of(name), *fixed), write_files(tmp_path)
    wards = (["icu", "surgery"], ["icu", None], ["maternity", "icu"])
    for file, order, of_site in zip(files, ("abc", "cab", "bca"), wards, strict=True):
        table = pd.read_csv(file)
        table.loc[::5, "a"] = None
        table["ward"] = [of_site[row % 2] for row in range(len(table))]
        table[["y", "ward", *order] if order == "cab" else [*order, "ward", "y"]].to_csv(file, index=False)
    server, _ = played(words, files)
    assert list(server.members) == [2, 1, 0]
    assert server.known.columns == ("a", "b", "c", "ward=icu", "ward=other")
    require_equal(server, words, files)


def test_a_message_can_name_nothing_that_is_not_loaded() -> None:
    """Nor anything that is more than data."""
    for name in ("antigravity:Thing", "subprocess:Popen", "fkl.basics.plain_data:GENERATORS"):
        form = json.dumps([{"message": name, "fields": {}}])
        with pytest.raises(NotPlainError):
            read_packets(b"", form)
