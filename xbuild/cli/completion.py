"""`xbuild completion`: the script that completes commands, targets, words and instruction names in a shell."""

from __future__ import annotations

import shlex
from os import environ

import click
from click.shell_completion import BashComplete, add_completion_class, get_completion_class

from .group import main
from .support.saying import say

_COMPLETE = "_XBUILD_COMPLETE"

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value before typed="${COMP_LINE:0:COMP_POINT}"
    response=$(env COMP_LINE="$typed" %(complete_var)s=bash_complete $1)
    typed="${typed##* }"
    before=""
    [[ $COMP_WORDBREAKS == *:* && $typed == *:* ]] && before="${typed%%:*}:"
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$before"}")
        else
            compopt -o default
        fi
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """Completion in bash by the line itself: bash's words end at each colon, which a target has."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = environ["COMP_LINE"]
        words = _words(line)
        return (words[1:], "") if line[-1:].isspace() else (words[1:-1], words[-1])


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quotation that is not closed
        return line.split()


add_completion_class(_Bash)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes xbuild's commands in a shell.

    In bash: eval "$(xbuild completion bash)", best in ~/.bashrc. In zsh: the same with zsh, in ~/.zshrc. In fish:
    xbuild completion fish > ~/.config/fish/completions/xbuild.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(main, {}, "xbuild", _COMPLETE).source())
