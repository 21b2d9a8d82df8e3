"""The `fkl` command."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from fkl import conf_folder
from fkl.errors import FklError

USAGE = """\
fkl: federated and online kernel learning, every method on the same data, features and ledger

  fkl run [-m] [KEY=VALUE ...]      run one configuration, or with -m every combination of comma-separated values
  fkl list                          data sets, partitions, kernels, algorithms and experiments to choose from
  fkl data list|fetch|verify [NAME ...]
  fkl table PAPER/NUMBER            a paper's table beside ours, for example pof_mkl/1
  fkl figure PAPER/NUMBER           a paper's figure from our runs, for example pof_mkl/1

`fkl run --help` shows the default configuration."""

GROUPS = ("algo", "dataset", "partition", "kernels", "experiment")


def main() -> None:
    """Entry point: exit code 2 and one line for whatever the user can mend."""
    command, *rest = sys.argv[1:] or ["--help"]
    commands: dict[str, Callable[[list[str]], None]] = {
        "run": _run,
        "list": _list,
        "data": _data,
        "table": _table,
        "figure": _figure,
    }
    if command in ("-h", "--help", "help"):
        print(USAGE)
        return
    try:
        if command not in commands:
            raise FklError(f"{command}: no such command; there are {', '.join(commands)}")
        commands[command](rest)
    except FklError as error:
        sys.exit(_refuse(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(error: FklError) -> int:
    print(f"fkl: {error}", file=sys.stderr)
    return 2


def _run(arguments: list[str]) -> None:
    """Hand everything to Hydra; a sweep goes on past a job that fails, and the exit code tells."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf import DictConfig
    from omegaconf.errors import OmegaConfBaseException

    from fkl.compose_errors import in_one_line

    ended: list[bool] = []

    def job(config: DictConfig) -> None:
        from fkl.config import load
        from fkl.run import execute

        try:
            execute(load(config))
            ended.append(True)
        except FklError as error:
            _refuse(error)
            ended.append(False)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that its errors reach us, to be said in one line
    with tempfile.TemporaryDirectory() as scratch:  # a sweep's own notes; our folders say more
        sys.argv = ["fkl run", *arguments, f"hydra.sweep.dir={scratch}"]
        try:
            hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name="config")(job)()
        except (HydraException, OmegaConfBaseException) as error:
            raise FklError(in_one_line(error, sweep={"-m", "--multirun"} & {*arguments} != set())) from None
        except ValueError as error:
            if "Config group override" not in str(error):
                raise
            raise FklError("a group's choice is a name, not null; ~topology leaves the group out") from None
    if len(ended) > 1 and not all(ended):
        print(f"fkl: {ended.count(False)} of {len(ended)} runs failed, see above", file=sys.stderr)
    if not all(ended):
        sys.exit(2)


def _list(arguments: list[str]) -> None:
    """One line for every choice: the first comment of its YAML."""
    _no_more(arguments)
    conf = conf_folder()
    for group in GROUPS:
        print(f"{group}:")
        for file in sorted((conf / group).rglob("*.yaml")):
            name = file.relative_to(conf / group).with_suffix("").as_posix()
            with file.open(encoding="utf-8") as lines:
                about = next((line[1:].strip() for line in lines if line[:1] == "#" and "@package" not in line), "")
            if about:  # a file without a comment is a part of another choice
                print(f"  {name:24} {about}")


def _data(arguments: list[str]) -> None:
    from fkl.data import registry
    from fkl.data.store import Store

    store = Store(Path(os.environ.get("FKL_DATA", "data")))
    action, *names = arguments or ["list"]
    if action == "list":
        _no_more(names)
        from tabulate import tabulate

        print(tabulate(registry.describe(store), headers=registry.Listing._fields, tablefmt="simple"))
        return
    if action not in ("fetch", "verify"):
        raise FklError(f"data {action}: no such action; there are list, fetch, verify")
    states = registry.fetch(names, store) if action == "fetch" else registry.verify(names, store)
    wrong = 0
    for state in states:
        print(f"{state.dataset:14} {state.file:48} {state.state} {state.detail}".rstrip())
        wrong += state.state != "ok"
    if wrong:
        raise FklError(f"data {action}: {wrong} files are not as they should be")


def _table(arguments: list[str]) -> None:
    from fkl.papers import write_table

    print(write_table(*_paper_and_number("table", arguments), Path("outputs")))


def _figure(arguments: list[str]) -> None:
    from fkl.papers import write_figure

    print(write_figure(*_paper_and_number("figure", arguments), Path("outputs")))


def _paper_and_number(command: str, arguments: list[str]) -> tuple[str, str]:
    paper, slash, number = (arguments[0] if arguments else "").partition("/")
    if not slash or len(arguments) != 1:
        raise FklError(f"{command} {' '.join(arguments)}: say PAPER/NUMBER, for example pof_mkl/1")
    return paper, number


def _no_more(arguments: list[str]) -> None:
    if arguments:
        raise FklError(f"{arguments[0]}: not understood here")


if __name__ == "__main__":
    main()
