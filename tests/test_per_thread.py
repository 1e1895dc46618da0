"""What threads have of their own of an object that they share."""

import copy
import gc
import pickle
import threading
import weakref

from gtvcvx._per_thread import PerThread


class Made:
    def __init__(self, size):
        self.numbers = [0] * size


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_each_thread_has_one_and_keeps_it():
    shared = PerThread(Made, 3)
    assert shared.made is None
    mine = shared.own
    assert shared.own is shared.made is mine
    assert mine.numbers == [0, 0, 0]
    assert in_a_thread(lambda: shared.own is shared.own and shared.own is not mine)
    shared.forget()
    assert shared.own is not mine


def test_it_goes_with_its_thread():
    shared = PerThread(Made, 3)
    other = in_a_thread(lambda: weakref.ref(shared.own))
    gc.collect()
    assert other() is None


def test_copies_begin_without_any():
    shared = PerThread(Made, 2)
    shared.own.numbers[0] = 1
    for other in (copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
        assert other.own.numbers == [0, 0]
