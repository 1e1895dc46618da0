"""The solutions for other values of lambda: a saved path, or what a cross-validation noted."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx.cli.report._content import PICTURED, Content
from gtvcvx.cli.report._svg import Picture, new_axes, picture
from gtvcvx.path import LambdaPath
from gtvcvx.plotting import plot_dendrogram, plot_path
from gtvcvx.plotting._canvas import as_text

# A tree of more leaves shows nothing in the width of a page.
_LEAVES = 60
_HEIGHT = 3.2  # inches


def pictures(content: Content, path: LambdaPath | None) -> list[Picture]:
    """Return pictures of what becomes of coefficients and clusters as lambda grows."""
    if path is None:
        return []
    lam = content.problem.lam
    names = content.names[:PICTURED]
    caption = (
        "Coefficient {} of every node as lambda grows; colours are the clusters at the dotted "
        "line, the value of the path nearest to the lambda of this solution."
    )
    found = [
        picture(_coefficient(path, k, name, lam), caption.format(name))
        for k, name in enumerate(names)
    ]
    counts = plot_path(path, "clusters", at=lam, ax=new_axes(_HEIGHT))
    found.append(picture(counts, "The number of clusters."))
    if path.labels.shape[1] <= _LEAVES and len(np.unique(path.lams)) > 1:
        tree = plot_dendrogram(path, at=lam, ax=new_axes(_HEIGHT))
        found.append(picture(tree, "Which nodes come together, and at which lambda."))
    return found


def _coefficient(path: LambdaPath, k: int, name: str, lam: float) -> Any:
    ax = plot_path(path, "coefficients", coefficient=k, at=lam, ax=new_axes(_HEIGHT))
    ax.set_ylabel(f"{as_text(name)} of each node")
    return ax
