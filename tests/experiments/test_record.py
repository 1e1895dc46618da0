"""Records of runs: written and read again, shown, drawn, and refused where something is missing."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from _made_up import EXPERIMENT

from gtvcvx.experiments import (
    Curve,
    Level,
    Outcome,
    Panel,
    Record,
    Row,
    Verdict,
    csv_of,
    digest_of,
    draw,
    run_experiment,
    text_of,
    write_record,
)
from gtvcvx.experiments._drawing import band
from gtvcvx.experiments._record import kept_points

WORDS = [*Verdict, "synthetic"]


@pytest.fixture(scope="module")
def record():
    return run_experiment(EXPERIMENT)


def remade(record, outcome):
    """The record of another outcome of the same run."""
    return Record.of(EXPERIMENT, EXPERIMENT.study(), outcome, record.cpu_seconds)


def test_a_record_is_the_same_after_json(record, tmp_path):
    record.save(tmp_path / "r.json")
    again = Record.load(tmp_path / "r.json")
    assert again.to_data() == record.to_data()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "r.json").read_bytes()
    assert text_of(again) == text_of(record)
    assert csv_of(again) == csv_of(record)
    assert digest_of(again) == digest_of(record)


def test_infinity_and_nothing_survive_json(record, tmp_path):
    rows = [Row("r", 1.0, [1.0, np.inf], [-np.inf, 0.0], Verdict.CANNOT_HOLD, "")]
    ticks = {1.0: "one", 2.5: "two"}
    panel = Panel("p", "x", "y", [Curve("c", [1, 2], [[np.nan, 1.0]])], xticks=ticks, ylim=(0, 9))
    made = remade(record, Outcome(rows, [panel], {}, data="user's MNIST"))
    made.save(tmp_path / "r.json")
    again = Record.load(tmp_path / "r.json")
    np.testing.assert_array_equal(again.outcome.rows[0].ours, [1.0, np.inf])
    np.testing.assert_array_equal(again.outcome.panels[0].curves[0].values, [[np.nan, 1.0]])
    assert again.outcome.panels[0].xticks == ticks
    assert again.outcome.panels[0].ylim == (0, 9)
    assert again.data == "user's MNIST"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda data: data.pop("schema"), "schema 'gtv-experiment/1' is expected"),
        (lambda data: data.pop("seeds"), r"not a complete record .*seeds"),
        (lambda data: data["outcome"].pop("rows"), "not a complete record"),
        (lambda data: data["outcome"]["rows"][0].update(verdict="FINE"), "'FINE'"),
    ],
)
def test_files_that_are_no_records_are_refused_by_name(record, tmp_path, edit, message):
    data = record.to_data()
    edit(data)
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=rf"bad\.json: .*{message}"):
        Record.load(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ValueError, match=r"bad\.json: "):
        Record.load(tmp_path / "bad.json")


def test_long_curves_are_thinned_but_keep_both_ends():
    for xlog in (False, True):
        x = np.arange(1.0, 5001.0)
        kept = x[kept_points(x, xlog)]
        assert len(kept) <= 122
        assert (kept[0], kept[-1]) == (1.0, 5000.0)
        between = np.diff(np.log(kept) if xlog else kept)
        assert between[-20:].max() < 3 * between[-20:].min()
    short = np.arange(120.0)
    np.testing.assert_array_equal(kept_points(short, False), np.arange(120))


def test_every_output_says_verdicts_data_and_size(record, tmp_path):
    pytest.importorskip("matplotlib")
    paths = write_record(record, tmp_path / "new")
    assert [path.name for path in paths] == [f"made-up-table-1.{e}" for e in ("json", "csv", "svg")]
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())
    texts = [text_of(record), *(path.read_text() for path in paths)]
    for text in texts:
        assert "synthetic" in text
        assert "default" in text
    for text in texts[:3]:
        for row in record.outcome.rows:
            assert row.name in text
            assert row.verdict is None or str(row.verdict) in text
    assert "0.583 (0.382)" in texts[0]
    assert "lam: given: 0.1" in texts[0]
    assert "Curve ours: CERTIFIED 1e-06" in texts[0]
    assert "(a finding of ours)" in texts[0]


def test_pictures_have_axes_with_labels_and_every_curve(record, tmp_path):
    pytest.importorskip("matplotlib")
    svg = write_record(record, tmp_path)[2]
    text = svg.read_text()
    ET.fromstring(text)
    shown = ("iterations", "mean squared error", ">errors<", ">ours<", ">limit<", "optimum: 0.0001")
    assert [word for word in shown if word not in text] == []
    assert f"sha256:{digest_of(record)}" in text
    before = svg.read_bytes()
    assert write_record(record, tmp_path)[2].read_bytes() == before


def test_the_same_picture_has_the_same_digest_whatever_the_time_was(record):
    slower = Record.of(EXPERIMENT, EXPERIMENT.study(), record.outcome, 1e6)
    assert digest_of(slower) == digest_of(record)
    assert digest_of(remade(record, Outcome(record.outcome.rows, [], {}))) != digest_of(record)


def test_without_panels_the_rows_are_drawn(record):
    pytest.importorskip("matplotlib")
    made = remade(record, Outcome(record.outcome.rows, [], {}, measure="error in m"))
    (ax,) = draw(made).axes
    assert ax.get_xlabel() == "error in m"
    assert [t.get_text() for t in ax.get_yticklabels()] == ["finding", "statement", "method"]
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert labels == {"ours, each seed", "ours, mean", "printed", "certified optimum"}
    assert [text.get_text() for text in ax.texts] == ["it does"]


def test_bands_are_a_deviation_wide_and_stay_above_zero_on_logarithmic_axes():
    values = np.array([[1e-6], [1.0], [2.0]])
    lower, upper = band(values, ylog=False)
    assert upper - lower == pytest.approx(2 * values.std(ddof=1))
    assert band(values, ylog=True)[0] == pytest.approx(1e-6)


def test_text_fits_on_a_page(record):
    wide = Row(
        "a name " * 9, "a statement " * 9, "words " * 20, None, Verdict.CANNOT_HOLD, "why " * 99
    )
    text = text_of(remade(record, Outcome([wide], [], {"s": "long " * 60}, ["note " * 60])))
    assert max(map(len, text.splitlines())) < 200
    assert len(re.findall("CANNOT HOLD", text)) == 1


def test_a_method_has_one_colour_and_several_lines_of_a_kind_are_told_apart(record):
    pytest.importorskip("matplotlib")

    def run(label):
        return Curve(label, [1, 2], [1.0, 2.0])

    levels = [Level(f"optimum {k}", 1.0 + k, "optimum") for k in range(3)]
    panels = [
        Panel("one", "x", "y", [run("a"), run("b"), run("c")], levels),
        Panel("two", "x", "y", [run("c"), Curve("d", [1, 2], [1, 1], kind="limit"), run("a")]),
        Panel("three", "x", "y", [run("b")]),
    ]
    axes = draw(remade(record, Outcome(record.outcome.rows, panels, {}))).axes
    colours = {}
    for ax in axes:
        for line in ax.get_lines():
            colours.setdefault(line.get_label(), set()).add(line.get_color())
    assert all(len(found) == 1 for found in colours.values())
    assert len({*colours["a"], *colours["b"], *colours["c"]}) == 3
    drawn = [line for line in axes[0].get_lines() if line.get_label().startswith("optimum")]
    assert len({str(line._dash_pattern) for line in drawn}) == 3
