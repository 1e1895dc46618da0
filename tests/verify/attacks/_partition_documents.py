"""Documents about partitions, made to be believed, with constants that are true or are lies.

Where a claim is false, its constants are moved until the flow or the sets would prove it, by as
little as possible: a checker that believes them certifies what is false.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction as F
from typing import Any

import numpy as np
from _definition1 import Constants, Graph, constants, hessians, norm_of, signs
from _texts import Document
from scipy.optimize import linprog

YES, NO = "well-connected", "not well-connected"
SCALE = 1 << 40
SAFE = 2.0**-28  # constants of floats are moved by this, relatively, to be on the safe side
SIGN_DIMENSION = 8


def instance(rng: random.Random) -> tuple[Document, list[list[int]]]:
    """Return problem data, rational numbers for texts, and a partition."""
    n = rng.randint(2, 6)
    d = rng.choice((1, 2, 2, 3, 3, 3, 4, 8, 9, 10, 12))
    cut = rng.randint(0, n - 1) if n > 2 else 0
    clusters = [part for part in (list(range(cut)), list(range(cut, n))) if part]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = [list(p) for p in pairs if p[1] - p[0] == 1 or rng.random() < 0.4]
    strength = rng.choice((1, 8, 64))
    weights = [F(rng.randint(1, 64), 64) * (strength if (i < cut) == (j < cut) else F(1, 16))
               for i, j in edges]  # fmt: skip
    data: Document = {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": edges,
        "weights": weights,
        "lam": F(rng.choice((1, 4, 16, 64, 256)), 8),
        "penalty": {"kind": rng.choice(("l1", "l2", "linf"))},
        "terms": list(_terms(n, d, rng)),
    }
    if rng.random() < 0.2:
        p = {"l1": F(1), "l2": F(2), "linf": "inf"}[data["penalty"]["kind"]]
        data["penalty"] = {"kind": "pnorm", "p": p}
    if rng.random() < 0.6:
        _near_a_tie(data, rng.choice(clusters), rng)
    return data, clusters


def _terms(n: int, d: int, rng: random.Random) -> Iterator[Document]:
    def entries(k: int, low: int = -8) -> list[F]:
        return [F(rng.randint(low, 8), 8) for _ in range(k)]

    if rng.random() < 0.6:
        some = sorted(rng.sample(range(n), rng.randint(1, n)))
        start = entries(d)
        spread = F(1, rng.choice((1, 8, 64)))
        a = [[x + spread * y for x, y in zip(start, entries(d), strict=True)] for _ in some]
        yield {"kind": "point", "node": some, "a": a}
    if rng.random() < 0.5:
        some = sorted(rng.sample(range(n), rng.randint(1, n)))
        wide = rng.random() < 0.5
        yield {"kind": "ridge", "node": some,
               "mu": [entries(d, 0) if wide else abs(entries(1)[0]) + 1 for _ in some]}  # fmt: skip
    if rng.random() < 0.7:
        node = sorted(i for i in range(n) for _ in range(rng.choice((0, 1, 2, d))))
        yield {"kind": "squared", "node": node, "X": [entries(d) for _ in node],
               "y": entries(len(node))}  # fmt: skip


def _near_a_tie(data: Document, nodes: list[int], rng: random.Random) -> None:
    """Choose lambda where the condition on a cluster just holds, or just does not."""
    if len(nodes) == 1:
        return
    found, graph = constants(data, nodes), Graph(data, nodes)
    low, high = 2.0**-20, 2.0**20

    def holds(lam: float) -> bool:
        return graph.slack(graph.demands(found.alpha, found.beta, found.delta, lam)) > 0

    if holds(low) or not holds(high):
        return
    for _ in range(40):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if holds(middle) else (middle, high)
    data["lam"] = F(high * (1 + rng.choice((-1, 1)) * 2.0 ** -rng.randint(1, 20)))


def witness(data: Document, nodes: list[int], claim: str, rng: random.Random) -> Document:
    """Return a witness of a claim, in rational numbers; the constants lie if they have to."""
    make = _positive if claim == YES else _negative
    return make(data, nodes, constants(data, nodes), Graph(data, nodes), rng)


def _moved(proves: Callable[[float], Any], most: int = 40) -> tuple[float, Any]:
    """Return the least lie, a factor of at least one, with which a proof is found, and that."""
    if (found := proves(1.0)) is not None:
        return 1.0, found
    high = next((2.0**k for k in range(1, most, 3) if proves(2.0**k) is not None), None)
    if high is None:
        return 1.0, None
    low = 1.0
    for _ in range(8):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if proves(middle) is not None else (middle, high)
    return high, proves(high)


def _square_root(matrix: Any) -> list[list[float]]:
    """Return R with R^T R next to a matrix, less what is not positive in it."""
    values, vectors = np.linalg.eigh(matrix)
    rows = (vectors * np.sqrt(np.maximum(values, 0))).T
    found: list[list[float]] = rows[values > 0].tolist()
    return found


def lower_alpha(data: Document, found: Constants) -> float:
    """Return what can be proved of alpha: beyond 8 dimensions of l1 that is less than it is."""
    if norm_of(data) == "l1" and data["dim"] > SIGN_DIMENSION and found.alpha > 0:
        return float(1 / np.abs(np.linalg.inv(found.hessians.sum(axis=0))).sum())
    return found.alpha


def upper_beta(data: Document, found: Constants) -> Any:
    if norm_of(data) == "linf" and data["dim"] > SIGN_DIMENSION:
        return np.abs(found.hessians).sum(axis=(1, 2))
    return found.beta


def _common(data: Document, found: Constants, nodes: list[int], rng: random.Random) -> Document:
    total = found.hessians.sum(axis=0)
    least = np.linalg.eigvalsh(total)[0]
    roots: Document = {"total": _square_root(total - least * (1 - SAFE / 2) * np.eye(len(total)))}
    if norm_of(data) != "l2" and found.alpha > 0:
        roots["inverse"] = np.linalg.inv(total).tolist()
    if norm_of(data) == "l2":
        roots["local"] = [
            _square_root(b * (1 + SAFE / 2) * np.eye(len(total)) - h)
            for b, h in zip(found.beta, found.hessians, strict=True)
        ]
    center = found.center
    if rng.random() < 0.3:
        center = center + 2.0 ** -rng.randint(4, 40) * rng.choice((-1, 1))
    return {"cluster": nodes, "roots": roots, "center": center.tolist(), "modulus": None}


def _gradients(data: Document, found: Constants, nodes: list[int], v: Any) -> tuple[Any, float]:
    """Return the dual norms of the g_i at v, and of their sum."""
    q = hessians(data)[1][nodes]
    g = found.hessians @ np.array(v) + q
    order = {"l1": np.inf, "l2": 2, "linf": 1}[str(norm_of(data))]
    return np.linalg.norm(g, order, axis=1), float(np.linalg.norm(g.sum(axis=0), order))


def _positive(
    data: Document, nodes: list[int], found: Constants, graph: Graph, rng: random.Random
) -> Document:
    out = _common(data, found, nodes, rng)
    alpha = max(lower_alpha(data, found), 1e-6) * (1 - SAFE)
    beta = upper_beta(data, found) * (1 + SAFE)
    sizes, rest = _gradients(data, found, nodes, out["center"])
    delta = (sizes + beta * rest / alpha) * (1 + SAFE) + 2.0**-40
    lies = rng.choice(("alpha", "beta", "delta", "both", "all"))

    def claimed(by: float) -> tuple[float, Any, Any]:
        return (
            alpha * (by if lies in ("alpha", "both", "all") else 1),
            beta / (by if lies in ("beta", "both", "all") else 1),
            delta / (by if lies in ("delta", "all") else 1),
        )

    def proves(by: float) -> Any:
        return _routed(graph, graph.demands(*claimed(by), float(data["lam"])))

    by, routed = _moved(proves)
    alpha, beta, delta = claimed(by)
    sink, flow = routed or (0, [0.0] * len(graph.edges))
    above = 1 + 2.0 ** -rng.randint(1, 30) if routed is None else 1
    out |= {"claim": YES, "alpha": alpha, "beta": list(beta), "delta": list(delta)}
    flows = [int(f * above * SCALE) * (1 if nodes[a] < nodes[b] else -1)
             for f, (a, b) in zip(flow, graph.edges, strict=True)]  # fmt: skip
    return out | {"sink": nodes[sink], "flow": flows, "scale": SCALE}


def _routed(graph: Graph, demands: Any) -> tuple[int, list[float]] | None:
    """Return a node and a flow that takes more than the demands to it, None if there is none."""
    m = len(graph.edges)
    if m == 0:
        return None
    out = np.zeros((graph.size, m))
    for e, (a, b) in enumerate(graph.edges):
        out[a, e], out[b, e] = 1, -1
    order = sorted(range(graph.size), key=lambda i: -demands[i])
    for sink in order[:3]:
        others = [i for i in range(graph.size) if i != sink]
        needs = demands[others] * (1 + 2.0**-24) + 2.0**-30
        if needs.max() > 1e12:
            return None
        ends = [(-w, w) for w in graph.weights]
        done = linprog(np.zeros(m), A_ub=-out[others], b_ub=-needs, bounds=ends, method="highs")
        if done.status == 0:
            return sink, list(done.x)
    return None


def _negative(
    data: Document, nodes: list[int], found: Constants, graph: Graph, rng: random.Random
) -> Document:
    out = _common(data, found, nodes, rng)
    modulus = lower_alpha(data, found) * (1 - SAFE)
    sizes, rest = _gradients(data, found, nodes, out["center"])
    room = upper_beta(data, found) * rest / modulus if modulus > 0 else sizes
    delta = np.maximum((sizes - room) * (1 - SAFE) - 2.0**-40, 0)
    across, along = _directions(data, found)
    lies = rng.choice(("alpha", "beta", "delta", "both", "all"))

    def claimed(by: float) -> tuple[float, Any, Any]:
        alpha = found.alpha * (1 + SAFE) if found.alpha > 0 else 1e-3
        return (
            alpha / (by if lies in ("alpha", "both", "all") else 1),
            found.beta * (1 - SAFE) * (by if lies in ("beta", "both", "all") else 1),
            delta * (by if lies in ("delta", "all") else 1),
        )

    def proves(by: float) -> Any:
        return _violating(graph, graph.demands(*claimed(by), float(data["lam"])))

    by, sets = _moved(proves)
    alpha, beta, delta = claimed(by)
    sets = sets or [(i,) for i in range(graph.size)]
    left_out = [p for p in range(graph.size) if rng.random() < 0.5
                and tuple(i for i in range(graph.size) if i != p) in sets]  # fmt: skip
    without = {tuple(i for i in range(graph.size) if i != p) for p in left_out}
    out |= {"claim": NO, "alpha": alpha, "beta": list(beta), "delta": list(delta)}
    rows = [list(v) if any(v) else [1.0] * len(v) for v in along]
    return out | {
        "modulus": modulus if modulus > 0 else None,
        "directions": {"alpha": list(across), "beta": rows},
        "sets": [[nodes[i] for i in inside] for inside in sets if inside not in without],
        "left_out": [nodes[p] for p in left_out],
    }


def _violating(graph: Graph, demands: Any) -> list[tuple[int, ...]] | None:
    """Return a few sets with cut(A) <= d(A) that have no node in common."""
    every, found, common = range(graph.size), [], set(range(graph.size))
    for k in range(1, graph.size):
        for inside in itertools.combinations(every, k):
            violates = graph.cut(inside) * (1 + 2.0**-30) <= demands[list(inside)].sum()
            if violates and common - set(inside):
                found.append(inside)
                common &= set(inside)
    return None if common else found


def _directions(data: Document, found: Constants) -> tuple[Any, list[Any]]:
    """Return the v that attain alpha and the beta_i."""
    norm, total, d = norm_of(data), found.hessians.sum(axis=0), data["dim"]
    inverse = np.linalg.pinv(total)
    if norm == "l2":
        return np.linalg.eigh(total)[1][:, 0], [np.linalg.eigh(h)[1][:, -1] for h in found.hessians]
    s = signs(d)
    if norm == "l1":
        best = s[np.einsum("ri,ij,rj->r", s, inverse, s).argmax()]
        return inverse @ best, [np.eye(d)[h.diagonal().argmax()] for h in found.hessians]
    forms = [np.einsum("ri,ij,rj->r", s, h, s) for h in found.hessians]
    return inverse[inverse.diagonal().argmax()], [s[f.argmax()] for f in forms]
