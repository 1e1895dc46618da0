"""The example on Theorem 2: its tables, and that they say what they claim to show."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "theorem2_on_the_papers_graphs.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[PATH.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def accounts(example):
    """Answers on small versions of the three graphs, by their setting's name."""
    settings = [*example.block_models(30, 0), *example.chains(12, 0), *example.stars(12, 0)]
    return {setting.name: example.account(setting) for setting in settings}


def test_rungs_imply_each_other_and_the_last_is_what_the_solver_does(accounts):
    assert len(accounts) == 20
    for name, found in accounts.items():
        assert found.definition <= found.lemma3 <= found.exact, name
        assert found.exact == found.solver, name
        assert found.definition == (found.definition_margin > 1), name
    assert (
        0 < sum(a.definition for a in accounts.values()) < sum(a.exact for a in accounts.values())
    )
    assert sum(a.exact for a in accounts.values()) < len(accounts)


def test_star_is_exact_and_its_critical_lambda_is_the_largest_gradient(example, accounts):
    below, above = [found for name, found in accounts.items() if re.match(r"lambda \d", name)][-2:]
    assert (below.definition, below.exact, below.solver) == (False, False, False)
    assert (above.definition, above.exact, above.solver) == (True, True, True)
    assert above.definition_margin == pytest.approx(1.001, rel=1e-6)
    assert above.lemma3_margin == pytest.approx(1.001, rel=1e-6)
    assert above.slack == pytest.approx(1 - 1 / 1.001, abs=1e-6)


def test_more_boundary_leaves_less_margin(accounts):
    chain = [a for name, a in accounts.items() if name.startswith("eps") and "sigma 0," in name]
    assert [a.definition_margin for a in chain] == sorted(
        (a.definition_margin for a in chain), reverse=True
    )
    assert chain[0].definition
    assert not chain[-1].exact


def test_tables_and_summary_are_printed(example, capsys):
    assert example.main(["--size", "12", "--chain", "5", "--star", "6"]) == 0
    out = capsys.readouterr().out
    assert (
        len(re.findall(r"(?:yes|no) \S+.*(?:yes|no) \S+.*(?:yes|no) \S+.*(?:yes|no) ", out)) == 20
    )
    assert "The exact test and the solver agree in 20 of 20 settings." in out
    assert "What you learn" in example.__doc__
