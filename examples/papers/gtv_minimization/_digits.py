"""Handwritten digits at nodes of clusters, [GTV] section VI-C: data, graph, networks, methods.

The nodes of a cluster see two digits, {0, 1} in the first, {2, 3} in the second, and so on; 500
images of MNIST each, of which 400 are for training. All training images are mapped to the plane by
t-SNE, Kullback-Leibler divergences between the nodes' training sets are estimated there from
nearest neighbours, every node is joined to the four nearest others, and an edge weighs
exp(-divergence). A node trains two dense layers with ReLU between them and softmax (40) by
Algorithm 1, whose proximal map is a number of gradient steps.

Offline these are scikit-learn's digits of 8 x 8 pixels: 17 images a node, 13 for training, each in
one place only. A user's MNIST (``--data``) gives the sizes of the paper.

Estimates of divergences are not symmetric, so both directions are added; chance makes small ones
negative, which counts as 0; equal points are as far apart as the nearest different ones. See
`gtvcvx.graph_construction.kl_divergences`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.datasets import LabelledImages, load_digits_8x8, load_idx_images
from gtvcvx.experiments import Curve, Panel, Study, Verdict
from gtvcvx.graph_construction import kl_graph

Array = NDArray[np.float64]
Method = Callable[["Federation"], Array]

NOT_CONVEX = "not convex: a network has no certified optimum"
IMAGES = 500  # a node, as far as there are so many
OFFLINE = 17  # of 8x8 digits: the fewest of two digits are 354, for 20 nodes
TRAINED = 0.8  # share of them for training
NEIGHBOURS = 4
LAM, LARGE = 1.0, 1e3
# lambda = 0: flows that are as small move nothing that a double shows.
NONE = 1e-12
HIDDEN = 10
ADAM = {"step": 1e-3, "mean": 0.9, "square": 0.999, "floor": 1e-8}  # its authors' values
STEP = 0.1  # of IFCA's gradient steps
RIDGE = 1e-3  # of the convex twin, so that a single node has one solution

GIVEN = {
    "images": "given: 500 of MNIST a node, 400 for training; offline 17 of 8x8 digits, 13 of them",
    "graph": f"given: t-SNE to the plane, nearest-neighbour divergences, {NEIGHBOURS} nearest "
    "nodes, A = exp(-divergence); not given: both directions, which we add, negative estimates, "
    "which are 0 to us, and what is mapped: all training images at once",
    "networks": f"given: two layers, ReLU, softmax; not given: width, ours is {HIDDEN}; start, "
    "ours is one for all nodes",
    "penalty": "given: total variation of the Euclidean norm",
}


@dataclass(frozen=True)
class Sizes:
    """How large a run is."""

    nodes: int  # of a cluster
    rounds: int
    steps: int  # of gradient descent in a proximal map
    block: int = 1  # side of the blocks of pixels that are averaged: for tests


PAPER = Sizes(nodes=20, rounds=50, steps=20)
DEFAULT = Sizes(nodes=8, rounds=30, steps=20)
TINY = Sizes(nodes=4, rounds=3, steps=3, block=2)


def sizes(study: Study) -> Sizes:
    """Return the sizes of a run; the paper gives nodes and rounds, not the steps."""
    return study.choose(tiny=TINY, default=DEFAULT, paper=PAPER)


@dataclass(frozen=True)
class Federation:
    """Nodes with images, their graph, and the networks that they train."""

    train: tuple[Array, NDArray[np.int64]]  # features (n, m, p), labels (n, m)
    test: tuple[Array, NDArray[np.int64]]
    cluster: NDArray[np.int64]  # (n,)
    graph: gtv.EmpiricalGraph
    sizes: Sizes
    seed: int

    @property
    def classes(self) -> list[int]:
        """All digits that some node sees."""
        return sorted(set(self.train[1].ravel().tolist()))

    def networks(self) -> list[fed.models.TwoLayerNetwork]:
        """Make the network of each node."""
        return [
            fed.models.TwoLayerNetwork(X, y, self.classes, HIDDEN, steps=self.sizes.steps)
            for X, y in zip(*self.train, strict=True)
        ]

    def start(self, number: int = 0) -> Array:
        """Draw parameters to start at: the same at all nodes."""
        return self.networks()[0].initial(1000 * number + self.seed)

    def accuracy(self, predicted: ArrayLike) -> float:
        """Return the share of test images (n, m) that nodes predict right."""
        return float(np.mean(np.asarray(predicted) == self.test[1]))


@cache
def _images(data: str | None) -> LabelledImages:
    """Return the images: a user's, the large part where there is one, or the 8x8 digits."""
    if data is None:
        return load_digits_8x8()
    try:
        return load_idx_images(data, "train")
    except FileNotFoundError:
        return load_idx_images(data, "test")


def images(study: Study) -> LabelledImages:
    """Return the images of a run."""
    return _images(None if study.data is None else str(study.data))


def federation(study: Study, seed: int, clusters: int) -> Federation:
    """Draw the images of each node, and build the graph."""
    pool, size = images(study), sizes(study)
    cluster = np.repeat(np.arange(clusters), size.nodes)
    digits = [(2 * c, 2 * c + 1) for c in cluster.tolist()]
    fewest = min(int(np.isin(pool.labels, pair).sum()) for pair in set(digits))
    count = min(OFFLINE if study.data is None else IMAGES, fewest // PAPER.nodes)
    rows = np.array(pool.share(digits, count, [seed, clusters]))
    trained = int(TRAINED * count)
    X, y = features(pool, size.block)[rows], pool.labels[rows]
    found = study.cell(
        f"graph of {clusters} clusters seed={seed}", lambda: similarity(X[:, :trained], seed)
    )
    return Federation(
        (X[:, :trained], y[:, :trained]),
        (X[:, trained:], y[:, trained:]),
        cluster,
        gtv.EmpiricalGraph(len(cluster), found["edges"], found["weights"]),
        size,
        seed,
    )


def features(pool: LabelledImages, block: int) -> Array:
    """Return the pixels of each image, averaged over blocks."""
    n, height, width = pool.images.shape
    shape = (n, height // block, block, width // block, block)
    return pool.features().reshape(shape).mean(axis=(2, 4)).reshape(n, -1)


def similarity(X: Array, seed: int) -> dict[str, ArrayLike]:
    """Join nodes whose training images (n, m, p) look alike in the plane of t-SNE."""
    n, m, p = X.shape
    # One thread: sums have one order, and threads do not wait for those of other runs.
    with threadpool_limits(1):
        plane = TSNE(2, random_state=seed).fit_transform(X.reshape(n * m, p)).reshape(n, m, 2)
    samples = plane.astype(np.float64)
    graph = kl_graph(samples, NEIGHBOURS, estimator="nearest", bandwidth=1.0)
    return {"edges": graph.edges, "weights": graph.weights}


class _Accuracies:
    """Callback of a federated run: the accuracy of the clients' networks after each round."""

    def __init__(self, of: Federation) -> None:
        self._of, self._networks, self.values = of, of.networks(), list[float]()

    def __call__(self, progress: Any) -> None:
        self.see(progress.w)

    def see(self, w: Array) -> None:
        X = self._of.test[0]
        predicted = [self._networks[i].predict(w[i], X[i]) for i in range(len(X))]
        self.values.append(self._of.accuracy(predicted))


def trained(of: Federation, algorithm: fed.Algorithm) -> Array:
    """Run a federated algorithm on networks; return the accuracy after each round."""
    seen = _Accuracies(of)
    net = fed.Network(of.networks(), of.graph)
    fed.simulate(
        algorithm, net, of.sizes.rounds, record_every=1, callback=seen, seed=of.seed, verbose=False
    )
    return np.array(seen.values[-of.sizes.rounds :])


def algorithm1(of: Federation, lam: float) -> Array:
    """Train by Algorithm 1 as in the text, with inner steps for its proximal map."""
    return trained(of, fed.PrimalDual(lam or NONE, "l2", of.start()))


def ifca(of: Federation) -> Array:
    """Train by IFCA, one model a cluster, with as many local steps."""
    k = int(of.cluster.max()) + 1
    starts = np.array([of.start(number) for number in range(k)])
    steps = of.sizes.steps
    return trained(of, fed.IFCA(k, STEP, update="models", steps=steps, initial=starts))


def pfedme(of: Federation) -> Array:
    """Train by pFedMe with the lambda of Algorithm 1."""
    return trained(of, fed.PFedMe(LAM, initial=of.start()))


def adam(of: Federation, lam: float = LAM) -> Array:
    """Minimize (16) for all nodes at once by Adam, with as many gradients as Algorithm 1."""
    networks, seen = of.networks(), _Accuracies(of)
    w = np.tile(of.start(), (len(networks), 1))
    mean, square = np.zeros_like(w), np.zeros_like(w)
    for k in range(1, of.sizes.rounds * of.sizes.steps + 1):
        slope = np.array([one.gradient(x) for one, x in zip(networks, w, strict=True)])
        slope += lam * variation_slope(of.graph, w)
        mean += (1 - ADAM["mean"]) * (slope - mean)
        square += (1 - ADAM["square"]) * (slope**2 - square)
        scale = np.sqrt(square / (1 - ADAM["square"] ** k)) + ADAM["floor"]
        w = w - ADAM["step"] * mean / (1 - ADAM["mean"] ** k) / scale
        if k % of.sizes.steps == 0:
            seen.see(w)
    return np.array(seen.values)


def variation_slope(graph: gtv.EmpiricalGraph, w: Array) -> Array:
    """Return a subgradient (n, d) of total variation, zero on edges whose ends agree."""
    across = graph.incidence @ w
    length = np.linalg.norm(across, axis=1, keepdims=True)
    unit = np.divide(across, length, out=np.zeros_like(across), where=length > 0)
    return np.asarray(graph.divergence @ (graph.weights[:, None] * unit))


def rewired(of: Federation, share: float) -> gtv.EmpiricalGraph:
    """Move one end of a share of the edges to a node of another cluster; all weigh 1."""
    rng = np.random.default_rng([of.seed, 1])
    edges = of.graph.edges.copy()
    for e in rng.permutation(len(edges))[: round(share * len(edges))]:
        others = np.flatnonzero(of.cluster != of.cluster[edges[e, 0]])
        edges[e, 1] = rng.choice(others)
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    return gtv.EmpiricalGraph(of.graph.n_nodes, edges)


def twin(of: Federation, graph: gtv.EmpiricalGraph, lam: float) -> gtv.GTVProblem:
    """Return the convex twin: a linear softmax classifier at each node instead of a network."""
    X, y = of.train
    places = np.searchsorted(of.classes, y)
    losses = gtv.MultinomialLogisticLoss.stack(X, places, n_classes=len(of.classes), ridge=RIDGE)
    return gtv.GTVProblem(graph, losses, "l2", lam)


def twin_accuracy(of: Federation, w: Array) -> float:
    """Return the accuracy of the twin's classifiers w (n, d)."""
    X = of.test[0]
    logits = np.einsum("nmp,npk->nmk", X, w.reshape(len(X), X.shape[2], -1))
    return of.accuracy(np.array(of.classes)[logits.argmax(axis=2)])


def beats(differences: ArrayLike, images_a_run: int) -> Verdict:
    """REPRODUCED where one method's accuracy is above the other's by more than chance.

    That is: the mean difference over the seeds is above two of its standard errors, and above one
    image of a run's test images. A single seed has no standard error: then above four images.
    """
    values = np.asarray(differences, dtype=float)
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 2.0 / images_a_run
    margin = max(2.0 * error, 1.0 / images_a_run)
    return Verdict.REPRODUCED if values.mean() > margin else Verdict.NOT_REPRODUCED


def curves_of(
    study: Study, clusters: int, methods: Mapping[str, Method]
) -> tuple[dict[str, Array], list[Federation]]:
    """Run methods for all seeds; return accuracies (seeds, rounds) by method."""
    nets = [federation(study, seed, clusters) for seed in study.seeds]
    found = {
        name: np.array(
            [
                study.cell(
                    f"{name}, {clusters} clusters, seed={one.seed}",
                    lambda one=one, method=method: {"accuracy": method(one)},
                )["accuracy"]
                for one in nets
            ]
        )
        for name, method in methods.items()
    }
    return found, nets


def wrong_edges(nets: list[Federation]) -> str:
    """Say how many edges join nodes of two clusters."""
    counts = [
        int(np.sum(one.cluster[one.graph.edges[:, 0]] != one.cluster[one.graph.edges[:, 1]]))
        for one in nets
    ]
    edges = np.mean([one.graph.n_edges for one in nets])
    parts = np.mean([one.graph.components.max() + 1 for one in nets])
    return (
        f"The estimated graph has {edges:.0f} edges, {np.mean(counts):.1f} of them between "
        f"clusters, and {parts:.1f} components, in the mean over {len(nets)} seeds."
    )


def accuracy_panel(found: dict[str, Array], size: Sizes) -> Panel:
    """Draw accuracies against iterations."""
    at = np.arange(1, size.rounds + 1)
    curves = [Curve(name, at, values, NOT_CONVEX) for name, values in found.items()]
    return Panel("Networks", "iterations", "accuracy on test images", curves)


def chosen(study: Study, clusters: int) -> dict[str, str]:
    """Say what was given and what is ours of the sizes of a run."""
    size = sizes(study)
    return {
        "nodes": f"given: {clusters * PAPER.nodes} in {clusters} clusters; "
        f"ours are {clusters * size.nodes}",
        "iterations": f"given: {PAPER.rounds}; ours are {size.rounds}",
        "proximal map": f"not given: ours is {size.steps} gradient steps, of a length found by "
        "halving",
        "runs": f"not given: ours are {len(study.seeds)}",
    }
