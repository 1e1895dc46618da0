"""``gtvcvx --completion``: the scripts complete what the parsers know, in a real shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gtvcvx.cli import _completion, _parser

COMMANDS = _completion._commands(_parser())
NAMES = [command.name for command in COMMANDS[1:]]
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not there")


def scripts(run, shell):
    outcome = run("--completion", shell)
    assert (outcome.status, outcome.err) == (0, "")
    return outcome.out


def completed(script, folder, *lines):
    """What bash offers at the end of each line, which begins after the program's name."""
    calls = "\n".join(
        f"COMP_WORDS=({line}); [[ '{line}' == *' ' ]] && COMP_WORDS+=('');"
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gtvcvx; echo "${COMPREPLY[@]}"'
        for line in (f"gtvcvx {line}" for line in lines)
    )
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{script}\n{calls}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [line.split() for line in done.stdout.splitlines()]


@needs_bash
def test_bash_completes_commands_options_and_choices(run, tmp_path):
    top, fit, loss, part, penalties, value, check = completed(
        scripts(run, "bash"),
        tmp_path,
        " ",
        "fit --",
        "fit --loss ",
        "fit --edges e.csv --loss p",
        "path --penalty ",
        "fit --edges ",
        "check -",
    )
    assert set(NAMES) | {"--version", "--completion", "-h"} <= set(top)
    assert {"--edges", "--loss", "--standardize", "--output"} <= set(fit)
    assert "-o" not in fit  # it does not begin like that
    assert {"squared", "quantile", "point"} <= set(loss)
    assert part == ["poisson", "pseudohuber", "point"]
    assert penalties == ["l1", "l2", "linf", "squared"]
    assert value == []  # so that bash offers files
    assert "--edges" not in check
    assert "--json" in check


@needs_bash
def test_every_option_of_every_command_is_completed(run, tmp_path):
    offered = completed(scripts(run, "bash"), tmp_path, *(f"{name} -" for name in NAMES))
    for command, found in zip(COMMANDS[1:], offered, strict=True):
        assert set(found) == set(_completion._names(command))
        help_text = run(command.name, "--help").out
        assert all(name in help_text for name in found)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_everything_and_are_well_formed(run, tmp_path, shell):
    text = scripts(run, shell)
    for command in COMMANDS[1:]:
        assert command.name in text
        for name in _completion._names(command):
            assert name.lstrip("-") in text
    if shutil.which(shell) is not None:
        path = tmp_path / "script"
        path.write_text(text)
        subprocess.run([shell, "-n", str(path)], check=True)


def test_an_unknown_shell(run):
    outcome = run("--completion", "tcsh")
    assert outcome.status == 2
    assert "'tcsh'" in outcome.err
    assert outcome.err.count("\n") == 1
