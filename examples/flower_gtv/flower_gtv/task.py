"""What client and server share: the algorithm, and the borders. The data are each state's own."""

from functools import cache

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.datasets import USIncome, load_us_income

STATES = (
    *("Arizona", "California", "Colorado", "Idaho", "Montana", "Nevada", "New Mexico"),
    *("Oregon", "Utah", "Washington", "Wyoming"),
)
YEARS = 20  # 1929 to 1948, before incomes grew closer to each other

# As GTVProblem has it: no factor one half at the losses.
ALGORITHM = fed.FedADMM(lam=0.02, rho=0.1, penalty="l2", half=False, step="exact")


@cache
def _table() -> USIncome:
    return load_us_income()


def graph() -> gtv.EmpiricalGraph:
    """Return the borders between the states."""
    data = _table()
    place = {data.states.index(state): i for i, state in enumerate(STATES)}
    pairs = [(place[a], place[b]) for a, b in data.edges.tolist() if a in place and b in place]
    return gtv.EmpiricalGraph(len(STATES), pairs, nodes=list(STATES))


def load_loss(i: int) -> gtv.SquaredLoss:
    """Return the loss of one state: a linear trend of its relative log income.

    On nodes of different owners each would read a file of its own here.
    """
    X, y = _table().trend_regression()
    row = _table().states.index(STATES[i])
    return gtv.SquaredLoss(X[row, :YEARS], y[row, :YEARS])
