"""Completion for the Tab key: click completes commands, options and names; this module the words of `fkl run`."""

from collections.abc import Iterator

from click import Command
from click.shell_completion import ShellComplete, split_arg_string

from fkl.config import choices
from fkl.config.compose import keys_of

OPTIONS = ("-m", "--fail-fast", "--help", "--cfg", "--config-dir")
"""Options of `fkl run` that are offered; Hydra has more."""
ADDED = ("experiment", "as_published")
"""Groups that need a plus in a word; these belong to the papers."""
SCRIPTS = {
    # bash starts a new word at each =, and inserts only the text after the last one
    "bash": """\
_fkl_completion() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" word
    local given="${line##* }"
    COMPREPLY=()
    for word in $("$1" completion bash --line "$line"); do
        [[ $COMP_WORDBREAKS == *"="* && $given == *"="* ]] && word="${word#"${given%%=*}="}"
        COMPREPLY+=("$word")
    done
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace
}
complete -o nosort -o bashdefault -o default -F _fkl_completion fkl
""",
    "zsh": """\
#compdef fkl
_fkl_completion() {
    local -a offered
    offered=(${(f)"$(fkl completion zsh --line "${(j: :)words[1,CURRENT]}")"})
    compadd -S '' -- ${(M)offered:#*[=.]}
    compadd -- ${offered:#*[=.]}
    (( $#offered )) || _files
}
compdef _fkl_completion fkl
""",
    "fish": """\
complete --no-files --command fkl --arguments '(fkl completion fish --line (commandline -cp | string collect))'
""",
}
"""Setup code for each shell; all shells ask for the words that may end a line."""


def offered(line: str, commands: Command) -> list[str]:
    """Words that may replace the last word of a line, which is empty after a space."""
    words = split_arg_string(line)[1:]
    given = words.pop() if words and not line[-1].isspace() else ""
    if words[:1] == ["run"]:
        return [word for word in _of_run(words[1:], given) if word.startswith(given)]
    items = ShellComplete(commands, {}, "fkl", "").get_completions(words, given)
    return [item.value for item in items if item.type == "plain"]


def _of_run(words: list[str], given: str) -> Iterator[str]:
    """Options, keys, and choices; of a list of choices, the last one."""
    if given.startswith("-"):
        yield from OPTIONS
    key, equals, value = given.partition("=")
    if equals:
        before = value.rpartition(",")[0]
        start = f"{key}={before}," if before else f"{key}="
        yield from (start + name for name in choices.abouts(key.lstrip("+")))
        return
    group, dot, _ = key.partition(".")
    if dot:
        yield from (f"{group}.{name}=" for name in _keys(group, words) if name not in ("_target_", "table"))
    elif key.startswith("+"):
        yield from (f"+{name}=" for name in ADDED)
    else:
        for name, default in choices.primary().items():
            if name in choices.GROUPS or not isinstance(default, dict):
                yield f"{name}="
            if name in choices.GROUPS or isinstance(default, dict):
                yield f"{name}."


def _keys(group: str, words: list[str]) -> dict[str, object]:
    """Keys of a node. For a group these are the keys of the choice in the earlier words, or of the default choice."""
    primary = choices.primary()
    if group not in choices.GROUPS:
        node = primary.get(group)
        return node if isinstance(node, dict) else {}
    made = [word.removeprefix(f"{group}=") for word in words if word.startswith(f"{group}=")]
    choice = (made or [primary[group]])[-1]
    return keys_of(group, choice) if choice in choices.files(group) else {}
