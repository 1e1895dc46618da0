"""Makes an exact residual vanish: routing to the roots and absorption by multipliers there."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
import scipy.linalg as la

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.certificates._coordinates import FEWEST
from verify.certificates._exact_point import ExactPoint
from verify.certificates._forest import Forest, spanning_forest
from verify.instance import _integers as integers
from verify.kernel.numbers import whole

ATTEMPTS = 20  # to find blocks that can take a load and stay in their domains
ROOM = 4.0  # times all that may arrive, so that a block with ends is none that is filled by it
WELL = 1e-4  # condition of blocks that need no better ones; excludes multipliers at an end
MOST_EXACT = 320  # unknowns of a rational system: 300 take 14 s, and time grows with their cube
Load = list[int | Fraction]
BlockIndex = tuple[int, int]  # (term, number of the block: a data row, or a coordinate of a node)


class Absorber:
    """Routes and absorbs the residual of a dual point, component by component.

    Identity blocks (point, ridge, and whatever else has room in every coordinate) take what arrives
    at their node. Components without such a node have a single root, where a few blocks, data rows
    or single coordinates, take it through one rational solve.
    """

    def __init__(
        self, point: ExactPoint, slack: FloatArray, active: BoolArray, component: IntArray
    ) -> None:
        self.point, self.inst, self.component = point, point.inst, component
        self.slack, self.active = slack, active
        self.ease: FloatArray = np.zeros((self.inst.n, self.inst.d))
        self.some: IntArray = np.full((self.inst.n, self.inst.d), -1)
        self.block = self._blocks()
        self.absorbing: BoolArray = np.asarray(np.all(self.block >= 0, axis=1))

    @cached_property
    def roots(self) -> BoolArray:
        """Nodes (n,) to which residuals are routed."""
        return self._roots()

    @cached_property
    def forest(self) -> Forest:
        """The trees along which they are."""
        return spanning_forest(self.inst.edges, self.slack, self.active, self.roots, self.component)

    def run(self) -> None:
        """Make the residual of the point exactly zero."""
        if self.point.free:
            self._move_into_range()
        rho: list[Load] = self.point.residual().tolist()
        forest, u = self.forest, self.point.u
        for i in reversed(forest.order):
            e, row = forest.parent_edge[i], rho[i]
            if e >= 0:
                target, sign = rho[forest.parent[i]], forest.sign[i]
                for j, x in enumerate(row):
                    if x:
                        u[e, j] -= sign * x
                        target[j] += x
        for i in np.flatnonzero(self.roots).tolist():
            if any(rho[i]):
                self._absorb(i, [-x for x in rho[i]])

    def _blocks(self) -> IntArray:
        """Return (n, d) terms whose identity block absorbs residuals there, -1 where none does."""
        out = np.full((self.inst.n, self.inst.d), -1)
        for limited in (False, True):  # blocks with ends only where there are no others
            best, block = np.zeros(out.shape), np.full(out.shape, -1)
            for t, term in enumerate(self.inst.terms):
                if term.x is None and (term.domain is not None) == limited:
                    ease = np.zeros(out.shape)
                    ease[term.node] = self.point.curvature.ease[t]
                    easier = ease > best
                    best[easier], block[easier] = ease[easier], t
            # A vanishing ridge pays r^2 / (2 mu), and an l1 block at its end has no room.
            enough = best > (1e-6 if limited else 1e-12) * best.max(initial=0.0)
            if limited and (block >= 0).any():
                arriving = ROOM * self._arriving()
                enough &= best > arriving
                best = np.where(best > arriving, best, 0.0)
            better = best > self.ease
            self.ease[better], self.some[better] = best[better], block[better]
            out = np.where((out < 0) & enough, block, out)
        return out

    def _arriving(self) -> FloatArray:
        """Return per node the residuals of its component in each coordinate, (n, d)."""
        rho = np.abs(integers.to_floats(self.point.residual(), self.point.k))
        total = np.zeros((int(self.component.max(initial=-1)) + 1, self.inst.d))
        np.add.at(total, self.component, rho)
        return np.asarray(total[self.component])

    def _roots(self) -> BoolArray:
        """Return the roots: every absorbing node, else the best conditioned of a component."""
        roots = self.absorbing.copy()
        count = int(self.component.max(initial=-1)) + 1
        served = np.zeros(count, dtype=bool)
        served[self.component[roots]] = True
        order = np.argsort(self.score(), kind="stable")
        first = np.full(count, -1)
        first[self.component[order]] = order  # the last write is the best node
        roots[first[~served]] = True
        return roots

    def score(self) -> FloatArray:
        """Return how good a root each node is: above 2 if its rows alone can take any load."""
        eigenvalues = self.point.curvature.eigenvalues
        low, size = eigenvalues[:, 0], np.maximum(eigenvalues[:, -1], 0)
        top = max(size.max(initial=0.0), 1e-300)
        return np.where(low > 1e-6 * size, 2 + low / top, np.where(size > 0, 1 + size / top, 0))

    def _move_into_range(self) -> None:
        """Put sum_k B_k^T r_k of every node into the range of a singular Q.

        The flow stays in that range, so no edge can carry the rest away.
        """
        point = self.point
        image = point.image()
        for i in range(self.inst.n):
            defect: Load = [0] * self.inst.d
            for j, x in zip(point.free, point.defect(image[i]), strict=True):
                defect[j] = -x
            if not any(defect):
                continue
            if (self.block[i, point.free] >= 0).all():
                self._add_to_identity_blocks(i, defect)
                continue
            members = np.array([i])
            found = self._solve_stacked(i, members, [0] * self.inst.d, [], set())
            if found is not None:
                self._add(*found)
            if found is None or not all(self._is_recoverable(t, b) for t, b in found[0]):
                self._zero_multipliers(members)

    def _absorb(self, root: int, load: Load) -> None:
        """Let the identity blocks of the root or a few blocks of the component take a load."""
        if self.absorbing[root]:
            self._add_to_identity_blocks(root, load)
            return
        members = self.forest.members[self.component[root]]
        avoided: set[BlockIndex] = set()
        for _ in range(ATTEMPTS if self._solvable(members, load) else 0):
            if self.point.free:
                found = self._solve_stacked(root, members, load, self.point.pivots, avoided)
            else:
                found = self._solve(root, members, load, avoided)
            if found is None:
                break
            chosen, solution = found
            self._add(chosen, solution)
            if all(self._is_recoverable(t, b) for t, b in chosen):
                self._route_images(*self._images(chosen, solution))
                return
            crossed = [row for row in chosen if not self._is_recoverable(*row)]
            self._add(chosen, [-x for x in solution])
            for t, b in crossed:  # they end at zero, which is where they would have crossed
                image = [-x * self.point.r[t].flat[b] for x in self.point.vector(t, b)]
                self.point.r[t].flat[b] = 0
                self._route_to_root(self.point.node(t, b), image)
                load = [x - y for x, y in zip(load, image, strict=True)]
            avoided |= set(crossed)
        self._zero_component(members)

    def _solvable(self, members: IntArray, load: Load) -> bool:
        """Whether blocks of a component may take a load, in a time worth waiting for."""
        d = self.inst.d
        if d < FEWEST or self.point.free:
            return True
        count = sum(
            int(t.rows[members].sum()) * (1 if t.x is not None else d) for t in self.inst.terms
        )
        return d <= MOST_EXACT and count >= sum(1 for x in load if x)

    def _add_to_identity_blocks(self, node: int, load: Load) -> None:
        """Add a load to the multipliers of the identity blocks at a node."""
        for j, x in enumerate(load):
            if x:
                t = int(self.block[node, j])
                row = int(np.searchsorted(self.inst.terms[t].node, node))
                self.point.r[t][row, j] += x

    def _route_to_root(self, node: int, load: Load) -> None:
        """Route a load that appeared at a node to the root of its tree."""
        forest = self.forest
        while (e := forest.parent_edge[node]) >= 0:
            for j, x in enumerate(load):
                self.point.u[e, j] -= forest.sign[node] * x
            node = forest.parent[node]

    def _add(self, chosen: list[BlockIndex], solution: list[Fraction]) -> None:
        """Change the multipliers of blocks."""
        for (t, b), step in zip(chosen, solution, strict=True):
            self.point.r[t].flat[b] += step

    def _images(
        self, chosen: list[BlockIndex], solution: list[Fraction]
    ) -> tuple[int, dict[int, integers.Exact]]:
        """Return one denominator, and over it per node the image of the changes of its blocks."""
        common = lcm(*(x.denominator for x in solution))
        sums: dict[int, integers.Exact] = {}
        for (t, b), step in zip(chosen, solution, strict=True):
            image = self.point.vector(t, b) * (step.numerator * (common // step.denominator))
            node = self.point.node(t, b)
            sums[node] = sums[node] + image if node in sums else image
        return common, sums

    def _route_images(self, common: int, sums: dict[int, integers.Exact]) -> None:
        """Route loads over one denominator that appeared at nodes to the root of their tree."""
        for node, image in sums.items():
            self._route_to_root(node, [whole(Fraction(x, common)) for x in image])

    def _is_recoverable(self, t: int, b: int) -> bool:
        """Whether a multiplier is in its domain, or beyond an end that shrinking brings back."""
        found = self.inst.terms[t].domain
        return found is None or found.recoverable(self.point.r[t].flat[b], self.point.k_r(t), b)

    def _zero_component(self, members: IntArray) -> None:
        """Set flow and multipliers of a component to zero: every block at its own minimum.

        Separable logistic data leave nothing better: r = 0 is then the only feasible multiplier.
        """
        inside = self._zero_multipliers(members)
        self.point.u[inside[self.inst.edges[:, 0]]] = 0

    def _zero_multipliers(self, members: IntArray) -> BoolArray:
        """Set the multipliers of nodes to zero; returns their mask (n,)."""
        inside = np.zeros(self.inst.n, dtype=bool)
        inside[members] = True
        for t, term in enumerate(self.inst.terms):
            self.point.r[t][inside[term.node]] = 0
        return inside

    # --- a few blocks ------------------------------------------------------------------------

    def _solve(
        self, root: int, members: IntArray, load: Load, avoided: set[BlockIndex]
    ) -> tuple[list[BlockIndex], list[Fraction]] | None:
        """Find changes of the multipliers of a few blocks whose images add up to the load."""
        candidates = self._candidates(root, members, avoided)
        width = self.inst.d
        while True:
            chosen = candidates[:width]
            # X in units 2^-k_x and r in units 2^-(k - k_x): every product is in units 2^-k.
            columns = np.empty((self.inst.d, len(chosen)), dtype=object)
            for c, (t, b) in enumerate(chosen):
                columns[:, c] = self.point.vector(t, b)
            solution = integers.solve(columns, np.array(load, dtype=object))
            if solution is not None:
                return chosen, solution
            if width >= len(candidates):
                return None
            width *= 2

    def _solve_stacked(
        self, root: int, members: IntArray, load: Load, fixed: list[int], avoided: set[BlockIndex]
    ) -> tuple[list[BlockIndex], list[Fraction]] | None:
        """As `_solve` for a singular Q: every node's image stays in the range of Q.

        Equations: the load in the `fixed` coordinates, and per node the defect of its image in the
        free ones. Takes the first nodes of the component, as few as suffice.
        """
        order = [root, *(int(i) for i in members if i != root)]
        count = 1
        while True:
            nodes = np.array(order[:count])
            chosen = [row for row in self._blocks_at(nodes) if row not in avoided]
            columns, goal = self._stacked(nodes, chosen, load, fixed)
            scale = lcm(*(Fraction(g).denominator for g in goal))
            solution = integers.solve(columns, _as_ints(goal * scale))
            if solution is not None:
                return chosen, [x / scale for x in solution]
            if count >= len(order):
                return None
            count *= 2

    def _stacked(
        self, nodes: IntArray, chosen: list[BlockIndex], load: Load, fixed: list[int]
    ) -> tuple[integers.Exact, integers.Exact]:
        """Return the integer matrix and the right-hand side of `_solve_stacked`."""
        point = self.point
        first, width = len(fixed), len(point.free)
        common = lcm(*(a.denominator for row in point.lift for a in row))
        columns = np.zeros((first + len(nodes) * width, len(chosen)), dtype=object)
        goal = np.zeros(len(columns), dtype=object)
        goal[:first] = [load[j] for j in fixed]
        image = point.image()
        base = {int(i): first + p * width for p, i in enumerate(nodes)}
        for c, (t, b) in enumerate(chosen):
            x = point.vector(t, b)
            columns[:first, c] = x[fixed]
            start = base[point.node(t, b)]
            columns[start : start + width, c] = [v * common for v in point.defect(x)]
        for i, start in base.items():
            goal[start : start + width] = [-v * common for v in point.defect(image[i])]
        return _as_ints(columns), goal

    def _candidates(
        self, root: int, members: IntArray, avoided: set[BlockIndex]
    ) -> list[BlockIndex]:
        """Return blocks of the component that are not to be avoided, best pivots first.

        The blocks of the root if they span well; otherwise blocks near the root in the tree; in the
        end all blocks of the component.
        """
        found: list[BlockIndex] = []
        for nodes in (np.array([root]), members[: 20 * self.inst.d + 20], members):
            rows = [row for row in self._blocks_at(nodes) if row not in avoided]
            if not rows:
                continue
            _, order = la.qr(self._weighted(rows).T, mode="r", pivoting=True)
            found = [rows[i] for i in order]
            if len(found) >= self.inst.d:
                values = la.svdvals(self._weighted(found[: self.inst.d]))
                if values[-1] > WELL * values[0]:
                    break
        return found

    def _blocks_at(self, nodes: IntArray) -> list[BlockIndex]:
        """Return the blocks at nodes whose multipliers can change, the easiest first."""
        rows: list[BlockIndex] = []
        for t, term in enumerate(self.inst.terms):
            start = np.searchsorted(term.node, nodes)
            stop = np.searchsorted(term.node, nodes, side="right")
            width = 1 if term.x is not None else self.inst.d
            ranges = zip(start * width, stop * width, strict=True)
            rows += [(t, b) for first, last in ranges for b in range(first, last)]
        ease = np.array([self.point.curvature.ease[t].flat[b] for t, b in rows])
        return [rows[i] for i in np.argsort(-ease, kind="stable") if ease[i] > 0]

    def _weighted(self, rows: list[BlockIndex]) -> FloatArray:
        """Return the blocks times the square roots of their eases: cheap pivots are large."""
        out = np.zeros((len(rows), self.inst.d))
        for p, (t, b) in enumerate(rows):
            x, weight = self.inst.terms[t].x, np.sqrt(self.point.curvature.ease[t].flat[b])
            if x is None:
                out[p, b % self.inst.d] = weight
            else:
                out[p] = weight * x[b]
        return out / self.inst.units


def _as_ints(a: integers.Exact) -> integers.Exact:
    """Return integral Fractions as ints."""
    return np.array([int(x) for x in a.ravel()], dtype=object).reshape(a.shape)
