"""Shards of a problem: together they are the problem, and what is wrong with them is named."""

import dataclasses
import json
import subprocess
import sys
import textwrap

import cvxpy as cp
import numpy as np
import pytest
from _problems import instance

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.distributed import Manifest, Shard, Tables, shard
from gtvcvx.files import _storage
from gtvcvx.files._tables import match_nodes, read_data, read_edges


def value(folder, manifest, w):
    """Objective as the sum of what the shards count."""
    total, penalty = 0.0, manifest.as_penalty()
    for number in range(manifest.n_shards):
        piece = manifest.shard(folder, number)
        own = w[piece.nodes]
        jumps = own[piece.edges[:, 0]] - own[piece.edges[:, 1]]
        total += piece.losses().value(own).sum()
        total += manifest.lam * (piece.weights * penalty.value(jumps))[piece.own_edges].sum()
    return total


LOSSES = {
    "squared": None,
    "mixed": {
        0: gtv.PointLoss([1.0, 2.0]),
        5: gtv.HuberLoss([[1.0, 2.0], [0.5, 1.0]], [1.0, 2.0], delta=0.5),
        7: 2.0 * gtv.QuantileLoss([[1.0, 2.0]], [3.0], level=0.25) + gtv.L1(0.5),
        9: gtv.LassoLoss([[1.0, 0.0]], [3.0], 0.1),
        119: gtv.SquaredLoss([[1.0, 2.0]], [1.0]) + gtv.Box(-1.0, 1.0),
    },
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(
    ("n_shards", "partitioner"), [(1, "auto"), (4, "order"), (16, "blocks"), (3, "own")]
)
def test_together_they_are_the_problem(tmp_path, kind, n_shards, partitioner):
    problem = instance(losses=LOSSES[kind])
    if partitioner == "own":
        partitioner = np.random.default_rng(1).integers(0, 3, 120)
    manifest = shard(problem, tmp_path / "s", n_shards, partitioner=partitioner)
    assert Manifest.load(tmp_path / "s") == manifest
    assert manifest.n_shards == n_shards
    assert (manifest.n_nodes, manifest.n_edges) == (120, problem.graph.n_edges)
    w = np.clip(np.random.default_rng(2).normal(size=(120, 2)), -1.0, 1.0)
    assert value(tmp_path / "s", manifest, w) == pytest.approx(problem.value(w), rel=1e-13)
    pieces = [manifest.shard(tmp_path / "s", k) for k in range(n_shards)]
    own = np.sort(np.concatenate([piece.nodes[piece.own] for piece in pieces]))
    np.testing.assert_array_equal(own, np.arange(120))
    edges = np.concatenate([piece.nodes[piece.edges[piece.own_edges]] for piece in pieces])
    np.testing.assert_array_equal(edges[np.lexsort(edges.T[::-1])], problem.graph.edges)
    cut = sum(int((~piece.own[piece.edges].all(axis=1)).sum()) for piece in pieces)
    assert manifest.cut_edges == cut // 2
    for piece in pieces:
        record = manifest.shards[piece.number]
        for other in piece.neighbours:
            theirs = pieces[other]
            sent = piece.nodes[piece.boundary_with(other)]
            np.testing.assert_array_equal(sent, theirs.nodes[theirs.ghosts_of(piece.number)])
            assert record.halo[other] == len(sent)
        heads, tails = piece.edges.T
        assert np.all(heads < tails)
        np.testing.assert_array_equal(piece.graph().edges, piece.edges)


def test_shards_are_of_equal_size(tmp_path):
    rng = np.random.default_rng(0)
    places = rng.random((4000, 2))
    graph = gtv.graph_construction.knn_graph(places, 8)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.normal(size=(4000, 2))))
    manifest = shard(problem, tmp_path, 8, partitioner="order")
    sizes = [manifest.shard(tmp_path, k).nbytes for k in range(8)]
    assert max(sizes) < 1.25 * np.mean(sizes)
    assert manifest.cut_edges < 0.25 * manifest.n_edges
    assert manifest.halo_bytes == 16 * sum(sum(r.halo.values()) for r in manifest.shards)


def test_labels_are_kept(tmp_path):
    problem = instance(labels=True)
    manifest = shard(problem, tmp_path, 4)
    assert manifest.labelled
    for k in range(4):
        piece = manifest.shard(tmp_path, k)
        names = [problem.graph.nodes[i] for i in piece.nodes[piece.own]]
        assert piece.labels == names


def test_metis_cuts_less(tmp_path):
    pytest.importorskip("pymetis")
    problem = gtv.GTVProblem(
        generators.grid(40, 40),
        gtv.PointLoss.stack(np.zeros((1600, 1))),
    )
    by_metis = shard(problem, tmp_path / "a", 16, partitioner="metis")
    by_order = shard(problem, tmp_path / "b", 16, partitioner="order")
    assert by_metis.cut_edges < by_order.cut_edges
    assert by_metis.partitioner == shard(problem, tmp_path / "c", 16).partitioner == "metis"


class TestFiles:
    def test_saved_problems(self, tmp_path):
        for seed, kind in ((3, "squared"), (4, "mixed")):
            problem = instance(seed=seed, labels=seed == 4, losses=None)
            if kind == "mixed":
                losses = {f"node {i}": loss for i, loss in LOSSES["mixed"].items()}
                problem = gtv.GTVProblem(problem.graph, losses, gtv.Quadratic(np.eye(2)), 0.7)
            problem.save(tmp_path / "p.npz")
            found = shard(tmp_path / "p.npz", tmp_path / "a", 5, partitioner="order")
            wanted = shard(problem, tmp_path / "b", 5, partitioner="order")
            assert found.n_shards == 5
            for k in range(5):
                mine, theirs = found.shard(tmp_path / "a", k), wanted.shard(tmp_path / "b", k)
                assert same(mine, theirs)
            assert found.penalty == wanted.penalty
            w = np.zeros((120, 2))
            assert value(tmp_path / "a", found, w) == pytest.approx(problem.value(w), rel=1e-13)
            names = {path.name for path in (tmp_path / "a").iterdir()}
            assert names == {"manifest.json", *(f"shard-{k:05d}.npz" for k in range(5))}

    def test_tables(self, tmp_path):
        rng = np.random.default_rng(5)
        n = 200
        names = [f"n{i}" for i in rng.permutation(n)]
        edges = [(names[i], names[(7 * i + 1) % n], rng.random() + 0.1) for i in range(n)]
        edges = [(a, b, c) for a, b, c in edges if a != b]
        edges += [(edges[4][1], edges[4][0], 2.0)]  # parallel: weights add up
        (tmp_path / "e.csv").write_text(
            "source,target,weight\n" + "".join(f"{a},{b},{c!r}\n" for a, b, c in edges)
        )
        known = read_edges(tmp_path / "e.csv").labels
        rows = [(known[rng.integers(len(known))], *rng.normal(size=3).tolist()) for _ in range(600)]
        (tmp_path / "d.csv").write_text(
            "place,y,a,b\n"
            + "".join(
                f"{node},{y if k % 9 else ''},{a!r},{b!r}\n"
                for k, (node, y, a, b) in enumerate(rows)
            )
        )
        tables = Tables(
            tmp_path / "e.csv", tmp_path / "d.csv", "place", "y", intercept=True, loss="huber",
            delta=0.3, penalty="l1", lam=0.2,
        )  # fmt: skip
        found = shard(tables, tmp_path / "s", 7, partitioner="blocks")
        graph_table = read_edges(tmp_path / "e.csv")
        data = read_data(tmp_path / "d.csv", node="place", target="y")
        X = np.column_stack([np.ones(len(data.X)), data.X])
        node = match_nodes(graph_table.labels, data)
        graph = gtv.EmpiricalGraph(
            len(graph_table.labels), graph_table.edges, graph_table.weights, graph_table.labels
        )
        problem = gtv.GTVProblem(
            graph, gtv.HuberLoss.from_rows(X, data.y, node, delta=0.3), "l1", 0.2
        )
        assert found.n_edges == problem.graph.n_edges
        w = rng.normal(size=(graph.n_nodes, 3))
        assert value(tmp_path / "s", found, w) == pytest.approx(problem.value(w), rel=1e-13)
        labels = [x for k in range(7) for x in found.shard(tmp_path / "s", k).labels]
        assert sorted(labels) == sorted(graph.nodes)

    @pytest.mark.parametrize(
        ("edges", "data", "words"),
        [
            ("a,b\nb,c\nc,c\n", "node,y,x\na,1,2\n", "line 3: the edge joins node 'c' to itself"),
            ("a,b\nb,c\n", "node,y,x\nd,1,2\n", "line 2: node 'd' is not in the graph"),
            ("a,b\nb,c\n", "node,y,x\na,1,nan\n", "line 2, column 'x': 'nan' is not a finite"),
            ("a,b\nb,c\n", "node,y\na,1\n", "there is no feature column"),
            ("a,b\nb,c\n", "node,y,x\na,,2\n", "no row has a value in the target column 'y'"),
            ("a,b\nb,c\n", "node,y,x\na,-1,2\n", "lines 2 to 2: y: entry"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, edges, data, words):
        # No header: none of the usual names, and all nodes below are texts, too.
        (tmp_path / "e.csv").write_text("source,target\n" + edges)
        (tmp_path / "d.csv").write_text(data)
        words = words.replace("line 3: the", "line 4: the")
        tables = Tables(tmp_path / "e.csv", tmp_path / "d.csv", "node", "y", loss="poisson")
        with pytest.raises(ValueError, match=words):
            shard(tables, tmp_path / "s", 2)
        assert not list((tmp_path / "s").iterdir())

    def test_files_of_another_kind(self, tmp_path):
        path = tmp_path / "p.npz"
        with pytest.raises(ValueError, match=r"p\.npz: there is no such file"):
            shard(path, tmp_path / "s", 2)
        instance().save(path)
        whole = path.read_bytes()
        for damaged in (b"text", whole[: len(whole) // 2]):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"p\.npz: not a gtv-problem/1 file, or damaged"):
                shard(path, tmp_path / "s", 2)
        _storage.save(path, {"schema": "gtv-solution/1", "w": np.zeros((3, 2))})
        with pytest.raises(ValueError, match=r"p\.npz: not a gtv-problem/1 file"):
            shard(path, tmp_path / "s", 2)


def same(mine, theirs):
    """Whether two shards say the same, but for the name of the sharding."""
    arrays = all(
        np.array_equal(getattr(mine, name), getattr(theirs, name))
        for name in ("nodes", "owners", "edges", "weights")
    )
    terms = len(mine.terms) == len(theirs.terms) and all(
        a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)
        for a, b in zip(mine.terms, theirs.terms, strict=True)
    )
    return arrays and terms and mine.labels == theirs.labels


class TestRefusals:
    @pytest.fixture
    def folder(self, tmp_path):
        shard(instance(), tmp_path / "s", 3)
        return tmp_path / "s"

    def test_missing(self, folder):
        (folder / "shard-00001.npz").unlink()
        with pytest.raises(ValueError, match=r"shard-00001\.npz: shard 1 cannot be read"):
            Manifest.load(folder).shard(folder, 1)
        with pytest.raises(ValueError, match=r"manifest\.json: no manifest of shards can be read"):
            Manifest.load(folder / "nowhere")

    def test_broken(self, folder):
        path = folder / "shard-00001.npz"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"shard-00001\.npz: shard 1 is broken"):
            Manifest.load(folder).shard(folder, 1)

    def test_foreign(self, folder, tmp_path):
        shard(instance(seed=1), tmp_path / "other", 3)
        foreign = (tmp_path / "other" / "shard-00001.npz").read_bytes()
        (folder / "shard-00001.npz").write_bytes(foreign)
        with pytest.raises(ValueError, match=r"shard-00001\.npz: a shard of another sharding"):
            Manifest.load(folder).shard(folder, 1)

    def test_exchanged(self, folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["shards"][0], manifest["shards"][1] = manifest["shards"][1], manifest["shards"][0]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ValueError, match=r"shard-00001\.npz: not shard 0 of this sharding"):
            Manifest.load(folder).shard(folder, 0)

    @pytest.mark.parametrize(
        ("key", "changed", "words"),
        [
            ("schema", "gtv-shards/9", "schema 'gtv-shards/1' is expected"),
            ("n_nodes", 121, "n_nodes: shards have 120 of 121"),
            ("lam", -1.0, "lam: a positive finite number"),
            ("dim", "2", "dim: a number >= 0"),
            ("shards", 3, "not a complete manifest"),
            ("penalty", {"kind": "nothing"}, "not a complete manifest"),
        ],
    )
    def test_manifest(self, folder, key, changed, words):
        path = folder / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), key: changed}))
        with pytest.raises(ValueError, match=words):
            Manifest.load(folder)

    def test_names_do_not_lead_out(self, folder):
        data = json.loads((folder / "manifest.json").read_text())
        data["shards"][0]["file"] = "../shard-00000.npz"
        (folder / "manifest.json").write_text(json.dumps(data))
        with pytest.raises(ValueError, match="not the name of a file in this folder"):
            Manifest.load(folder)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda s: {"nodes": s.nodes[::-1].copy()}, "nodes: ascending"),
            (lambda s: {"edges": s.edges + len(s.nodes)}, "edges: an end is none"),
            (lambda s: {"owners": np.full_like(s.owners, 9)}, "edges: each has an end"),
            (lambda s: {"weights": s.weights[:-1]}, "arrays of different lengths"),
            (lambda s: {"labels": ["a"]}, "labels: one for each node"),
            (
                lambda s: {
                    "terms": [{**s.terms[0], "node": np.full(len(s.terms[0]["node"]), 999)}]
                },
                "terms: a loss of a node that",
            ),
        ],
    )
    def test_shards_that_cannot_be(self, folder, change, words):
        path = folder / "shard-00001.npz"
        good = Shard.load(path)
        dataclasses.replace(good, **change(good)).save(path)
        with pytest.raises(ValueError, match=words):
            Shard.load(path)

    def test_arguments(self, tmp_path):
        problem = instance()
        for wrong, words in ((0, "shards: 1 to 120"), (121, "shards: 1 to 120")):
            with pytest.raises(ValueError, match=words):
                shard(problem, tmp_path, wrong)
        with pytest.raises(TypeError, match="shards: a number"):
            shard(problem, tmp_path, 2.5)
        with pytest.raises(ValueError, match="partitioner: one of"):
            shard(problem, tmp_path, 2, partitioner="best")
        with pytest.raises(ValueError, match="partitioner: node 0 is in shard 5"):
            shard(problem, tmp_path, 2, partitioner=np.full(120, 5))
        with pytest.raises(ValueError, match=r"partitioner: shape \(120,\)"):
            shard(problem, tmp_path, 2, partitioner=[0, 1])
        pairs = gtv.EmpiricalGraph(2, [(0, 1)], nodes=[(0, 0), (0, 1)])
        with pytest.raises(TypeError, match=r"graph: node label \(0, 0\) is neither"):
            shard(gtv.GTVProblem(pairs, gtv.PointLoss.stack(np.eye(2))), tmp_path, 2)
        callables = {0: gtv.CvxpyLoss(lambda w: cp.sum_squares(w), dim=2)}
        opaque = gtv.GTVProblem(problem.graph, callables)
        with pytest.raises(TypeError, match="losses: node 0 has a CvxpyLoss"):
            shard(opaque, tmp_path, 2)


def test_more_than_memory_holds(tmp_path):
    """Files of 96 MB are cut by a process that may take 64 MB beyond what it is."""
    rng = np.random.default_rng(0)
    n, d, rows = 4000, 30, 400_000
    graph = gtv.EmpiricalGraph(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    X = rng.normal(size=(rows, d))
    losses = gtv.SquaredLoss.from_rows(X, X[:, 0], rng.integers(0, n, rows))
    gtv.GTVProblem(graph, losses).save(tmp_path / "p.npz")
    assert (tmp_path / "p.npz").stat().st_size > 96e6
    code = f"""
        import resource
        import numpy, scipy.sparse.csgraph
        from gtvcvx.distributed import shard
        from gtvcvx import problem
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * resource.getpagesize() + (64 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        manifest = shard({str(tmp_path / "p.npz")!r}, {str(tmp_path / "s")!r}, 16)
        try:
            numpy.empty(96 << 20, numpy.uint8)
        except MemoryError:
            print(manifest.n_shards)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert run.stdout == "16\n", run.stderr
    assert Manifest.load(tmp_path / "s").shard(tmp_path / "s", 3).nbytes < 20e6
