"""Makes an exact residual vanish: routing to the roots and absorption by multipliers there."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from verify import _integers as integers
from verify._data import Floats, Ints
from verify._forest import Forest, spanning_forest
from verify._state import State
from verify._terms import L1Term, LogisticTerm, RowTerm
from verify.kernel_numbers import whole

Load = list[int | Fraction]
Row = tuple[int, int]  # (term, index of the data row)


class NoWitness(Exception):
    """No exact witness was found; says why."""


class Absorber:
    """Routes and absorbs the residual of a state, component by component.

    Identity blocks (point, ridge) take what arrives at their node.  Components without one have a
    single root, where a few data rows take it through one rational solve, or an l1 block.
    """

    def __init__(
        self, state: State, slack: Floats, active: NDArray[np.bool_], component: Ints
    ) -> None:
        self.state, self.inst, self.component = state, state.inst, component
        self.block = self._blocks()
        self.roots = self._roots()
        self.forest: Forest = spanning_forest(self.inst.edges, slack, active, self.roots, component)

    def run(self) -> None:
        """Make the residual of the state exactly zero."""
        if self.state.free:
            self._settle_free_coordinates()
        rho: list[Load] = self.state.residual().tolist()
        forest, u = self.forest, self.state.u
        for i in reversed(forest.order):
            e, row = forest.link[i], rho[i]
            if e >= 0:
                target, sign = rho[forest.parent[i]], forest.sign[i]
                for j, x in enumerate(row):
                    if x:
                        u[e, j] -= sign * x
                        target[j] += x
        for i in np.flatnonzero(self.roots).tolist():
            if any(rho[i]):
                self._absorb(i, [-x for x in rho[i]])

    def _blocks(self) -> Ints:
        """Return per node the term whose identity block absorbs residuals, -1 where none does."""
        best = np.zeros(self.inst.n)
        block = np.full(self.inst.n, -1)
        for t, term in enumerate(self.inst.terms):
            if not isinstance(term, RowTerm | L1Term):
                curvature = self.state.curvature[t]
                stronger = curvature > best[term.node]
                best[term.node[stronger]] = curvature[stronger]
                block[term.node[stronger]] = t
        # A vanishing ridge pays r^2 / (2 mu): leave it to others unless it is alone.
        return np.where(best > 1e-12 * best.max(initial=0.0), block, -1)

    def _roots(self) -> NDArray[np.bool_]:
        """Return the roots: every absorbing node, else the best conditioned of a component."""
        roots = self.block >= 0
        count = int(self.component.max(initial=-1)) + 1
        served = np.zeros(count, dtype=bool)
        served[self.component[roots]] = True
        eigenvalues = self.state.eigenvalues
        low, size = eigenvalues[:, 0], np.maximum(eigenvalues[:, -1], 0)
        top = max(size.max(initial=0.0), 1e-300)
        score = np.where(low > 1e-6 * size, 2 + low / top, np.where(size > 0, 1 + size / top, 0))
        order = np.argsort(score, kind="stable")
        first = np.full(count, -1)
        first[self.component[order]] = order  # the last write is the best node
        roots[first[~served]] = True
        return roots

    def _settle_free_coordinates(self) -> None:
        """Put sum_k B_k^T r_k of every node into the range of a singular Q.

        The flow stays in that range, so no edge can carry the rest away.
        """
        state = self.state
        image = state.image()
        for i in range(self.inst.n):
            defect: Load = [0] * self.inst.d
            for j, x in zip(state.free, state.defect(image[i]), strict=True):
                defect[j] = -x
            if not any(defect):
                continue
            block = int(self.block[i])
            if block < 0:
                members = np.array([i])
                found = self._slackest_l1(members)
                if found is None or len(self._rows_at(members)) > 0:
                    chosen, solution = self._solve_stacked(i, members, [0] * self.inst.d, [])
                    self._add(chosen, solution)
                    if not all(self._in_domain(t, row) for t, row in chosen):
                        self._clear(members)
                    continue
                block = found[0]
            self._change(block, i, defect)

    def _absorb(self, root: int, load: Load) -> None:
        """Let the identity block of the root, an l1 block or data rows take a load."""
        if self.block[root] >= 0:
            self._change(int(self.block[root]), root, load)
            return
        members = self.forest.members[self.component[root]]
        rank = np.linalg.matrix_rank(self.state.hessian[members].sum(axis=0), hermitian=True)
        if rank < self.inst.d and (found := self._slackest_l1(members)):
            self._change(*found, load)
            self._carry(found[1], load)
            return
        if self.state.free:
            chosen, solution = self._solve_stacked(root, members, load, self.state.pivots)
        else:
            chosen, solution = self._solve_in_rows(root, members, load)
        self._add(chosen, solution)
        for node, image in self._images(chosen, solution).items():
            self._carry(node, image)
        if not all(self._in_domain(t, i) for t, i in chosen):
            self._give_up(members)

    def _change(self, t: int, node: int, load: Load) -> None:
        """Add a load to the multiplier of the identity block of term t at a node."""
        row = int(np.searchsorted(self.inst.terms[t].node, node))
        self.state.r[t][row] = self.state.r[t][row] + np.array(load, dtype=object)

    def _carry(self, node: int, load: Load) -> None:
        """Route a load that appeared at a node to the root of its tree."""
        forest = self.forest
        while (e := forest.link[node]) >= 0:
            for j, x in enumerate(load):
                self.state.u[e, j] -= forest.sign[node] * x
            node = forest.parent[node]

    def _add(self, chosen: list[Row], solution: list[Fraction]) -> None:
        """Change the multipliers of data rows."""
        for (t, i), step in zip(chosen, solution, strict=True):
            self.state.r[t][i] += step

    def _images(self, chosen: list[Row], solution: list[Fraction]) -> dict[int, Load]:
        """Return per node the image of the changes of its rows, summed over one denominator."""
        common = lcm(*(x.denominator for x in solution))
        sums: dict[int, integers.Exact] = {}
        for (t, i), step in zip(chosen, solution, strict=True):
            image = self.state.row(t, i) * int(step * common)
            node = int(self.inst.terms[t].node[i])
            sums[node] = sums[node] + image if node in sums else image
        return {i: [whole(Fraction(x, common)) for x in v] for i, v in sums.items()}

    def _in_domain(self, t: int, i: int) -> bool:
        term = self.inst.terms[t]
        if not isinstance(term, LogisticTerm):
            return True
        one = 1 << self.state.k_r(t)
        p = self.state.r[t][i] * int(term.m[i]) + int(term.y[i]) * one
        return bool(0 <= p <= one)

    def _give_up(self, members: Ints) -> None:
        """Set flow and multipliers of a component to zero: feasible, and its bound is zero.

        Separable logistic data leave nothing better: r = 0 is then the only feasible multiplier.
        """
        inside = self._clear(members)
        self.state.u[inside[self.inst.edges[:, 0]]] = 0

    def _clear(self, members: Ints) -> NDArray[np.bool_]:
        """Set the multipliers of nodes to zero; returns their mask (n,)."""
        inside = np.zeros(self.inst.n, dtype=bool)
        inside[members] = True
        for t, term in enumerate(self.inst.terms):
            self.state.r[t][inside[term.node]] = 0
        return inside

    def _slackest_l1(self, members: Ints) -> Row | None:
        """Return (term, node) of the l1 block with most slack among the nodes, if there is one."""
        best: tuple[float, int, int] | None = None
        for t, term in enumerate(self.inst.terms):
            if isinstance(term, L1Term):
                inside = np.flatnonzero(np.isin(term.node, members))
                r = integers.to_floats(self.state.r[t][inside], self.state.k_r(t))
                slack = term.kappa[inside] - np.abs(r).max(axis=1)
                if len(inside) and (best is None or slack.max() > best[0]):
                    row = inside[int(np.argmax(slack))]
                    best = (float(slack.max()), t, int(term.node[row]))
        return best and best[1:]

    # --- data rows ---------------------------------------------------------------------------

    def _solve_in_rows(
        self, root: int, members: Ints, load: Load
    ) -> tuple[list[Row], list[Fraction]]:
        """Find changes of the multipliers of a few data rows whose images add up to the load."""
        candidates = self._candidates(root, members)
        width = self.inst.d
        while True:
            chosen = candidates[:width]
            # X in units 2^-k_x and r in units 2^-(k - k_x): every product is in units 2^-k.
            columns = np.empty((self.inst.d, len(chosen)), dtype=object)
            for c, (t, i) in enumerate(chosen):
                columns[:, c] = self.state.row(t, i)
            solution = integers.solve(columns, np.array(load, dtype=object))
            if solution is not None:
                return chosen, solution
            if width >= len(candidates):
                raise NoWitness(f"the component of node {root} cannot absorb its residual")
            width *= 2

    def _solve_stacked(
        self, root: int, members: Ints, load: Load, fixed: list[int]
    ) -> tuple[list[Row], list[Fraction]]:
        """As `_solve_in_rows` for a singular Q: every node's image stays in the range of Q.

        Equations: the load in the `fixed` coordinates, and per node the defect of its image in the
        free ones.  Takes the first nodes of the component, as few as suffice.
        """
        order = [root, *(int(i) for i in members if i != root)]
        count = 1
        while True:
            nodes = np.array(order[:count])
            chosen = self._rows_at(nodes)
            columns, goal = self._stacked(nodes, chosen, load, fixed)
            scale = lcm(*(Fraction(g).denominator for g in goal))
            solution = integers.solve(columns, _whole(goal * scale))
            if solution is not None:
                return chosen, [x / scale for x in solution]
            if count >= len(order):
                raise NoWitness(f"the component of node {root} cannot absorb its residual")
            count *= 2

    def _stacked(
        self, nodes: Ints, chosen: list[Row], load: Load, fixed: list[int]
    ) -> tuple[integers.Exact, integers.Exact]:
        """Return the integer matrix and the right-hand side of `_solve_stacked`."""
        state = self.state
        first, width = len(fixed), len(state.free)
        common = lcm(*(a.denominator for row in state.lift for a in row))
        columns = np.zeros((first + len(nodes) * width, len(chosen)), dtype=object)
        goal = np.zeros(len(columns), dtype=object)
        goal[:first] = [load[j] for j in fixed]
        image = state.image()
        base = {int(i): first + p * width for p, i in enumerate(nodes)}
        for c, (t, i) in enumerate(chosen):
            x = state.row(t, i)
            columns[:first, c] = x[fixed]
            start = base[int(self.inst.terms[t].node[i])]
            columns[start : start + width, c] = [v * common for v in state.defect(x)]
        for i, start in base.items():
            goal[start : start + width] = [-v * common for v in state.defect(image[i])]
        return _whole(columns), goal

    def _candidates(self, root: int, members: Ints) -> list[Row]:
        """Return data rows of the component, best pivots first.

        The rows of the root if they span well; otherwise rows near the root in the tree; in the
        end all rows of the component.
        """
        found: list[Row] = []
        for nodes in (np.array([root]), members[: 20 * self.inst.d + 20], members):
            rows = self._rows_at(nodes)
            if not rows:
                continue
            _, order = la.qr(self._weighted(rows).T, mode="r", pivoting=True)
            found = [rows[i] for i in order]
            if len(found) >= self.inst.d:
                values = la.svdvals(self._weighted(found[: self.inst.d]))
                if values[-1] > 1e-7 * values[0]:
                    break
        return found

    def _rows_at(self, nodes: Ints) -> list[Row]:
        rows: list[Row] = []
        for t, term in enumerate(self.inst.terms):
            if isinstance(term, RowTerm):
                start = np.searchsorted(term.node, nodes)
                stop = np.searchsorted(term.node, nodes, side="right")
                rows += [(t, i) for a, b in zip(start, stop, strict=True) for i in range(a, b)]
        return rows

    def _weighted(self, rows: list[Row]) -> Floats:
        """Return the rows times the square roots of their curvatures: cheap pivots are large."""
        out = np.empty((len(rows), self.inst.d))
        for p, (t, i) in enumerate(rows):
            term = self.inst.terms[t]
            assert isinstance(term, RowTerm)
            out[p] = np.sqrt(self.state.curvature[t][i]) * term.x[i]
        return out


def _whole(a: integers.Exact) -> integers.Exact:
    """Return integral Fractions as ints."""
    return np.array([int(x) for x in a.ravel()], dtype=object).reshape(a.shape)
