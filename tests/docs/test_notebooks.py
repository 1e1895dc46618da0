"""The notebooks of docs/how-to run, cell by cell, and say nothing that they do not compute."""

from __future__ import annotations

import contextlib
import io
import re
import warnings

import pytest
from _documents import ROOT

FOLDER = ROOT / "docs" / "how-to"
NEEDS = {
    "clustering": ("matplotlib", "sklearn"),
    "denoising": ("matplotlib", "sklearn", "PIL"),
    "labels": ("matplotlib", "sklearn"),
    "spatial": ("matplotlib", "geopandas", "libpysal", "sklearn"),
}


def cells(name):
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r"\A(:\w+:.*\n)+", "", cell) for cell in found]


def test_every_notebook_is_tested_and_checks_what_it_shows():
    notebooks = {
        path.stem
        for path in FOLDER.glob("*.md")
        if path.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb\n")
    }
    assert notebooks == set(NEEDS)
    for name in notebooks:
        assert any("assert " in cell for cell in cells(name))


@pytest.mark.parametrize("name", NEEDS)
def test_cells_run(name, tmp_path):
    for module in NEEDS[name]:
        pytest.importorskip(module)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    namespace = {"__name__": name}
    with (
        contextlib.chdir(tmp_path),
        contextlib.redirect_stdout(io.StringIO()) as printed,
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        for cell in cells(name):
            exec(compile(cell, f"{name}.md", "exec"), namespace)
    pyplot.close("all")
    assert len(printed.getvalue().splitlines()) >= 3
