"""Methods with a server and clients; each party computes only with its own data and with messages.

`Federated` methods learn from streams, `OnBatches` methods from all samples of a client in every round, and `OneShot`
methods from all samples in one round.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, choose_branch
from fkl.basics.errors import FklError
from fkl.basics.keys import Keys
from fkl.basics.random_streams import Role, Streams
from fkl.contract.world import ClientRows, Common, Outcome, World
from fkl.data.problem import MOST_CLASSES
from fkl.kernels.threads import in_parts
from fkl.wire.payloads import Ragged


@dataclass(frozen=True)
class Samples:
    """The samples of clients in a round.

    Parameters
    ----------
    x : (K, d)
    y : (K,) float64
        Targets, revealed after the prediction.
    present : (K,) bool
        Whether a client takes part in this round.
    """

    x: Array
    y: NDArray[np.float64]
    present: NDArray[np.bool_]

    def flipped(self) -> "Samples":
        """Samples with the sign of every target changed, -y."""
        return replace(self, y=-self.y)


@dataclass(frozen=True)
class Turn:
    """The round, the exchange, and the random numbers of the clients that compute in it.

    Parameters
    ----------
    t : int
        Round, from 0.
    exchange : int
        Number of the exchange in the round, from 0.
    streams : Streams
    clients : range
        Numbers of the clients that compute; the server has client 0's random numbers, in roles of its own.
    senders : (n,) int64, or None
        For the server: numbers of the clients whose messages it receives, in order; None for all clients.
    clients_present : int
        Number of clients that take part in this round, known to all parties; 0 on a graph.
    """

    t: int
    exchange: int
    streams: Streams
    clients: range
    senders: NDArray[np.int64] | None = None
    clients_present: int = 0

    def uniform(self, role: Role) -> NDArray[np.float64]:
        """A random number in [0, 1) for each replicate and client, (R, K); it does not depend on the other clients."""
        return self.streams.uniform(role, self.t, len(self.clients), self.clients.start)

    def vectors(self, role: Role, size: int, draw: int = 0) -> NDArray[np.float64]:
        """Random numbers in [0, 1) for each client, (R, K, size); `draw` is the number of the draw in the round."""
        return self.streams.vectors(role, self.t, self.clients, size, draw)


@dataclass
class StarState:
    """State of a federated method: the server's and the clients' states."""

    server: Any
    client: Any


class Federated(Keys):
    """Base class of methods whose clients communicate with a server.

    A method is a frozen dataclass, and its fields are its keys.

    You write `label`, a field `lam` (weight of the regulariser, 0 for none), and

    - ``start(common, clients) -> (server, client)``: states before the first round.
    - ``broadcast(common, server, turn) -> down``: the message to all clients, None for no message.
    - ``client(common, client, down, samples, turn) -> (client, up, outcome)``: predict from `samples.x` (K, d), then
      see `samples.y` (K,). `outcome` has y_hat (R, K) and losses (R, K, N); it is not None in one exchange of a round.
    - ``server(common, server, up, share, turn) -> server``: learn from messages; `share` (K,) weights clients in a
      mean. `up.theta.mean(share)` is the result of the server's aggregator, the mean unless a condition sets another.

    You may write `tell` (a broadcast that changes the server's state), `functions` (the learned functions, for
    predictions on new data), and the facts below, which conditions and engines rely on.

    R are replicates, K clients, N kernels, P parameters of a kernel. States are dataclasses of arrays, R first;
    messages are dataclasses of payloads, see `fkl.wire.payloads`. Example, plain descent on the mean of all kernels,
    where `Theta` (of an array), `Down` and `Up` (of a payload) are dataclasses with the one field theta::

        @dataclass(frozen=True)
        class Plain(Federated):
            label: ClassVar[str] = "Plain descent"
            lam: float = 0.0
            eta: float = 0.1

            def start(self, common, clients):
                return Theta(np.zeros((common.bank.replicates, common.bank.kernels, common.bank.width))), None

            def broadcast(self, common, server, turn):
                return Down(SameForAll(server.theta))

            def client(self, common, client, down, samples, turn):
                theta = down.theta.values  # (R, N, P)
                f = common.bank.predict(samples.x, theta)  # (R, K, N)
                residual = f - samples.y[:, None]
                norm = partial(mixture_norm, np.full_like(f, 1 / f.shape[-1]), theta)
                up = Up(FeatureGradients(common.bank, samples.x, 2 * residual, theta, self.lam))
                return None, up, Outcome(f.mean(axis=-1), residual**2, norm)

            def server(self, common, server, up, share, turn):
                return Theta(server.theta - self.eta * up.theta.mean(share))

    A round repeats broadcast, client, server `exchanges` times. A simulation calls `client` once for all clients, and a
    client on its own machine calls it with K = 1, so a client's results must not depend on the others. The arguments
    include absent clients, whose state must not change (see `samples.present`). No function changes its arguments,
    except that a client may overwrite its own state.
    """

    label: ClassVar[str]
    exchanges: ClassVar[int] = 1
    """Number of exchanges in a round; an exchange is messages down to the clients and up to the server."""
    exchanges_up: ClassVar[int | None] = None
    """Number of exchanges of a round in which clients send a message; None for all."""
    called_without_messages: ClassVar[bool] = False
    """Whether `server` is called, without a message, after an exchange in which no client answered."""
    hides_presence: ClassVar[bool] = False
    """Whether `server` is called with all messages, even of absent clients, after every exchange; the trusted server of
    a simulation then leaves these out. Only a condition sets it.
    """
    in_turn: ClassVar[bool] = False
    """Whether the server serves one client after another, with all exchanges of a round for each."""
    uses_sample_once: ClassVar[bool] = False
    """Whether a client's messages depend only on its newest sample and the server's messages, so each sample is used
    once."""
    message_of_one_sample: ClassVar[bool] = False
    """Whether a message depends on only one sample, and is not sent without a sample. False is always safe; True makes
    epsilon smaller. Conformance checks this fact and `uses_sample_once`.
    """
    silent: ClassVar[bool] = False
    """Whether no party sends anything."""
    draws_for_clients: ClassVar[bool] = False
    """Whether the server draws what it sends to and requests from each client, and weights answers by that draw's
    odds."""
    choices_reveal_data: ClassVar[bool] = True
    """Whether a client's data decide if it sends, or which entries it sends; noise cannot hide that. True is always
    safe; privacy=local needs False, and conformance checks it.
    """

    means_only: ClassVar[bool] = True
    """Whether the server reads messages only through `mean`, which uses its aggregator: the plain mean over clients,
    added up in a fixed order, unless a condition sets another aggregator.
    """
    not_traceable: ClassVar[str]
    """Why JAX cannot trace the rounds; empty if it can, because the functions use arrays of `common.xp`, and never
    branch on their values. A class without this fact cannot be traced.
    """

    in_conditions: ClassVar[bool] = True
    """Whether conditions can change the messages; they cannot if messages are samples."""

    @property
    def all_at_once(self) -> bool:
        """Whether a round is the `step` below, with all messages at once, so clients may run on other machines."""
        return type(self).step is Federated.step and not self.in_turn

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """States of the server, and of this many clients; BadValue for keys that do not fit the common knowledge."""
        raise NotImplementedError

    def broadcast(self, common: Common, server: Any, turn: Turn) -> Any:
        """The server's message to all clients, None for no message."""
        raise NotImplementedError

    def tell(self, common: Common, server: Any, turn: Turn) -> tuple[Any, Any]:
        """The server's state after its message, and the message: here the unchanged state, and that of `broadcast`."""
        return server, self.broadcast(common, server, turn)

    def client(self, common: Common, client: Any, down: Any, samples: Any, turn: Turn) -> tuple[Any, Any, Any]:
        """A client's new state, its message (None for no message), and its outcome (None except in one exchange)."""
        raise NotImplementedError

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """The server's new state, from messages and clients' shares (K,) in a mean, 0 if absent or too late."""
        raise NotImplementedError

    def given(self, world: World, t: int) -> tuple[Any, NDArray[np.float64]]:
        """The samples that `client` gets in a round, and each client's share (K,) in a mean."""
        x, y, share = world.problem.round(t)
        return Samples(x, y, share > 0), share

    def init(self, world: World) -> StarState:
        """All parties before the first round."""
        return StarState(*self.start(world.common, world.problem.clients))

    def step(self, world: World, state: StarState, t: int) -> tuple[StarState, Outcome]:
        """Run one round of all parties, whose messages pass through the channel."""
        common, channel = world.common, world.channel
        samples, share = self.given(world, t)
        server, client, shown, clients_present = state.server, state.client, None, world.clients_present(t)
        for exchange in range(self.exchanges):
            players = (range(1), range(world.problem.clients))
            alone, everyone = (
                Turn(t, exchange, world.streams, numbers, clients_present=clients_present) for numbers in players
            )
            server, down = self.tell(common, server, alone)
            client, up, outcome = self.client(common, client, channel.down(down), samples, everyone)
            up = channel.up(up)
            arrived_share = channel.shares_in_time(share)
            anyone = self.hides_presence or channel.any_answer(arrived_share, clients_present)
            # Late clients are ignored: only clients whose answers have arrived have a share.
            if self.called_without_messages:
                server = self.server(common, server, up if anyone else None, arrived_share, alone)
            else:
                learn = partial(self.server, common, server, up, arrived_share, alone)
                # `anyone` cannot be in an `if`, because an engine may trace the round
                server = choose_branch(anyone, learn, partial(lambda state: state, server))
            shown = outcome if shown is None else shown
        assert shown is not None, f"{type(self).__name__}: no exchange of a round returns a prediction"
        return StarState(server, client), shown


def all_samples(world: World, t: int) -> tuple[ClientRows, NDArray[np.float64]]:
    """All samples of the clients in a round, and an equal share for each present client."""
    here = world.present(t)
    return replace(world.held, present=here), here / world.common.xp.maximum(here.sum(), 1)


class OnBatches(Federated):
    """Base class of methods with a server, whose clients have all their samples from the start.

    You write `label`, `lam`, `start`, `broadcast`, `client` and `server` as for `Federated`, except that `client` gets
    `ClientRows` samples (all samples of a client: x (n, d), y (n,), count (K,)), and returns theta (R, K, P) as its
    outcome, once per round. You may write `judged_in`, if theta does not belong to random features.

    The task is `fkl.tasks.batch.BatchTask`, which has the same columns for it as for agents on a graph.
    """

    not_traceable: ClassVar[str] = "its equations are factored on the host, by what clients have sent so far"

    def given(self, world: World, t: int) -> tuple[ClientRows, NDArray[np.float64]]:
        """All samples in every round."""
        return all_samples(world, t)

    def judged_in(self, world: World) -> tuple[Any, Any] | None:
        """The training and test samples as `Rows` in theta's feature space; None for random features."""
        return None


Predictors = tuple[Callable[[NDArray[Any]], NDArray[Any]], ...]
"""A function per replicate from samples (n, d) to targets (n,), NaN if undecided; plain data, for checkpoints."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Fitted:
    """Results of a method that learns once, with one entry per replicate.

    Parameters
    ----------
    predict : tuple of callables
        Functions from samples (n, d) to targets (n,); NaN if the method is undecided.
    figures : mapping of str to (R,)
        Figures that the run records in addition to errors.
    of_clients : mapping of str to (R, K)
    """

    predict: Predictors
    figures: Mapping[str, NDArray[Any]]
    of_clients: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class CommonOfClasses(Common):
    """Common knowledge of all parties for classification, which includes the classes.

    Parameters
    ----------
    classes : tuple of (C,)
        Values of the target in each replicate, ascending.
    """

    classes: tuple[NDArray[np.float64], ...] = ()


class Owned(NamedTuple):
    """All samples of the clients in this process, by replicate and client.

    Parameters
    ----------
    x : Ragged of (n, d) float64
    y : Ragged of (n,) float64
    """

    x: Ragged
    y: Ragged

    def samples_of_replicate(self, r: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """One replicate's samples, client after client, and the index of each sample's client in this process."""
        x, y = self.x.values[r], self.y.values[r]
        return np.concatenate(x), np.concatenate(y), np.repeat(np.arange(len(y)), [len(one) for one in y])


class OneShot(Federated):
    """Base class of methods with a server that learn in a single round of a few exchanges.

    You write `label`, `exchanges`, `lam`, `start`, `broadcast`, `client` and `server` as for `Federated`, except that

    - `common` is a `CommonOfClasses`, which has the classes of each replicate;
    - `client` gets `Owned` samples, and returns `Predictors`, one per replicate, as its outcome in the last exchange;
    - `server` gets shares of 0, because it does not use a mean over clients;

    and ``told(server, client) -> (figures, of_clients)``: what the run records in addition to errors, arrays (R,) and
    (R, K) by name. You may set `uses_kernels` and `several_classes`.
    """

    not_traceable: ClassVar[str] = "it learns in one round: there is nothing to scan"
    uses_kernels: ClassVar[bool] = False
    """Whether the method uses the configuration's `kernels`."""
    several_classes: ClassVar[bool] = True
    """Whether it can learn more than two classes."""

    def told(self, server: Any, client: Any) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """Figures that a run records about the states after the last exchange, (R,), and those per client, (R, K)."""
        raise NotImplementedError

    def init(self, world: World) -> Predictors:  # type: ignore[override]
        """No predictors yet."""
        return ()

    def step(self, world: World, state: Predictors, t: int) -> tuple[Predictors, Fitted]:  # type: ignore[override]
        """Run all exchanges of all parties, whose messages pass through the channel; the predictors are the state."""
        common, samples, channel = common_with_classes(world), owned_samples(world), world.channel
        clients = world.problem.clients
        server, client = self.start(common, clients)
        shown: Any = None
        for exchange in range(self.exchanges):
            alone, everyone = (Turn(t, exchange, world.streams, range(size)) for size in (1, clients))
            down = channel.down(self.broadcast(common, server, alone))
            client, up, shown = self.client(common, client, down, samples, everyone)  # type: ignore[arg-type]
            server = self.server(common, server, channel.up(up), np.zeros(clients), alone)
        assert shown is not None, f"{type(self).__name__}: the last exchange returns no predictors"
        return shown, Fitted(shown, *self.told(server, client))


def common_with_classes(world: World) -> CommonOfClasses:
    """Common knowledge of all parties of a world, with the classes of each replicate.

    Raises
    ------
    fkl.basics.errors.FklError
        If a replicate's target has only one value, or too many values for classes.
    """
    classes = tuple(np.unique(world.problem.batches[r].part(True)[1]) for r in world.streams.replicates)
    for classes_of_replicate in classes:
        if not 2 <= len(classes_of_replicate) <= MOST_CLASSES:
            raise FklError(f"the target has {len(classes_of_replicate)} values; a classifier needs 2 to {MOST_CLASSES}")
    common = world.common
    both = {field.name: getattr(common, field.name) for field in fields(common)}
    return CommonOfClasses(**both, classes=classes)


def owned_samples(world: World) -> Owned:
    """Training samples of all clients, in float64 for every precision of the run."""
    x, y = [], []
    for r in world.streams.replicates:
        features, target, client = world.problem.batches[r].part(True)
        # Samples are stored client after client.
        begins = np.searchsorted(client, np.arange(1, world.problem.clients))
        x.append(tuple(np.split(features.astype(np.float64), begins)))
        y.append(tuple(np.split(target, begins)))
    return Owned(Ragged(tuple(x)), Ragged(tuple(y)))


def by_replicate(work: Callable[[int], Item], replicates: int) -> list[Item]:
    """The result of `work` for each replicate's number; several run at a time, because replicates share nothing."""
    made: list[Any] = [None] * replicates

    def some(begin: int, end: int) -> None:
        for r in range(begin, end):
            made[r] = work(r)

    in_parts(some, replicates)
    return made
