"""Random instances in the plain data format of verify/SCHEMA.md, seeded, and their solutions.

The solutions come from the primal problem, written for CVXPY from the formulas and not from
anything in `verify`: an oracle for the builder's flows and for the sign of u.
"""

from __future__ import annotations

import copy
import json
import warnings
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

import verify

Data = dict[str, Any]
PENALTIES = ("l1", "l2", "linf", "squared", "quadratic")
LOSSES = (
    "squared",
    "few_rows",
    "unlabelled",
    "point",
    "logistic",
    "logistic_ridge",
    "lasso",
    "ridge",
    "mixed",
)
# Kinds with kinks or ends: their multipliers do not follow from w alone.
KINKED = (
    "huber",
    "huber_ridge",
    "pseudohuber",
    "pseudohuber_ridge",
    "absolute",
    "quantile",
    "hinge_ridge",
    "poisson",
    "poisson_ridge",
    "box_lasso",
    "box",
    "simplex",
    "logistic_unlabelled",
    "every_kind",
)
GRAPHS = ("connected", "components", "isolated", "empty", "path", "complete")


def graph(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return (m, 2) edges, head < tail, sorted."""
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    if kind == "complete":
        chosen = pairs
    elif kind == "empty":
        chosen = []
    elif kind == "path":
        chosen = [(i, i + 1) for i in range(n - 1)]
    else:
        chosen = [p for p in pairs if rng.random() < 3 / n]
        if kind == "connected":
            chosen += [(int(rng.integers(0, j)), j) for j in range(1, n)]
        elif kind == "components":
            chosen = [(i, j) for i, j in chosen if (i < n // 2) == (j < n // 2)]
        elif kind == "isolated":
            chosen = [(i, j) for i, j in chosen if j < n - 2]
    return np.array(sorted(set(chosen)), dtype=np.int64).reshape(-1, 2)


def penalty(kind: str, d: int, rng: np.random.Generator) -> Data:
    if kind == "quadratic":
        root = rng.integers(-2, 3, (d, d)) + 3.0 * np.eye(d)
        return {"kind": kind, "Q": root @ root.T + np.eye(d)}
    if kind.startswith("pnorm"):
        return {"kind": "pnorm", "p": float(kind.removeprefix("pnorm"))}
    return {"kind": kind}


def _rows(
    nodes: np.ndarray, m: tuple[int, int], d: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    counts = rng.integers(m[0], m[1] + 1, len(nodes))
    node = np.repeat(nodes, counts)
    return node, rng.standard_normal((len(node), d))


def _ridge(nodes: np.ndarray, d: int, rng: np.random.Generator) -> Data:
    """Return a ridge that leaves the last coordinate, the intercept, alone where d > 1."""
    mu = rng.uniform(0.05, 0.5, (len(nodes), d))
    mu[:, -1] *= d == 1
    return {"kind": "ridge", "node": nodes, "mu": mu}


def _box(nodes: np.ndarray, d: int, rng: np.random.Generator) -> Data:
    """Return bounds that many solutions reach, some of them infinite."""
    lower, upper = -rng.uniform(0.1, 1.5, (len(nodes), d)), rng.uniform(0.1, 1.5, (len(nodes), d))
    lower[rng.random(lower.shape) < 0.3] = -np.inf
    upper[rng.random(upper.shape) < 0.3] = np.inf
    return {"kind": "box", "node": nodes, "lower": lower, "upper": upper}


def _simplex(nodes: np.ndarray, rng: np.random.Generator) -> Data:
    return {"kind": "simplex", "node": nodes, "total": rng.uniform(0.5, 2, len(nodes))}


def row_term(kind: str, nodes: np.ndarray, m: tuple[int, int], truth: np.ndarray,
             rng: np.random.Generator) -> Data:  # fmt: skip
    """Return data rows of any kind around the true parameters."""
    node, x = _rows(nodes, m, truth.shape[1], rng)
    z = np.einsum("rj,rj->r", x, truth[node])
    noisy = z + 0.5 * rng.standard_normal(len(node))
    term: Data = {"kind": kind, "node": node, "X": x, "y": noisy}
    if kind in ("huber", "pseudohuber"):
        term["delta"] = rng.uniform(0.1, 0.6, len(node))
    elif kind == "quantile":
        term["level"] = rng.uniform(0.2, 0.8, len(node))
    elif kind == "hinge":
        term["y"] = np.where(noisy > 0, 1.0, -1.0)
    elif kind == "logistic":
        term["y"] = (rng.random(len(node)) < 1 / (1 + np.exp(-0.7 * z))).astype(float)
    elif kind == "poisson":
        term["X"] = x / (2 * truth.shape[1])
        term["y"] = rng.poisson(np.exp(z / (2 * truth.shape[1]))).astype(float)
    return term


def kinked_terms(kind: str, n: int, d: int, rng: np.random.Generator) -> list[Data]:
    every = np.arange(n)
    some = np.sort(rng.permutation(n)[: max(1, (2 * n) // 3)])
    truth = np.where(every[:, None] < n // 2, 0.5, -0.5) * (1 + np.arange(d))
    few, many = (d + 1, d + 3), (2 * d + 2, 2 * d + 4)
    if kind in ("huber", "pseudohuber", "absolute", "quantile"):
        return [row_term(kind, some, many, truth, rng)]
    if kind == "poisson":
        return [row_term(kind, every, many, truth, rng)]
    if kind in ("huber_ridge", "pseudohuber_ridge", "hinge_ridge", "poisson_ridge"):
        rows = row_term(kind.split("_")[0], some, few, truth, rng)
        return [rows, _ridge(every if kind[1] == "i" else some, d, rng)]
    if kind == "logistic_unlabelled":
        ridge = {"kind": "ridge", "node": some, "mu": rng.uniform(0.1, 0.3, len(some))}
        return [row_term("logistic", some, few, truth, rng), ridge]
    squared = row_term("squared", some, few, truth, rng)
    if kind == "box_lasso":
        kappa = rng.uniform(0.05, 0.4, (n, d)) * (rng.random((n, d)) < 0.7)
        lasso = {"kind": "l1", "node": every, "kappa": kappa}
        return [squared, lasso, _box(some, d, rng)]
    if kind == "box":
        return [squared, _box(every, d, rng)]
    if kind == "simplex":
        return [squared, _simplex(every, rng)]
    rows = [row_term(k, np.sort(rng.permutation(n)[: n // 3 + 1]), few, truth, rng)
            for k in ("huber", "absolute", "quantile", "hinge", "poisson", "logistic")]  # fmt: skip
    kappa = rng.uniform(0.05, 0.4, (len(some), d))
    parts = np.array_split(every, 3)
    return [*rows, squared, {"kind": "l1", "node": some, "kappa": kappa}, _ridge(some, d, rng),
            _box(parts[0], d, rng), _simplex(parts[1], rng),
            row_term("pseudohuber", np.sort(rng.permutation(n)[: n // 3 + 1]), few, truth, rng),
            ]  # fmt: skip


def terms(kind: str, n: int, d: int, rng: np.random.Generator) -> list[Data]:
    if kind in KINKED:
        return kinked_terms(kind, n, d, rng)
    every = np.arange(n)
    some = np.sort(rng.permutation(n)[: max(1, n // 2)])
    truth = np.where(every[:, None] < n // 2, 1.0, -1.0) * (1 + np.arange(d))
    point = {"kind": "point", "node": every, "a": truth + 0.3 * rng.standard_normal((n, d))}
    if kind == "point":
        return [point]
    if kind == "ridge":
        mu = rng.uniform(0.1, 1, len(some))
        node = np.arange(0, n, 2)
        return [{**point, "node": node, "a": point["a"][node]},
                {"kind": "ridge", "node": some, "mu": mu}]  # fmt: skip
    count = {"few_rows": (1, max(1, d - 1)), "logistic": (2 * d + 2, 2 * d + 4)}
    labelled = every if kind in ("squared", "lasso", "logistic", "logistic_ridge") else some
    node, x = _rows(labelled, count.get(kind, (d + 1, d + 3)), d, rng)
    z = np.einsum("rj,rj->r", x, truth[node])
    if kind.startswith("logistic"):
        y = (rng.random(len(node)) < 1 / (1 + np.exp(-0.7 * z))).astype(float)
        out: list[Data] = [{"kind": "logistic", "node": node, "X": x, "y": y}]
        if kind == "logistic_ridge":
            out.append({"kind": "ridge", "node": every, "mu": rng.uniform(0.05, 0.2, n)})
        return out
    squared = {"kind": "squared", "node": node, "X": x,
               "y": z + 0.3 * rng.standard_normal(len(node))}  # fmt: skip
    if kind == "lasso":
        return [squared, {"kind": "l1", "node": some, "kappa": rng.uniform(0.1, 0.6, len(some))}]
    if kind == "everything":
        node, x = _rows(some, (3 * d, 3 * d), d, rng)
        return [
            squared,
            {**point, "node": every[:2], "a": point["a"][:2]},
            {"kind": "logistic", "node": node, "X": x, "y": (rng.random(len(node)) < 0.5) * 1.0},
            {"kind": "ridge", "node": some, "mu": rng.uniform(0.1, 1, len(some))},
            {"kind": "l1", "node": some, "kappa": rng.uniform(0.1, 0.6, len(some))},
        ]
    if kind == "mixed":
        third = every[::3]
        points = {**point, "node": third, "a": point["a"][third]}
        return [
            squared,
            points,
            {"kind": "l1", "node": some, "kappa": rng.uniform(0.1, 0.6, len(some))},
        ]
    return [squared]


def instance(
    seed: int,
    loss: str = "squared",
    phi: str = "l2",
    kind: str = "connected",
    n: int = 12,
    d: int = 2,
    lam: float = 0.3,
) -> Data:
    """Return a random instance as plain data; equal arguments give equal data."""
    rng = np.random.default_rng(seed)
    edges = graph(kind, n, rng)
    return {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": edges,
        "weights": rng.uniform(0.5, 1.5, len(edges)),
        "lam": lam,
        "penalty": penalty(phi, d, rng),
        "terms": terms(loss, n, d, rng),
    }


ROW_LOSSES = {
    "squared": lambda z, t: cp.square(z - t["y"]),
    "logistic": lambda z, t: cp.logistic(z) - cp.multiply(t["y"], z),
    "huber": lambda z, t: _huber(z - t["y"], t["delta"]),
    "pseudohuber": lambda z, t: _pseudo_huber(z - t["y"], t["delta"]),
    "poisson": lambda z, t: cp.exp(z) - cp.multiply(t["y"], z),
    "absolute": lambda z, t: cp.abs(z - t["y"]),
    "quantile": lambda z, t: cp.maximum(
        cp.multiply(t["level"], t["y"] - z), cp.multiply(t["level"] - 1, t["y"] - z)
    ),
    "hinge": lambda z, t: cp.pos(1 - cp.multiply(t["y"], z)),
}


def _huber(z: cp.Expression, delta: np.ndarray) -> cp.Expression:
    """Return z^2, or 2 delta |z| - delta^2 beyond delta."""
    return cp.multiply(delta**2, cp.huber(cp.multiply(1 / delta, z), 1))


def _pseudo_huber(z: cp.Expression, delta: np.ndarray) -> cp.Expression:
    """Return delta (sqrt(delta^2 + z^2) - delta)."""
    length = cp.norm(cp.vstack([np.ones(len(delta)), cp.multiply(1 / delta, z)]), 2, axis=0)
    return cp.multiply(delta**2, length - 1)


def _columns(values: np.ndarray, d: int) -> np.ndarray:
    return values if values.ndim == 2 else np.repeat(values[:, None], d, axis=1)


def _loss(term: Data, w: cp.Variable) -> tuple[cp.Expression, list[Any]]:
    """Return loss and constraints of one term, row by row from the formulas of SCHEMA.md."""
    node, kind, d = term["node"], term["kind"], w.shape[1]
    if kind in ROW_LOSSES:
        each = term.get("weight", 1 / np.bincount(node)[node])
        z = cp.sum(cp.multiply(term["X"], w[node]), axis=1)
        return cp.sum(cp.multiply(each, ROW_LOSSES[kind](z, term))), []
    if kind == "point":
        root = np.sqrt(term.get("weight", np.ones(len(node))))[:, None]
        return cp.sum_squares(cp.multiply(root, w[node] - term["a"])), []
    if kind == "ridge":
        return cp.sum(cp.multiply(_columns(term["mu"], d) / 2, cp.square(w[node]))), []
    if kind == "l1":
        return cp.sum(cp.multiply(_columns(term["kappa"], d), cp.abs(w[node]))), []
    if kind == "simplex":
        return cp.Constant(0), [w[node] >= 0, cp.sum(w[node], axis=1) == term["total"]]
    bounds = []
    for end, sign in ((term["lower"], -1), (term["upper"], 1)):
        row, column = np.nonzero(np.isfinite(end))
        if len(row):
            bounds.append(sign * w[node[row], column] <= sign * end[row, column])
    return cp.Constant(0), bounds


def _variation(data: Data, z: cp.Variable) -> cp.Expression:
    cap, kind = data["lam"] * data["weights"], data["penalty"]["kind"]
    if kind in ("l1", "l2", "linf"):
        return cap @ cp.norm(z, {"l1": 1, "l2": 2, "linf": np.inf}[kind], axis=1)
    if kind == "pnorm":
        p = data["penalty"]["p"]
        if np.isinf(p):
            return cap @ cp.norm(z, np.inf, axis=1)
        return sum((a * cp.pnorm(z[e], p) for e, a in enumerate(cap)), cp.Constant(0))
    root = np.eye(data["dim"])
    if kind == "quadratic":
        values, vectors = np.linalg.eigh(data["penalty"]["Q"])
        root = vectors * np.sqrt(np.maximum(values, 0))
    return cp.sum(cp.multiply(cap / 2, cp.sum(cp.square(z @ root), axis=1)))


def solve(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Return (w, u) from CVXPY and Clarabel: u is the multiplier of  D w - z = 0."""
    n, d, edges = data["n_nodes"], data["dim"], data["edges"]
    w = cp.Variable((n, d))
    losses = [_loss(t, w) for t in data["terms"]]
    cost: Any = sum((loss for loss, _ in losses), cp.Constant(0))
    bounds = [bound for _, found in losses for bound in found]
    if len(edges) == 0:
        _clarabel(cp.Problem(cp.Minimize(cost), bounds))
        return w.value, np.zeros((0, d))
    z = cp.Variable((len(edges), d))
    link = w[edges[:, 0]] - w[edges[:, 1]] - z == 0
    _clarabel(cp.Problem(cp.Minimize(cost + _variation(data, z)), [link, *bounds]))
    return w.value, link.dual_value


def _clarabel(problem: cp.Problem) -> None:
    """Solve to the last digits; the solver may report that it stopped just short of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


@cache
def document_text(seed: int, loss: str, phi: str, kind: str = "connected", n: int = 6) -> str:
    """Return the JSON text of a valid certificate of a random instance."""
    data = instance(seed, loss, phi, kind, n, 2)
    certificate = verify.certify(data, *solve(data), rtol=1e-6)
    assert certificate.status == "CERTIFIED"
    return json.dumps(certificate.document)


def document(seed: int, loss: str, phi: str, kind: str = "connected", n: int = 6) -> Data:
    """Return a fresh copy of the parsed document."""
    parsed: Data = json.loads(document_text(seed, loss, phi, kind, n))
    return copy.deepcopy(parsed)
