"""Family F8 from end to end: each instance in a process with few threads, results as they come."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import fuzz
import fuzz_report
import tables
import trial
from trial import Trial

Chosen = fuzz.Draw | tables.Posed
# Libraries read these when they are loaded.
THREAD_NAMES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# An instance has several solves, each with the limit, and a proof; then its process is stopped.
LIMITS_IN_ALL, GRACE = 20, 300.0
WARM_UP_LIMIT = 10.0


def instances(seed: int, count: int, with_tables: bool, only: str | None) -> list[Chosen]:
    """Return what is asked for; `only` is the name of one instance."""
    if only is not None and only.isdecimal():
        return [fuzz.draw(seed, int(only))]
    real: list[Chosen] = [*tables.posed()] if with_tables else []
    if only is not None:
        return [chosen for chosen in real if chosen.name == only]
    return [*(fuzz.draw(seed, k) for k in range(count)), *real]


class Worker:
    """A process that tries one instance after the other, and is replaced if it has to be killed."""

    def __init__(self, limit: float, threads: int) -> None:
        self.limit, self.threads = limit, threads
        self._start()

    def _start(self) -> None:
        context = mp.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        few = dict.fromkeys(THREAD_NAMES, str(self.threads))
        with patch.dict(os.environ, few):
            self._process = context.Process(
                target=_serve, args=(theirs, self.limit, self.threads), daemon=True
            )
            self._process.start()
        theirs.close()

    def run(self, chosen: Chosen) -> Trial:
        """Return what happened, whatever it was."""
        self._pipe.send(chosen)
        described: Trial | None = None
        try:
            while self._pipe.poll(LIMITS_IN_ALL * self.limit + GRACE):
                answer: Trial = self._pipe.recv()
                if answer.status:
                    return answer
                described = answer
            reason = "killed: it does not come back"
        except (EOFError, ConnectionError):
            reason = "its process died, perhaps of memory"
        self.close()
        self._start()
        return trial.killed(described or _undescribed(chosen), reason)

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def _undescribed(chosen: Chosen) -> Trial:
    where = getattr(chosen, "shape", getattr(chosen, "table", ""))
    scale, lam = getattr(chosen, "scale", "table"), getattr(chosen, "lam", float("nan"))
    return Trial(chosen.name, chosen.loss, chosen.penalty, where, scale, 0, 0, 0, 0, lam)


def _serve(pipe: Connection, limit: float, threads: int) -> None:
    warm: set[tuple[object, ...]] = set()
    while True:
        chosen = pipe.recv()
        instance = chosen.instance()
        pipe.send(trial.described(instance))
        kind = (chosen.loss, chosen.penalty, instance.dim, instance.shape, instance.n > 400)
        if kind not in warm:
            warm.add(kind)
            trial.warm_up(chosen.tiny().instance(), WARM_UP_LIMIT)
        pipe.send(trial.run(instance, limit, threads))


def run(chosen: list[Chosen], limit: float, threads: int, path: Path) -> list[Trial]:
    """Try the instances; each result is a line of the file as soon as it is known."""
    path.parent.mkdir(parents=True, exist_ok=True)
    worker = Worker(limit, threads)
    done: list[Trial] = []
    try:
        with path.open("w", encoding="utf-8") as file, suppress(KeyboardInterrupt):
            for result in _progress(chosen, worker):
                done.append(result)
                file.write(json.dumps(asdict(result)) + "\n")
                file.flush()
                for line in fuzz_report.complaints(result):
                    print(f"\r{line:80}", flush=True)
    finally:
        worker.close()
    return done


def _progress(chosen: list[Chosen], worker: Worker) -> Iterator[Trial]:
    """Yield results; on a terminal a line says how far it is."""
    start = time.monotonic()
    for k, instance in enumerate(chosen):
        if sys.stderr.isatty():
            minutes = (time.monotonic() - start) / 60
            text = f"{k} of {len(chosen)}, {minutes:.0f} min; now {instance.name}: {instance.loss}"
            print(f"\r{text:79.79}", end="", file=sys.stderr, flush=True)
        yield worker.run(instance)


def main(chosen: list[Chosen], seed: int, limit: float, threads: int, out: Path) -> int:
    """Run the family and write its report; returns 1 where something never to happen happened."""
    if absent := tables.absent():
        print(f"tables left out, their package is not installed: {', '.join(absent)}")
    print(f"F8: seed {seed}, {len(chosen)} instances, {threads} thread(s), limit {limit:g} s")
    name = f"fuzz-{seed}" + (f"-{chosen[0].name}" if len(chosen) == 1 else "")
    done = run(chosen, limit, threads, out / f"{name}.jsonl")
    text = fuzz_report.markdown(done, seed, threads)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    return int(any(result.faults for result in done))
