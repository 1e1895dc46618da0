"""What workers do in the tests: functions of a module, since they go to other processes."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from gtvcvx._deadline import now, until
from gtvcvx.distributed import _solve
from gtvcvx.distributed._alone import LONG, alone
from gtvcvx.distributed._gathered import gathered_problem
from gtvcvx.distributed._iteration import ShardedPrimalDual
from gtvcvx.distributed._parts import Parts
from verify._deadline import passed


def copies_and_sums(fabric, folder):
    """Return, at rank 0, refreshed arrays of all shards and sums over them."""
    parts = Parts.load(fabric, folder)
    with parts.running():
        nodes, edges, found = [], [], []
        for part in parts:
            # What nobody but the owner can know: the numbers of nodes and ends, with their shard.
            ends = part.shard.nodes[part.shard.edges]
            number = float(part.number)
            node = np.column_stack([part.shard.nodes, np.full(len(part.own), number)])
            edge = np.column_stack([ends, np.full(len(ends), number)]).astype(float)
            node = node.astype(float)
            node[part.ghosts] = np.nan
            edge[~part.counted] = np.nan
            nodes.append(node)
            edges.append(edge)
        parts.refresh(nodes)
        parts.refresh_edges(edges)
        rng = np.random.default_rng(7)
        noise = rng.normal(size=parts.n_nodes)
        some = [noise[part.shard.nodes] for part in parts]
        found.append(parts.add_nodes(some))
        found.append(parts.add_edges([np.ones(len(p.counted)) for p in parts]))
        found.extend(parts.most([[p.number, -p.number] for p in parts]))
        told = parts.broadcast([np.arange(3)] if fabric.rank == 0 else None)
        found.append(float(told[0].sum()))
        gathered = parts.gather([a for pair in zip(nodes, edges, strict=True) for a in pair])
    return (gathered, np.array(found)) if fabric.rank == 0 else None


def gathered(parts, arrays, places):
    """Return rows of arrays, one (k, q) a part, in the whole problem's order, at rank 0."""
    found = parts.gather([a for pair in zip(places, arrays, strict=True) for a in pair])
    if found is None:
        return None
    rows = np.empty((sum(len(at) for at in found[::2]), found[1].shape[1]))
    for at, some in zip(found[::2], found[1::2], strict=True):
        rows[at] = some
    return rows


def pair_of(parts, w, u, edges):
    """Return point and flow of the whole problem at rank 0, whose edges (m, 2) are given."""
    n = parts.n_nodes
    order = edges[:, 0] * n + edges[:, 1]
    nodes = [part.shard.nodes[part.own] for part in parts]
    ends = [part.shard.nodes[part.shard.edges[part.counted]] for part in parts]
    places = [np.searchsorted(order, pair[:, 0] * n + pair[:, 1]) for pair in ends]
    point = gathered(parts, [a[p.own] for p, a in zip(parts, w, strict=True)], nodes)
    flow = gathered(parts, [a[p.counted] for p, a in zip(parts, u, strict=True)], places)
    return point, flow


def iterations(fabric, argument):
    """Iterate; return point, flow and facts at rank 0."""
    folder, edges, count = argument
    parts = Parts.load(fabric, folder)
    with parts.running():
        method = ShardedPrimalDual(parts)
        method.run(count)
        w, u = pair_of(parts, method.w, method.u, edges)
        # Both copies of the flow of a cut edge are the same.
        flows = method.u
        before = [flow.copy() for flow in flows]
        parts.refresh_edges(flows)
        differ = parts.add([np.sum(a != b) for a, b in zip(flows, before, strict=True)])
    facts = {"n_iter": method.n_iter, "weight": method.weight, "moved": method.residual()}
    return w, u, facts, float(differ)


def killed(fabric, given):
    """Do a worker's share of a solve; one of them is killed at an iteration, the first time."""
    folder, rank, n_iter, order = given
    mark, original = Path(folder) / "killed", ShardedPrimalDual._restart

    def begun(method):
        if fabric.rank == 0:
            with (Path(folder) / "starts").open("a") as file:
                file.write(f"{method.n_iter}\n")

    def restart(method):
        if fabric.rank == rank and method.n_iter >= n_iter and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        original(method)

    run, known = ShardedPrimalDual.run, []

    def noted(method, steps):
        if method not in known:
            known.append(method)
            begun(method)
        run(method, steps)

    ShardedPrimalDual._restart, ShardedPrimalDual.run = restart, noted
    try:
        return _solve.work(fabric, order)
    finally:
        # Inherited ones are to be seen again, whatever they are by then.
        del ShardedPrimalDual._restart, ShardedPrimalDual.run


def whole(fabric, folder):
    """Gather a problem, and return it at rank 0."""
    found = gathered_problem(Parts.load(fabric, folder))
    return None if found is None else found.problem


def long_work(fabric, given):
    """Let rank 0 work for some seconds; return what all hear of it."""
    folder, seconds = given
    parts = Parts.load(fabric, folder)

    def work():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.05)
            now()
        return [np.arange(3.0), np.array(7)]

    with parts.running():
        array, number = alone(parts, work)
        heard = parts.add([array * int(number) for _ in parts])
    return heard / parts.manifest.n_shards


def interrupted_work(fabric, folder):
    """Press Ctrl-C while rank 0 works; return what comes of it, and how many have heard of it."""
    parts, heard, begun = Parts.load(fabric, folder), 0.0, time.monotonic()

    def work():
        with until(now() + LONG):
            os.kill(os.getpid(), signal.SIGINT)
            while not passed() and time.monotonic() < begun + 60.0:
                time.sleep(0.01)
        return [np.array(time.monotonic() - begun)]

    with parts.running():
        (seconds,) = alone(parts, work)
        assert not alone(parts, work)  # it was pressed, and nobody has heard of it
        try:
            parts.add([0.0 for _ in parts])
        except KeyboardInterrupt:
            heard = 1.0
        return float(seconds), float(parts.add([heard for _ in parts]))


def starts(folder):
    """Return the iterations at which attempts began."""
    return [int(line) for line in (Path(folder) / "starts").read_text().split()]
