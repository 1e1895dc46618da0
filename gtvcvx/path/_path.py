"""Solutions for many values of lambda, and what becomes of the clusters between them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, is_integer
from gtvcvx._deadline import now, seconds_until
from gtvcvx.files import _storage
from gtvcvx.path._clusterings import Clusterings, Ended, Refinement, checked_range
from gtvcvx.path._events import ClusterChange, cluster_changes
from gtvcvx.path._foresight import Foresight
from gtvcvx.path._interpolation import Between, interpolated, nearest
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution
from gtvcvx.solvers.driver._options import check_positive
from verify._display import aligned, few, fitted, html_block, html_curve, html_table
from verify._interrupts import noticed

SCHEMA = "gtv-path/1"
# Fields of a solution that are the same all along a path.
_SHARED = ("edges", "nodes")
_HEADER = ("lambda", "clusters", "value", "relative gap", "status")


@dataclass(frozen=True)
class LambdaPath:
    """Solutions for decreasing values of lambda, each with a valid gap.

    ``len(path)``, ``path[i]`` (a `Solution`) and iteration go through the solutions.

    Attributes
    ----------
    lams : ndarray, shape (k,)
        Values of lambda, decreasing.
    solutions : list of Solution
    missing : ndarray
        Values of lambda that were asked for but not reached.
    status : {"complete", "time_limit", "callback", "interrupted"}
        What ended the path; unless it is complete, its last solution may have been cut short.
    problem : GTVProblem or None
        What was solved, for `at`; files do not hold it.
    """

    lams: FloatArray
    solutions: list[Solution]
    missing: FloatArray
    status: str = "complete"
    problem: GTVProblem | None = field(default=None, repr=False, compare=False)

    @property
    def w(self) -> FloatArray:
        """Parameter vectors, shape (k, n, d)."""
        return np.stack([solution.w for solution in self.solutions])

    @property
    def values(self) -> FloatArray:
        """Objective P(w), shape (k,)."""
        return np.array([solution.value for solution in self.solutions])

    @property
    def gaps(self) -> FloatArray:
        """Duality gaps, shape (k,)."""
        return np.array([solution.gap for solution in self.solutions])

    @property
    def rel_gaps(self) -> FloatArray:
        """Gaps relative to max(1, abs(value)), shape (k,)."""
        return np.array([solution.rel_gap for solution in self.solutions])

    @property
    def statuses(self) -> list[str]:
        """Status of each solution."""
        return [solution.status for solution in self.solutions]

    @property
    def seconds(self) -> FloatArray:
        """Time that each solution took, shape (k,)."""
        return np.array([solution.seconds for solution in self.solutions])

    @cached_property
    def labels(self) -> IntArray:
        """Clusters at each lambda, shape (k, n); see `Solution.clusters`."""
        return np.stack([self._partition(solution) for solution in self.solutions])

    @property
    def n_clusters(self) -> IntArray:
        """Number of clusters at each lambda, shape (k,)."""
        return self.labels.max(axis=1) + 1

    def clusters(self, k: int) -> IntArray:
        """Labels (n,) of the solution with k clusters, counted as by `Solution.clusters`.

        Parameters
        ----------
        k : int
            At least 1.

        Returns
        -------
        ndarray, shape (n,)
            Labels from 0. Several solutions may have k clusters: those of the largest lambda. If
            none has, the labels are those of the solution whose number of clusters is nearest to
            k, the smaller one of two; ``labels.max() + 1`` says which number it is. More values of
            lambda between the two solutions around k may have k clusters; but along a path, even
            a complete one, some numbers of clusters never occur.

        Raises
        ------
        ValueError
            k is not a positive integer, or the path is empty.
        """
        if not is_integer(k) or k < 1:
            raise ValueError(f"k: a positive integer is expected, got {k!r}")
        if not len(self):
            raise ValueError("the path is empty: there are no clusters")
        labels: IntArray = self.labels[nearest(self.n_clusters, k)]
        return labels

    def clusterings(
        self,
        first: int,
        last: int,
        *,
        rtol: float = 1e-6,
        finest: float = 1.0001,
        time_limit: float | None = None,
        problem: GTVProblem | None = None,
        **options: Any,
    ) -> Clusterings:
        """Partitions with each number of clusters in a range, where there are such.

        The path's values of lambda are refined by bisection where a number is passed by, and go on
        beyond its ends where these do not reach the range; the path itself stays as it is.

        Parameters
        ----------
        first, last : int
            Smallest and largest number of clusters.
        rtol : float
            Tolerance of each solve.
        finest : float
            Neighbouring values of lambda are not brought closer together than this ratio.
        time_limit : float, optional
            Seconds for all solves together. After them, and at Ctrl-C, what was found is returned.
        problem : GTVProblem, optional
            What the path was computed for; needed where it was read from a file.
        **options
            Of `GTVProblem.solve`.

        Returns
        -------
        Clusterings
            ``labels`` and ``lams`` by the number of clusters, the numbers that are missing, and
            ``status``.

        Raises
        ------
        ValueError
            The range or ``finest`` is none, the path is empty, or there is no problem, or no time.
        TypeError
            ``time_limit`` is no number.
        """
        checked_range(first, last, finest)
        check_positive("time_limit", time_limit)
        end = math.inf if time_limit is None else now() + time_limit
        if not len(self):
            raise ValueError("the path is empty: there are no clusters")
        model = self._problem(problem)
        chosen: dict[str, Any] = {"verbose": False, "rtol": rtol} | options

        def left() -> float | None:
            if pressed:
                raise Ended("interrupted")
            if now() >= end:
                raise Ended("time_limit")
            return seconds_until(end)

        def solve(lam: float, start: Solution) -> Solution:
            return model.with_lam(lam).solve(warm_start=start, time_limit=left(), **chosen)

        def foresee(solution: Solution, labels: IntArray) -> Foresight | None:
            return Foresight.of(model, solution, labels, rtol)

        with noticed() as pressed:
            return Refinement(
                self.lams.tolist(),
                list(self.solutions),
                list(self.labels),
                solve,
                self._partition,
                int(model.graph.components.max()) + 1,
                None if options else foresee,
                left,
            ).between(first, last, finest)

    def _partition(self, solution: Solution) -> IntArray:
        return solution.clusters()

    def at(
        self,
        lam: float,
        *,
        polish: bool = False,
        rtol: float = 1e-6,
        problem: GTVProblem | None = None,
        **options: Any,
    ) -> Solution:
        """Solution for a value of lambda within the path, from its neighbours, with a valid gap.

        Parameters
        ----------
        lam : float
            Between the smallest and the largest lambda of the path.
        polish : bool
            Solve from the interpolated pair, to rtol. Otherwise it is returned with the gap that
            it has, unless it is a solution of the path itself.
        rtol : float
            Tolerance of a polished solution, and what decides about the status of others.
        problem : GTVProblem, optional
            What the path was computed for; needed where it was read from a file.
        **options
            Of `GTVProblem.solve`, with ``polish``.

        Returns
        -------
        Solution
            Of the path, by ``"interpolation"`` (status "optimal" if its relative gap is within
            rtol, else "optimal_inaccurate"), or by the solver.

        Raises
        ------
        ValueError
            lam is outside the path, or there is no problem, or one of another shape.
        """
        found = self._interpolated(lam, rtol, problem)
        if not polish or found.rel_gap <= rtol:
            return found
        model = self._problem(problem).with_lam(lam)
        chosen: dict[str, Any] = {"warm_start": found, "verbose": False} | options
        return model.solve(rtol=rtol, **chosen)

    def _interpolated(self, lam: float, rtol: float, problem: GTVProblem | None) -> Solution:
        if not (len(self) and self.lams[-1] <= lam <= self.lams[0]):
            reach = f"{self.lams[-1]:g} to {self.lams[0]:g}" if len(self) else "nothing"
            raise ValueError(f"lam: a value within the path, {reach}, is expected, got {lam!r}")
        i = int(np.searchsorted(-self.lams, -lam))  # the first value not above lam
        if self.lams[i] == lam:
            return self.solutions[i]
        between = Between(
            *(float(self.lams[i - 1]), self.solutions[i - 1]),
            *(float(self.lams[i]), self.solutions[i]),
        )
        return interpolated(self._problem(problem).with_lam(lam), between, rtol)

    def _problem(self, given: GTVProblem | None) -> GTVProblem:
        """Return the problem, checked if it is given."""
        problem = self.problem if given is None else given
        if problem is None:
            raise ValueError("problem: a path from a file does not hold it; give it")
        problem.checked_w(self.solutions[0].w, "path")
        problem.checked_u(self.solutions[0].u, "path")
        return problem

    @cached_property
    def changes(self) -> list[ClusterChange]:
        """What happens to the clusters as lambda grows, from the smallest to the largest."""
        found = []
        for i in range(len(self) - 1, 0, -1):
            found += cluster_changes(
                self.labels[i], self.labels[i - 1], float(self.lams[i]), float(self.lams[i - 1])
            )
        return found

    @property
    def nested(self) -> bool:
        """Whether clusters only merge as lambda grows, so that they form a tree."""
        return all(change.kind == "merge" for change in self.changes)

    def _title(self) -> str:
        text = f"LambdaPath: {len(self)} of {len(self) + len(self.missing)} values, {self.status}"
        return text if len(self) else f"{text}, empty"

    def _rows(self) -> list[list[str] | None]:
        """Return the first and the last values of lambda, and what was found for them."""
        found: list[list[str] | None] = []
        for i in few(len(self)):
            if i is None:
                found.append(None)
                continue
            solution = self.solutions[i]
            n_clusters = int(solution.clusters().max()) + 1
            found.append(
                [
                    f"{self.lams[i]:.6g}",
                    str(n_clusters),
                    f"{solution.value:.9g}",
                    f"{solution.rel_gap:.2g}",
                    solution.status,
                ]
            )
        return found

    def __repr__(self) -> str:
        return fitted([self._title(), *aligned(_HEADER, self._rows())])

    def _repr_html_(self) -> str:
        """Show the first and the last values of lambda, and the number of clusters along all."""
        picture = html_curve(
            "Number of clusters over the logarithm of lambda",
            np.log(self.lams).tolist(),
            self.n_clusters.astype(float).tolist() if len(self) else [],
        )
        return html_block(self._title(), html_table(_HEADER, self._rows()), picture)

    def __len__(self) -> int:
        return len(self.solutions)

    def __getitem__(self, i: int) -> Solution:
        return self.solutions[i]

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.solutions)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the path to an npz file of arrays and one JSON text, atomically.

        Raises
        ------
        TypeError
            A node label is neither a string nor an integer.
        """
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "lams": self.lams,
            "missing": self.missing,
            "path_status": self.status,
        }
        for item in fields(Solution):
            column = [getattr(solution, item.name) for solution in self.solutions]
            if item.name in _SHARED:
                data[item.name] = column[0] if item.name == "edges" else list(column[0])
            elif isinstance(column[0], np.ndarray):
                data[item.name] = np.stack(column)
            elif item.name == "history":
                data[item.name] = [[list(astuple(r)) for r in history] for history in column]
            else:
                data[item.name] = column
        _storage.save(path, data)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> LambdaPath:
        """Read a path that `save` wrote."""
        data = _storage.load(path, SCHEMA)
        try:
            data["history"] = [[Record(*r) for r in history] for history in data["history"]]
            count = len(data["lams"])
            solutions = [
                Solution(
                    **{
                        item.name: data[item.name] if item.name in _SHARED else data[item.name][i]
                        for item in fields(Solution)
                    }
                )
                for i in range(count)
            ]
            return LambdaPath(data["lams"], solutions, data["missing"], data["path_status"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: not a complete path ({error})") from error
