"""Cells are computed once, kept whole or not at all, and found again by what they depend on."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from _documents import ROOT
from _made_up import EXPERIMENT

from gtvcvx.experiments import Study, run_experiment


class Counted:
    """Something to compute that counts how often it is."""

    def __init__(self, values):
        self.calls, self.values = 0, values

    def __call__(self):
        self.calls += 1
        return self.values


def test_a_cell_is_computed_once_and_is_the_same_from_the_disk(tmp_path):
    values = {"a": np.arange(6.0).reshape(2, 3), "n": 3, "text": ["x", "yz"], "flag": True}
    compute = Counted(values)
    first = Study(out=tmp_path).cell("k", compute)
    study = Study(out=tmp_path)
    again = study.cell("k", compute)
    assert study.cell("k", compute).keys() == again.keys() == values.keys()
    assert compute.calls == 1
    for name, value in values.items():
        np.testing.assert_array_equal(first[name], value)
        np.testing.assert_array_equal(again[name], value)
        assert first[name].dtype == again[name].dtype


def test_without_a_folder_cells_are_kept_in_memory():
    compute, study = Counted({"a": 1}), Study()
    assert study.cell("k", compute) == study.cell("k", compute)
    assert compute.calls == 1
    Study().cell("k", compute)
    assert compute.calls == 2


@pytest.mark.parametrize(
    "other",
    [
        {"size": "tiny"},
        {"reading": "notebook"},
        {"version": 2},
        {"data": "elsewhere"},
        {"name": "other"},
    ],
)
def test_a_cell_of_another_run_is_not_taken(tmp_path, other):
    compute = Counted({"a": 1})
    Study(out=tmp_path).cell("k", compute)
    Study(out=tmp_path, **other).cell("k", compute)
    assert compute.calls == 2


def test_a_cell_of_other_data_is_not_taken(tmp_path):
    folder, compute = tmp_path / "data", Counted({"a": 1})
    folder.mkdir()
    for k, text in enumerate(["old", "old", "longer"]):
        if k != 1:
            (folder / "mine.csv").write_text(text)
        Study(out=tmp_path, data=folder).cell("k", compute)
    assert compute.calls == 2
    (tmp_path / "moved").mkdir()
    (folder / "mine.csv").rename(tmp_path / "moved" / "mine.csv")
    Study(out=tmp_path, data=tmp_path / "moved").cell("k", compute)
    assert compute.calls == 2


def test_keys_that_look_alike_as_file_names_are_told_apart(tmp_path):
    study = Study(out=tmp_path)
    long = "x" * 200
    keys = ["a/b", "a b", "a_b", long + "1", long + "2"]
    for k, key in enumerate(keys):
        study.cell(key, lambda k=k: {"k": k})
    fresh = Study(out=tmp_path)
    assert [int(fresh.cell(key, Counted(None))["k"]) for key in keys] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", None])
def test_a_cell_that_cannot_be_read_is_computed_again(tmp_path, damage):
    compute = Counted({"a": np.arange(1000)})
    Study(out=tmp_path).cell("k", compute)
    (path,) = (tmp_path / "cells" / "study").iterdir()
    path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    Study(out=tmp_path).cell("k", compute)
    assert compute.calls == 2


def test_a_file_that_is_another_cell_is_not_taken(tmp_path):
    Study(out=tmp_path).cell("a", lambda: {"k": 1})
    Study(out=tmp_path).cell("b", lambda: {"k": 2})
    a, b = sorted((tmp_path / "cells" / "study").iterdir())
    b.write_bytes(a.read_bytes())
    compute = Counted({"k": 2})
    assert int(Study(out=tmp_path).cell("b", compute)["k"]) == 2
    assert compute.calls == 1


def test_nothing_is_left_of_a_cell_that_fails(tmp_path):
    def fail():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        Study(out=tmp_path).cell("k", fail)
    assert not list(tmp_path.rglob("*.*"))


def test_objects_are_refused(tmp_path):
    with pytest.raises(TypeError, match="cell 'k': a: numbers or texts are expected"):
        Study(out=tmp_path).cell("k", lambda: {"a": [object()]})
    with pytest.raises(ValueError, match="the name '__seconds__' is taken"):
        Study().cell("k", lambda: {"__seconds__": 1.0})


@pytest.mark.parametrize("place", ["computing", "writing"])
def test_cells_that_are_done_survive_a_process_that_is_killed(tmp_path, place):
    """The process ends without any cleaning up in its third cell; the next one goes on there."""
    code = """
        import os, sys
        from gtvcvx.experiments import Study
        study = Study(seeds=range(4), out=sys.argv[1])

        def compute(seed):
            print("computed", seed)
            if seed == 2 and sys.argv[2] == "computing":
                os._exit(9)
            if seed == 2 and sys.argv[2] == "writing":  # all is in a file, but not under its name
                os.replace = lambda *_: os._exit(9)
            return {"s": seed}

        for seed in study.seeds:
            assert study.cell(f"seed={seed}", lambda: compute(seed))["s"] == seed
    """

    def run(how):
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), str(tmp_path), how],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            check=False,
        )

    first = run(place)
    assert (first.returncode, first.stdout) == (9, "computed 0\ncomputed 1\ncomputed 2\n")
    assert len(list(tmp_path.rglob("seed*.npz"))) == 2
    second = run("living")
    assert (second.returncode, second.stdout) == (0, "computed 2\ncomputed 3\n"), second.stderr


def test_time_of_cells_of_earlier_runs_counts(tmp_path):
    def work():
        return {"a": sum(k * k for k in range(300_000))}

    study = Study(out=tmp_path)
    study.cell("k", work)
    assert study.cpu_seconds == study.computed_seconds > 0
    again = Study(out=tmp_path)
    again.cell("k", work)
    assert (again.cpu_seconds, again.computed_seconds) == (study.cpu_seconds, 0.0)
    first = run_experiment(EXPERIMENT, out=tmp_path)
    assert first.cpu_seconds > 0


def test_a_line_for_each_cell_where_it_is_wanted(capsys):
    Study(verbose=True, name="some").cell("k", lambda: {"a": 1})
    assert capsys.readouterr().out.startswith("some: k: 0.0 s")
    Study().cell("k", lambda: {"a": 1})
    assert capsys.readouterr() == ("", "")
