"""Family F8: random instances of every loss, penalty, graph shape, size and unit of data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from fuzz_graphs import MOST_NODES, SHAPES, weights
from fuzz_instance import Extra, Instance, Rows

# The parts of each loss as users combine them: a kind of data points, and what is added.
LOSSES: dict[str, tuple[str, str]] = {
    "squared": ("squared", ""),
    "huber": ("huber", ""),
    "absolute": ("absolute", ""),
    "logistic": ("logistic", ""),
    "hinge": ("hinge", ""),
    "poisson": ("poisson", ""),
    "lasso": ("squared", "l1"),
    "quantile": ("quantile", ""),
    "logistic + ridge": ("logistic", "ridge"),
    "point": ("point", ""),
    "pseudo-huber": ("pseudohuber", ""),
    "squared + ridge": ("squared", "ridge"),
    "hinge + ridge": ("hinge", "ridge"),
    "absolute + l1": ("absolute", "l1"),
    "poisson + ridge": ("poisson", "ridge"),
    "squared, box": ("squared", "box"),
    "squared, simplex": ("squared", "simplex"),
    "mixed": ("mixed", ""),
    "custom": ("custom", ""),
    "multinomial": ("multinomial", ""),
    "multinomial + ridge": ("multinomial", "ridge"),
}
PENALTIES = {
    "l2": 0.25,
    "l1": 0.25,
    "linf": 0.15,
    "squared": 0.15,
    "quadratic": 0.1,
    "pnorm": 0.07,
    "custom": 0.03,
}
SCALES = ("unit", "tiny", "huge", "offset", "raw")
MIXED = ("squared", "absolute", "huber", "logistic", "hinge", "poisson")
CLASSES, COUNTS = ("logistic", "hinge"), ("poisson",)
# A small cone program for each node or edge in each iteration: made for small problems. And p-norms
# are an expression an edge in CVXPY, so that modelling takes seconds.
MOST_NODES_OF = {"custom": 40, "pnorm": 150}
# What a conic solver does in seconds: coordinates of w, and rows of data.
MOST_COORDINATES, MOST_ROWS = 8_000, 20_000
# Columns of a table in raw units: mean and standard deviation.
RAW = (
    (1.0, 0.0),  # intercept
    (1985.0, 20.0),  # year
    (3e4, 1e4),  # income
    (0.05, 0.02),  # a rate
    (40.0, 25.0),  # a percentage
    (2e5, 1e5),  # inhabitants
    (-8.0, 3.0),  # degrees
)


@dataclass(frozen=True)
class Draw:
    """What is drawn first, before any data."""

    name: str
    seed: int
    index: int
    loss: str
    penalty: str
    shape: str
    scale: str
    n: int
    dim: int
    rows: int  # a node
    labelled: float
    lam: float
    most_classes: int  # where rows have several

    @property
    def classes(self) -> int:
        """How many classes rows have: parameters are as many for each feature."""
        return max(K for K in range(1, self.most_classes + 1) if self.dim % K == 0)

    def instance(self) -> Instance:
        """Return the instance, data and all."""
        rng = np.random.default_rng([self.seed, self.index, 1])
        edges = SHAPES[self.shape](self.n, rng)
        kind, extra = LOSSES[self.loss]
        labelled = np.sort(rng.permutation(self.n)[: max(round(self.labelled * self.n), 1)])
        data = _Data(self, rng)
        return Instance(
            name=self.name,
            loss=self.loss,
            shape=self.shape,
            scale=self.scale,
            n=self.n,
            dim=self.dim,
            edges=edges,
            weights=weights(len(edges), rng),
            penalty=_penalty(self.penalty, self.dim, rng),
            lam=self.lam,
            rows=[
                self._weighted(rows)
                for rows in (
                    data.mixed(labelled) if kind == "mixed" else [data.rows(kind, labelled)]
                )
            ],
            extras=_extras(extra, labelled, self.n, rng),
        )

    def _weighted(self, rows: Rows) -> Rows:
        """Return rows with weights in every fifth instance, where they can have any."""
        rng = np.random.default_rng([self.seed, self.index, 2])
        if rng.random() > 0.2 or rows.kind in ("point", "custom"):
            return rows
        weight = 10.0 ** rng.uniform(-3, 3, len(rows.node))
        return replace(rows, weight=weight, factor=10.0 ** rng.uniform(-1, 1, self.n)[rows.node])

    def tiny(self) -> Draw:
        """Return the same kind of instance with few nodes, to compile what it needs."""
        return replace(self, n=min(self.n, 12), shape="cycle")


def draw(seed: int, index: int) -> Draw:
    """Return instance number `index` of a seed."""
    rng = np.random.default_rng([seed, index])
    # Losses take turns, so that few instances have all of them.
    loss = list(LOSSES)[(index + seed) % len(LOSSES)]
    penalty = str(rng.choice(list(PENALTIES), p=list(PENALTIES.values())))
    shape, scale = str(rng.choice(list(SHAPES))), str(rng.choice(SCALES))
    dim = int(rng.choice([1, rng.integers(2, 6), rng.integers(6, 11), rng.integers(11, 21)]))
    most_classes = int(np.random.default_rng([seed, index, 3]).integers(2, 5))
    if LOSSES[loss][0] == "multinomial":
        dim = max(dim // most_classes, 1) * most_classes
    most = min((MOST_NODES_OF | MOST_NODES).get(x, 2_000) for x in (loss, penalty, shape))
    n = min(_size(rng), most, max(MOST_COORDINATES // dim, 3))
    return Draw(
        name=str(index),
        seed=seed,
        index=index,
        loss=loss,
        penalty=penalty,
        shape=shape,
        scale=scale,
        n=n,
        dim=dim,
        rows=min(int(np.exp(rng.uniform(0, np.log(31)))), max(MOST_ROWS // n, 1)),
        labelled=1.0 if rng.random() < 0.5 else float(rng.uniform(0.03, 0.95)),
        lam=float(10.0 ** rng.uniform(-6, 3)),
        most_classes=most_classes,
    )


def _size(rng: np.random.Generator) -> int:
    """Draw 3 to 2,000 nodes, mostly below 400."""
    if rng.random() < 0.12:
        return int(np.exp(rng.uniform(np.log(400), np.log(2_000))))
    return int(3 + 397 * rng.random() ** 1.5)


def _penalty(name: str, dim: int, rng: np.random.Generator) -> str | tuple[str, Any]:
    if name == "pnorm":
        return name, float(rng.choice([1.5, 3.0]))
    if name == "quadratic":
        root = rng.standard_normal((dim, dim))
        return name, root @ root.T / dim
    return (name, None) if name == "custom" else name


def _extras(kind: str, labelled: np.ndarray, n: int, rng: np.random.Generator) -> list[Extra]:
    if kind in ("ridge", "l1"):
        return [Extra(kind, labelled, (float(10.0 ** rng.uniform(-3, 0)),))]
    # Constraints hold at all nodes, with data or without.
    if kind == "box":
        return [Extra(kind, np.arange(n), (0.0, float(rng.choice([1.0, np.inf]))))]
    return [Extra(kind, np.arange(n), (1.0,))] if kind == "simplex" else []


class _Data:
    """Draws data points whose features and targets have the units of the scale."""

    def __init__(self, chosen: Draw, rng: np.random.Generator) -> None:
        self.chosen, self.rng = chosen, rng
        n, d, scale = chosen.n, chosen.dim, chosen.scale
        clusters = rng.integers(1, 5)
        self.w = rng.standard_normal((clusters, d))[np.arange(n) * clusters // n]
        self.mean, self.std = np.zeros(d), np.ones(d)
        self.y_mean, self.y_std = 0.0, 1.0
        if scale in ("tiny", "huge"):
            power = rng.uniform(3, 6) * (1 if scale == "huge" else -1)
            which = rng.integers(3)  # features, targets, both
            self.std *= 10.0**power if which != 1 else 1.0
            self.y_std = 10.0**power if which != 0 else 1.0
        elif scale == "offset":
            self.mean, self.y_mean = 10.0 ** rng.uniform(2, 4, d), 10.0 ** rng.uniform(2, 4)
            self.mean[0], self.std[0] = 1.0, 0.0
        elif scale == "raw":
            self.mean, self.std = np.array(RAW)[np.arange(d) % len(RAW)].T
            self.y_mean, self.y_std = [(5e4, 2e4), (12.0, 4.0), (1e5, 9e4)][rng.integers(3)]
        elif rng.random() < 0.5:  # an intercept
            self.mean[0], self.std[0] = 1.0, 0.0

    def rows(self, kind: str, nodes: np.ndarray) -> Rows:
        """Return data of one kind for some nodes."""
        if kind == "point":
            noisy = self.w[nodes] + 0.3 * self.rng.standard_normal((len(nodes), self.chosen.dim))
            return Rows(kind, nodes, np.empty((len(nodes), 0)), self.mean + self.std * noisy)
        node = np.repeat(nodes, self.chosen.rows)
        if kind == "multinomial":
            return self._of_classes(node)
        standard = self.rng.standard_normal((len(node), self.chosen.dim))
        z = np.einsum("rd,rd->r", standard, self.w[node]) / np.sqrt(self.chosen.dim)
        X = self.mean + self.std * standard
        return Rows(kind, node, X, self._targets(kind, z), self._parameter(kind))

    def _of_classes(self, node: np.ndarray) -> Rows:
        """Return rows of several classes: each feature has a parameter for each class."""
        K = self.chosen.classes
        p = self.chosen.dim // K
        standard = self.rng.standard_normal((len(node), p))
        z = np.einsum("rp,rpk->rk", standard, self.w[node].reshape(-1, p, K)) / np.sqrt(p)
        y = np.argmax(z + self.rng.gumbel(scale=0.5, size=z.shape), axis=1)
        X = self.mean[:p] + self.std[:p] * standard
        return Rows("multinomial", node, X, y.astype(float), float(K))

    def mixed(self, nodes: np.ndarray) -> list[Rows]:
        """Return data of several kinds, one kind for each node."""
        kind = self.rng.integers(len(MIXED), size=len(nodes))
        return [self.rows(MIXED[k], nodes[kind == k]) for k in np.unique(kind)]

    def _targets(self, kind: str, z: np.ndarray) -> np.ndarray:
        if kind in COUNTS:
            return self.rng.poisson(np.exp(np.clip(z, -3, 3))).astype(float)
        if kind in CLASSES:
            positive = z + self.rng.logistic(scale=0.5, size=len(z)) > 0
            return np.where(positive, 1.0, 0.0 if kind == "logistic" else -1.0)
        return self.y_mean + self.y_std * (z + 0.3 * self.rng.standard_t(3, len(z)))

    def _parameter(self, kind: str) -> float:
        if kind == "quantile":
            return float(self.rng.uniform(0.05, 0.95))
        return 0.5 * self.y_std if kind in ("huber", "pseudohuber") else np.nan
