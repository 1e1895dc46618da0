"""``gtvcvx --completion SHELL``: a script that completes commands, options and their choices.

It is made from the parsers, so that it cannot fall behind them. Whatever is no choice is completed
as a file name.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from gtvcvx.cli._arguments import PENALTIES, penalty

_DESCRIPTION_LENGTH = 60


@dataclass(frozen=True)
class Option:
    """An option: its spellings, whether a value follows, which there are, and what it is for."""

    names: list[str]
    takes_value: bool
    choices: list[str]
    about: str


@dataclass(frozen=True)
class Command:
    """A command, or with the name "" the program itself."""

    name: str
    about: str
    options: list[Option]


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script of a shell for a parser that has commands."""
    return SHELLS[shell](_commands(parser))


def _commands(parser: argparse.ArgumentParser) -> list[Command]:
    """Return the program and its commands."""
    found = [Command("", "", _options(parser))]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            about = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, below in action.choices.items():
                found.append(Command(name, about.get(name, ""), _options(below)))
    return found


def _options(parser: argparse.ArgumentParser) -> list[Option]:
    formatter = parser._get_formatter()
    return [
        Option(
            list(action.option_strings),
            action.nargs != 0,
            _choices(action),
            _short(formatter._expand_help(action) if action.help else ""),
        )
        for action in parser._actions
        if action.option_strings
    ]


def _choices(action: argparse.Action) -> list[str]:
    if action.type is penalty:
        return list(PENALTIES)
    return list(map(str, action.choices or []))


def _short(text: str) -> str:
    """Return the beginning of a help text, without marks that mean something to a shell."""
    first = " ".join(text.split()).partition(";")[0].partition(" (")[0]
    if len(first) > _DESCRIPTION_LENGTH:
        first = first[:_DESCRIPTION_LENGTH].rpartition(" ")[0] + " ..."
    return "".join(mark for mark in first if mark not in "[]'\"`$\\:")


def _bash(commands: list[Command]) -> str:
    top, *below = commands
    cases = [_bash_case('""', [*(c.name for c in below), *_names(top)], top)]
    cases += [_bash_case(c.name, _names(c), c) for c in below]
    return f"""\
# Completion of gtvcvx for bash: eval "$(gtvcvx --completion bash)"
_gtvcvx() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command="" words=""
    if ((COMP_CWORD > 1)); then command=${{COMP_WORDS[1]}}; fi
    COMPREPLY=()
    case $command in
{"".join(cases)}    esac
    if [[ -z $command || $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    fi
}}
complete -o bashdefault -o default -F _gtvcvx gtvcvx
"""


def _bash_case(pattern: str, words: list[str], command: Command) -> str:
    lines = [f"    {pattern})", f'        words="{" ".join(words)}"']
    chosen = [option for option in command.options if option.choices]
    if command.name and chosen:
        lines.append("        case $prev in")
        for option in chosen:
            answer = f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur"))'
            lines.append(f"        {'|'.join(option.names)}) {answer}; return ;;")
        lines.append("        esac")
    return "\n".join([*lines, "        ;;\n"])


def _names(command: Command) -> list[str]:
    return [name for option in command.options for name in option.names]


def _zsh(commands: list[Command]) -> str:
    top, *below = commands
    described = "\n".join(f"            '{c.name}:{_short(c.about)}'" for c in below)
    cases = "".join(
        f"        {c.name}) _arguments {' '.join(map(_zsh_option, c.options))} '*:file:_files' ;;\n"
        for c in below
    )
    return f"""\
#compdef gtvcvx
# Completion of gtvcvx for zsh: eval "$(gtvcvx --completion zsh)"
_gtvcvx() {{
    local -a commands
    if ((CURRENT == 2)); then
        commands=(
{described}
        )
        _describe command commands
        _arguments {" ".join(map(_zsh_option, top.options))}
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
{cases}    esac
}}
if [ "$funcstack[1]" = "_gtvcvx" ]; then _gtvcvx "$@"; else compdef _gtvcvx gtvcvx; fi
"""


def _zsh_option(option: Option) -> str:
    value = ""
    if option.takes_value:
        value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
    return " ".join(f"'{name}[{option.about}]{value}'" for name in option.names)


def _fish(commands: list[Command]) -> str:
    top, *below = commands
    lines = ["# Completion of gtvcvx for fish: gtvcvx --completion fish | source"]
    lines += [
        f"complete -c gtvcvx -f -n __fish_use_subcommand -a {c.name} -d '{_short(c.about)}'"
        for c in below
    ]
    lines += [_fish_option("__fish_use_subcommand", option) for option in top.options]
    for command in below:
        where = f"'__fish_seen_subcommand_from {command.name}'"
        lines += [_fish_option(where, option) for option in command.options]
    return "\n".join(lines) + "\n"


def _fish_option(where: str, option: Option) -> str:
    names = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    ]
    value = ""
    if option.takes_value:
        value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r"
    return f"complete -c gtvcvx -n {where} {' '.join(names)}{value} -d '{option.about}'"


SHELLS: dict[str, Callable[[list[Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
