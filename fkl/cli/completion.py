"""What the Tab key offers: commands, options and names, which click knows, and the words of `fkl run`."""

from collections.abc import Iterator

from click import Command
from click.shell_completion import ShellComplete, split_arg_string

from fkl.config import choices
from fkl.config.compose import keys_of

OPTIONS = ("-m", "--fail-fast", "--help", "--cfg", "--config-dir")
"""Of `fkl run`; the others of Hydra's are left to those who know them."""
ADDED = ("experiment", "as_published")
"""Groups that a word adds with a plus, the papers' own."""
SCRIPTS = {
    # bash begins another word at each = and inserts what comes behind the last one
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
"""What each shell is told; all ask for the words that may end a line."""


def offered(line: str, commands: Command) -> list[str]:
    """Words that may stand instead of the last one of a line, which is empty behind a space."""
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
    """Keys of a node; of a group, those of the choice that the words before make, or that there is without them."""
    primary = choices.primary()
    if group not in choices.GROUPS:
        node = primary.get(group)
        return node if isinstance(node, dict) else {}
    made = [word.removeprefix(f"{group}=") for word in words if word.startswith(f"{group}=")]
    choice = (made or [primary[group]])[-1]
    return keys_of(group, choice) if choice in choices.files(group) else {}
