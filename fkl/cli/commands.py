"""The `fkl` command.

A command is a short function below. It imports what it needs inside, so help and error messages appear at once.
"""

import atexit
import gc
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import shell_complete

from fkl import __version__
from fkl.basics.environment import current_folder, environment_variable, require_address_space
from fkl.basics.errors import FklError, count_of, did_you_mean, in_one_line, library_error, requires_extra
from fkl.screen.streams import guard_streams, require_written

if TYPE_CHECKING:
    from fkl.data.registry import FileState
    from fkl.data.store import Store

FORMATS = ("table", "markdown", "csv", "json")
AS_GIVEN = {"ignore_unknown_options": True}
"""Settings of a command that takes names: a word with a leading dash is refused as an unknown name."""


SECTIONS = {
    "Run": ["run", "study", "plan", "list", "describe", "show", "data"],
    "Look": ["compare", "report", "predict", "bound"],
    "Models": ["merge", "forget"],
    "Reproduce": ["reproduce", "replay", "table", "figure"],
    "Deploy": ["flower"],
}
"""Commands in the order of the help."""
LIBRARIES_MIB = {
    **dict.fromkeys(("fkl list", "fkl describe", "fkl show"), 0),
    **dict.fromkeys((f"fkl {name}" for name in ("run", "study", "plan", "bound", "replay")), 1536),
    **dict.fromkeys(("fkl reproduce", "fkl flower try", "fkl flower site"), 1536),
}
"""MiB of address space that the libraries of a command need, if not the 512 of a command that reads tables."""
EXAMPLES = [
    ("fkl run algo=pof_mkl dataset=naval", "one run: files in outputs/runs"),
    ("fkl run -m algo=pof_mkl,vm_kofl seed=0,1", "four runs, and a table of them"),
]


def main() -> None:
    """Entry point: exit code 2 and one line for every error that the user can correct."""
    gc.set_threshold(50_000)  # 700 would collect garbage hundreds of times during imports
    atexit.register(gc.freeze)  # or the interpreter goes over all imported objects once more before it ends
    with guard_streams():
        try:
            _require_text(sys.argv)
            if (instruction := os.environ.get("_FKL_COMPLETE")) is not None:
                sys.exit(shell_complete(commands, {}, "fkl", "_FKL_COMPLETE", instruction))
            with (
                suppress(click.exceptions.Exit),
                commands.make_context("fkl", _command_words(*sys.argv[1:])) as context,
            ):
                commands.invoke(context)
            require_written()
        except FklError as error:
            sys.exit(_refuse_error(error))
        except click.ClickException as error:
            sys.exit(_refuse_error(FklError(error.format_message())))
        except KeyboardInterrupt:
            print("error: interrupted; the same command continues from where it stopped", file=sys.stderr)
            sys.exit(130)
        except Exception as error:
            refused = library_error(error)
            if refused is None and isinstance(error, OSError):
                where = f"{in_one_line(error.filename)}: " if error.filename else ""
                refused = FklError(f"{where}{error.strerror or error}")
            if refused is None:
                raise
            sys.exit(_refuse_error(refused))


def _refuse_error(error: FklError) -> int:
    from fkl.screen.messages import print_refusal

    try:
        current_folder()
    except FklError as gone:  # every path that is relative to it leads nowhere
        error = gone
    return print_refusal(error)


def _command_words(command: str = "help", *rest: str) -> list[str]:
    """The words of the command line, with `fkl help COMMAND` replaced by `fkl COMMAND --help`."""
    return [*rest, "--help"] if command == "help" else [command, *rest]


def _require_text(words: list[str]) -> None:
    """Refuse bytes that are not text, because our files could not hold them."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise FklError(f"{in_one_line(word)}: not text in UTF-8") from None


class Command(click.Command):
    """A command that refuses an unknown word with one of fkl's messages."""

    allow_extra_args = True

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command if there is enough memory for its libraries."""
        require_address_space(LIBRARIES_MIB.get(ctx.command_path, 512))
        return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, and refuse any that remain."""
        try:
            left = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            options = [option.opts[-1] for option in self.get_params(ctx) if isinstance(option, click.Option)]
            near = did_you_mean(error.option_name, options, f"options: {', '.join(options)}")
            raise FklError(f"{error.option_name}: no such option of {ctx.command_path}", help=near) from None
        except click.MissingParameter as error:
            option = isinstance(error.param, click.Option)
            what = (
                "a word" if error.param is None else error.param.opts[-1] if option else error.param.make_metavar(ctx)
            )
            how = [f"how it is written: {ctx.command_path} --help"]
            raise FklError(f"{ctx.command_path}: must be given {what}", help=how) from None
        if left and not ctx.resilient_parsing:
            raise FklError(f"{left[0]}: one word too many", help=[f"how it is written: {ctx.command_path} --help"])
        return left


class RunCommand(Command):
    """`fkl run`, whose help also lists choices and keys."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Append the choices, and the keys of every run."""
        from fkl.cli.describe import run_overview
        from fkl.screen.messages import text_width

        formatter.write(f"\n{run_overview(text_width())}\n")


class CommandGroup(click.Group):
    """A group of commands; its help shows the usage of each."""

    command_class = Command
    kind = "command"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before the command's name."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise self._no_such(error.option_name) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or list the commands that exist."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise self._no_such(args[0])
        return super().resolve_command(ctx, args)

    def _no_such(self, word: str) -> FklError:
        path = "fkl" if self.name == "commands" else f"fkl {self.name}"
        where = f"all {self.kind}s: {path} --help"
        return FklError(
            f"{word}: no such {self.kind}", help=did_you_mean(word.rpartition(" ")[2], self.commands, where)
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which they are defined below."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per command, with its name and purpose; the commands of `fkl` itself are in groups."""
        for title, names in (SECTIONS if ctx.parent is None else {"Actions": [*self.commands]}).items():
            with formatter.section(title):
                rows = [(name, self.commands[name].get_short_help_str(limit=200)) for name in names]
                formatter.write_dl(rows, col_max=12)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Append two example commands."""
        if ctx.parent is None:
            with formatter.section("Examples"):
                formatter.write_dl(EXAMPLES, col_max=45)
            formatter.write_text("Options and words of a command: fkl COMMAND --help")


class Actions(CommandGroup):
    """Commands for data."""

    kind = "action"

    def _no_such(self, word: str) -> FklError:
        return super()._no_such(f"{self.name} {word}")


def _complete_choices(*groups: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Names of the choices of these groups, for the Tab key."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from fkl.config.choices import choice_descriptions

        return sorted({name for group in groups for name in choice_descriptions(group) if name.startswith(incomplete)})

    return complete


def _any_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of all choices, for the Tab key."""
    from fkl.cli.listing import ALL

    return _complete_choices(*ALL)(ctx, param, incomplete)


def _complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of groups, for the Tab key."""
    from fkl.cli.listing import ALL

    return [name for name in ALL if name.startswith(incomplete)]


_style = click.option(
    "--style",
    type=click.Choice(["screen", "paper", "column"]),
    default="screen",
    show_default=True,
    help="Style of figures: paper is 500 points wide and column 240, with 8-point letters and captions in .txt files.",
)
_config_dir = click.option(
    "--config-dir", metavar="FOLDER", help="Folder with your own choices, in folders named after their groups."
)
_format = click.option(
    "--format", type=click.Choice(FORMATS), default="table", show_default=True, help="How the table is printed."
)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, message="fkl %(version)s")
def commands() -> None:
    """Federated and online kernel learning: every method on the same data, features and ledger."""


@commands.command(cls=RunCommand, options_metavar="[-m]")
@click.argument("words", nargs=-1, metavar="[KEY=VALUE ...]")
@click.option("-m", "--multirun", is_flag=True, help="Run every combination of comma-separated values.")
@click.option("--fail-fast", is_flag=True, help="With -m, start no further run after a failure.")
@click.option("-c", "--cfg", type=click.Choice(("job",)), help="Print the configuration instead of running it.")
@click.option("--resolve", is_flag=True, help="With --cfg, print the values of interpolations.")
@_config_dir
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print all columns of summary.csv, and the lines of your code that led to an error.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and, with -m, the closing table.")
def run(
    words: tuple[str, ...],
    multirun: bool,
    fail_fast: bool,
    cfg: str | None,
    resolve: bool,
    config_dir: str | None,
    verbose: bool,
    quiet: bool,
) -> None:
    """Run one configuration, or with -m every combination of comma-separated values.

    A run that fails does not stop the others, except with --fail-fast.
    """
    if cfg and multirun:
        raise FklError("--cfg and -m: give only one of these")
    if resolve and not cfg:
        raise FklError("--resolve: must be given together with --cfg")
    folders = _config_folders(config_dir)
    if multirun:
        from fkl.sweeps.hydra import run_sweep

        run_sweep(words, folders, fail_fast=fail_fast, quiet=quiet)
        return
    from fkl.config.compose import compose_config

    config = compose_config(*words, folders=folders)
    if cfg:
        from omegaconf import OmegaConf

        from fkl.config.loading import resolve_config

        print(OmegaConf.to_yaml(resolve_config(config) if resolve else config), end="")
        return
    from fkl.report import draw_figures
    from fkl.runs.command import run_single

    run_single(config, words, draw_figures, verbose, quiet, folders)


def _config_folders(config_dir: str | None) -> list[Path]:
    folders = [] if config_dir is None else [Path(config_dir)]
    for folder in folders:
        if not config_dir or not folder.is_dir():
            raise FklError(f"--config-dir={folder if config_dir else ''}: must be a folder that exists")
    return folders


@commands.command(options_metavar="[-m]")
@click.argument("words", nargs=-1, metavar="[KEY=VALUE ...]")
@click.option("-m", "--multirun", is_flag=True, help="Estimate every combination of comma-separated values.")
@_config_dir
def plan(words: tuple[str, ...], multirun: bool, config_dir: str | None) -> None:
    """Estimate the time, memory, disk and messages of a run, or with -m of a sweep, from its first rounds."""
    from fkl.screen.messages import print_lines

    folders = _config_folders(config_dir)
    if not multirun:
        from fkl.runs.forecast import plan_lines

        print_lines(*plan_lines(words, folders))
        return
    from fkl.screen.sheet import Sheet
    from fkl.sweeps.plan import plan_sweep

    lines, rows = plan_sweep(words, folders)
    print_lines(*lines, "")
    Sheet.from_rows(["of these", "runs", "one", "all"], rows, [1, 2, 3]).print_sheet()


@commands.command(options_metavar="[--dry-run|--pilot|--register|--status]")
@click.argument("file", metavar="STUDY.yaml", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("words", nargs=-1, metavar="[hydra/launcher=NAME ...]")
@click.option("--dry-run", is_flag=True, help="Only print the number of runs, hours and disk space.")
@click.option("--pilot", is_flag=True, help="Only run five separate seeds, and print how many are needed.")
@click.option("--register", is_flag=True, help="Freeze plan, code and data before the first run.")
@click.option("--status", is_flag=True, help="Only print the progress, and the verdicts so far.")
def study(file: Path, words: tuple[str, ...], **options: bool) -> None:
    """Tune methods with equal trials, judge them on other rows, and say which is better: a page, tables, LaTeX.

    A file of two lines is enough: `methods: [pof_mkl, vm_kofl]` and `datasets: [diabetes, wave_farm]`.

    The same command continues an interrupted study. docs/paper_table.md describes the keys.
    """
    from fkl.study.command import study_command

    if sum(options.values()) > 1:
        raise FklError("--dry-run, --pilot, --register, --status: give only one of these")
    study_command(file, words, **options)


@commands.command("list")
@click.argument("group", required=False, metavar="[GROUP]", shell_complete=_complete_groups)
@_config_dir
@_format
def list_choices(group: str | None, config_dir: str | None, format: str) -> None:
    """List all choices; with a GROUP (algo, dataset, ...), describe each of them in a line."""
    from fkl.cli.listing import show_list

    folders = _config_folders(config_dir)
    if group is None or format != "table" or not sys.stdout.isatty():
        show_list(group, format, folders)
        return
    from fkl.screen.messages import page_output

    with page_output():
        show_list(group, folders=folders)


@commands.command("describe", context_settings=AS_GIVEN)
@click.argument("name", required=False, shell_complete=_any_name)
@_config_dir
@click.option(
    "--format",
    type=click.Choice(("text", "schema")),
    default="text",
    show_default=True,
    help="schema: JSON Schema of the configuration, or of a group's files.",
)
def describe_choice(name: str | None, config_dir: str | None, format: str) -> None:
    """Explain a choice such as pof_mkl, a key (algo.M), a column (mse_gini) or a kind of message (theta)."""
    if format == "schema":
        from fkl.cli.schema import json_schema

        print(json.dumps(json_schema(name), indent=2, ensure_ascii=False))
        return
    if name is None:
        raise FklError("describe: must be given a NAME", help=["all names: fkl list"])
    from fkl.cli.describe import explain_name
    from fkl.screen.messages import text_width

    print(explain_name(name, text_width(), _config_folders(config_dir)))


@commands.command("show", context_settings=AS_GIVEN)
@click.argument("methods", nargs=-1, metavar="METHOD [METHOD]", shell_complete=_complete_choices("algo"))
@_config_dir
def show_source(methods: tuple[str, ...], config_dir: str | None) -> None:
    """Print the source of a method such as pof_mkl, with its equation numbers; or compare two methods."""
    from fkl.cli.show import method_source
    from fkl.screen.messages import page_output

    with page_output():
        print(method_source(methods, _config_folders(config_dir)))


@commands.group(cls=Actions, invoke_without_command=True, subcommand_metavar="list|describe|fetch|verify|clear ...")
@click.pass_context
def data(context: click.Context) -> None:
    """List, download, check and describe data sets."""
    if context.invoked_subcommand is None:
        context.invoke(data_list)


@data.command("list")
@_format
def data_list(format: str) -> None:
    """Show all data sets, and whether their files are available."""
    from fkl.basics.memory import shown_bytes
    from fkl.data import registry
    from fkl.screen.sheet import Sheet

    listings = registry.list_datasets(_data_store())
    if format != "table":
        Sheet.from_rows(registry.Listing._fields, listings).print_sheet(format)
        return
    from fkl.screen.messages import print_lines

    Sheet.from_rows(["name", "files", "size", "what it is"], [one[:4] for one in listings], [2]).print_sheet()
    print_lines(
        "",
        f"Files are in {_data_store().folder}; FKL_DATA names another folder.",
        "To download one: fkl data fetch NAME.",
    )
    print_lines("Paths, numbers of rows and licences: fkl data list --format=csv.")
    if sizes := [file.stat().st_size for file in _parsed_tables()]:
        kept = f"parsed copies of {count_of(len(sizes), 'table')} of your own, {shown_bytes(sum(sizes))}"
        print_lines(f"The cache keeps {kept}, in {_data_store().tables}; fkl data clear deletes them.")


@data.command("describe", context_settings=AS_GIVEN)
@click.argument("words", nargs=-1, metavar="[NAME] [KEY=VALUE ...]", shell_complete=_complete_choices("dataset"))
@_config_dir
def data_describe(words: tuple[str, ...], config_dir: str | None) -> None:
    """Describe the data of a run in the file's units, and draw how they are divided among clients."""
    from fkl.cli.describe_data import describe_data

    describe_data(words, _config_folders(config_dir))


@data.command("fetch", context_settings=AS_GIVEN)
@click.argument("names", nargs=-1, metavar="[NAME ...]", shell_complete=_complete_choices("dataset"))
def data_fetch(names: tuple[str, ...]) -> None:
    """Download the files of these data sets, or of all."""
    from fkl.data import registry

    _print_file_states("fetch", registry.fetch_datasets([*names], _data_store()))


@data.command("verify", context_settings=AS_GIVEN)
@click.argument("names", nargs=-1, metavar="[NAME ...]", shell_complete=_complete_choices("dataset"))
def data_verify(names: tuple[str, ...]) -> None:
    """Check the files of these data sets, or of all, against their checksums."""
    from fkl.data import registry

    _print_file_states("verify", registry.verify_datasets([*names], _data_store()))


@data.command("clear")
def data_clear() -> None:
    """Delete the cached copies of your own tables; the next run reads the files again."""
    from fkl.screen.messages import print_lines

    files = _parsed_tables()
    for file in files:
        file.unlink(missing_ok=True)
    print_lines(f"deleted {count_of(len(files), 'table')} in {_data_store().tables}")


def _parsed_tables() -> list[Path]:
    from fkl.data.parsed_tables import cached_files

    folder = _data_store().tables
    assert folder is not None
    return list(cached_files(folder))


def _print_file_states(action: str, states: "Iterable[FileState]") -> None:
    """Print one line per file, and raise an error if one is not ok."""
    from fkl.screen.messages import print_lines

    wrong = 0
    for state in states:
        mark = "✓" if state.state == "ok" else "✗"
        print_lines(f"{mark} {state.dataset:14} {state.state:9} {state.file}  {state.detail}".rstrip())
        wrong += state.state != "ok"
    if wrong:
        raise FklError(f"data {action}: {count_of(wrong, 'file')} missing or damaged")


@commands.group(cls=Actions, subcommand_metavar="init|site|try ...")
def flower() -> None:
    """Run real sites under Flower, each with its own rows; docs/flower.md explains how."""


@flower.command("init", context_settings=AS_GIVEN)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, metavar="[KEY=VALUE ...]")
@click.option("--sites", type=int, required=True, metavar="K", help="Number of sites.")
@click.option(
    "--clients-per-site",
    type=int,
    default=1,
    show_default=True,
    metavar="B",
    help="Rows of each site per round.",
)
@_config_dir
def flower_init(
    folder: Path, words: tuple[str, ...], sites: int, clients_per_site: int, config_dir: str | None
) -> None:
    """Write a Flower project with this configuration, for `flwr run`."""
    from fkl.sites.project import write_project

    print(write_project(folder, sites, words, clients_per_site, _config_folders(config_dir)))


@flower.command("site")
@click.argument("server", metavar="HOST:PORT")
@click.option("--number", type=int, required=True, metavar="K", help="The site's number, from 0.")
@click.option("--rows", type=click.Path(path_type=Path), required=True, help="File of the site's rows.")
@click.option(
    "--certificates", type=click.Path(path_type=Path), help="Certificates of the authority that certified the server."
)
@click.option("--key", type=click.Path(path_type=Path), help="Private key that identifies the site to the server.")
def flower_site(server: str, number: int, rows: Path, certificates: Path | None, key: Path | None) -> None:
    """Join a server as a site until you stop it."""
    with requires_extra("flower", "flower"):
        from fkl.sites.site_process import join_superlink

    join_superlink(server, number, rows, certificates, key)


@flower.command("try")
@click.argument("project", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("rows", metavar="ROWS ...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), default="tried", show_default=True, help="Folder for the files."
)
def flower_try(project: Path, rows: tuple[Path, ...], out: Path) -> None:
    """Run a project on this machine: a server, and a site for each file of rows."""
    with requires_extra("flower", "flower"):
        from fkl.sites.trial import run_trial

    sys.exit(run_trial(project, rows, out))


@commands.command()
@click.argument("run", metavar="RUN")
@click.argument("rows", metavar="ROWS")
@click.option("--client", help="Number or site of the client whose model predicts, if each client has its own.")
@click.option("--replicate", type=int, help="Number of a replicate; by default the mean of all.")
@click.option("--out", type=click.Path(path_type=Path), help="File for the predictions; by default they are printed.")
@click.option(
    "--across", metavar="TARGET", help="Print the error of each site's model on each site's rows, for this target."
)
@click.option("--keep", metavar="COLUMN", multiple=True, help="Copy this column, such as ids; repeatable.")
@click.option("--skip-bad-rows", is_flag=True, help="Leave predictions empty for rows that cannot be read.")
def predict(
    run: str,
    rows: str,
    client: str | None,
    replicate: int | None,
    out: Path | None,
    across: str | None,
    keep: tuple[str, ...],
    skip_bad_rows: bool,
) -> None:
    """Predict the rows of a CSV file with the model of a run that had save_model=true."""
    from fkl.runs.prediction import write_predictions

    write_predictions(Path(run), Path(rows), client, replicate, out, across, keep, skip_bad_rows)


@commands.command()
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), required=True, help="New folder.")
def merge(first: Path, second: Path, out: Path) -> None:
    """Merge the models of two runs with save_sums into that of one run on all their rows, exactly."""
    from fkl.runs.model_sums import merge_command
    from fkl.screen.messages import print_lines

    print_lines(*merge_command(first, second, out))


@commands.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--site", metavar="NAME", help="Site whose clients are forgotten.")
@click.option("--client", metavar="K", type=int, help="Number of the client that is forgotten.")
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), required=True, help="New folder.")
def forget(run: Path, site: str | None, client: int | None, out: Path) -> None:
    """Make the model that a run with save_sums=clients would have without a client, exactly, and a certificate."""
    from fkl.runs.model_sums import forget_command
    from fkl.screen.messages import print_lines

    print_lines(*forget_command(run, site, client, out))


@commands.command(context_settings=AS_GIVEN)
@click.argument("words", nargs=-1, metavar="PAPER/NUMBER")
@_format
def table(words: tuple[str, ...], format: str) -> None:
    """Print a paper's table with our numbers below the published ones, for example pof_mkl/1."""
    from fkl.papers import write_table

    write_table(*_paper_and_number("table", words), Path("outputs"), format)


@commands.command(context_settings=AS_GIVEN)
@click.argument("words", nargs=-1, metavar="PAPER/NUMBER|DIGEST|FOLDER")
@_style
def figure(words: tuple[str, ...], style: str) -> None:
    """Draw a paper's figure from our runs, for example pof_mkl/1; or the figures of a finished run, as PDF."""
    from fkl.cli.replay import DIGEST, find_run
    from fkl.screen.messages import print_lines

    outputs = Path("outputs")
    if len(words) == 1 and (DIGEST.fullmatch(words[0]) or Path(words[0]).is_dir()):
        from fkl.report.figures import draw_again

        print_lines(f"files: {draw_again(find_run(words[0], outputs), outputs, style)}")
    else:
        from fkl.papers import write_figure

        print_lines(write_figure(*_paper_and_number("figure", words), outputs, style))


@commands.command(context_settings=AS_GIVEN)
@click.argument("papers", nargs=-1, metavar="[PAPER ...]")
@click.option("--fail-fast", is_flag=True, help="Start no further run after a failure.")
@click.option("--readings", is_flag=True, help="Also run the other readings that differences.md describes.")
@click.option(
    "--site",
    is_flag=False,
    flag_value="site",
    metavar="[FOLDER]",
    help="Run nothing; write published cells, our numbers and their runs as a site into this folder.",
)
def reproduce(papers: tuple[str, ...], fail_fast: bool, readings: bool, site: str | None) -> None:
    """Run all tables and figures of a paper, or of all papers, then write the page: half an hour on two cores."""
    if site is not None:
        if fail_fast or readings:
            raise FklError("--site, --fail-fast and --readings: give --site alone, because it runs nothing")
        with requires_extra("report", "reproduce --site"):
            from fkl.papers.site import write_site

        from fkl.screen.messages import print_lines

        print_lines(write_site(Path(site), papers, Path("outputs"), _data_store()))
        return
    from fkl.papers.reproduce import reproduce_papers

    if reproduce_papers(papers, fail_fast, readings):
        sys.exit(1)


@commands.command()
@click.argument("run", metavar="DIGEST|FOLDER")
def replay(run: str) -> None:
    """Repeat a finished run and compare the tables digit by digit; exit code 1 if a digit differs."""
    from fkl.cli.replay import replay_command

    if not replay_command(run):
        sys.exit(1)


@commands.command()
@click.argument("where", nargs=-1, metavar="[WHERE ...]")
@click.option("--metric", metavar="NAME", help="Column of summary.csv; by default the error that most runs have.")
@click.option(
    "--by", metavar="KEY", multiple=True, help="Make a column for each value of this key, as for data sets; repeatable."
)
@click.option(
    "--out", metavar="FOLDER", default="outputs/comparison", help="Folder for tables and figures.", show_default=True
)
@click.option("--rounds", metavar="FILE.csv", help="Also write the rounds of all runs into this table.")
@click.option("--dark", is_flag=True, help="Draw figures on a dark background.")
@_style
@_format
def compare(
    where: tuple[str, ...],
    metric: str | None,
    by: tuple[str, ...],
    out: str,
    rounds: str | None,
    dark: bool,
    style: str,
    format: str,
) -> None:
    """Compare finished runs: means, tests, ranks, figures, LaTeX.

    WHERE is a folder of runs or of a sweep, a glob, or KEY=VALUE,VALUE; by default all runs in outputs.
    For example: fkl compare algo=pof_mkl,raker dataset=air
    """
    from fkl.report.compare import compare_command

    compare_command(where, metric, by, out, dark, format, style, rounds)


@commands.command()
@click.option("--single", is_flag=True, help="Write one file that contains all pictures and runs.")
def report(single: bool) -> None:
    """Write all tables, figures, differences and runs to one page, outputs/report.html."""
    with requires_extra("report", "report"):
        from fkl.papers.page import write_page

    write_page(Path("outputs"), _data_store(), single)


@commands.command()
@click.argument("run", metavar="DIGEST|FOLDER")
@click.option("-v", "--verbose", is_flag=True, help="Also print each statement and its assumptions.")
@_format
def bound(run: str, verbose: bool, format: str) -> None:
    """Check whether a method's theorems hold in a finished run; exit code 1 if one does not."""
    from fkl.cli.replay import find_run
    from fkl.theory.answer import bound_command

    if not bound_command(find_run(run, Path("outputs")), format, verbose):
        sys.exit(1)


def _data_store() -> "Store":
    from fkl.data.store import Store

    return Store(
        Path(environment_variable("FKL_DATA", "data")),
        cache=Path(environment_variable("FKL_CACHE", "~/.cache/fkl")).expanduser(),
    )


def _paper_and_number(command: str, words: tuple[str, ...]) -> tuple[str, str]:
    paper, slash, number = (words[0] if words else "").partition("/")
    if not slash or len(words) != 1:
        raise FklError(f"{command} {' '.join(words)}: write PAPER/NUMBER, for example pof_mkl/1")
    return paper, number
