"""A small problem in CSV files, and the command line run in this process."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.cli import main

# Two triangles joined by a weak edge; node f has no data.
EDGES = [("a", "b", 1), ("b", "c", 1), ("a", "c", 2), ("c", "d", 0.01)]
EDGES += [("d", "e", 1), ("e", "f", 1), ("d", "f", 1)]
LABELLED = "abcde"


def write_csv(path: Path, header: list[str], rows: list) -> Path:
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([header, *rows])
    return path


def data_rows() -> list[list]:
    rng = np.random.default_rng(0)
    rows = []
    for node in LABELLED:
        w = [1.0, 2.0] if node in "abc" else [-1.0, 0.5]
        for _ in range(4):
            x = rng.standard_normal(2) * [1.0, 30.0] + [0.0, 5.0]
            rows.append([node, *x.tolist(), float(x @ w) + 0.05 * rng.standard_normal()])
    return rows


@dataclass
class Files:
    """Paths of the small problem."""

    folder: Path
    edges: Path
    data: Path

    edge_rows = EDGES

    @staticmethod
    def rows() -> list[list]:
        """Rows of the data file."""
        return data_rows()

    def write(self, name: str, header: list[str], rows: list) -> Path:
        """Write a CSV file into the folder."""
        return write_csv(self.folder / name, header, rows)

    def arrays(self):
        """The small problem without the command line: node names, X, y, node numbers."""
        names = list(dict.fromkeys(name for edge in EDGES for name in edge[:2]))
        X = np.array([row[1:3] for row in self.rows()])
        y = np.array([row[3] for row in self.rows()])
        return names, X, y, np.array([names.index(row[0]) for row in self.rows()])

    def direct(self, X: np.ndarray | None = None, penalty: str = "l2") -> gtv.GTVProblem:
        """The same problem, or one with other features, from arrays."""
        names, plain, y, node = self.arrays()
        ends = [[names.index(i), names.index(j)] for i, j, _ in EDGES]
        graph = gtv.EmpiricalGraph(len(names), ends, [a for *_, a in EDGES], names)
        losses = gtv.SquaredLoss.from_rows(plain if X is None else X, y, node)
        return gtv.GTVProblem(graph, losses, penalty, lam=0.2)

    def fit(self, *extra: str, lam: str = "0.2", output: str = "s.npz") -> list[str]:
        """Arguments of a fit."""
        return [
            *("fit", "--edges", str(self.edges), "--data", str(self.data)),
            *("--node", "place", "--target", "y", "--lam", lam),
            *("-o", str(self.folder / output), *map(str, extra)),
        ]

    def content(self) -> dict[str, bytes]:
        """Every file of the folder."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(
        tmp_path,
        write_csv(tmp_path / "edges.csv", ["from", "to", "weight"], EDGES),
        write_csv(tmp_path / "data.csv", ["place", "x1", "x2", "y"], data_rows()),
    )


@dataclass
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def run(capsys):
    """Run the command line: ``run("fit", ...)`` gives status and output."""

    def call(*argv: object) -> Outcome:
        capsys.readouterr()
        status = main([str(argument) for argument in argv])
        return Outcome(status, *capsys.readouterr())

    return call


@pytest.fixture
def fitted(files: Files, run) -> Files:
    """The small problem, fitted: s.npz, s.problem.npz and the partition labels.csv."""
    outcome = run(*files.fit("--clusters", files.folder / "labels.csv", "--quiet"))
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    return files
