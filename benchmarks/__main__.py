"""`python -m benchmarks`: the command line."""

import sys
from pathlib import Path

import click

from benchmarks import FRAMEWORKS, HEADINGS, against, bench, checked, frameworks, series, this_machine
from fkl.basics.errors import FklError
from fkl.screen.messages import print_lines, print_note
from fkl.screen.sheet import FORMATS, Sheet


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option("--environments", metavar="FOLDER", help="Where frameworks makes an environment for each framework.")
@click.option("--against", "commit", metavar="COMMIT", help="Compare with this commit; exit code 1 if one is slower.")
@click.option("--store", metavar="FILE.csv", help="Append the ratios to this table.")
@click.option("--format", type=click.Choice(FORMATS), default="table")
def command(
    names: tuple[str, ...], environments: str | None, commit: str | None, store: str | None, format: str
) -> None:
    """Time methods beside the floor of their arithmetic; some minutes, on a machine that does nothing else.

    NAME is pof_mkl, federated, graph_omkl, coke, fdskl or rf_gp, all of them if there is none; or gpu, engine=jax; or
    frameworks, which plays one round in fkl and in other frameworks.
    """
    if store is not None and (commit is not None or names == (FRAMEWORKS,)):
        raise FklError("--store: keeps ratios to the floor, which neither --against nor frameworks measures")
    if commit is not None:
        rows = against.compared(checked(names), commit)
        print_note(this_machine())
        Sheet.from_rows(against.HEADINGS, rows, (2, 3)).print_sheet(format)
        sys.exit(int(any(against.SLOWER in row[-1] for row in rows)))
    if names == (FRAMEWORKS,):
        if environments is None:
            raise FklError("frameworks: say where environments are made, --environments FOLDER")
        rows = frameworks.compared(Path(environments))
        print_note(this_machine())
        return Sheet.from_rows(frameworks.HEADINGS, rows, range(1, 5)).print_sheet(format)
    if store is not None:
        series.read(Path(store))  # refused before minutes of measuring
    machine, rows = bench(names)
    if store is not None:
        series.append(Path(store), rows)
    if format == "table":
        print_lines(machine, "")
    else:
        print_note(machine)
    Sheet.from_rows(HEADINGS, rows, range(2, 7)).print_sheet(format)


if __name__ == "__main__":
    try:
        command()
    except FklError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
