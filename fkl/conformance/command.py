"""The command line of `python -m fkl.conformance`."""

import sys
from argparse import ArgumentParser
from time import time_ns

from fkl.basics.errors import BrokenPromiseError, FklError, require
from fkl.conformance import promises
from fkl.conformance.promises import PROMISES, Conformance
from fkl.screen.messages import print_refusal
from fkl.screen.streams import guard_streams

SEEDS = 10**6
"""Number of seeds that the clock chooses from: few enough digits to type."""


@guard_streams()
def main() -> None:
    """Check the algorithm that the command line chooses; exit with 1 if a promise is broken, with 2 for bad input."""
    parser = ArgumentParser(prog="python -m fkl.conformance", description=promises.__doc__.split("\n")[0])
    parser.add_argument("overrides", nargs="+", metavar="KEY=VALUE", help="overrides of `fkl run`, at least algo=NAME")
    parser.add_argument("--seed", type=int, help="draws the rounds that are compared; by default from the clock")
    parser.add_argument("--config-dir", "-cd", help="a configuration folder in addition to fkl's own")
    arguments = parser.parse_args()
    try:
        seed = time_ns() % SEEDS if arguments.seed is None else arguments.seed
        require(seed >= 0, "--seed", seed, "an integer >= 0")
        conformance = Conformance.from_overrides(*arguments.overrides, folder=arguments.config_dir, seed=seed)
        print(f"  rounds and other data are drawn with --seed={seed}")
        broken = unchecked = 0
        for promise in PROMISES:
            name = promise.__name__.replace("_", " ")
            try:
                why = promise(conformance)
                print(f"  {name:44} {f'not checked: {why}' if why else 'ok'}")
                unchecked += bool(why)
            except BrokenPromiseError as error:
                print(f"  {name:44} BROKEN: {error}")
                broken += 1
    except FklError as error:
        sys.exit(print_refusal(error))
    checked = len(PROMISES) - unchecked
    more = f", {unchecked} not checked" if unchecked else ""
    print(f"{conformance.experiment.algorithm.label}: {checked - broken} of {checked} promises kept{more}")
    sys.exit(broken > 0)
