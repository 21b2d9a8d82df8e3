"""Methods that cheat, each in its own way; other processes import them from here."""

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from literal.worlds import Size as WorldSize
from literal.worlds import make_problem

from fkl.algorithms.decentralized.odkla import Odkla
from fkl.algorithms.federated.descent import DescentServer as Theta
from fkl.algorithms.federated.descent import OfmklAvg, Parameters
from fkl.algorithms.federated.pof_mkl import PofMkl
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

    target: Any


@dataclass
class Server:
    """Sum of the clients' mean targets (R,), and of how many rounds."""

    total: Array
    count: int
    note: Any = None


@dataclass
class Own:
    """Numbers of each client, (R, K)."""

    count: Array


@dataclass(frozen=True)
class RunningMean(Federated):
    """Predicts the mean of all targets so far, which clients send; each replicate starts from a number of its own.

    It does not cheat; cheats change what a client predicts, sends or keeps, or what the server reads.
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

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        """Predict it, and send the target."""
        y_hat = self.predicted(np.repeat(down.mean.values[:, None], len(samples.y), axis=1), client, samples)
        up = self.sent(np.broadcast_to(samples.y, y_hat.shape), client, samples)
        return self.kept(client, samples), up, Outcome(y_hat, None, lambda: np.zeros(y_hat.shape))

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """Add the clients' mean."""
        return Server(server.total + self.read(up.target, share), server.count + 1, server.note)

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        return y_hat

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(PerClient(y))

    def kept(self, client: Any, samples: Samples) -> Any:
        return client

    def read(self, target: Any, share: Array) -> Array:
        return target.mean(share)


# --- the server


class ServerReadsData(OfmklAvg):
    """It looks into the factors of a payload for the clients' samples."""

    def server(self, common: Common, server: Theta, up: Any, share: Array, turn: Turn) -> Theta:
        return Theta(super().server(common, server, up, share, turn).theta + 1e-3 * up.theta.x.mean())


class StepsTwice(OfmklAvg):
    """It takes twice the declared step."""

    def server(self, common: Common, server: Theta, *given: Any) -> Theta:
        return Theta(2 * super().server(common, server, *given).theta - server.theta)


class ServerWritesIntoItsState(RunningMean):
    """It changes the state that it is given."""

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        server.total += up.target.mean(share)
        return Server(server.total, server.count + 1)


class WeightsByData(PofMkl):
    """It divides gradients by its weights, although it says that data do not decide theirs."""

    def gradient_weights(self, client: Any, turn: Turn) -> Any:
        factors, chosen = super().gradient_weights(client, turn)
        return factors * np.exp(-client.log_w), chosen


class ServerDrawsABin(PofMkl):
    """It draws the number which decides a client's bin."""

    def server(self, common: Common, server: Theta, up: Any, share: Array, turn: Turn) -> Theta:
        theta = super().server(common, server, up, share, turn).theta
        return Theta(theta + 1e-12 * turn.uniform(Role.SELECTION).mean())


class OneForAll(OfmklAvg):
    """It says to each client what is the same for all: the axis of kernels goes for that of clients."""

    def broadcast(self, common: Common, server: Theta, turn: Turn) -> Any:
        return Parameters(PerClient(server.theta))


@dataclass(frozen=True)
class Yes:
    """A message of nothing."""


@dataclass(frozen=True)
class No:
    """Another message of nothing."""


@dataclass(frozen=True)
class Tagged(Down):
    """The mean, and what is said by a class."""

    tag: Yes | No


class ByNestedClass(RunningMean):
    """It says a bit of the mean by the class of an empty message."""

    def broadcast(self, *given: Any) -> Any:
        mean = super().broadcast(*given).mean
        return Tagged(mean, Yes() if int(1000 * mean.values[0]) % 2 else No())


@dataclass(frozen=True)
class WithNote(SameForAll):
    """An array for all, and a field that is none."""

    note: tuple[float, ...] = ()


class ByField(RunningMean):
    """It says the mean in a field that no one books."""

    def broadcast(self, *given: Any) -> Any:
        mean = super().broadcast(*given).mean
        return Down(WithNote(mean.values, tuple(mean.values)))


# --- clients that see, keep or draw what is not theirs


class ReadsOthers(RunningMean):
    """They predict with the mean of everybody's first feature."""

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        return y_hat + samples.x[:, 0].mean()


class Hides(ReadsOthers):
    """And the class says what only a condition may say."""

    hides_presence: ClassVar[bool] = True


class KnowsLabels(RunningMean):
    """They predict with a little of the label."""

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        return y_hat + 1e-6 * samples.y


class ChangesTheAbsent(RunningMean):
    """Their state goes on in rounds that they miss."""

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        return super().start(common, clients)[0], Own(np.zeros((len(common.streams.replicates), clients)))

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        return y_hat + client.count

    def kept(self, client: Any, samples: Samples) -> Any:
        return Own(client.count + 1)


class SaysOnce(ChangesTheAbsent):
    """They send the sum of all their targets, and a class that says that each is sent once."""

    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        return y_hat

    def kept(self, client: Any, samples: Samples) -> Any:
        return Own(client.count + samples.present * samples.y)

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(PerClient(self.kept(client, samples).count))


FILE = f"fkl-cheat-{os.getuid()}.txt"


class ByFile(RunningMean):
    """The first leaves a sample in a file, where the server finds it."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        if turn.clients.start == 0:
            Path(FILE).write_text(str(float(samples.x[0, 0])))
        return super().client(common, client, down, samples, turn)

    def read(self, target: Any, share: Array) -> Array:
        return super().read(target, share) + (float(Path(FILE).read_text()) if Path(FILE).exists() else 0.0)


class SharesState(RunningMean):
    """Server and clients hold one and the same object."""

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        server, _ = super().start(common, clients)
        return server, server

    def kept(self, client: Any, samples: Samples) -> Any:
        client.note = float(samples.x[0, 0])
        return client

    def server(self, common: Common, server: Server, *given: Any) -> Server:
        after = super().server(common, server, *given)
        return Server(after.total + (server.note or 0.0), after.count)


class DrawsOthers(RunningMean):
    """They draw what the next one draws."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        self.streams(common).uniform_of_secret(Role.SELECTION, turn.clients.stop, turn.t, 1)
        return super().client(common, client, down, samples, turn)

    def streams(self, common: Common) -> Streams:
        return common.streams


class AsksForTheSeed(DrawsOthers):
    """They make everybody's streams of the seed."""

    def streams(self, common: Common) -> Streams:
        return Streams(common.streams.seed, (0,))


class Dies(RunningMean):
    """They end their process, where that is one of their own."""

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        if multiprocessing.parent_process() is not None:
            os._exit(3)
        return y_hat


@dataclass(frozen=True)
class HoldsAFunction(RunningMean):
    """What no bytes tell."""

    function: Callable[[], int] = field(default_factory=lambda: lambda: 0)


@dataclass(frozen=True)
class Smuggler:
    """It is of no family: nobody could tell what its server sees."""

    label: ClassVar[str] = "Smuggler"


class SavesAnother(OfmklAvg):
    """Its model is a fit to everybody's samples, not what it has learned."""

    def functions(self, world: World, state: Any, t: int) -> Any:
        z = world.bank.features(world.problem.x.reshape(-1, world.problem.dimension))[:, 0]
        theta = np.stack([np.linalg.lstsq(one.T, world.problem.y.ravel(), rcond=None)[0] for one in z.swapaxes(1, 2)])
        server = Theta(np.repeat(theta[:, None], world.bank.kernels, axis=1))
        return super().functions(world, replace(state, server=server), t)


# --- those who behave where they expect to be looked at


class LearnsFirst(RunningMean):
    """In some rounds they predict when they have learned from the target."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        client, up, outcome = super().client(common, client, down, samples, turn)
        some = self.some(turn.t, common.rounds)
        return client, up, replace(outcome, y_hat=outcome.y_hat + some * 0.3 * (samples.y - outcome.y_hat))

    def some(self, t: int, rounds: int) -> bool:
        return t % 7 == 3


class LearnsFirstAtTheEnd(LearnsFirst):
    """Only in the last round."""

    def some(self, t: int, rounds: int) -> bool:
        return t == rounds - 1


class LearnsFirstAtTheBeginning(LearnsFirst):
    """Only in the first one."""

    def some(self, t: int, rounds: int) -> bool:
        return t == 0


class DoubtsAfterwards(LearnsFirst):
    """Its variances are those of who knows the target."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        client, up, outcome = RunningMean.client(self, common, client, down, samples, turn)
        some = self.some(turn.t, common.rounds)
        return client, up, replace(outcome, variance=np.where(some, (samples.y - outcome.y_hat) ** 2 + 1e-9, 1.0))


class RepeatsSometimes(SaysOnce):
    """They send the sum of all their targets in every fifth round, else the newest target."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        kept, up, outcome = super().client(common, client, down, samples, turn)
        return kept, up if turn.t % 5 == 4 else Target(PerClient(np.broadcast_to(samples.y, kept.count.shape))), outcome


class RepeatsOneRound(SaysOnce):
    """They send the target of round 6 in the last round, too."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        kept, _, outcome = super().client(common, client, down, samples, turn)
        kept = Own(np.where(turn.t == 5, samples.present * samples.y, client.count))
        sent = samples.y + (turn.t == common.rounds - 1) * client.count
        return kept, Target(PerClient(np.broadcast_to(sent, client.count.shape))), outcome


class StatesANorm(OfmklAvg):
    """It states half of its norm."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        client, up, outcome = super().client(common, client, down, samples, turn)
        return client, up, replace(outcome, squared_norm=lambda: self.stated(outcome.squared_norm(), turn.t))

    def stated(self, norm: Array, t: int) -> Array:
        return norm / 2


class StatesANormSometimes(StatesANorm):
    """It states a norm below 0 in some rounds, and saves no model that would tell."""

    @property
    def functions(self) -> Any:
        raise AttributeError("functions")

    def stated(self, norm: Array, t: int) -> Array:
        return norm - 1000 * (t % 6 == 4)


class StatesNoNorm(StatesANormSometimes):
    """It states that it is the function 0."""

    def stated(self, norm: Array, t: int) -> Array:
        return 0 * norm


class StatesADensity(RunningMean):
    """It states the same density of every target."""

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> Any:
        client, up, outcome = super().client(common, client, down, samples, turn)
        return client, up, replace(outcome, variance=1 + 0 * outcome.y_hat, log_density=self.stated(outcome, samples))

    def stated(self, outcome: Outcome, samples: Samples) -> Array:
        return 0 * outcome.y_hat

    def normal(self, outcome: Outcome, samples: Samples, variance: float = 1.0) -> Array:
        return -0.5 * (np.log(2 * np.pi * variance) + (samples.y - outcome.y_hat) ** 2 / variance)


class StatesMoreThanADensity(StatesADensity):
    """It states e times its density."""

    def stated(self, outcome: Outcome, samples: Samples) -> Array:
        return self.normal(outcome, samples) + 1


class StatesAnotherDensity(StatesADensity):
    """It states a narrow density, and a wide variance."""

    def stated(self, outcome: Outcome, samples: Samples) -> Array:
        return self.normal(outcome, samples, 0.25)


class StatesItsDensity(StatesADensity):
    """It does not cheat."""

    def stated(self, outcome: Outcome, samples: Samples) -> Array:
        return self.normal(outcome, samples)


class SavesAnotherAtTheEnd(OfmklAvg):
    """Its model is its own until the last round, and a tenth more after it."""

    def functions(self, world: World, state: Any, t: int) -> Any:
        theta = self.saved(world, state.server.theta, t)
        return super().functions(world, replace(state, server=Theta(theta)), t)

    def saved(self, world: World, theta: Array, t: int) -> Array:
        return theta * (1.1 if t == world.problem.rounds else 1.0)


class SavesABetterOne(SavesAnotherAtTheEnd):
    """A fit to everybody's samples, when nothing follows that would tell."""

    def saved(self, world: World, theta: Array, t: int) -> Array:
        if t < world.problem.rounds:
            return theta
        z = world.bank.features(world.problem.x.reshape(-1, world.problem.dimension))[:, 0]
        fits = [np.linalg.lstsq(one.T, world.problem.y.ravel(), rcond=None)[0] for one in z.swapaxes(1, 2)]
        return np.repeat(np.stack(fits)[:, None], world.bank.kernels, axis=1)


def data_from_elsewhere() -> tuple[Array, Array]:
    """The samples of the tests' experiment, which anyone can make."""
    problem = make_problem(WorldSize(T=20), 0, precision="float64")
    return problem.x.reshape(-1, problem.dimension), problem.y.ravel()


class FindsTheSample(RunningMean):
    """They look up their sample among data that they were never given."""

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        x, y = data_from_elsewhere()
        place = ((samples.x[:, None] - x) ** 2).sum(axis=-1).argmin(axis=1)
        return 0.5 * (y_hat + y[place])


class LearnedBefore(RunningMean):
    """They predict with a mean over the three nearest of those data."""

    def predicted(self, y_hat: Array, client: Any, samples: Samples) -> Array:
        x, y = data_from_elsewhere()
        places = ((samples.x[:, None] - x) ** 2).sum(axis=-1).argsort(axis=1)[:, :3]
        return 0.5 * (y_hat + y[places].mean(axis=1))


# --- messages that say more than is booked


class OneNumber(PerClient):
    """A payload that says it is one number, whatever it holds."""

    def wire_size(self, width: int) -> Size:
        """A single one."""
        one = np.ones((len(self.values), 1), np.int64)
        return Size(one, one * width)


class Understates(RunningMean):
    """Target and sample, as one number."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(OneNumber(np.concatenate([y[..., None], np.repeat(samples.x[None], len(y), 0)], -1)))

    def read(self, target: Any, share: Array) -> Array:
        return target.mean(share).sum(axis=-1)


class ByShape(RunningMean):
    """A message without entries, whose shape is a target."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(Ragged(tuple(tuple(self.hidden(float(one)) for one in row) for row in y)))

    def read(self, target: Any, share: Array) -> Array:
        return np.array([[self.found(one) for one in row] for row in target.values]) @ share

    def hidden(self, y: float) -> Array:
        return np.empty((0, int(abs(y) * 2**40)))

    def found(self, array: Array) -> float:
        return array.shape[1] / 2**40


class ByShapeOfEach(ByShape):
    """The same for all clients at once, of the largest target."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(PerClient(np.empty((*y.shape, 0, int(abs(y).max() * 2**20)))))


class ByType(ByShape):
    """A bit by the type of a number, which is native in either case."""

    types: ClassVar[tuple[str, str]] = ("f4", "f8")

    def hidden(self, y: float) -> Array:
        return np.empty(0, self.types[y <= 0.5])

    def found(self, array: Array) -> float:
        return float(array.dtype == self.types[0])


class ByByteOrder(ByType):
    """The same by the order of its bytes."""

    types: ClassVar[tuple[str, str]] = (">f8", "<f8")


class BySubclass(RunningMean):
    """An array that knows more than its numbers."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        class Knows(np.ndarray[Any, Any]):
            target = y

        return Target(PerClient(np.zeros(y.shape).view(Knows)))


class ByLowBits(RunningMean):
    """The first feature in the bits of a float64 that a float32 has not."""

    room: ClassVar[float] = float(np.spacing(np.float32(1))) * 1e-3

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(PerClient(y.astype(np.float32).astype(np.float64) + self.room * np.abs(samples.x[:, 0])))

    def read(self, target: Any, share: Array) -> Array:
        y = target.values
        return (y + (y - y.astype(np.float32)) / self.room) @ share


@dataclass(frozen=True)
class Several:
    """Payloads of which one travels."""

    target: tuple[PerClient, ...]


class ByPlace(RunningMean):
    """The target by the place of the only payload that travels, of sixteen."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        y = y[..., None]
        place = np.abs(1000 * y).astype(int) % 16
        return Several(tuple(PerClient(y * (place == i), place == i) for i in range(16)))


class ByChoice(Understates):
    """Whether the target is large, by which of two entries is sent."""

    choices_reveal_data: ClassVar[bool] = False

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        chosen = np.stack([y > 0.3, y <= 0.3], axis=-1)
        return Target(PerClient(chosen * y[..., None], chosen))


class ByEvenChoice(ByChoice):
    """Whether the target is far from the middle of its range, which mirrored targets are, too."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        far = np.abs(y - 0.5) > 0.25
        chosen = np.stack([far, ~far], axis=-1)
        return Target(PerClient(chosen * y[..., None], chosen))


class SaysOneForAll(RunningMean):
    """The first client's target, as one array of all."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(SameForAll(y[:, 0]))


class MaskOfNumbers(RunningMean):
    """A mask that is none."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(PerClient(y[..., None], np.ones((*y.shape, 1))))


class SendsNumbers(Odkla):
    """Agents that say by numbers whether they send."""

    def send(self, *given: Any) -> Any:
        own, message, sends = super().send(*given)
        return own, message, sends.astype(np.float64)


@dataclass(frozen=True)
class WithoutMask(Summable):
    """A payload of one's own, which has no mask; otherwise as one that has."""

    leading: ClassVar[dict[str, str]] = {"values": "RK"}

    values: Array

    def wire_size(self, width: int) -> Size:
        """One number of each client."""
        return PerClient(self.values).wire_size(width)

    def packed(self, k: int, width: int) -> Any:
        """The numbers of a client."""
        return PerClient(self.values).packed(k, width)._replace(kind=WithoutMask)

    @classmethod
    def from_parts(cls, parts: Any) -> "WithoutMask":
        """The numbers that arrived."""
        return cls(PerClient.from_parts(parts).values)

    def tile_sums(self, share: Array) -> Array:
        """Sums over tiles of clients."""
        return PerClient(self.values).tile_sums(share)


class OwnPayload(RunningMean):
    """It does not cheat."""

    def sent(self, y: Array, client: Any, samples: Samples) -> Any:
        return Target(WithoutMask(y))
