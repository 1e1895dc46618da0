"""A synthetic stand-in for the counties of the states, where a user has no files of them."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.datasets._counties import CountyElection

# As in the real table: 30 states with more than 50 counties, the smallest with 51 here and the
# largest (Texas) with 254; most are small, which the power gives (2,900 rows; really 2,709).
_STATES, _LEAST, _MOST, _POWER = 30, 51, 254, 4.0
_FEATURES = 51
# Share of counties with a Democratic majority in 2020.
_POSITIVES = 0.143
# Length of a state's parameters: then a state alone and all states in one model (both about .86
# correct with a ridge of 1) are worse than the states of a cluster together (.91), as they must be
# for clusters to be worth finding.
_LENGTH = 4.0
# Ballots of a county: median and spread of the logarithm, as in the real table.
_BALLOTS, _SPREAD = 10_000.0, 1.4


def synthetic_election(seed: int = 0) -> tuple[CountyElection, IntArray]:
    """Make up counties whose votes follow one of two logistic models, by the state.

    The numbers are synthetic: nothing in them is about a real county, and ``source`` says so. What
    is as in the real table are the number of states with more than 50 counties (30), their sizes
    (51 to 254), the number of figures (51) and the share of Democratic majorities (14 %).

    Parameters
    ----------
    seed : int
        Of the random numbers.

    Returns
    -------
    election : CountyElection
        The states are "S01" to "S30".
    clusters : ndarray of int64, shape (30,)
        Which of the two parameter vectors a state has, 0 or 1, in the order of the states.

    Notes
    -----
    A county with figures x ~ N(0, I) in a state of cluster c has the margin ``x . w_c + b_c + e``
    with logistic noise e, so that a Democratic majority has the probability of a logistic model;
    b_c makes 14 % of them. The two w_c have length 4 and half of their coordinates in common.
    """
    rng = np.random.default_rng([seed, _STATES])
    along = np.linspace(0.0, 1.0, _STATES) ** _POWER
    sizes = rng.permutation(np.round(_LEAST + (_MOST - _LEAST) * along).astype(np.int64))
    clusters = rng.permutation(np.arange(_STATES) % 2).astype(np.int64)
    state = np.repeat(np.arange(_STATES), sizes)
    X = rng.standard_normal((len(state), _FEATURES))
    weights = _two_parameter_vectors(rng)
    margin = np.einsum("ij,ij->i", X, weights[clusters[state]]) + rng.logistic(size=len(state))
    for c in (0, 1):
        inside = clusters[state] == c
        margin[inside] -= np.quantile(margin[inside], 1.0 - _POSITIVES)
    names = [f"S{k + 1:02d}" for k in range(_STATES)]
    numbers = np.arange(len(state)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    election = CountyElection(
        fips=[f"{s + 1:02d}{k:03d}" for s, k in zip(state, numbers, strict=True)],
        states=[names[s] for s in state],
        names=[f"county {k} of {names[s]}" for s, k in zip(state, numbers, strict=True)],
        features=[f"x{j + 1}" for j in range(_FEATURES)],
        X=X,
        votes=_ballots(margin, rng),
        source=f"synthetic stand-in for counties, seed {seed}",
        unmatched=[],
    )
    return election, clusters


def _two_parameter_vectors(rng: np.random.Generator) -> FloatArray:
    """Return (2, p): the second has the signs of half of the coordinates turned."""
    first = rng.standard_normal(_FEATURES)
    first *= _LENGTH / np.linalg.norm(first)
    turned = rng.permutation(_FEATURES) < _FEATURES // 2
    return np.stack([first, np.where(turned, -first, first)])


def _ballots(margin: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return whole votes (n, 2) whose larger side is that of the margin."""
    total = np.maximum(np.round(_BALLOTS * np.exp(_SPREAD * rng.standard_normal(len(margin)))), 3)
    # An odd number of ballots has a majority, however small the margin is.
    total += 1 - total % 2
    share = 1.0 / (1.0 + np.exp(-0.3 * margin))
    democratic = np.round(share * total)
    won = margin > 0
    democratic = np.where(won, np.maximum(democratic, (total + 1) / 2), democratic)
    democratic = np.where(won, democratic, np.minimum(democratic, (total - 1) / 2))
    return np.stack([democratic, total - democratic], axis=1)
