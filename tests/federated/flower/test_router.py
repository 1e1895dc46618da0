"""What a client may answer, and what it keeps between two requests."""

import pickle

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.federated.algorithms import FedADMM
from gtvcvx.federated.flower._router import checked_frames
from gtvcvx.federated.flower._state import KeptState, StaleRequestError, pickled, restored
from gtvcvx.federated.models import TwoLayerNetwork
from gtvcvx.federated.programs import local_losses
from gtvcvx.federated.wire import Message, SchemaError, encoded

FORM = FedADMM.schema.sized({"d": 2})
LINKS = np.array([1, 4])
FRAME = encoded(3, 7, Message("theta", {"w": np.zeros(2)}), FORM)


def answer(frame=FRAME, to=(1, 4), counts=(2,), frames=None):
    return {"to": list(to), "counts": list(counts), "frames": [frame] if frames is None else frames}


def test_a_sound_answer_is_taken_apart():
    assert checked_frames(answer(), 3, 7, LINKS, FORM) == [([1, 4], FRAME)]
    two = answer(frames=[FRAME, FRAME], to=[4, 1], counts=[1, 1])
    assert checked_frames(two, 3, 7, LINKS, FORM) == [([4], FRAME), ([1], FRAME)]
    assert checked_frames(answer(frames=[], to=[], counts=[]), 3, 7, LINKS, FORM) == []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (answer(FRAME[:-1]), "truncated"),
        (answer(FRAME + b"x"), "overlong"),
        (answer(b"short"), "truncated"),
        (answer(FRAME[:8] + b"\0\0\0\x09" + FRAME[12:]), "no kind"),
        (answer(FRAME[:4] + b"\0\0\0\x06" + FRAME[8:]), "round 6"),
        (answer(b"\0\0\0\x04" + FRAME[4:]), "participant 4"),
        (answer(to=[1, 2]), "those left are"),
        (answer(to=[1, 1]), "those left are"),
        (answer(frames=[FRAME, FRAME], to=[4, 4], counts=[1, 1]), r"left are \[1\]"),
        (answer(to=[1, 4, 1]), "without a frame"),
        (answer(to=[1]), "a frame for"),
        (answer(counts=[2, 0]), "argument"),
    ],
)
def test_an_answer_that_the_schema_or_the_links_do_not_allow_is_refused(wrong, text):
    with pytest.raises((SchemaError, ValueError), match=text):
        checked_frames(wrong, 3, 7, LINKS, FORM)


def test_a_step_whose_answer_was_lost_is_taken_back():
    state = KeptState().then(0, 1, b"one").then(1, 2, b"two")
    assert state.at(2) == b"two"
    assert state.at(1) == b"one"
    assert state.at(0) is None
    # The answer to request 2 never came: request 3 goes on from 1.
    again = state.then(1, 3, b"three")
    assert (again.at(3), again.at(1), again.at(2)) == (b"three", b"one", None)
    # The answer to request 3 came.
    assert again.then(3, 4, b"four").at(3) == b"three"
    assert KeptState.of(vars(again)) == again
    assert KeptState.of(None).at(0) is None
    for number in (1, 2):
        with pytest.raises(StaleRequestError, match=f"request {number} comes after request 2"):
            state.check_new(number)
    state.check_new(3)


def models():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5, 2)), rng.standard_normal(5)
    loss = local_losses([gtv.SquaredLoss(X, y)], 1, 2)[0]
    return loss, TwoLayerNetwork(X, y > 0, [False, True], 3)


@pytest.mark.parametrize("model", models(), ids=["loss", "network"])
def test_a_state_has_the_model_by_name_alone(model):
    # Whatever has the model, as a program has it: an object, or a method of it.
    raw = pickled([model.prox, {"model": model}, np.arange(3)], model)
    assert len(raw) < len(pickle.dumps(model))
    prox, held, numbers = restored(raw, model)
    assert held["model"] is model
    assert prox.__self__ is model
    assert numbers.tolist() == [0, 1, 2]
