"""What every algorithm says of itself."""

import inspect

import pytest

from gtvcvx import federated as fed
from gtvcvx.federated import algorithms

NAMED = [getattr(algorithms, name) for name in algorithms.__all__ if name != "Algorithm"]
ALGORITHMS = [kind for kind in NAMED if inspect.isclass(kind) and issubclass(kind, fed.Algorithm)]


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_guarantee_and_what_leaves_a_client_are_told(kind: type[fed.Algorithm]) -> None:
    assert getattr(fed, kind.__name__) is kind
    assert kind.guarantee
    assert kind.leaves
    assert "leaves a client" in (kind.__doc__ or "")
