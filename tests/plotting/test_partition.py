"""The picture of a partition, and what must hold for all pictures."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from gtvcvx.plotting._layout import layout
from gtvcvx.plotting._partition import PartitionPicture, draw_partition

ROOT = Path(__file__).resolve().parents[2]


def test_drawing_has_the_panels():
    n = 45
    chain = np.array([[i, i + 1] for i in range(n - 1)])
    picture = PartitionPicture(
        edges=chain,
        cluster_of=np.arange(n) // 2,
        names=[str(c) for c in range(23)],
        labels=[str(i) for i in range(n)],
        positions=layout(n, chain, np.arange(n) // 2),
        load=np.linspace(0, 1, n - 1),
        tight=np.arange(n) == 3,
        sinks=[],
        lam=1.0,
        lams=np.array([0.1, 1.0, 10.0]),
        margins=np.vstack([np.full((22, 3), np.inf), [[0.5, 1.0, 2.0]]]),
        title="chain",
        note="margins",
    )
    figure = draw_partition(picture)
    titles = [axes.get_title() for axes in figure.axes]
    assert {"chain", "margins"} <= set(titles)
    curves = [line for line in figure.axes[1].get_lines() if len(line.get_xdata()) == 3]
    assert len(curves) == 1  # infinite margins are not drawn
    assert curves[0].get_label() == "cluster 22"
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "between clusters (22)" in legend
    assert "tightest set (1 of the cluster of least margin)" in legend
    nothing = replace(picture, margins=np.full((23, 3), np.nan))
    texts = [text.get_text() for text in draw_partition(nothing).axes[1].texts]
    assert texts == ["no cluster has a finite positive margin"]


def test_extras_are_imported_where_they_are_used_only():
    for path in (ROOT / "gtvcvx").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"matplotlib", "pandas"}, path


_SCRIPT = """
import sys, numpy as np, gtvcvx as gtv
import gtvcvx.cli, gtvcvx.interop
from gtvcvx.plotting import plot_graph, save_figure
assert not {"matplotlib", "pandas"} & set(sys.modules)
graph = gtv.EmpiricalGraph(2, [[0, 1]])
problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(2)))
save_figure(plot_graph(problem.solve(verbose=False), problem), sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""


def test_drawing_leaves_pyplot_alone(tmp_path):
    """Nothing is imported before it is needed, and pyplot, which keeps figures alive, never."""
    target = tmp_path / "x.png"
    command = [sys.executable, "-c", _SCRIPT, str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert target.read_bytes().startswith(b"\x89PNG")
