"""What losses of one kind at many nodes must offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp
from gtvcvx.conic._function import CvxpyFunction
from gtvcvx.losses.batched._doubt import Doubt

if TYPE_CHECKING:
    import scipy.sparse as sp

# Along singular directions of X_i below this share of the largest, L_i* is too ill conditioned to
# be evaluated: flow is conserved there, as if X_i had no such direction. That shrinks the set of
# dual points that are used. The data along these directions still count in the least value of
# L_i, unless the singular value is zero up to rounding; or bounds would come out too high.
FLOW_TOLERANCE = 1e-10


class AffineProx(NamedTuple):
    """The proximal operator of a quadratic loss, ``prox(v)_i = matrix_i v_i + offset_i``.

    Attributes
    ----------
    matrix : ndarray, shape (k, d, d)
        In places that say so (k, d), the diagonals.
    offset : ndarray, shape (k, d)
    """

    matrix: FloatArray
    offset: FloatArray


class QuadraticForm(NamedTuple):
    """Quadratic losses, ``L_i(w) = (1/2) w^T hessian_i w - linear_i^T w`` plus a constant.

    Attributes
    ----------
    hessian : ndarray, shape (k, d, d)
    linear : ndarray, shape (k, d)
    """

    hessian: FloatArray
    linear: FloatArray


class ScalarForm(NamedTuple):
    """Quadratic losses that are sums over the coordinates, their Hessians diagonal.

    Both are zero where a node has no data for a coordinate.

    Attributes
    ----------
    curvature : ndarray, shape (k, d)
        Diagonals of the Hessians, >= 0.
    linear : ndarray, shape (k, d)
    """

    curvature: FloatArray
    linear: FloatArray


class ThinForm(NamedTuple):
    """Quadratic losses whose Hessians are diagonal matrices and few rows.

    ``L_i(w) = (1/2) sum_j diagonal_ij w_j^2 - own_i^T w + (1/2) sum_r (x_r^T w - y_r)^2``, up to
    constants, over the rows ``indptr[i] .. indptr[i + 1] - 1``.

    Attributes
    ----------
    diagonal : ndarray, shape (k, d)
        >= 0.
    own : ndarray, shape (k, d)
        Linear terms that are not the rows'.
    rows : ndarray, shape (N, d)
    targets : ndarray, shape (N,)
    indptr : ndarray of int, shape (k + 1,)
    """

    diagonal: FloatArray
    own: FloatArray
    rows: FloatArray
    targets: FloatArray
    indptr: IntArray


class RangeRows(NamedTuple):
    """Orthonormal bases of the directions in which conjugates have room.

    Attributes
    ----------
    rows : ndarray, shape (N, d)
        Those of node i are ``indptr[i] .. indptr[i + 1] - 1``.
    indptr : ndarray of int, shape (k + 1,)
    """

    rows: FloatArray
    indptr: IntArray


class DualDomain(NamedTuple):
    """Where the conjugates of k losses are finite, beyond what a subspace says.

    ``dom L_i* = {s : T_i s = sum_q b_q g_q, low_q <= b_q <= high_q}`` up to its boundary, the sum
    over the generators g_q that node i owns. Zero is in it, as losses are bounded below.

    Attributes
    ----------
    projector : ndarray, shape (k, d, d) or (k, d), or RangeRows, or float
        T_i: off the directions in which s_i is free. Diagonals where all are diagonal, and large;
        bases of the free directions where these are few.
    owner : ndarray of int, shape (Q,)
        Node of each generator.
    vectors : ndarray, or sparse array in rows, shape (Q, d)
        g_q = T_i g_q, nonzero. Sparse ones, most of which are coordinates, have still to be
        projected: T_i g_q is what is meant.
    low, high : ndarray, shape (Q,)
    scale : ndarray, shape (Q,)
        Length of the interval, or what is typical where it is infinite.
    squares : ndarray, shape (Q,), optional
        Squared lengths of the projected generators, where these are sparse.
    """

    projector: FloatArray | RangeRows | float
    owner: IntArray
    vectors: FloatArray | sp.csr_array
    low: FloatArray
    high: FloatArray
    scale: FloatArray
    squares: FloatArray | None = None


class BatchedLoss(ABC):
    """Convex losses L_1, ..., L_k of one kind at k nodes; all operations run over the batch.

    Arrays ``w``, ``s``, ``v`` have shape (k, d), one row a node; results per node have shape (k,).
    The solvers, the dual bounds and the CVXPY models need nothing else of a loss.
    """

    dim: int  # d
    #: Whether all losses are zero, so that the nodes have no data.
    trivial: bool = False
    #: Whether all losses are quadratic: `quadratic` and `affine_prox` are not None.
    is_quadratic: bool = False
    #: Whether there are quadratic models: `model` is not None, and `rise` is accurate.
    modelled: bool = False
    #: Whether values and gaps take residuals from sums in twice the precision.
    precise: bool = False

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether every L_i is finite and has a gradient everywhere."""

    def quadratic(self) -> QuadraticForm | None:
        """Return the Hessians and the linear terms, or None where a loss is not quadratic."""
        return None

    def total_hessian(self) -> FloatArray | None:
        """Return the sum of the Hessians (d, d), or None where a loss is not quadratic."""
        return None

    def in_basis(self, basis: FloatArray) -> BatchedLoss | None:
        """Return quadratic losses as functions of x, w = basis x for an orthogonal basis (d, d).

        None where a loss is not quadratic. Hessians that are formed in a basis of their
        eigenvectors keep small eigenvalues beside large ones, which rotating them would not.
        """
        return None

    def scalar(self) -> ScalarForm | None:
        """Return the losses as quadratics of single coordinates, or None where they are not.

        Hessians must be diagonal to the last bit: what is solved for each coordinate by itself is
        then the problem that was given, and not one nearby.
        """
        return None

    @property
    def n_thin_rows(self) -> int | None:
        """Number of rows of the `thin` form, from above; None where there is none."""
        return None

    def thin(self) -> ThinForm | None:
        """Return quadratic losses as diagonals and rows, or None where that says too little."""
        return None

    def range_rows(self) -> RangeRows | None:
        """Return bases of what `null_projector` projects away; None where it must do."""
        return None

    def written(self) -> Sequence[CvxpyFunction] | None:
        """Return the functions (k,) of losses that are known by nothing but CVXPY's rules."""
        return None

    @abstractmethod
    def value(self, w: FloatArray) -> FloatArray:
        """Losses L_i(w_i), shape (k,)."""

    @abstractmethod
    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients of L_i at w_i, shape (k, d); a subgradient where the loss is not smooth."""

    @abstractmethod
    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)``, shape (k, d)."""

    def model(self, w: FloatArray, last: BatchedLoss | None = None) -> BatchedLoss | None:
        """Return quadratic models of the losses at w (k, d), or None where a loss has none.

        They have the losses' values, up to constants, and gradients there, and positive
        semidefinite Hessians: the losses' own, or larger ones where those would lead too far. What
        the last model, one of these losses at another point, was worth at w is learned from.
        """
        return None

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """``L_i(w_i) - L_i(b_i) - <grad L_i(b_i), w_i - b_i> >= 0`` (k,), for points b = before.

        Without cancellation where there is a `model`.
        """
        step = np.sum(self.gradient(before) * (w - before), axis=1)
        return np.maximum(self.value(w) - self.value(before) - step, 0.0)

    def affine_prox(self, tau: FloatArray) -> AffineProx | None:
        """Return the proximal operator as an affine map, or None where it is not affine."""
        return None

    @abstractmethod
    def minimizer(self) -> FloatArray:
        """One minimizer of each loss, shape (k, d); close to one where there is none."""

    def project_domain(self, w: FloatArray) -> FloatArray:
        """Return the points (k, d) nearest to w_i at which L_i is finite."""
        return w

    @abstractmethod
    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Conjugates ``L_i*(s_i) = sup_w <s_i, w> - L_i(w)``, shape (k,).

        +inf where s_i is farther than ``atol_i`` (k,) from the domain of L_i*. An infinite atol_i
        forgives any part of s_i along `null_projector`, and nothing else.
        """

    @abstractmethod
    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps ``L_i(w_i) + L_i*(s_i) - <s_i, w_i> >= 0``, computed without cancellation.

        The part of s_i outside the domain of L_i* along `null_projector` is ignored; the caller
        accounts for it. Multipliers (Q,) of the generators of `domain` that give s_i may be taken
        for the best ones: the gap is theirs then, from above.
        """

    def certain_gap(
        self,
        w: FloatArray,
        s: FloatArray,
        doubt: Doubt,
        multipliers: FloatArray | None = None,
    ) -> tuple[FloatArray, float]:
        """Return `fenchel_gap`, and what rounding of slopes and of s may add to its sum."""
        return self.fenchel_gap(w, s, multipliers), 0.0

    @property
    def detours(self) -> float:
        """Work of `prox` so far beyond what a call takes as a rule, in such calls."""
        return 0.0

    def forget(self) -> None:
        """Forget the last proximal points and multipliers, from which the next ones start.

        Those are the same but for rounding; the same run gives the same digits only from the same
        start.
        """
        return None

    def shortest(self, w: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return shares (k,) of s (k, d) that losses take beside rows' multipliers; 0 for none.

        And the multipliers (N,): those are cheap to tell, at w (k, d) and close to it.
        """
        return np.zeros(len(w)), np.zeros(0)

    def short_gap(
        self, w: FloatArray, s: FloatArray, share: float, a: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return gaps (k,) of w (k, d) against a share of s and multipliers, and leaks' sizes.

        The share is at most what `shortest` returns with the multipliers, and not zero.
        """
        raise NotImplementedError(f"{type(self).__name__} takes no share")

    def loose_gap(self, w: FloatArray) -> FloatArray:
        """Upper bounds on ``L_i(w_i) - inf L_i``, the node gaps at s_i = 0, that cost little."""
        return self.fenchel_gap(w, np.zeros_like(w))

    def null_projector(self) -> FloatArray | float:
        """Orthogonal projectors (k, d, d) on the directions in which L_i* has no room.

        L_i*(s) is finite only if the projection of s vanishes: flow is conserved exactly in these
        directions. The scalar 0.0 (no such direction) or 1.0 (all of them) stands for all nodes.
        """
        return 0.0

    def domain(self) -> DualDomain | None:
        """Describe where the conjugates are finite; None where `null_projector` says it all."""
        return None

    def multipliers(self, s: FloatArray, w: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return multipliers (Q,) of the generators of `domain`, and how firm they are (Q,).

        The multipliers nearly give s_i, at little cost for a w_i near the optimum; at the least
        cost of all without w. Where one is at an end of its interval, its firmness is how far
        g_q^T w_i must move until it leaves.
        """
        raise NotImplementedError

    def scale_to_feasible(self, s: FloatArray) -> float:
        """Return the largest theta in [0, 1] with theta s_i in dom L_i* for all i.

        For losses whose conjugates have a domain that `domain` cannot describe.
        """
        return 1.0

    @abstractmethod
    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of ``sum_i L_i(w_i)`` for an expression of shape (k, d)."""

    @abstractmethod
    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of ``sum_i L_i*(s_i)`` for an expression of shape (k, d)."""

    def multiplied(self, factors: FloatArray, nodes: IntArray) -> BatchedLoss:
        """Return the losses times factors (k,), for losses that have no plain data.

        Nodes (k,) are those that errors name.
        """
        raise NotImplementedError

    @abstractmethod
    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """Plain data, as `GTVProblem.to_data` gives them, of these losses at the nodes (k,).

        Arrays may be those of the batch: they are not written into.
        """
