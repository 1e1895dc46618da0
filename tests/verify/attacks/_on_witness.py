"""Attacks on the witness of a certificate: on the point, flow, multipliers, claims."""

from __future__ import annotations

import random
from fractions import Fraction as F

from _objective import ROWS, Exact, Irrational, feasible, parts
from _on_data import Attack, factor, little, some_term
from _proof import Proof


def flow_above_capacity(proof: Proof, rng: random.Random) -> None:
    """Scale the flow of an edge, or of all, up by a little."""
    by = 1 + abs(little(rng, 60))
    some = {rng.randrange(len(proof.u))} if proof.u and rng.random() < 0.7 else range(len(proof.u))
    for e in some:
        proof.u[e] = [x * by for x in proof.u[e]]


def circulation(proof: Proof, rng: random.Random) -> None:
    """Add a flow along a cycle: conservation stays as it was."""
    edges = {tuple(edge): e for e, edge in enumerate(proof.data["edges"])}
    cycles = [(edges[i, j], edges[j, k], edges[i, k]) for i, j in edges for k in range(j + 1, 40)
              if (j, k) in edges and (i, k) in edges]  # fmt: skip
    if cycles:
        for e, sign in zip(rng.choice(cycles), (1, 1, -1), strict=True):
            proof.u[e][0] += sign * F(1, 8)


def one_flow(proof: Proof, rng: random.Random) -> None:
    if proof.u:
        rng.choice(proof.u)[rng.randrange(proof.d)] += little(rng)


def no_flow(proof: Proof, rng: random.Random) -> None:
    by = rng.choice((0, -1))
    proof.u = [[by * x for x in row] for row in proof.u]


def one_multiplier(proof: Proof, rng: random.Random) -> None:
    """Scale or move a multiplier, mostly beyond an end of its domain by a little."""
    if found := some_term(proof, rng):
        term, r, k = found
        by = rng.choice((F(-1), 1 + abs(little(rng, 60)), 1 + abs(little(rng, 60))))
        more = rng.choice((F(0), F(0), little(rng)))
        if term["kind"] in ROWS:
            r[k] = r[k] * by + more
        else:
            j = rng.randrange(proof.d)
            r[k][j] = r[k][j] * by + more


def null_vector(proof: Proof, rng: random.Random) -> None:
    """Add a vector with B^T v = 0 to the multipliers of two rows at a node."""
    for term, r in zip(proof.terms, proof.r, strict=True):
        if term["kind"] not in ROWS:
            continue
        for k in range(len(r) - 1):
            a, b = term["X"][k], term["X"][k + 1]
            c = next((j for j in range(proof.d) if b[j]), None)
            if term["node"][k] != term["node"][k + 1] or c is None:
                continue
            ratio = a[c] / b[c]
            if all(x == ratio * y for x, y in zip(a, b, strict=True)):
                t = little(rng, 10)
                r[k] += t
                r[k + 1] -= t * ratio


def between_blocks(proof: Proof, rng: random.Random) -> None:
    """Move a vector from one identity block of a node to another."""
    blocks = [(i, t, k) for t, term in enumerate(proof.terms) if term["kind"] not in ROWS
              for k, i in enumerate(term["node"])]  # fmt: skip
    pairs = [(a, b) for a in blocks for b in blocks if a[0] == b[0] and a[1] < b[1]]
    if pairs:
        (_, s, k), (_, t, m) = rng.choice(pairs)
        j, more = rng.randrange(proof.d), little(rng, 20)
        proof.r[s][k][j] += more
        proof.r[t][m][j] -= more


def point(proof: Proof, rng: random.Random) -> None:
    w, kind = proof.w, rng.randrange(4)
    if kind == 0:
        i, j = rng.randrange(len(w)), rng.randrange(len(w))
        w[i], w[j] = w[j], w[i]
    elif kind == 1:
        more = little(rng)
        proof.w = [[x + more for x in row] for row in w]
    else:
        rng.choice(w)[rng.randrange(len(w[0]))] += little(rng, 70)


def along_a_simplex(proof: Proof, rng: random.Random) -> None:
    """Move w along a simplex, or out of it with the sum as it was."""
    if proof.d > 1 and (found := some_term(proof, rng, "simplex")):
        w, more = proof.w[found[0]["node"][found[2]]], little(rng, 20)
        w[0] += more
        w[1] -= more


def all_of_the_point(proof: Proof, rng: random.Random) -> None:
    by = factor(rng)
    proof.w = [[x * by for x in row] for row in proof.w]


def claims(proof: Proof, rng: random.Random) -> None:
    """Claim bounds near the value at w, from either side."""
    try:
        value = sum(parts(proof.data, proof.w, Exact), F(0))
    except Irrational:
        value = F(sum(parts(proof.data, proof.w)))
    more = rng.choice((F(0), little(rng, 60), little(rng, 10)))
    proof.claim[rng.choice(("upper", "lower"))] = value + more
    proof.claim["rtol"] = rng.choice((F(0), F(1), F(2) ** 900))


def better(proof: Proof, rng: random.Random) -> None:
    proof.better = [[x + rng.choice((0, little(rng, 10))) for x in row] for row in proof.w]
    if rng.random() < 0.3:
        point(proof, rng)
    if not feasible(proof.data, proof.w):
        proof.better = proof.w


def wide(proof: Proof, rng: random.Random) -> None:
    """Move a number by less than 2^-300, or write it with hundreds of digits."""
    tiny = F(rng.choice((-1, 1)), rng.choice((1 << 310, 3**200, 10**100 + 7)))
    table = rng.choice((proof.w, proof.u or proof.w))
    rng.choice(table)[rng.randrange(proof.d)] += tiny


def quadratic(proof: Proof, rng: random.Random) -> None:
    """Change the witness of a quadratic penalty."""
    if not proof.quadratic:
        return
    kind, q = rng.randrange(6), proof.quadratic
    by, row = factor(rng), [F(rng.randint(-1, 1)) for _ in range(proof.d)]
    if kind == 0:
        q["root"] = [[x * by for x in v] for v in q["root"]]
    elif kind == 1:
        q["null_space"] = [[x * by for x in v] for v in q["null_space"]]
    elif kind == 2:
        name = rng.choice(("root", "null_space"))
        q[name] = q[name][1:] if rng.random() < 0.5 else [*q[name], row]
    elif kind == 3:
        q["x"] = [[x * by for x in v] for v in q["x"]]
    elif kind == 4 and q["x"]:
        rng.choice(q["x"])[rng.randrange(proof.d)] += little(rng, 20)
    elif proof.d > 1:
        i, j = rng.sample(range(proof.d), 2)
        for v in q["null_space"]:
            v[i], v[j] = v[j], v[i] + little(rng)


ATTACKS: tuple[Attack, ...] = (
    *(flow_above_capacity, flow_above_capacity, circulation, one_flow, no_flow, one_multiplier),
    *(one_multiplier, null_vector, between_blocks, point, point, all_of_the_point, claims, better),
    *(along_a_simplex, along_a_simplex, wide, quadratic, quadratic),
)
