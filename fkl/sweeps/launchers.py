"""Launching of jobs: if the process of a job is killed, that job fails and the others continue.

For example, of 4 jobs on 2 workers the system kills the process of the second for lack of memory. Hydra's launchers
would then raise an error and lose all results. `Launcher` returns three results, and for the second job one that its
task makes from the error "its process was killed (signal 9; out of memory?)".

`Launcher.launch` chooses by the launcher's kind: joblib's jobs run in `_in_workers`, submitit's (Slurm) and Ray's in
`_asked_by`, and all others in Hydra's own launcher. `_lost_result` makes the result of a killed job.
"""

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import count, islice
from types import SimpleNamespace
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn
from omegaconf import open_dict

from fkl.basics.errors import FklError, in_one_line

SIGNAL, STATE = re.compile(r"\(-(\d+)\)"), re.compile(r"state: [^)\n]+")
"""Patterns of joblib's and submitit's messages about the end of a process."""
SHARED = "/dev/shm"
"""Folder in which Linux keeps the semaphores of processes."""
OF_SEMAPHORES = (errno.ENOSPC, errno.EROFS, errno.EACCES)
"""Errors of a new worker that are about its semaphores; Linux names no path in these errors."""
warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")  # `_no_worker` says it in one line


class Launcher:
    """One of Hydra's launchers, changed to continue when the process of a job is killed.

    Parameters
    ----------
    launcher : hydra.plugins.launcher.Launcher
        Its task function accepts `lost`, the error if the process of the job ended without a result.
    """

    def __init__(self, launcher: Any) -> None:
        self._launcher = launcher
        self._idle: list[Any] = []

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run these jobs, and return their results in this order."""
        # The launcher's kind follows from the module of its class
        kind = type(self._launcher).__module__.rpartition(".")[2]
        if kind == "joblib_launcher":
            return self._in_workers(job_overrides, initial_job_idx)
        if kind == "submitit_launcher":
            owner = import_module("submitit").Job
            return self._asked_by(owner, "results", owner.results, job_overrides, initial_job_idx)
        if kind == "ray_launcher":
            owner = import_module("hydra_plugins.hydra_ray_launcher._core")
            with open_dict(self._launcher.ray_cfg):  # Ray repeats a job that needs too much memory without end
                self._launcher.ray_cfg.remote.max_retries = 0
            return self._asked_by(owner, "ray", owner.ray.get, job_overrides, initial_job_idx)
        return self._launcher.launch(job_overrides, initial_job_idx=initial_job_idx)  # type: ignore[no-any-return]

    def _in_workers(self, jobs: Sequence[Sequence[str]], first: int) -> list[JobReturn]:
        """Run jobs with joblib; each worker is its own pool, because all workers of a pool end if one does."""
        from joblib import effective_n_jobs
        from joblib.externals.loky import FIRST_COMPLETED, BrokenProcessPool, wait

        # At most so many jobs run at once; each has a worker of its own
        workers = effective_n_jobs(self._launcher.joblib["n_jobs"])
        left = enumerate(jobs)
        running: dict[Any, tuple[Any, int]] = {}
        ended: dict[int, JobReturn] = {}
        try:
            # Fill free workers, then wait for the first job that ends
            while len(ended) < len(jobs):
                for at, words in islice(left, workers - len(running)):
                    worker, future = self._give_job(workers, self._job_call(first + at, words))
                    running[future] = worker, at
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, at = running.pop(future)
                    try:
                        ended[at] = future.result()
                        self._idle.append(worker)
                    except BrokenProcessPool as error:
                        ended[at] = self._lost_result(first + at, jobs[at], error)
        # After an interruption, no worker may go on
        except BaseException:
            for worker, _ in running.values():
                worker.shutdown(kill_workers=True)
            raise
        return [ended[at] for at in range(len(jobs))]

    def _give_job(self, workers: int, job: tuple[Any, ...]) -> tuple[Any, Any]:
        """Give a job to an idle worker, or to a new one with its share of the cores; return the worker and a future."""
        from joblib import cpu_count
        from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
        from joblib.parallel import LokyBackend

        # An idle worker has imported fkl already
        while self._idle:
            worker = self._idle.pop()
            with suppress(BrokenProcessPool):  # killed since its last job
                return worker, worker.submit(*job)
        # A new worker gets its share of the cores, so BLAS in several workers does not start too many threads
        share = str(max(1, cpu_count() // workers))
        environment = {name: os.environ.get(name, share) for name in LokyBackend.MAX_NUM_THREADS_VARS}
        try:
            worker = ProcessPoolExecutor(1, env=environment)
            return worker, worker.submit(*job)
        except OSError as error:
            raise _no_worker(error) from error

    def _asked_by(
        self, owner: Any, name: str, asked: Callable[[Any], Any], jobs: Sequence[Sequence[str]], first: int
    ) -> Sequence[JobReturn]:
        """Run jobs with a launcher that gets one result after another with this function, and that stops at an error.

        The function is an attribute of `owner`: a method of submitit's jobs, or `get` of the module ray.
        """
        # Put our function in the place of the launcher's, and afterwards the original one
        number, before, inside = count(), getattr(owner, name), False

        def result(job: Any) -> Any:
            nonlocal inside
            if inside:  # a job of submitit asks for the results of its tasks
                return asked(job)
            at, inside = next(number), True
            try:
                return asked(job)
            except Exception as error:  # any error: the job has no result
                lost = self._lost_result(first + at, jobs[at], error)
                return [lost] if name == "results" else lost
            finally:
                inside = False

        # From now on, an error of a job is its result, and the launcher goes on to the next one
        setattr(owner, name, result if name == "results" else SimpleNamespace(get=result))
        try:
            return self._launcher.launch(jobs, initial_job_idx=first)  # type: ignore[no-any-return]
        except FklError:
            raise
        except Exception as error:  # any error: the cluster does not accept the jobs
            raise FklError(f"hydra/launcher: {type(error).__name__}: {' '.join(str(error).split())}") from error
        finally:
            setattr(owner, name, before)

    def _job_call(self, number: int, words: Sequence[str], **how: Any) -> tuple[Any, ...]:
        """A function that runs a job, and its arguments."""
        from hydra_plugins.hydra_joblib_launcher._core import execute_job

        launcher = self._launcher
        task = partial(launcher.task_function, **how)
        return execute_job, number, words, launcher.hydra_context, launcher.config, task, Singleton.get_state()

    def _lost_result(self, number: int, words: Sequence[str], error: Exception) -> JobReturn:
        """Result for a job whose process ended without a result."""
        # The message names the signal, or Slurm's state of the job
        said = str(error)
        if signal := SIGNAL.search(said):
            why = f"was killed (signal {signal[1]}{'; out of memory?' * (signal[1] == '9')})"
        else:
            state = STATE.search(said)
            why = f"ended without a result ({state[0] if state else ' '.join(said.split())})"
        lost = FklError(f"its process {why}")
        lost.__cause__ = error
        # The job's own task function makes the result, so all results have one form
        play, *job = self._job_call(number, words, lost=lost)
        return play(*job)  # type: ignore[no-any-return]


def _no_worker(error: OSError) -> FklError:
    """Why joblib can start no worker."""
    # Linux names no file if the semaphores are the reason
    why, named = error.strerror or str(error), error.filename
    if not named and sys.platform == "linux" and error.errno in OF_SEMAPHORES:
        why, named = f"{why}, for its semaphores", SHARED
    about = f"{in_one_line(named)}: {why}" if named else why
    mend = "change that, lower hydra.launcher.n_jobs, or omit the launcher, which runs one job after another"
    return FklError(f"hydra/launcher=joblib: no worker can be started ({about}); {mend}")
