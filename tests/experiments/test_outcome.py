"""What an outcome takes, and what it refuses by name."""

import numpy as np
import pytest
from _made_up import EXPERIMENT

from gtvcvx.experiments import Curve, Experiment, Level, Outcome, Panel, Row, Verdict

OK = Verdict.REPRODUCED
CURVE = Curve("a", [1, 2], [[1.0, 2.0], [3.0, 4.0]])
ROW = Row("r", 1.0, [1.0, 3.0], None, OK, "no optimum")


def test_verdicts_are_the_four_words():
    assert [str(v) for v in Verdict] == [
        "REPRODUCED",
        "REPRODUCED UNDER ANOTHER READING",
        "NOT REPRODUCED",
        "CANNOT HOLD",
    ]


def test_means_and_deviations_are_over_seeds():
    row = Row("r", 1.0, [1.0, 3.0], [0.0, 4.0], "NOT REPRODUCED", "")
    assert (row.mean, row.deviation, row.optimum_mean) == (2.0, pytest.approx(2**0.5), 2.0)
    assert row.verdict is Verdict.NOT_REPRODUCED
    one = Row("r", 1.0, 2.0, "in words", OK, "")
    assert (one.mean, one.deviation, one.optimum_mean) == (2.0, None, None)
    words = Row("r", "so", "it is so", None, OK, "because")
    assert (words.mean, words.deviation) == (None, None)
    assert Row("r", 1.0, [1.0, np.inf], None, OK, "diverges").deviation == np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, [1.0], None, OK, ""), "row 'r': without an optimum, a reason"),
        ((1.0, [1.0], None, None, "x"), "row 'r': a verdict is expected"),
        ((np.nan, [1.0], None, OK, "x"), "row 'r': printed: a finite number"),
        ((1.0, [np.nan], None, OK, "x"), "row 'r': ours: a value is no number"),
        (
            (1.0, [], None, OK, "x"),
            r"row 'r': ours: one value a seed is expected, got shape \(0,\)",
        ),
        ((1.0, [[1.0, 2.0]], None, OK, "x"), r"got shape \(1, 2\)"),
        ((1.0, [1.0], [np.nan], OK, "x"), "row 'r': optimum: a value"),
        ((1.0, [1.0], None, "PROVED", "x"), "'PROVED' is not a valid Verdict"),
    ],
)
def test_rows_refuse_what_cannot_be_shown(arguments, message):
    with pytest.raises(ValueError, match=message):
        Row("r", *arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Curve("c", [1, 2], [[1.0]]), r"curve 'c': values of shape \(seeds, 2\)"),
        (lambda: Curve("c", [2, 1], [1.0, 1.0]), "curve 'c': finite, rising x"),
        (lambda: Curve("c", [1, 2], [1.0, 1.0], kind="line"), "curve 'c': kind 'line'"),
        (lambda: Level("l", np.inf), "level 'l': a finite value"),
        (lambda: Level("l", 1.0, "line"), "level 'l': kind 'line'"),
        (lambda: Panel("p", "", "y", [CURVE]), "panel 'p': both axes need a label"),
        (lambda: Panel("p", "x", " ", [CURVE]), "panel 'p': both axes need a label"),
        (lambda: Panel("p", "x", "y", []), "panel 'p': at least one curve"),
        (lambda: Outcome([], [], {}), "rows: at least one"),
        (lambda: Outcome([ROW, ROW], [], {}), "rows: at least one, each with its own name"),
        (lambda: Experiment("Table 1", "GTV", "i", "t", print), "name: lower case words"),
        (lambda: Experiment("t", "XYZ", "i", "t", print), "paper: one of GTV"),
        (lambda: Experiment("t", "GTV", "i", "t", print, ()), "t: at least one reading"),
        (lambda: Experiment("t", "GTV", "i", "t", print, seeds=0), "t: at least one seed"),
    ],
)
def test_parts_refuse_what_cannot_be_drawn_or_run(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_notes_are_several_texts():
    with pytest.raises(TypeError, match="notes: a sequence of texts"):
        Outcome([ROW], [], {}, "one text")


def test_a_study_has_the_seeds_of_its_size():
    seeds = {size: len(EXPERIMENT.study(size).seeds) for size in ("tiny", "default", "paper")}
    assert seeds == {"tiny": 2, "default": 3, "paper": 5}
    study = EXPERIMENT.study("tiny", reading="notebook", seeds=7)
    assert (list(study.seeds), study.reading) == (list(range(7)), "notebook")
    assert study.choose(tiny=1, default=2, paper=3) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": "large"}, "size: one of tiny, default, paper"),
        ({"reading": "mine"}, "reading: made-up-table-1 has paper, notebook, got 'mine'"),
        ({"seeds": 0}, "seeds: at least one"),
    ],
)
def test_a_study_refuses_what_the_experiment_has_not(arguments, message):
    with pytest.raises(ValueError, match=message):
        EXPERIMENT.study(**arguments)


def test_an_experiment_tells_what_its_module_says():
    assert EXPERIMENT.about == "An experiment of no paper, which costs nothing."
