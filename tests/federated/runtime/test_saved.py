"""Runs as files: what is read is what was written, and damage is named."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from _systems import small

from gtvcvx import federated as fed
from gtvcvx.files import _storage


@pytest.fixture(scope="module")
def run():
    problem, solution = small("l1")
    return fed.simulate(
        fed.FedADMM(), problem, 20, availability=fed.Bernoulli(0.7), seed=3, reference=solution
    )


@pytest.fixture
def path(run, tmp_path):
    run.save(tmp_path / "run.npz")
    return tmp_path / "run.npz"


def test_round_trip(run, path, tmp_path):
    saved = fed.SavedRun.load(path)
    assert (saved.name, saved.algorithm) == ("FedADMM", repr(run.algorithm))
    for name in ("w", "models", "u"):
        assert np.array_equal(getattr(saved, name), getattr(run, name))
    for name in ("status", "message", "reason", "rounds", "seed", "seconds"):
        assert getattr(saved, name) == getattr(run, name)
    assert list(saved.nodes) == list(run.nodes)
    assert list(saved.history) == list(run.history)
    assert repr(saved.history) == repr(run.history)
    # How both show that they ended is the same; the head differs.
    assert repr(saved).splitlines()[2:] == repr(run).splitlines()[2:]
    saved.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_run_without_any_record(run, tmp_path):
    """Diverged at the start: there is no state that is of use."""
    empty = fed.SavedRun(
        **{item.name: getattr(run, item.name, None) for item in fields(fed.SavedRun)}
    )
    empty.algorithm, empty.status, empty.history = "FedADMM()", "diverged", fed.History()
    empty.w = empty.models = np.empty(0)
    empty.u = None
    empty.save(tmp_path / "empty.npz")
    saved = fed.SavedRun.load(tmp_path / "empty.npz")
    assert saved.history.n_records == 0
    assert "diverged after 20 rounds" in repr(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "happy"}, "status: one of"),
        ({"rounds": -1}, "rounds: an integer"),
        ({"seconds": "long"}, "seconds: a number"),
        ({"name": 7}, "name: a text"),
        ({"nodes": []}, "nodes: a list"),
        ({"nodes": [1, 2]}, "models: one vector for each"),
        ({"w": np.array([[np.nan]])}, "w: finite vectors"),
        ({"w": np.zeros(3)}, "w: finite vectors"),
        ({"u": "none"}, "u: a finite flow"),
        ({"history": {"round": np.arange(3)}}, "history: columns of one length"),
        ({"history": {"round": np.array([np.nan])}}, "history 'round': finite"),
        ({"history": "longer"}, "history: columns of one length"),
        ({"history": None}, "history: columns"),
    ],
)
def test_damage_is_named(path, change, words):
    data = _storage.load(path, "gtv-federated-run/1")
    if change.get("history") == "longer":
        change = {"history": data["history"] | {"gap": np.zeros(99)}}
    _storage.save(path, data | change)
    with pytest.raises(ValueError, match=words) as error:
        fed.SavedRun.load(path)
    assert str(path) in str(error.value)


def test_missing_entry_and_other_files_are_named(path, tmp_path):
    data = _storage.load(path, "gtv-federated-run/1")
    del data["models"]
    _storage.save(path, data)
    with pytest.raises(ValueError, match=r"run\.npz: not a complete run \('models'\)"):
        fed.SavedRun.load(path)
    small()[1].save(path)
    with pytest.raises(ValueError, match="schema 'gtv-federated-run/1' is expected"):
        fed.SavedRun.load(path)
    path.write_bytes(b"PK\x03\x04 rubbish")
    with pytest.raises(ValueError, match=r"run\.npz: not a gtv-federated-run/1 file"):
        fed.SavedRun.load(path)
