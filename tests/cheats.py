"""Methods that cheat, each in its own way; other processes import them from here."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar

import numpy as np

from fkl.algorithms.decentralized.odkla import Odkla
from fkl.algorithms.federated.descent import Gradients as Up
from fkl.algorithms.federated.descent import OfmklAvg, Parameters
from fkl.algorithms.federated.descent import Server as Theta
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.algorithms.federated.rf_gp import RfGp
from fkl.basics.arrays import Array
from fkl.basics.random_streams import Role, Streams
from fkl.contract.star import Federated, Samples, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.wire.payloads import PerClient, Ragged, SameForAll, Size, Summable


@dataclass(frozen=True)
class Down:
    """The mean of all targets so far, (R,)."""

    mean: SameForAll


@dataclass(frozen=True)
class Target:
    """A client's target (R, K)."""

    target: PerClient


@dataclass
class Server:
    """Sum of the clients' mean targets (R,), and of how many rounds."""

    total: Array
    count: int
    note: Any = None


@dataclass(frozen=True)
class RunningMean(Federated):
    """Predicts the mean of all targets so far, which clients send; each replicate starts from a number of its own.

    It does not cheat.
    """

    label: ClassVar[str] = "Running mean"
    lam: float = 0.0

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """One target, drawn."""
        drawn = [generator.random() for generator in common.streams.generators(Role.NETWORK_WEIGHTS)]
        return Server(np.array(drawn), 1), None

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Any:
        """The mean so far."""
        return Down(SameForAll(server.total / server.count))

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Predict it, and send the target."""
        y_hat = np.repeat(down.mean.values[:, None], len(samples.y), axis=1)
        target = PerClient(np.broadcast_to(samples.y, y_hat.shape))
        return client, Target(target), Outcome(y_hat, None, lambda: np.zeros(y_hat.shape))

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Add the clients' mean."""
        return Server(server.total + up.target.mean(share), server.count + 1, server.note)


class ServerReadsData(OfmklAvg):
    """The server looks into the factors of a payload for the clients' samples."""

    def server(self, common: Common, server: Theta, up: Up, share: Array, turn: Turn) -> Theta:
        """A step along the samples themselves."""
        theta = super().server(common, server, up, share, turn).theta
        return Theta(theta + 1e-3 * up.theta.x.mean())


class WeighsTwice(PofMkl):
    """Clients whose weights fall twice as fast as declared."""

    def client(
        self, common: Common, client: Any, down: Parameters, samples: Samples, turn: Turn
    ) -> tuple[Any, Up, Outcome]:
        """With twice the rate."""
        return PofMkl(eta_k=2 * common.rounds**-0.5).client(common, client, down, samples, turn)


class ForgetsTheOdds(PofMkl):
    """Clients that do not divide gradients by the probability with which they send them."""

    def gradients(self, *given: Any) -> Any:
        """With weights of 1."""
        *known, weight, chosen = given
        return super().gradients(*known, np.ones_like(weight) * chosen, chosen)


class StepsTwice(OfmklAvg):
    """A server with twice the declared step."""

    def server(self, common: Common, server: Theta, up: Up, share: Array, turn: Turn) -> Theta:
        """Both steps at once."""
        return Theta(2 * super().server(common, server, up, share, turn).theta - server.theta)


class CountsNoise(RfGp):
    """A server whose evidence counts a sample's noise twice."""

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """Once more than there are samples."""
        learned = super().server(common, server, up, share, turn)
        return replace(learned, evidence=learned.evidence - 0.5 * np.log(learned.noise))


class OneNumber(PerClient):
    """A payload that says it is one number, whatever it holds."""

    def wire_size(self, width: int) -> Size:
        """A single one."""
        one = np.ones((len(self.values), 1), np.int64)
        return Size(one, one * width)


class Understates(RunningMean):
    """A message that says it is smaller than it is."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Target and sample, as one number."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        everything = np.concatenate(
            [up.target.values[..., None], np.repeat(samples.x[None], len(up.target.values), 0)], -1
        )
        return client, Target(OneNumber(everything)), outcome

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Learn from all of it."""
        return Server(server.total + up.target.mean(share).sum(axis=-1), server.count + 1)


class ReadsOthers(RunningMean):
    """A client that sees the other clients' samples."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Predict with the mean of everybody's first feature."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        assert outcome is not None
        y_hat = outcome.y_hat + samples.x[:, 0].mean()
        return client, up, Outcome(y_hat, None, outcome.squared_norm)


class KnowsLabels(RunningMean):
    """A client that predicts its label with the label."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """A little of the label."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        assert outcome is not None
        return client, up, Outcome(outcome.y_hat + 1e-6 * samples.y, None, outcome.squared_norm)


HIDDEN: list[Any] = []
"""A variable of a module, which no message carries."""


class SharesAGlobal(RunningMean):
    """Clients that leave samples in a global variable, where the server finds them."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Leave the last client's sample there."""
        HIDDEN[:] = [float(samples.x[-1, 0])]
        return super().client(common, client, down, samples, turn)

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Look there."""
        server = super().server(common, server, up, share, turn)
        return Server(server.total + sum(HIDDEN), server.count)


class ByShape(RunningMean):
    """Clients whose message has no entries, and whose shape is their target."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Send nothing, so many columns of it."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        return client, Target(self.hidden(up.target.values)), outcome

    def hidden(self, y: Array) -> Any:
        """Targets (R, K) in what nobody books."""
        return Ragged(tuple(tuple(np.empty((0, int(abs(one) * 2**40))) for one in row) for row in y))

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Read it."""
        found = np.array([[self.read(one) for one in row] for row in up.target.values])
        return Server(server.total + found @ share, server.count + 1)

    def read(self, array: Array) -> float:
        """What a client has hidden."""
        return array.shape[1] / 2**40


class ByShapeOfEach(ByShape):
    """The same for all clients at once, of the largest target."""

    def hidden(self, y: Array) -> Any:
        """Columns without rows."""
        return PerClient(np.empty((*y.shape, 0, int(abs(y).max() * 2**20))))

    def read(self, array: Array) -> float:
        """The columns."""
        return array.shape[1] / 2**20


class ByByteOrder(ByShape):
    """The same by the order of the bytes of a number."""

    def hidden(self, y: Array) -> Any:
        """Whether it is above a half."""
        return Ragged(tuple(tuple(np.empty(0, ">f8" if one > 0.5 else "<f8") for one in row) for row in y))

    def read(self, array: Array) -> float:
        """One or none."""
        return float(array.dtype.byteorder == ">")


class ByType(ByByteOrder):
    """The same by a type that is native in either case."""

    def hidden(self, y: Array) -> Any:
        """Whether it is above a half."""
        return Ragged(tuple(tuple(np.empty(0, "f4" if one > 0.5 else "f8") for one in row) for row in y))

    def read(self, array: Array) -> float:
        """One or none."""
        return float(array.dtype.itemsize == 4)


class ByItemSize(ByByteOrder):
    """The same by the length of a word that is not there."""

    def hidden(self, y: Array) -> Any:
        """In thousandths."""
        return Ragged(tuple(tuple(np.empty(0, f"S{1 + int(1000 * abs(one))}") for one in row) for row in y))

    def read(self, array: Array) -> float:
        """In thousandths."""
        return array.dtype.itemsize / 1000


class BySubclass(ByByteOrder):
    """The same by a class of arrays of its own."""

    def hidden(self, y: Array) -> Any:
        """An array that knows more than its numbers."""

        class Knows(np.ndarray[Any, Any]):
            target = y

        return PerClient(np.zeros(y.shape).view(Knows))


class ByLowBits(RunningMean):
    """Clients that write their first feature into the bits of a float64 that a float32 has not."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """A target that is a float32, and a little more."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        target = up.target.values.astype(np.float32).astype(np.float64)
        return client, Target(PerClient(target + np.spacing(np.float32(1)) * 1e-3 * np.abs(samples.x[:, 0]))), outcome

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Read the feature."""
        y = up.target.values
        x = (y - y.astype(np.float32)) / (np.spacing(np.float32(1)) * 1e-3)
        return Server(server.total + (y + x) @ share, server.count + 1)


class OneForAll(OfmklAvg):
    """A server that says to each client what is the same for all."""

    def broadcast(self, common: Common, server: Theta, turn: Turn) -> Any:
        """The axis of kernels goes for that of clients."""
        return Parameters(PerClient(server.theta))


class ChangesTheAbsent(RunningMean):
    """Clients whose state goes on in rounds that they miss."""

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """Nothing so far."""
        return super().start(common, clients)[0], Own(np.zeros((len(common.streams.replicates), clients)))

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Predict with what it has counted, absent or not."""
        _, up, outcome = super().client(common, client, down, samples, turn)
        assert outcome is not None
        y_hat = outcome.y_hat + client.count
        return Own(client.count + 1), up, Outcome(y_hat, None, outcome.squared_norm)


@dataclass
class Own:
    """Rounds so far, (R, K)."""

    count: Array


FILE = f"fkl-cheat-{os.getuid()}.txt"


class ByFile(SharesAGlobal):
    """Clients that leave samples in a file, where the server finds them."""

    folder: ClassVar[str] = ""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Leave the first client's sample there."""
        if turn.clients.start == 0:
            Path(self.folder, FILE).write_text(str(float(samples.x[0, 0])))
        return RunningMean.client(self, common, client, down, samples, turn)

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Look there."""
        server = RunningMean.server(self, common, server, up, share, turn)
        file = Path(self.folder, FILE)
        return Server(server.total + (float(file.read_text()) if file.exists() else 0.0), server.count)


class ByFileOfAll(ByFile):
    """The same in a folder that all processes of a machine have."""

    folder = gettempdir()


class Late(ReadsOthers):
    """A client that is honest in as few rounds as a check has."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """See the others' samples from round 200 on."""
        return (ReadsOthers if turn.t >= 200 else RunningMean).client(self, common, client, down, samples, turn)


class Watched(ReadsOthers):
    """A client that is honest while it is checked."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """See the others' samples where no check is at work."""
        kind = RunningMean if "fkl.conformance" in sys.modules else ReadsOthers
        return kind.client(self, common, client, down, samples, turn)


class ServerWritesIntoItsState(RunningMean):
    """A server that changes the state that it is given."""

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """In place."""
        server.total += up.target.mean(share)
        return Server(server.total, server.count + 1)


class SharesState(RunningMean):
    """A server and clients that hold one and the same object."""

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """The same for both."""
        server, _ = super().start(common, clients)
        return server, server

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Write down what the server is to know."""
        _, up, outcome = super().client(common, client, down, samples, turn)
        client.note = float(samples.x[0, 0])
        return client, up, outcome

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Read it."""
        return Server(server.total + up.target.mean(share) + (server.note or 0.0), server.count + 1)


class ServerDrawsABin(PofMkl):
    """A server that draws the number which decides a client's bin."""

    def server(self, common: Common, server: Theta, up: Up, share: Array, turn: Turn) -> Theta:
        """Learn, and a little of that number."""
        theta = super().server(common, server, up, share, turn).theta
        return Theta(theta + 1e-12 * turn.uniform(Role.SELECTION).mean())


class ServerDrawsAllBins(PofMkl):
    """The same of all clients."""

    def server(self, common: Common, server: Theta, up: Up, share: Array, turn: Turn) -> Theta:
        """Learn, and a little of these numbers."""
        theta = super().server(common, server, up, share, turn).theta
        return Theta(theta + 1e-12 * common.streams.uniform(Role.SELECTION, turn.t, len(share)).mean())


class DrawsOthers(RunningMean):
    """A client that draws what the next one draws."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Look at it."""
        common.streams.private(Role.SELECTION, turn.clients.stop, turn.t, 1)
        return super().client(common, client, down, samples, turn)


class AsksForTheSeed(RunningMean):
    """A client that makes everybody's streams of the seed."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Draw as the next client would."""
        Streams(common.streams.seed, (0,)).private(Role.SELECTION, turn.clients.stop, turn.t, 1)
        return super().client(common, client, down, samples, turn)


class Dies(RunningMean):
    """A client that ends its process, where that is one of its own."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """Without a word."""
        if multiprocessing.parent_process() is not None:
            os._exit(3)
        return super().client(common, client, down, samples, turn)


@dataclass(frozen=True)
class HoldsAFunction(RunningMean):
    """What no bytes tell."""

    function: Callable[[], int] = lambda: 0


@dataclass(frozen=True)
class Smuggler:
    """The server learns theta from every client's sample and target, and sends nothing: one function sees it all."""

    label: ClassVar[str] = "Smuggler"
    lam: float = 0.0

    def init(self, world: World) -> Array:
        """All theta are 0."""
        return np.zeros((world.bank.replicates, world.bank.kernels, world.bank.width))

    def step(self, world: World, state: Array, t: int) -> tuple[Array, Outcome]:
        """One round without a message."""
        x, y, share = world.problem.round(t)
        f = world.bank.predict(x, state)
        theta = state - 0.1 * world.bank.accumulate(x, 2 * (f - y[:, None]), share)
        return theta, Outcome(f.mean(axis=-1), None, lambda: np.zeros(f.shape[:2]))


class Hides(ReadsOthers):
    """Clients that see each other's samples, and a class that says what only a condition may say."""

    hides_presence: ClassVar[bool] = True


@dataclass(frozen=True)
class Yes:
    """A message of nothing."""


@dataclass(frozen=True)
class No:
    """Another message of nothing."""


@dataclass(frozen=True)
class Tagged:
    """The mean, and what is said by a class."""

    mean: SameForAll
    tag: Yes | No


class ByNestedClass(RunningMean):
    """A server that says a bit of the mean by the class of an empty message."""

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Any:
        """Whether the third decimal is even."""
        down = super().broadcast(common, server, turn)
        return Tagged(down.mean, Yes() if int(1000 * down.mean.values[0]) % 2 else No())


@dataclass(frozen=True)
class WithNote(SameForAll):
    """An array for all, and a field that is none."""

    note: tuple[float, ...] = ()


class ByField(RunningMean):
    """A server that says the mean in a field that no one books."""

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Any:
        """The mean of all replicates."""
        mean = super().broadcast(common, server, turn).mean
        return Down(WithNote(mean.values, tuple(mean.values)))


@dataclass(frozen=True)
class Several:
    """Payloads of which one travels."""

    target: tuple[PerClient, ...]


class ByPlace(RunningMean):
    """Clients that say their target by the place of the only payload that travels."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """One of sixteen."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        y = up.target.values[..., None]
        place = np.abs(1000 * y).astype(int) % 16
        return client, Several(tuple(PerClient(y * (place == i), place == i) for i in range(16))), outcome


class ByChoice(RunningMean):
    """Clients that say by which of two entries they send whether their target is large."""

    choices_reveal_data: ClassVar[bool] = False

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """The first or the second."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        y = up.target.values
        chosen = np.stack([y > 0.3, y <= 0.3], axis=-1)
        return client, Target(PerClient(chosen * y[..., None], chosen)), outcome

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Learn from either."""
        return Server(server.total + up.target.mean(share).sum(axis=-1), server.count + 1)


class SaysOnce(ChangesTheAbsent):
    """Clients that send the sum of all their targets, and a class that says that each is sent once."""

    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """All targets so far."""
        _, up, outcome = RunningMean.client(self, common, client, down, samples, turn)
        total = client.count + samples.present * up.target.values
        return Own(total), Target(PerClient(total)), outcome


class SavesAnother(OfmklAvg):
    """A method whose model is not what it has learned."""

    def functions(self, world: World, state: Any, t: int) -> Any:
        """A fit to everybody's samples."""
        z = world.bank.features(world.problem.x.reshape(-1, world.problem.dimension))[:, 0]
        theta = np.stack([np.linalg.lstsq(one.T, world.problem.y.ravel(), rcond=None)[0] for one in z.swapaxes(1, 2)])
        server = Theta(np.repeat(theta[:, None], world.bank.kernels, axis=1))
        return super().functions(world, replace(state, server=server), t)


class SaysOneForAll(RunningMean):
    """Clients that all send one array."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """The first client's target."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        return client, Target(SameForAll(up.target.values[:, 0])), outcome  # type: ignore[arg-type]


class MaskOfNumbers(RunningMean):
    """Clients whose mask is no mask."""

    mask: ClassVar[Any] = np.ones((1, 1, 1))

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """All of it."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        y = up.target.values
        mask = np.broadcast_to(self.mask, (*y.shape, *self.mask.shape[2:]))
        return client, Target(PerClient(y[..., None], mask)), outcome


class MaskOfTwo(MaskOfNumbers):
    """Clients whose mask is of two entries where there is one."""

    mask = np.ones((1, 1, 2), np.bool_)


@dataclass(frozen=True)
class WithoutMask(Summable):
    """A payload of one's own, which has no mask."""

    leading: ClassVar[dict[str, str]] = {"values": "RK"}

    values: Array

    def wire_size(self, width: int) -> Size:
        """One number of each client."""
        return PerClient(self.values).wire_size(width)

    def packed(self, k: int, width: int) -> Any:
        """As that of one that has a mask."""
        return PerClient(self.values).packed(k, width)._replace(kind=WithoutMask)

    @classmethod
    def from_parts(cls, parts: Any) -> "WithoutMask":
        """As that of one that has a mask."""
        return cls(PerClient.from_parts(parts).values)

    def tile_sums(self, share: Array) -> tuple[Array]:
        """As that of one that has a mask."""
        return PerClient(self.values).tile_sums(share)


class SendsNumbers(Odkla):
    """Agents that say by numbers whether they send."""

    def send(self, common: Common, own: Any, inbox: Any, samples: Any, turn: Turn) -> Any:
        """One of them."""
        own, message, sends = super().send(common, own, inbox, samples, turn)
        return own, message, sends.astype(np.float64)


class OwnPayload(RunningMean):
    """It does not cheat: its payload has no mask."""

    def client(
        self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome | None]:
        """The target, in a payload of one's own."""
        client, up, outcome = super().client(common, client, down, samples, turn)
        return client, Target(WithoutMask(up.target.values)), outcome  # type: ignore[arg-type]
