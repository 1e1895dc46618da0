"""Every bound of the kernel, put into the claim that needs the other side of it.

The constants of Theorem 2 are bounded from one side for "well-connected" and from the other for
the opposite; the bounds of a certificate are an upper one of P(w) and a lower one of the optimum.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from _plain_instances import document

import verify
from verify.instance._roots import root_of, texts
from verify.kernel import constants as rules
from verify.kernel.data import canonical
from verify.kernel.partitions import check_cluster

Document = dict[str, Any]
NORMS = ("l1", "l2", "linf")
YES, NO = "well-connected", "not well-connected"
SLIGHTLY = Fraction(1, 1 << 40)


class Cluster:
    """Two nodes joined by an edge, a third outside; the center is not the minimizer.

    The edge is so heavy for a positive claim, and so light for a negative one, that the constants
    alone decide.
    """

    def __init__(self, norm: str, d: int) -> None:
        self.norm, self.d = norm, d
        rng = np.random.default_rng(d)
        node = np.repeat([0, 1, 2], d + 3)
        self.terms = [
            {
                "kind": "squared",
                "node": node.tolist(),
                "X": rng.integers(-2, 3, (len(node), d)).astype(float).tolist(),
                "y": rng.integers(-4, 5, len(node)).astype(float).tolist(),
            },
            {"kind": "ridge", "node": [0, 1, 2], "mu": [1.0] * 3},
        ]
        losses = rules.Quadratics(canonical(self.data(YES)))
        self.local = [losses.local(i) for i in (0, 1)]
        self.total = [
            [a + b for a, b in zip(*rows, strict=True)]
            for rows in zip(self.local[0][0], self.local[1][0], strict=True)
        ]
        self.v = [[Fraction(x) for x in row] for row in rng.integers(-20, 50, (2, d)).tolist()]
        h = np.array(self.total, dtype=float)
        slope = -sum(np.array(q, dtype=float) for _, q in self.local)
        self.center = [Fraction(x) for x in (np.linalg.solve(h, slope) + 2.0**-20).tolist()]

    def data(self, claim: str) -> Document:
        return {
            "schema": "gtv-problem/1",
            "n_nodes": 3,
            "dim": self.d,
            "edges": [[0, 1], [0, 2]],
            "weights": [2.0**80 if claim == YES else 2.0**-200, 1.0],
            "lam": 1.0,
            "penalty": {"kind": self.norm},
            "terms": self.terms,
        }

    def lower_alpha(self) -> Fraction:
        """Return a lower bound that is no upper one."""
        least = float(np.linalg.eigvalsh(np.array(self.total, dtype=float))[0])
        return Fraction(least) / (2 * (self.d if self.norm == "l1" else 1))

    def upper_alpha(self) -> Fraction:
        """Return the quotient of a vector that is not the best one."""
        return self.quotient(self.total, self.v[0])

    def lower_beta(self, i: int) -> Fraction:
        return self.quotient(self.local[i][0], self.v[i])

    def upper_beta(self, i: int) -> Fraction:
        """Return the bound without enumeration, 1/16 above it to be no lower bound."""
        return rules._upper_beta(self.local[i][0], self.norm) * Fraction(17, 16)

    def quotient(self, h: Any, v: Any) -> Fraction:
        return rules._form(h, v) / rules._squared_norm(v, self.norm)

    def deltas(self, upper: bool) -> list[Fraction]:
        """Return ||g_i||_* plus or minus beta_i ||r||_* / alpha, up to a rounding of the norm."""
        gradients, rest = rules._gradients(self.local, self.center)
        distance = rules._upper_norm(rest, self.norm) / self.lower_alpha()
        sign = 1 if upper else -1
        room = [sign * self.upper_beta(i) * distance for i in (0, 1)]
        sizes = [rules._upper_norm(g, self.norm) for g in gradients]
        tiny = sign * Fraction(1, 1 << 45)
        return [size * (1 + tiny) + x for size, x in zip(sizes, room, strict=True)]

    def witness(self, claim: str) -> Document:
        """Return the true witness of a claim, each constant from its side."""
        upper = claim == YES
        proof: Document = {"sets": [[0], [1]], "left_out": []}
        along = [[text(x) for x in v] for v in self.v]
        if upper:
            proof = {"sink": 0, "flow": [-(1 << 70)], "scale": 1}
        else:
            proof["directions"] = {"alpha": along[0], "beta": along}
        shift = self.lower_alpha() * (self.d if self.norm == "l1" else 1)
        above = [self.upper_beta(i) for i in (0, 1)]
        return {
            "roots": {
                "total": root(shifted(self.total, shift, 1)),
                "local": [
                    root(shifted(h, b, -1)) for (h, _), b in zip(self.local, above, strict=True)
                ],
            },
            "claim": claim,
            "cluster": [0, 1],
            "alpha": text(self.lower_alpha() if upper else self.upper_alpha()),
            "beta": [text(self.upper_beta(i) if upper else self.lower_beta(i)) for i in (0, 1)],
            "delta": [text(x) for x in self.deltas(upper)],
            "center": [text(x) for x in self.center],
            "modulus": None if upper else text(self.lower_alpha()),
            **proof,
        }


def shifted(h: Any, c: Fraction, sign: int) -> Any:
    """Return H - c I for sign = 1, c I - H for sign = -1."""
    return [[sign * (x - (c if i == j else 0)) for j, x in enumerate(r)] for i, r in enumerate(h)]


def root(matrix: Any) -> Any:
    found = root_of(matrix)
    return None if found is None else texts(found)


def text(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


def status(cluster: Cluster, claim: str, **changes: Any) -> str:
    return check_cluster(cluster.data(claim), cluster.witness(claim) | changes).status


@pytest.fixture(params=[(norm, d) for norm in NORMS for d in (2, 9)], ids=str)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return Cluster(*request.param)


@pytest.mark.parametrize("claim", [YES, NO])
def test_each_bound_proves_the_claim_of_its_own_side(cluster: Cluster, claim: str) -> None:
    assert all(delta > 0 for delta in cluster.deltas(claim == YES))
    assert status(cluster, claim) == "CERTIFIED"


@pytest.mark.parametrize("name", ["alpha", "beta", "delta"])
@pytest.mark.parametrize("claim", [YES, NO])
def test_no_bound_proves_the_claim_of_the_other_side(
    cluster: Cluster, claim: str, name: str
) -> None:
    other = cluster.witness(NO if claim == YES else YES)[name]
    assert status(cluster, claim, **{name: other}) == "REFUTED"
    if claim == NO:  # without the directions the rules by elimination and enumeration decide
        witness = cluster.witness(NO) | {name: other}
        del witness["directions"]
        assert check_cluster(cluster.data(NO), witness).status in ("REFUTED", "UNPROVED")


def test_modulus_is_a_lower_bound_in_both_claims(cluster: Cluster) -> None:
    """It bounds the distance to the minimizer, which is taken off in a negative claim."""
    assert status(cluster, NO, modulus=text(cluster.upper_alpha())) == "REFUTED"


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_quotients_are_compared_to_the_last_digit(cluster: Cluster, name: str) -> None:
    """A direction proves its own quotient and nothing beyond."""
    if name == "alpha":
        value = cluster.upper_alpha()
        good, bad = text(value), text(value - SLIGHTLY)
    else:
        other = text(cluster.lower_beta(1))
        value = cluster.lower_beta(0)
        good, bad = [text(value), other], [text(value + SLIGHTLY), other]
    assert status(cluster, NO, **{name: good}) == "CERTIFIED"
    assert status(cluster, NO, **{name: bad}) == "REFUTED"


ENCLOSED = ("logistic_ridge", "poisson_ridge", "pseudohuber_ridge", "squared", "every_kind")


@pytest.mark.parametrize("loss", ENCLOSED)
def test_bounds_of_a_certificate_are_no_bounds_of_the_other_side(loss: str) -> None:
    """P(w) and the optimum differ: the bound of one is none of the other, nor a bit beyond."""
    doc = document(7, loss, "l2")
    proved = verify.check(doc)
    assert proved.status == "CERTIFIED"
    assert proved.lower is not None
    assert proved.upper is not None
    assert proved.lower < proved.upper
    step = Fraction(1, 1 << 600)

    def claimed(**changes: Fraction) -> str:
        claim = doc["claim"] | {name: text(x) for name, x in changes.items()}
        return verify.check(doc | {"claim": claim}).status

    assert claimed(lower=proved.lower, upper=proved.upper) == "CERTIFIED"
    assert claimed(lower=proved.lower + step) == "REFUTED"
    assert claimed(lower=proved.upper) == "REFUTED"
    assert claimed(upper=proved.upper - step) in ("UNPROVED", "REFUTED")
    assert claimed(upper=proved.lower) == "REFUTED"
