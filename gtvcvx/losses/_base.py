"""What a local loss must offer: `Loss` for one node, `BatchedLoss` for many nodes of one kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gtvcvx._arrays import finite_array

if TYPE_CHECKING:
    from gtvcvx.losses._sum import SumLoss

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class AffineProx(NamedTuple):
    """The proximal operator of a quadratic loss, ``prox(v)_i = matrix_i v_i + offset_i``."""

    matrix: FloatArray  # (k, d, d)
    offset: FloatArray  # (k, d)


class DualDomain(NamedTuple):
    """Where the conjugates of k losses are finite, beyond what a subspace says.

    ``dom L_i* = {s : T_i s = sum_q b_q g_q, low_q <= b_q <= high_q}`` up to its boundary, the sum
    over the generators g_q that node i owns. Zero is in it, as losses are bounded below.
    """

    projector: FloatArray | float  # T_i, (k, d, d): off the directions in which s_i is free
    owner: IntArray  # (Q,), node of each generator
    vectors: FloatArray  # (Q, d), g_q = T_i g_q, nonzero
    low: FloatArray  # (Q,)
    high: FloatArray  # (Q,)
    scale: FloatArray  # (Q,), length of the interval, or what is typical where it is infinite


class BatchedLoss(ABC):
    """Convex losses L_1, ..., L_k of one kind at k nodes; all operations run over the batch.

    Arrays ``w``, ``s``, ``v`` have shape (k, d), one row a node; results per node have shape (k,).
    The solvers, the dual bounds and the CVXPY models need nothing else of a loss.
    """

    dim: int  # d

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""

    @abstractmethod
    def value(self, w: FloatArray) -> FloatArray:
        """Losses L_i(w_i), shape (k,)."""

    @abstractmethod
    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients of L_i at w_i, shape (k, d); a subgradient where the loss is not smooth."""

    @abstractmethod
    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)``, shape (k, d)."""

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
    def fenchel_gap(self, w: FloatArray, s: FloatArray) -> FloatArray:
        """Node gaps ``L_i(w_i) + L_i*(s_i) - <s_i, w_i> >= 0``, computed without cancellation.

        The part of s_i outside the domain of L_i* along `null_projector` is ignored; the caller
        accounts for it.
        """

    def null_projector(self) -> FloatArray | float:
        """Orthogonal projectors (k, d, d) on the directions in which L_i* has no room.

        L_i*(s) is finite only if the projection of s vanishes: flow is conserved exactly in these
        directions. The scalar 0.0 (no such direction) or 1.0 (all of them) stands for all nodes.
        """
        return 0.0

    def domain(self) -> DualDomain | None:
        """Describe where the conjugates are finite; None where `null_projector` says it all."""
        return None

    def multipliers(self, w: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return multipliers (Q,) of the generators of `domain`, and how firm they are (Q,).

        The multipliers nearly give s_i, at the least cost for a w_i near the optimum. Where one
        is at an end of its interval, its firmness is how far g_q^T w_i must move until it leaves.
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

    @abstractmethod
    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """Plain data, as `GTVProblem.to_data` gives them, of these losses at the nodes (k,)."""


class Loss(ABC):
    """Convex loss of one node. Subclasses hold the data and say how many of them form a batch.

    ``w``, ``s`` and ``v`` are vectors of length d here; anything else, NaN and infinity are refused
    by name (ValueError, TypeError).
    """

    dim: int | None  # d, or None where any dimension fits

    @classmethod
    @abstractmethod
    def batch(cls, losses: Sequence[Any], dim: int) -> BatchedLoss:
        """Join losses of this class and of dimension dim, one per node, into a batch."""

    @property
    def kind(self) -> Hashable:
        """What losses have in common that are joined in one batch."""
        return type(self)

    def placed(self, node: str, dim: int) -> Loss:
        """Return the loss as it stands at a node, by whose name errors may call it."""
        return self

    def __add__(self, other: Loss) -> SumLoss:
        """Sum of two losses, regularizers or constraints of one node."""
        from gtvcvx.losses._sum import SumLoss

        return SumLoss([self, other]) if isinstance(other, Loss) else NotImplemented

    def _alone(self, x: ArrayLike, name: str) -> tuple[BatchedLoss, FloatArray]:
        vector = finite_array(x, name, 1)
        if len(vector) != self.dim and (self.dim is not None or not len(vector)):
            expected = "d >= 1" if self.dim is None else self.dim
            raise ValueError(
                f"{name}: a vector of length {expected} is expected, got {len(vector)}"
            )
        return type(self).batch([self], len(vector)), vector[None, :]

    def value(self, w: ArrayLike) -> float:
        """Loss L(w)."""
        batch, row = self._alone(w, "w")
        return float(batch.value(row)[0])

    def gradient(self, w: ArrayLike) -> FloatArray:
        """Gradient (or a subgradient) of L at w, shape (d,)."""
        batch, row = self._alone(w, "w")
        return batch.gradient(row)[0]

    def prox(self, v: ArrayLike, tau: float) -> FloatArray:
        """Proximal point ``argmin_z L(z) + ||z - v||^2 / (2 tau)``, shape (d,), for tau > 0."""
        batch, row = self._alone(v, "v")
        if not (np.isfinite(tau) and tau > 0):
            raise ValueError(f"tau: a positive finite number is expected, got {tau}")
        return batch.prox(row, np.array([float(tau)]))[0]

    def conjugate(self, s: ArrayLike, atol: float = 1e-9) -> float:
        """Conjugate L*(s); +inf if s is farther than atol >= 0 from its domain."""
        batch, row = self._alone(s, "s")
        if not atol >= 0:
            raise ValueError(f"atol: a number >= 0 is expected, got {atol}")
        return float(batch.conjugate(row, np.array([float(atol)]))[0])
