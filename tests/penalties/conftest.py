"""Every penalty, in every dimension that its tests use."""

from collections.abc import Callable

import numpy as np
import pytest

from gtvcvx.penalties import (
    L1Norm,
    L2Norm,
    LinfNorm,
    Penalty,
    PNorm,
    Quadratic,
    SquaredNorm,
)


def _regular(d: int) -> Quadratic:
    root = np.random.default_rng(d).standard_normal((d, d)) + 2.0 * np.eye(d)
    return Quadratic(root @ root.T)


def _singular(d: int) -> Quadratic:
    root = np.random.default_rng(d).standard_normal((d, d // 2))
    return Quadratic(root @ root.T)


NORMS: dict[str, Callable[[int], Penalty]] = {
    "l1": lambda d: L1Norm(),
    "l2": lambda d: L2Norm(),
    "linf": lambda d: LinfNorm(),
    "p=1": lambda d: PNorm(1),
    "p=1.3": lambda d: PNorm(1.3),
    "p=2": lambda d: PNorm(2.0),
    "p=3": lambda d: PNorm(3),
    "p=8": lambda d: PNorm(8.0),
    "p=inf": lambda d: PNorm(np.inf),
}
OTHERS: dict[str, Callable[[int], Penalty]] = {
    "squared": lambda d: SquaredNorm(),
    "quadratic": _regular,
    "singular": _singular,
}


@pytest.fixture(params=[1, 2, 3, 6], ids="d={}".format)
def d(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(params=[*NORMS, *OTHERS])
def penalty(request: pytest.FixtureRequest, d: int) -> Penalty:
    return (NORMS | OTHERS)[request.param](d)


@pytest.fixture(params=[*NORMS])
def norm(request: pytest.FixtureRequest, d: int) -> Penalty:
    return NORMS[request.param](d)


@pytest.fixture
def rng(d: int) -> np.random.Generator:
    return np.random.default_rng(1000 + d)
