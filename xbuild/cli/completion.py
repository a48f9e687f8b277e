"""`xbuild completion`: the script that completes commands, targets, words and instruction names in a shell.

The name of a file is untrusted: it may contain text that a shell would run. So the scripts put it on the line only
quoted: in bash a completion is the typed text and a quoted rest; zsh and fish quote it, and get no control characters.
"""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

from .candidates import typed_line
from .group import TimeIsOver, limited, main
from .outputs import say

_COMPLETE = "_XBUILD_COMPLETE"

SECONDS, BYTES = 5.0, 1 << 29
"""Limits of a completion; at a limit it returns no candidates."""

_BASH = """\
%(complete_func)s() {
    local type value typed="${COMP_LINE:0:COMP_POINT}"
    while IFS=',' read -r type value; do
        if [[ $type == plain ]]; then
            COMPREPLY+=("$2$value")
        elif [[ $type == file ]]; then
            compopt -o default
        fi
    done < <(env COMP_LINE="$typed" %(complete_var)s=bash_complete %(prog_name)s 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a completions told response
    local type value descr
    (( ! $+commands[%(prog_name)s] )) && return 1

    response=("${(@f)$(env COMP_LINE="${(j: :)words[1,CURRENT-1]} $IPREFIX$QIPREFIX$PREFIX" \\
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for type value descr in "${(@)response}"; do
        if [[ "$type" == "plain" && "$descr" == "_" ]]; then
            completions+=("$value")
        elif [[ "$type" == "plain" ]]; then
            told+=("$value:$descr")
        elif [[ "$type" == "file" ]]; then
            _path_files
        fi
    done
    (( $#told )) && _describe -V unsorted told -U
    (( $#completions )) && compadd -U -V unsorted -a completions
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
function %(complete_func)s
    env %(complete_var)s=fish_complete COMP_LINE=(commandline -cp | string collect) %(prog_name)s 2>/dev/null |
    while read -l --delimiter , type value
        switch $type
            case plain
                printf '%%s\\\\n' $value
            case file
                __fish_complete_path (commandline -ct | string collect | string unescape | string collect)
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _BoundedComplete(ShellComplete):
    """Completion from the line up to the cursor, in bounded time and memory, with candidates of one line each."""

    def get_completion_args(self) -> tuple[list[str], str]:
        typed = typed_line()
        return list(typed.words[1:]), typed.last

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """The candidates, each as the complete word; for --option=VALUE click returns only the value."""
        option, equals, _ = incomplete.partition("=")
        prefix = f"{option}=" if equals and option.startswith("--") else ""
        items = super().get_completions(args, incomplete)
        if any(item.type != "plain" for item in items):
            return [CompletionItem("", "file")]  # the shell completes it from its own line
        words = [CompletionItem(prefix + item.value, help=item.help) for item in items]
        return [word for word in words if word.value.startswith(incomplete) and word.value.isprintable()]

    def complete(self) -> str:
        try:
            with limited(SECONDS, BYTES):
                return super().complete()
        except (TimeIsOver, MemoryError, RecursionError):
            return ""


class _Bash(_BoundedComplete, BashComplete):
    """For bash a candidate is the rest of the word, since bash ends a word at each colon, which a target has."""

    source_template = _BASH

    def format_completion(self, item: CompletionItem[Any]) -> str:
        typed = typed_line()
        return f"{item.type},{typed.quoted(item.value[len(typed.last) :])}"


class _Zsh(_BoundedComplete, ZshComplete):
    source_template = _ZSH


class _Fish(_BoundedComplete, FishComplete):
    source_template = _FISH


for _kind in (_Bash, _Zsh, _Fish):
    add_completion_class(_kind)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell script that completes xbuild's commands.

    For bash, add eval "$(xbuild completion bash)" to ~/.bashrc. For zsh, add eval "$(xbuild completion zsh)" to
    ~/.zshrc. For fish, run `xbuild completion fish > ~/.config/fish/completions/xbuild.fish`.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(main, {}, "xbuild", _COMPLETE).source())
