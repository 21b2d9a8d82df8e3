"""`engine=jax`: rounds as a compiled scan on the device that JAX finds. JAX is imported when a run needs it."""

from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from fkl.basics.errors import FklError, in_one_line, requires_extra
from fkl.conditions import OnMessages
from fkl.config.loading import Run
from fkl.contract.world import Algorithm, World
from fkl.data.dealt_rows import is_judged
from fkl.engines.base import Engine, make_world
from fkl.engines.rounds import before_first_round
from fkl.kernels.threads import at_most
from fkl.screen.messages import print_lines


class Jax(Engine):
    """A device that runs a scan of the method's own rounds, compiled by XLA."""

    name: ClassVar[str] = "jax"

    def can_play(self, run: Run) -> str | None:
        """Why not: this engine needs methods and conditions that JAX can trace."""
        # Reasons in the order in which they can be mended: settings first, then the method, then conditions
        method = run.algo
        if is_judged(run.settings.rows):
            return f"it adds up losses on the device, and rows={run.settings.rows} needs the loss of each row"
        if run.settings.learners != "federated":
            return f"with learners={run.settings.learners} each learner has its own rounds"
        if run.settings.stop_when is not None:
            return "it runs many rounds at once, and stop_when checks each round"
        for name, given in (("metrics", run.settings.metrics), ("intervals", run.intervals)):
            if given:
                return f"it adds up losses on the device, and {name} need each prediction"
        if getattr(method, "compiled_only", False):
            return "its loops exist only compiled by numba"
        if why := getattr(method, "not_traceable", "its class does not say that its rounds can be traced"):
            return str(why)
        inside = [name for name, one in run.conditions.items() if isinstance(one, OnMessages) and not one.traceable]
        inside += ["network.compute_s"] * getattr(run.network, "timed", False)
        return f"JAX cannot trace {', '.join(inside)}" if inside else None

    def require_installed(self) -> None:
        """Check that JAX is installed."""
        with requires_extra("jax", "engine=jax"):
            import jax  # noqa: F401

    def announce_engine(self) -> None:
        """Print the device."""
        print_lines(f"engine=jax: on {device_name()}")

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Run the remaining rounds, many in each scan, and pause after each scan."""
        from fkl.engines.jax_world import play_scans

        return play_scans(algorithm, world, in_progress, watched)

    def provenance_notes(self) -> dict[str, Any]:
        """Name of the device."""
        return {"device": device_name()}

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate the seconds from the first scan of one replicate; None for a method that cannot be traced."""
        from fkl.engines.jax_world import play_scans

        # The first scan of a single replicate, which is compiled once
        with suppress(FklError), at_most(threads), np.errstate(all="ignore"):
            world, _ = make_world(replace(experiment, engine=self), (0,))
            in_progress = before_first_round(experiment, world)
            with closing(play_scans(experiment.algorithm, world, in_progress)) as rounds:
                next(rounds)
            seconds = in_progress.seconds / in_progress.t * experiment.problem.rounds * experiment.replicates
            return seconds, f" on {device_name()}, once it is compiled"
        return None


def device_name() -> str:
    """Name of the device with the arrays, or number and name of several devices."""
    import jax

    try:
        [device, *others] = jax.devices()
    except RuntimeError as error:  # for example if JAX_PLATFORMS names a platform that this machine lacks
        raise FklError(f"engine=jax: no device: {in_one_line(error)}") from None
    several = f"{len(others) + 1} x " if others else ""
    return f"{several}{device.platform} ({device.device_kind})"
