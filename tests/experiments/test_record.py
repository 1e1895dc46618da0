"""Records of runs: written and read again, and refused where something is missing."""

import json

import pytest
from _made_up import EXPERIMENT

from gtvcvx.experiments import Record, csv_of, run_experiment, text_of, write_record


@pytest.fixture(scope="module")
def record():
    return run_experiment(EXPERIMENT)


def test_a_record_is_the_same_after_json(record, tmp_path):
    record.save(tmp_path / "r.json")
    again = Record.load(tmp_path / "r.json")
    assert again.to_data() == record.to_data()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "r.json").read_bytes()
    assert text_of(again) == text_of(record)
    assert csv_of(again) == csv_of(record)


def test_three_files_are_written_and_nothing_else(record, tmp_path):
    pytest.importorskip("matplotlib")
    paths = write_record(record, tmp_path / "new")
    assert [path.name for path in paths] == [f"made-up-table-1.{e}" for e in ("json", "csv", "svg")]
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())
    assert "[0.5, 0.25]" not in paths[0].read_text()
    assert json.loads(paths[0].read_text())["outcome"]["rows"][0]["ours"] == [1.0, 0.5, 0.25]
