"""The smallest stable rho of PGFL, as far as it is known."""

from __future__ import annotations

import numpy as np

from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._pgfl_roles import Roles
from gtvcvx.problem import GTVProblem


def smallest_stable_rho(target: GTVProblem | None, net: Network, roles: Roles) -> float:
    r"""Return an estimate of the smallest stable rho; 0 where nothing is known.

    With the Hessian H at all clients, the servers' w~ of (8) follow
    ``x <- ((rho I - H) P x + H x) (H + rho I)^-1`` + const, P the matrix of (9): along an
    eigenvector of H with h and one of P with p this is a factor
    ``((rho - h) p + h) / (rho + h)``, below one for p < 0 iff ``rho > h |p| / (1 + |p|)``, and
    always for 0 <= p <= 1. Estimated with the mean Hessian of the clients of each cluster.

    Parameters
    ----------
    target : GTVProblem or None
        The pooled problems.
    net : Network
    roles : Roles
    """
    form = None if target is None else target.losses.quadratic(target.graph.n_nodes)
    if form is None:
        return 0.0
    n, s = net.n_clients, roles.n_servers
    edges = net.graph.edges[net.graph.edges[:, 0] >= n] - n
    share = np.eye(s)
    share[edges[:, 0], edges[:, 1]] = share[edges[:, 1], edges[:, 0]] = 1.0
    root = np.sqrt(share.sum(axis=1))
    # P is the mean over neighbours: similar to a symmetric matrix.
    lowest = float(np.linalg.eigvalsh(share / np.outer(root, root))[0])
    clients = np.bincount(roles.group)[:, None, None]
    steepest = float(np.linalg.eigvalsh(form.hessian / clients)[:, -1].max())
    return steepest * max(-lowest, 0.0) / (1.0 + max(-lowest, 0.0))
