"""True certificates of random floats, made by the builder from a solution of CVXPY's."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from _objective import minimizer, rational_data
from _texts import Document, data_numbers

import verify

KINDS = ("squared", "huber", "pseudohuber", "absolute", "quantile", "hinge", "logistic", "poisson")
PENALTIES = ("l1", "l2", "linf", "squared", "quadratic")
HOW_MANY = 60  # a tenth of a second each: the first are taken more often


@cache
def text(which: int) -> str | None:
    """Return one of the documents, None where the builder does not certify."""
    rng = random.Random(f"built {which}")
    d = rng.choice((1, 2, 3, 3))
    data = _data(rng, rng.randint(3, 5), d)
    w = minimizer(rational_data(data))
    if w is None:
        return None
    found = verify.certify(data, [[float(x) for x in row] for row in w], rtol=1e-5)
    return json.dumps(found.document) if found.status == "CERTIFIED" else None


def built(rng: random.Random) -> Document | None:
    found = text(int(HOW_MANY * rng.random() ** 3))
    document: Document | None = json.loads(found) if found else None
    return document


def _data(rng: random.Random, n: int, d: int) -> Document:
    edges = [[i, j] for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.4]
    penalty: dict[str, Any] = {"kind": rng.choice(PENALTIES)}
    if penalty["kind"] == "quadratic":
        v = [rng.gauss(0, 1) for _ in range(d)]
        penalty["Q"] = [[a * b + (i == j) for j, b in enumerate(v)] for i, a in enumerate(v)]
    terms = [_rows(rng.choice(KINDS), n, d, rng) for _ in range(rng.randint(1, 2))]
    terms.append({"kind": "point", "node": list(range(n)),
                  "a": [[rng.gauss(0, 1) for _ in range(d)] for _ in range(n)]})  # fmt: skip
    if rng.random() < 0.3:
        terms.append({"kind": "l1", "node": [0, 2], "kappa": [rng.random() + 0.1 for _ in "ab"]})
    if rng.random() < 0.3:
        ends = [[rng.random() for _ in range(d)] for _ in range(2)]
        terms.append({"kind": "box", "node": [0, 1], "upper": ends,
                      "lower": [[-x for x in row] for row in ends]})  # fmt: skip
    if rng.random() < 0.3:
        terms.append({"kind": "simplex", "node": [n - 1], "total": [1.5]})
    return {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": edges,
        "weights": data_numbers([rng.uniform(0.2, 1.5) for _ in edges]),
        "lam": data_numbers(rng.choice((0.05, 0.3, 1.0))),
        "penalty": {k: data_numbers(v) if k == "Q" else v for k, v in penalty.items()},
        "terms": [{k: v if k in ("kind", "node") else data_numbers(v) for k, v in t.items()}
                  for t in terms],
    }  # fmt: skip


def _rows(kind: str, n: int, d: int, rng: random.Random) -> Document:
    node = sorted(i for i in range(n) for _ in range(rng.choice((0, 1, 3))))
    y: list[float] = [rng.gauss(0, 1) for _ in node]
    term: Document = {"kind": kind, "node": node,
                      "X": [[rng.gauss(0, 1) for _ in range(d)] for _ in node]}  # fmt: skip
    if kind in ("hinge", "logistic", "poisson"):
        y = [float(rng.choice({"hinge": (-1, 1)}.get(kind, (0, 1)))) for _ in node]
    if kind in ("huber", "pseudohuber"):
        term["delta"] = [rng.uniform(0.1, 1) for _ in node]
    if kind == "quantile":
        term["level"] = [rng.uniform(0.1, 0.9) for _ in node]
    return {**term, "y": y}
