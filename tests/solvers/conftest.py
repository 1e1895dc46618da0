"""What the tests of solvers share."""

import dataclasses

import pytest

from gtvcvx.solvers.interior_point import _cost
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise


@pytest.fixture
def tuned(monkeypatch):
    """Return a function that changes the default settings of a class, until the test ends."""

    def tune(kind, **changes):
        init = kind.__init__
        if init.__kwdefaults__:
            changed = {**init.__kwdefaults__}
            changed["settings"] = dataclasses.replace(changed["settings"], **changes)
            monkeypatch.setattr(init, "__kwdefaults__", changed)
        else:
            changed = tuple(
                dataclasses.replace(value, **changes) if dataclasses.is_dataclass(value) else value
                for value in init.__defaults__
            )
            monkeypatch.setattr(init, "__defaults__", changed)

    return tune


@pytest.fixture
def iterations_alone(monkeypatch):
    """Keep interior-point methods from problems that are small enough for them."""
    for method in (InteriorPoint, Blockwise):
        monkeypatch.setattr(method, "requires", (lambda problem: "nothing",))


@pytest.fixture
def iterations_first(monkeypatch):
    """Let iterations begin although small problems go to another method at once."""
    changes = {"fewest_raw": 1, "models": 0.0, "multipliers": 0.0}
    monkeypatch.setattr(_cost, "STALLING", dataclasses.replace(_cost.STALLING, **changes))
