"""Write the embedded data files anew: ``python -m gtvcvx.datasets._regenerate [FOLDER]``.

Needs the packages libpysal, which carries the sources (its example ``us_income``), and geopandas.
The folder is the embedded one unless another is given.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gtvcvx._geometry import read_geometries
from gtvcvx.datasets._us_income import FOLDER, USIncome, read_folder
from gtvcvx.files._atomic import atomic_write


def regenerate(folder: Path) -> None:
    """Write ``income.csv``, ``contiguity.csv``, ``centres.csv`` and ``trend.csv`` into a folder."""
    try:
        examples = importlib.import_module("libpysal.examples")
        geopandas = importlib.import_module("geopandas")
    except ImportError as error:
        raise SystemExit("install libpysal first: pip install libpysal geopandas") from error
    with open(examples.get_path("usjoin.csv"), encoding="utf-8", newline="") as handle:
        header, *rows = csv.reader(handle)
    states = [row[0] for row in rows]
    # The second column is the state's FIPS number, which nothing here needs.
    income = [[row[0], *row[2:]] for row in rows]
    _write(folder / "income.csv", ["state", *header[2:]], income)
    pairs = read_gal(Path(examples.get_path("states48.gal")))
    named = [(states[i], states[j]) for i, j in pairs]
    _write(folder / "contiguity.csv", ["source", "target"], named)
    areas = geopandas.read_file(examples.get_path("us48.shp")).set_crs(4326)
    centres = read_geometries(areas, "us48.shp", "STATE_NAME").of_nodes(states, "us48.shp")
    # A hundredth of a degree is a kilometre: enough for a picture.
    places = [
        [state, f"{latitude:.2f}", f"{longitude:.2f}"]
        for state, (longitude, latitude) in zip(states, centres.centroids(), strict=True)
    ]
    _write(folder / "centres.csv", ["state", "latitude", "longitude"], places)
    _write(folder / "trend.csv", *_trend_table(read_folder(folder)))


def read_gal(path: Path) -> list[tuple[int, int]]:
    """Read a neighbour list in GAL format, with nodes numbered from 0; pairs i < j, sorted.

    The first line is the number of nodes, or ``0``, that number and two names. Then each node has
    a line with its number and its count of neighbours, and a line with their numbers. Lists that
    are not symmetric are refused.
    """
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    numbers = iter([int(token) for token in rest.split()])
    neighbours: dict[int, set[int]] = {}
    for node in numbers:
        degree = next(numbers)
        neighbours[node] = {next(numbers) for _ in range(degree)}
    announced = first.split()
    if len(neighbours) != int(announced[min(1, len(announced) - 1)]):
        raise ValueError(f"{path}: the first line announces another number of nodes")
    arcs = {(i, j) for i, others in neighbours.items() for j in others}
    if arcs != {(j, i) for i, j in arcs}:
        raise ValueError(f"{path}: the neighbour lists are not symmetric")
    return sorted((i, j) for i, j in arcs if i < j)


def _trend_table(data: USIncome) -> tuple[list[str], Iterable[Sequence[object]]]:
    X, y = data.trend_regression()
    rows = (
        [state, f"{X[i, k, 0]:g}", f"{X[i, k, 1]:g}", f"{y[i, k]:.6f}"]
        for i, state in enumerate(data.states)
        for k in range(len(data.years))
    )
    return ["state", "constant", "trend", "log_relative_income"], rows


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    regenerate(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
