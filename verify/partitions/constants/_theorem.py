"""delta_i, beta_i and alpha_c of every node and cluster of a partition, as enclosures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.partitions._data import Partition, ProblemData
from verify.partitions._local_losses import LocalLosses
from verify.partitions._rounding import TINY, Enclosure, gamma
from verify.partitions.constants._enclosures import (
    Attained,
    dual_norm,
    smoothness,
    strong_convexity,
)

_NEWTON_STEPS = 100


@dataclass(frozen=True)
class TheoremConstants:
    """Constants of Theorem 2.

    Attributes
    ----------
    alpha : Attained
        (k,) strong convexity of each cluster's sum of losses.
    beta : Attained
        (n,) smoothness of each local loss.
    delta : Enclosure
        (n,) dual norm of each local loss's gradient at the cluster's minimizer.
    centers : ndarray, shape (k, d)
        Approximate cluster minimizers w_bar_c.
    gradients, gradient_error : ndarray
        (n, d) computed gradients there, and (n,) bounds on the dual norm of their differences to
        the gradients at the true minimizers.
    reasons : list of str
        For each cluster why the theorem does not apply; empty where it does.
    """

    alpha: Attained
    beta: Attained
    delta: Enclosure
    centers: FloatArray
    gradients: FloatArray
    gradient_error: FloatArray
    reasons: list[str]


def theorem_constants(
    data: ProblemData, partition: Partition, losses: LocalLosses
) -> TheoremConstants:
    """Compute the constants in the norm of the penalty, ``data.norm`` (not None)."""
    assert data.norm is not None
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return _theorem_constants(data, partition, losses, data.norm)


def _theorem_constants(
    data: ProblemData, partition: Partition, losses: LocalLosses, norm: str
) -> TheoremConstants:
    k, d = partition.n_clusters, data.dim
    sizes = np.bincount(partition.cluster_of, minlength=k)
    finite = np.isfinite(losses.upper).all(axis=(1, 2)) & np.isfinite(losses.error)
    upper = np.where(finite[:, None, None], losses.upper, 0.0)
    error = np.where(finite, losses.error, 0.0)
    lower = (
        upper
        if losses.lower is losses.upper
        else np.where(finite[:, None, None], losses.lower, 0.0)
    )

    summed = cluster_sum(lower, partition)
    rounding = gamma(sizes) * np.trace(summed, axis1=1, axis2=2)
    summed_error = cluster_sum(error, partition) * (1.0 + gamma(sizes)) + rounding
    smooth = smoothness(upper, error, norm)
    dropped = _drop_trivial(smooth, upper, error)
    beta = Attained(dropped.lo, dropped.hi, smooth.directions)
    alpha = strong_convexity(summed, summed_error, norm)

    reasons = _reasons(partition, losses, finite, alpha)
    usable = np.array([not reason for reason in reasons])
    centers = minimizers(losses, partition, usable)
    local = losses.gradients(centers[partition.cluster_of])
    total = cluster_sum(local.value, partition)
    total_error = cluster_sum(local.error, partition) * (1.0 + gamma(sizes))[:, None]
    total_error += gamma(sizes)[:, None] * cluster_sum(np.abs(local.value), partition)
    norm_rounding = 1.0 + gamma(d + 4)
    residual = (dual_norm(total, norm) + dual_norm(total_error, norm)) * norm_rounding
    with np.errstate(divide="ignore"):
        # the true minimizer is within ||grad f_c|| / alpha_c of the computed center
        distance, far = (
            np.where(usable, residual / np.where(usable, least, 1.0), 0.0)
            for least in (alpha.lo, alpha.lo if alpha.modulus is None else alpha.modulus)
        )
    size = dual_norm(local.value, norm)
    gradient_error = dual_norm(local.error, norm) + gamma(d + 4) * size
    at_most = gradient_error + beta.hi * far[partition.cluster_of]
    gradient_error = (gradient_error + beta.hi * distance[partition.cluster_of]) * norm_rounding
    # from below with room for the kernel's cruder bound on beta, at most d times too large
    least = np.maximum(size - d * at_most * norm_rounding * norm_rounding, 0.0)
    delta = _drop_trivial(Enclosure(least, size + gradient_error), upper, error)
    for c, reason in enumerate(reasons):
        if not reason and not np.isfinite(distance[c]):
            reasons[c] = "the constants overflow in floating point"
    return TheoremConstants(alpha, beta, delta, centers, local.value, gradient_error, reasons)


def cluster_sum(values: FloatArray, partition: Partition) -> FloatArray:
    """Add the rows of ``values`` (n, ...) over each cluster: (k, ...)."""
    return np.asarray(np.add.reduceat(values[partition.order], partition.first, axis=0))


def minimizers(losses: LocalLosses, partition: Partition, usable: BoolArray) -> FloatArray:
    """Approximate argmin of the sum of losses over each usable cluster, (k, d).

    Newton's method; where a full step does not shrink the gradient, a step with the Hessian bound
    from above, which always lowers the objective.
    """
    k, d = partition.n_clusters, losses.dim
    centers = np.zeros((k, d))
    if not usable.any():
        return centers
    eye = np.eye(d)

    def gradient(at: FloatArray) -> FloatArray:
        return cluster_sum(losses.gradients(at[partition.cluster_of]).value, partition)

    majorant = cluster_sum(losses.upper, partition)
    majorant[~usable] = eye
    slope = gradient(centers)
    slope[~usable] = 0.0
    for _ in range(_NEWTON_STEPS):
        curvature = cluster_sum(losses.hessians(centers[partition.cluster_of]), partition)
        curvature[~usable] = eye
        trial = centers - _solve(curvature, slope)
        trial_slope = gradient(trial)
        better = usable & (np.abs(trial_slope).sum(axis=1) < np.abs(slope).sum(axis=1))
        if losses.has_logistic and not better[usable].all():
            safe = centers - _solve(majorant, slope)
            trial = np.where(better[:, None], trial, safe)
            trial_slope = gradient(trial)
            better = usable & (np.abs(trial_slope).sum(axis=1) < np.abs(slope).sum(axis=1))
        if not better.any():
            break
        centers[better] = trial[better]
        slope[better] = trial_slope[better]
    return centers


def _solve(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.asarray((np.linalg.pinv(matrices, hermitian=True) @ vectors[:, :, None])[:, :, 0])


def _drop_trivial(bounds: Enclosure, hessians: FloatArray, error: FloatArray) -> Enclosure:
    """Exactly zero at nodes whose loss has no curvature: they carry the zero loss."""
    trivial = (error == 0.0) & ~hessians.any(axis=(1, 2))
    return Enclosure(np.where(trivial, 0.0, bounds.lo), np.where(trivial, 0.0, bounds.hi))


def _reasons(
    partition: Partition, losses: LocalLosses, finite: BoolArray, alpha: Enclosure
) -> list[str]:
    """Why the theorem does not apply to each cluster ("" where it does)."""
    reasons = []
    for c, members in enumerate(partition.members):
        rough = members[losses.nonsmooth[members] != ""]
        if len(rough):
            node = partition.names[rough[0]]
            reasons.append(f"the loss of node {node!r} {losses.nonsmooth[rough[0]]}")
        elif not finite[members].all():
            node = partition.names[members[~finite[members]][0]]
            reasons.append(f"the Hessian at node {node!r} overflows in floating point")
        elif not alpha.lo[c] > TINY:
            reasons.append(
                "alpha = 0: the sum of the cluster's losses is not strongly convex"
                " (singular Hessian bound, or too near singular to tell)"
            )
        else:
            reasons.append("")
    return reasons
