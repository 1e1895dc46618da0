"""Attacks on the data of a certificate, with and without the witness being adapted."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

from _objective import ROWS
from _proof import Proof

Attack = Callable[[Proof, random.Random], None]


def little(rng: random.Random, most: int = 50) -> F:
    """Return a signed power of two, from 1 down to what floats hardly see."""
    return F(rng.choice((-1, 1)), 1 << rng.randint(0, most))


def factor(rng: random.Random) -> F:
    return rng.choice((F(1, 2), F(2), F(3, 4), 1 + little(rng) / 2, 1 + little(rng, 8) / 2))


def some_term(proof: Proof, rng: random.Random, *kinds: str) -> Any:
    """Return (term, its multipliers, a row) of one of the kinds, None where there is none."""
    found = [
        (t, r) for t, r in zip(proof.terms, proof.r, strict=True)
        if t["node"] and (not kinds or t["kind"] in kinds)
    ]  # fmt: skip
    if not found:
        return None
    term, r = rng.choice(found)
    return term, r, rng.randrange(len(term["node"]))


def weight(proof: Proof, rng: random.Random) -> None:
    if not proof.u:
        return
    e, by = rng.randrange(len(proof.u)), factor(rng)
    proof.data["weights"][e] *= by
    if rng.random() < 0.5:
        proof.u[e] = [x * by for x in proof.u[e]]
        if proof.quadratic:
            proof.quadratic["x"][e] = [x * by for x in proof.quadratic["x"][e]]


def lam(proof: Proof, rng: random.Random) -> None:
    by = factor(rng)
    proof.data["lam"] *= by
    if rng.random() < 0.5:
        proof.u = [[x * by for x in row] for row in proof.u]
        if proof.quadratic:
            proof.quadratic["x"] = [[x * by for x in row] for row in proof.quadratic["x"]]


def number_of_a_term(proof: Proof, rng: random.Random) -> None:
    """Change a target, a bound, a delta, a level, a total, a coordinate of a row."""
    if not (found := some_term(proof, rng)):
        return
    term, _, k = found
    key = rng.choice([name for name in term if name not in ("kind", "node")])
    value = term[key][k]
    at = rng.randrange(len(value)) if isinstance(value, list) else None
    x = value if at is None else value[at]
    if isinstance(x, str):  # an infinite bound
        x = rng.choice(proof.w[term["node"][k]]) + little(rng)
    elif (term["kind"], key) in (("logistic", "y"), ("hinge", "y")):
        x = 1 - x if term["kind"] == "logistic" else -x
    elif key in ("delta", "level", "mu", "kappa", "total"):
        x *= factor(rng)
    else:
        x = x * factor(rng) + rng.choice((0, 0, little(rng, 30)))
    if at is None:
        term[key][k] = x
    else:
        value[at] = x


def total_and_point(proof: Proof, rng: random.Random) -> None:
    """Move the total of a simplex together with w."""
    if found := some_term(proof, rng, "simplex"):
        term, _, k = found
        by = F(float(factor(rng)))
        term["total"][k] = F(float(term["total"][k] * by))
        w = proof.w[term["node"][k]]
        w[0] += term["total"][k] - sum(w)


def infinite_bound(proof: Proof, rng: random.Random) -> None:
    if found := some_term(proof, rng, "box"):
        term, _, k = found
        key, end = rng.choice((("lower", "-inf"), ("upper", "inf")))
        term[key][k][rng.randrange(proof.d)] = end


def penalty(proof: Proof, rng: random.Random) -> None:
    """Exchange one penalty for another."""
    kind = rng.choice(("l1", "l2", "linf", "squared", "p1", "p2", "pinf"))
    p = {"p1": F(1), "p2": F(2), "pinf": "inf"}.get(kind)
    proof.data["penalty"] = {"kind": "pnorm", "p": p} if p else {"kind": kind}
    proof.quadratic = {}


def duplicate_term(proof: Proof, rng: random.Random) -> None:
    """State a term twice, with its multipliers, half of them or none, in either."""
    t = rng.randrange(len(proof.terms))
    proof.terms.insert(t, copy.deepcopy(proof.terms[t]))
    share = rng.choice((F(0), F(1, 2), F(1)))
    scale = lambda r, by: [scale(x, by) for x in r] if isinstance(r, list) else r * by  # noqa: E731
    proof.r.insert(t, scale(proof.r[t], share))
    if rng.random() < 0.5:
        proof.r[t + 1] = scale(proof.r[t + 1], 1 - share)


def empty_term(proof: Proof, rng: random.Random) -> None:
    t, term = rng.randrange(len(proof.terms) + 1), copy.deepcopy(rng.choice(proof.terms))
    proof.terms.insert(t, {key: v if key == "kind" else [] for key, v in term.items()})
    proof.r.insert(t, [])


def remove_entry(proof: Proof, rng: random.Random) -> None:
    """Take a row or a node from a term: m_i changes, or a node has no term any more."""
    if found := some_term(proof, rng):
        term, r, k = found
        for key in term:
            if key != "kind":
                del term[key][k]
        del r[k]


def add_row(proof: Proof, rng: random.Random) -> None:
    """Add a row to a node that has some: m_i changes. Its multiplier is that of another, or 0."""
    if found := some_term(proof, rng, *ROWS):
        term, r, k = found
        for key in term:
            if key != "kind":
                term[key].insert(k, copy.deepcopy(term[key][k]))
        r.insert(k, rng.choice((r[k], F(0), r[k] / 2)))
        if rng.random() < 0.5:  # multipliers are (1/m_i) of slopes
            count = term["node"].count(term["node"][k])
            for j, i in enumerate(term["node"]):
                if i == term["node"][k]:
                    r[j] *= F(count - 1, count)


def add_node(proof: Proof, rng: random.Random) -> None:
    """Add a node, with or without an edge."""
    n = proof.data["n_nodes"]
    proof.data["n_nodes"] = n + 1
    proof.w.append([little(rng, 3) for _ in range(proof.d)])
    if rng.random() < 0.5:
        return
    i = rng.randrange(n)
    at = sum(edge < [i, n] for edge in proof.data["edges"])
    proof.data["edges"].insert(at, [i, n])
    proof.data["weights"].insert(at, F(1))
    proof.u.insert(at, [F(0)] * proof.d)
    if rng.random() < 0.7:
        proof.w[n] = list(proof.w[i])
    if proof.quadratic:
        proof.quadratic["x"].insert(at, [F(0)] * proof.d)


def remove_edge(proof: Proof, rng: random.Random) -> None:
    if proof.u:
        e = rng.randrange(len(proof.u))
        columns = [proof.data["edges"], proof.data["weights"], proof.u]
        for column in [*columns, *([proof.quadratic["x"]] if proof.quadratic else [])]:
            del column[e]


def swap_edges(proof: Proof, rng: random.Random) -> None:
    """Exchange the weights, or the flows, of two edges."""
    if len(proof.u) > 1:
        a, b = rng.sample(range(len(proof.u)), 2)
        column = rng.choice((proof.data["weights"], proof.u))
        column[a], column[b] = column[b], column[a]


def more_dimensions(proof: Proof, rng: random.Random) -> None:
    """Say that there is one dimension more, in all of the document or in part of it."""
    proof.data["dim"] += 1
    if rng.random() < 0.15:
        return
    for row in proof.w:
        row.append(rng.choice((F(0), F(1), row[0])))
    for row in proof.u:
        row.append(rng.choice((F(0), F(0), little(rng))))
    for term, r in zip(proof.terms, proof.r, strict=True):
        for key, fill in (("X", 0), ("a", 0), ("mu", 1), ("kappa", 1), ("lower", -1), ("upper", 1)):
            for value in term.get(key, []):
                if isinstance(value, list):
                    value.append(F(fill))
        for row in r if term["kind"] not in ROWS else []:
            row.append(F(0))
    if "Q" in proof.data["penalty"]:
        q = proof.data["penalty"]["Q"]
        q.append([F(0)] * len(q))
        for i, row in enumerate(q):
            row.append(F(i == len(q) - 1))
        for rows in proof.quadratic.values():
            for row in rows:
                row.append(F(0))


def matrix(proof: Proof, rng: random.Random) -> None:
    """Change Q: scaled, another, a little indefinite; sometimes with a witness that fits."""
    if proof.data["penalty"]["kind"] != "quadratic":
        return
    q, kind, d = proof.data["penalty"]["Q"], rng.randrange(4), proof.d
    if kind == 0:
        by = factor(rng)
        proof.data["penalty"]["Q"] = [[x * by for x in row] for row in q]
        if rng.random() < 0.5:
            proof.quadratic["x"] = [[x / by for x in row] for row in proof.quadratic["x"]]
    elif kind == 1:
        i = rng.randrange(d)
        q[i][i] += little(rng)
    elif kind == 2 and d > 1:
        q[0][1] += little(rng)
        q[1][0] = q[0][1]
    else:  # the least eigenvalue is zero, or a little below
        v = [F(rng.randint(-2, 2)) for _ in range(d)]
        by = rng.choice((F(0), F(-1, 1 << rng.randint(1, 50))))
        proof.data["penalty"]["Q"] = [
            [x * y + by * (i == j) for j, y in enumerate(v)] for i, x in enumerate(v)
        ]
        if rng.random() < 0.5:  # no flow, and rows that would be enough if they were null vectors
            proof.u = [[F(0)] * d for _ in proof.u]
            rows = [[F(8 * (i == j)) for j in range(d)] for i in range(d)]
            proof.quadratic = {"root": [], "null_space": rows, "x": proof.u}


ATTACKS: tuple[Attack, ...] = (
    *(weight, lam, number_of_a_term, number_of_a_term, number_of_a_term, number_of_a_term),
    *(total_and_point, infinite_bound, penalty, penalty, duplicate_term, empty_term, remove_entry),
    *(add_row, add_row, add_node, remove_edge, swap_edges, more_dimensions, matrix),
)
