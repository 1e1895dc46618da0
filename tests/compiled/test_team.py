"""Threads of a team do what one thread does, meet, and end together, whatever ends one of them."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gtvcvx.compiled import compiled
from gtvcvx.compiled._team import Share, meet, run_together


@compiled(nogil=True, allocates=False)
def in_turn(share: Share, rounds: int, x: np.ndarray) -> None:
    """Each block adds one to what its neighbour has from the round before."""
    n = x.shape[1]
    for k in range(rounds):
        for t in range(share.first, share.last):
            x[(k + 1) % 2, t] = x[k % 2, (t + 1) % n] + 1
        meet(share, k + 1)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_nobody_is_ahead_of_a_meeting(threads):
    rounds = 20_001
    x = np.zeros((2, threads), np.int64)
    x[0] = np.arange(threads)
    run_together(in_turn, threads, threads, rounds, x)
    np.testing.assert_array_equal(x[rounds % 2], (np.arange(threads) + rounds) % threads + rounds)
    alone = np.zeros_like(x)
    alone[0] = np.arange(threads)
    run_together(in_turn, threads, 1, rounds, alone)
    np.testing.assert_array_equal(alone, x)


def test_teams_at_the_same_time_do_not_wait_for_each_other():
    def run(seed):
        x = np.zeros((2, 3), np.int64)
        for _ in range(50):
            run_together(in_turn, 3, 3, 20, x)
        return x

    with ThreadPoolExecutor(4) as pool:
        for x in pool.map(run, range(4), timeout=60.0):
            assert (x[0] == 1000).all()


@pytest.mark.parametrize("failing", [0, 1])
def test_what_ends_one_thread_ends_all(failing):
    """The other one waits in compiled code for a meeting that the first never comes to."""
    x = np.zeros((2, 2), np.int64)

    def kernel(share):
        if share.first == failing:
            raise KeyboardInterrupt
        in_turn(share, 5, x)

    with pytest.raises(KeyboardInterrupt):
        run_together(kernel, 2, 2)


def _run_in_child(queue):
    x = np.zeros((2, 2), np.int64)
    run_together(in_turn, 2, 2, 10, x)
    queue.put(int(x[0, 0]))


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_have_threads_of_their_own():
    run_together(in_turn, 2, 2, 10, np.zeros((2, 2), np.int64))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_run_in_child, args=(queue,))
    child.start()
    child.join(60.0)
    assert child.exitcode == 0
    assert queue.get() == 10
