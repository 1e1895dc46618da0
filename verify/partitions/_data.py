"""What the connectivity tests need of a problem, and the partition of its nodes, validated."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify._real_numbers import real_numbers
from verify.instance._instance import plain_data
from verify.kernel.data import (
    CLASSES,
    PENALTIES,
    ROWS,
    SCHEMA,
    TERMS,
    WEIGHTED,
    range_of,
    term_arrays,
)

#: Norms whose constants are known.
NORMS = ("l2", "l1", "linf")


@dataclass(frozen=True)
class ProblemData:
    """The parts of the plain data that Theorem 2 reads.

    Attributes
    ----------
    edges, weights : ndarray of int and ndarray
        (m, 2) and (m,).
    norm : str or None
        "l1", "l2" or "linf"; None if the penalty is none of them, with ``norm_reason``.
    names : list of hashable
        (n,) labels of the nodes, as a list.
    """

    n_nodes: int
    dim: int
    edges: IntArray
    weights: FloatArray
    lam: float
    penalty: Mapping[str, Any]
    terms: Sequence[Mapping[str, Any]]
    names: list[Hashable]
    norm: str | None
    norm_reason: str


@dataclass(frozen=True)
class Partition:
    """Disjoint nonempty clusters that cover the nodes.

    Attributes
    ----------
    keys : list of hashable
        Label of each cluster; 0..k-1 for a list of node lists.
    cluster_of : ndarray of int, shape (n,)
        Position of each node's cluster in ``keys``.
    names : list of hashable
        Node labels, for messages.
    """

    keys: list[Hashable]
    cluster_of: IntArray
    names: list[Hashable]

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.keys)

    @cached_property
    def order(self) -> IntArray:
        """Nodes sorted by cluster."""
        return np.argsort(self.cluster_of, kind="stable")

    @cached_property
    def first(self) -> IntArray:
        """Where each cluster begins in ``order``."""
        return np.searchsorted(self.cluster_of[self.order], np.arange(self.n_clusters))

    @cached_property
    def members(self) -> list[IntArray]:
        """Nodes of each cluster, increasing."""
        return np.split(self.order, self.first[1:])


def read_problem(problem: object) -> ProblemData:
    """Read and validate what is needed of a problem, as arrays (no text form: it must be fast).

    Parameters
    ----------
    problem : object or mapping
        The dict of ``problem.to_data()``, or any object that has that method.

    Raises
    ------
    TypeError, ValueError
        If it is neither, or an entry is missing or not as SCHEMA.md says.
    """
    data = plain_data(problem)
    wanted = ("schema", "n_nodes", "dim", "edges", "weights", "lam", "penalty", "terms")
    missing = [key for key in wanted if key not in data]
    if missing:
        raise ValueError(f"problem data: missing {', '.join(missing)}")
    if data["schema"] != SCHEMA:
        raise ValueError(f"problem data: schema must be {SCHEMA!r}, got {data['schema']!r}")
    n, d = int(data["n_nodes"]), int(data["dim"])
    if n < 1 or d < 1:
        raise ValueError(f"problem data: n_nodes and dim must be at least 1, got {n} and {d}")
    edges = _read_edges(data["edges"], n)
    weights = _numbers(data["weights"], (len(edges),), "weights")
    if (weights <= 0.0).any():
        raise ValueError(f"weights: edge {int(np.argmin(weights))} is not positive")
    lam = float(_numbers(data["lam"], (), "lam"))
    if lam <= 0.0:
        raise ValueError(f"lam: must be positive, got {lam}")
    names = list(np.asarray(data["nodes"]).tolist()) if "nodes" in data else list(range(n))
    if len(names) != n or len(set(names)) != n:
        raise ValueError(f"nodes: expected {n} distinct labels")
    norm, reason = _norm(data["penalty"])
    terms = [_read_term(term, n, d, f"terms[{k}]") for k, term in enumerate(data["terms"])]
    return ProblemData(n, d, edges, weights, lam, data["penalty"], terms, names, norm, reason)


def _numbers(
    value: object, shape: tuple[int, ...], name: str, *, infinite: bool = False
) -> FloatArray:
    """Read finite numbers of a given shape; hexadecimal floats are fine."""
    given: Any = value
    if not np.ma.is_masked(value) and (texts := np.asarray(value)).dtype.kind == "U":
        # canonical data are texts
        given = np.array([float.fromhex(str(x)) for x in texts.ravel()]).reshape(texts.shape)
    array = real_numbers(given, name).astype(np.float64)
    if array.size == 0 and 0 in shape:
        return array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    if not (np.isfinite(array).all() or (infinite and not np.isnan(array).any())):
        raise ValueError(f"{name}: entry {int(np.argmin(np.isfinite(array)))} is NaN or infinite")
    return array


def _read_edges(value: object, n: int) -> IntArray:
    edges = np.asarray(value)
    if edges.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError("edges: expected integers of shape (m, 2)")
    edges = edges.astype(np.int64)
    wrong = (edges[:, 0] < 0) | (edges[:, 1] >= n) | (edges[:, 0] >= edges[:, 1])
    if wrong.any():
        e = int(np.argmax(wrong))
        raise ValueError(f"edges: edge {e} {edges[e].tolist()} is not 0 <= head < tail < {n}")
    if (np.diff(edges[:, 0] * n + edges[:, 1]) <= 0).any():
        raise ValueError("edges: must be sorted and without duplicates")
    return edges


def _norm(penalty: Mapping[str, Any]) -> tuple[str | None, str]:
    """Name of the penalty's norm, or None and why there is none."""
    kind = penalty["kind"]
    if kind not in PENALTIES:
        raise ValueError(f"penalty: unknown kind {kind!r}")
    if kind in NORMS:
        return str(kind), ""
    if kind != "pnorm":
        return None, f"the penalty {kind!r} is not a norm"
    p = penalty["p"]
    p = float.fromhex(p) if isinstance(p, str) else float(p)
    known = {1.0: "l1", 2.0: "l2", np.inf: "linf"}
    if p in known:
        return known[p], ""
    return None, f"the constants are known for the l1, l2 and linf norms, not for p = {p:g}"


def _read_term(term: Mapping[str, Any], n: int, d: int, name: str) -> Mapping[str, Any]:
    """Turn the entries of one term into arrays of the right shapes."""
    kind = term.get("kind")
    if kind not in TERMS and kind != "opaque":
        raise ValueError(f"{name}: unknown kind {kind!r}")
    wide = term_arrays(str(kind), kind in WEIGHTED and "weight" in term)
    missing = {"node", *wide} - set(term)
    if missing:
        raise ValueError(f"{name}: missing {', '.join(sorted(missing))}")
    node = np.asarray(term["node"], dtype=np.int64).reshape(-1)
    if len(node) and not (node.min() >= 0 and node.max() < n):
        raise ValueError(f"{name}: names a node outside 0..{n - 1}")
    if (np.diff(node) < (0 if kind in ROWS else 1)).any():
        raise ValueError(f"{name}: node must be sorted{'' if kind in ROWS else ', each once'}")
    read: dict[str, Any] = {"kind": kind, "node": node}
    if kind == "opaque":
        read["name"] = str(term.get("name", "opaque"))
    for key, is_wide in wide.items():
        field = f"{name}.{key}"
        if is_wide is None:
            is_wide = np.ndim(term[key]) == 2
        width = np.shape(term[key])[-1] if kind == CLASSES and np.ndim(term[key]) == 2 else d
        shape = (len(node), width) if is_wide else (len(node),)
        read[key] = _numbers(term[key], shape, field, infinite=kind == "box")
        if (rule := range_of(str(kind), key)) is not None:
            allowed, words = rule
            for i, x in enumerate(read[key].ravel().tolist()):
                if not (allowed(x) or (is_wide and x == 0)):
                    row, wanted = (i // d, "must not be negative") if is_wide else (i, words)
                    raise ValueError(f"{field}: entry {row} {wanted}, got {x}")
    if kind == "ridge":  # one form is enough for whoever reads it
        read["mu"] = np.broadcast_to(read["mu"].reshape(len(node), -1), (len(node), d))
    return read


def read_partition(partition: object, names: list[Hashable]) -> Partition:
    """Validate a partition.

    Parameters
    ----------
    partition : array_like or list of lists
        (n,) labels, one per node, or a sequence of sequences of node labels.
    names : list of hashable
        Labels of the nodes.

    Raises
    ------
    TypeError, ValueError
        Naming the node that is missing, unknown or in two clusters.
    """
    if isinstance(partition, (str, bytes, Mapping)) or not hasattr(partition, "__len__"):
        raise TypeError(
            "partition: expected labels (n,) or a list of node lists, got "
            f"{type(partition).__name__}"
        )
    entries = partition.tolist() if hasattr(partition, "tolist") else list(partition)  # type: ignore[call-overload]
    nested = [
        isinstance(entry, (Sequence, set, frozenset, np.ndarray))
        and not isinstance(entry, (str, bytes))
        for entry in entries
    ]
    if any(nested) and not all(nested):
        raise TypeError("partition: mixes node lists and labels")
    if getattr(partition, "ndim", 1) != 1:
        raise ValueError("partition: an array of labels must have one dimension")
    return _from_lists(entries, names) if any(nested) else _from_labels(entries, names)


def _from_labels(labels: list[Hashable], names: list[Hashable]) -> Partition:
    if len(labels) != len(names):
        raise ValueError(f"partition: {len(labels)} labels for {len(names)} nodes")
    keys: dict[Hashable, int] = {}
    cluster_of = np.empty(len(names), dtype=np.int64)
    for i, label in enumerate(labels):
        key = label.item() if isinstance(label, np.generic) else label
        if key is None or key != key:
            raise ValueError(f"partition: node {names[i]!r} has no label (it is {key})")
        cluster_of[i] = keys.setdefault(key, len(keys))
    return Partition(list(keys), cluster_of, names)


def _from_lists(lists: list[Sequence[Hashable]], names: list[Hashable]) -> Partition:
    position = {name: i for i, name in enumerate(names)}
    cluster_of = np.full(len(names), -1, dtype=np.int64)
    for c, nodes in enumerate(lists):
        if not len(nodes):
            raise ValueError(f"partition: cluster {c} is empty")
        for node in nodes:
            name = node.item() if isinstance(node, np.generic) else node
            i = position.get(name, -1)
            if i < 0:
                raise ValueError(
                    f"partition: cluster {c} names node {name!r}, which does not exist"
                )
            if cluster_of[i] >= 0:
                where = "twice" if cluster_of[i] == c else f"and in cluster {cluster_of[i]}"
                raise ValueError(f"partition: node {name!r} is in cluster {c} {where}")
            cluster_of[i] = c
    if (cluster_of < 0).any():
        name = names[int(np.argmax(cluster_of < 0))]
        raise ValueError(f"partition: node {name!r} is in no cluster")
    return Partition(list(range(len(lists))), cluster_of, names)
