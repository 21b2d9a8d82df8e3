"""The `fkl` command."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fkl import conf_folder
from fkl.errors import FklError, extra, refuse, shown

if TYPE_CHECKING:
    from fkl.data.store import Store

USAGE = """\
fkl: federated and online kernel learning, every method on the same data, features and ledger

  fkl run [-m] [KEY=VALUE ...]      run one configuration, or with -m every combination of comma-separated values;
                                    it goes on past a run that fails (--fail-fast: leaves out the rest)
  fkl list                          data sets, partitions, kernels, algorithms and experiments to choose from
  fkl data list|fetch|verify [NAME ...]
  fkl table PAPER/NUMBER            a paper's table beside ours, for example pof_mkl/1
  fkl figure PAPER/NUMBER           a paper's figure from our runs, for example pof_mkl/1
  fkl report                        all tables, figures, differences and runs on one page, outputs/report.html
  fkl audit fdskl [KEY=VALUE ...]   which share of others' features each of its masks lets an attacker have

`fkl run --help` shows the default configuration."""

GROUPS = {
    "algo": "each as its paper's text has it",
    "as_published": "fkl run +as_published=METHOD, what a paper's numbers need instead of its text",
    "dataset": "",
    "partition": "",
    "kernels": "",
    "experiment": "",
}


def main() -> None:
    """Entry point: exit code 2 and one line for whatever the user can mend."""
    command, *rest = sys.argv[1:] or ["--help"]
    commands: dict[str, Callable[[list[str]], None]] = {
        "run": _run,
        "list": _list,
        "data": _data,
        "table": _table,
        "figure": _figure,
        "report": _report,
        "audit": _audit,
    }
    if command in ("-h", "--help", "help"):
        print(USAGE)
        return
    try:
        _require_text(sys.argv)
        if command not in commands:
            raise FklError(f"{command}: no such command; there are {', '.join(commands)}")
        commands[command](rest)
        print(end="", flush=True)  # here, where an error can still be said
    except FklError as error:
        sys.exit(refuse(error))
    except KeyboardInterrupt:
        print("fkl: interrupted; the same command goes on from where it was", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        where = f"{shown(error.filename)}: " if error.filename else ""
        sys.exit(refuse(FklError(f"{where}{error.strerror or error}")))


def _require_text(words: list[str]) -> None:
    """Refuse bytes that are no text, which no file of ours could hold."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise FklError(f"{shown(word)}: not text in UTF-8") from None


def _run(arguments: list[str]) -> None:
    """Hand everything to Hydra; a sweep goes on past a job that fails, and the exit code tells."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from fkl.compose_errors import in_one_line
    from fkl.composing.loader import guarded
    from fkl.composing.options import require_understood
    from fkl.job import abandon, job

    os.environ["PYTHONSAFEPATH"] = "1"  # or the workers of a sweep would find their modules in the current folder first
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that its errors reach us, to be said in one line
    fail_fast = ["hydra.callbacks.sweep.fail_fast=true"] * ("--fail-fast" in arguments)
    words = [*(word for word in arguments if word != "--fail-fast"), *fail_fast]
    require_understood(words)
    sys.argv = ["fkl run", *words]
    try:
        with guarded():
            hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name="config")(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise FklError(in_one_line(error, sweep={"-m", "--multirun"} & {*arguments} != set())) from None
    finally:
        abandon()  # a sweep that did not get to its end


def _list(arguments: list[str]) -> None:
    """One line for every choice: the first comment of its YAML, or what its paper's experiments.yaml says about it."""
    _no_more(arguments)
    from fkl.composing import experiments

    conf = conf_folder()
    for group, words in GROUPS.items():
        print(f"{group}: {words}".rstrip())
        files = sorted((conf / group).rglob("*.yaml"))
        choices = {file.relative_to(conf / group).with_suffix("").as_posix(): about(file) for file in files}
        for name, words in sorted({**choices, **experiments.abouts(group)}.items()):
            if words:  # a choice without words is a part of another one
                print(f"  {name:24} {words}")


def about(choice: Path) -> str:
    """First comment of a choice's YAML, which says what it is."""
    with choice.open(encoding="utf-8") as lines:
        return next((line[1:].strip() for line in lines if line[:1] == "#" and "@package" not in line), "")


def _data(arguments: list[str]) -> None:
    from fkl.data import registry

    store = _store()
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


def _report(arguments: list[str]) -> None:
    _no_more(arguments)
    with extra("report", "report"):
        from fkl.report.page import write_page
    print(write_page(Path("outputs"), _store()))


def _audit(arguments: list[str]) -> None:
    from fkl.audit import write_audit

    print(write_audit(arguments, Path("outputs")))


def _store() -> "Store":
    from fkl.data.store import Store

    return Store(Path(os.environ.get("FKL_DATA", "data")))


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
