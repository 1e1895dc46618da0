"""What a run of F8 says: shares and ratios by loss and by scale, and every failure by name."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

from trial import TARGET, Trial

PEERS = {"clarabel": "Clarabel in CVXPY", "direct": "Clarabel on our program"}
# Where Clarabel is faster than this nobody waits for either.
WORTH_SECONDS = 0.02
MOST_RATIO, MEDIAN_RATIO = 2.0, 0.7


def complaints(trial: Trial) -> Iterator[str]:
    """Say what is wrong with one trial, with the name that reproduces it."""
    head = (
        f"{trial.name}: {trial.loss}, {trial.penalty}, {trial.shape}, {trial.scale}, "
        f"n={trial.n_nodes} m={trial.n_edges} d={trial.dim} rows={trial.n_rows} "
        f"lam={trial.lam:.2g}"
    )
    for fault in trial.faults:
        yield f"{head}: FAULT {fault}"
    if not trial.solved and trial.status not in ("exception", "killed"):
        known = "" if trial.error is None else f", true error {trial.error:.1e}"
        gap = "unknown" if trial.rel_gap is None else f"{trial.rel_gap:.1e}"
        seconds = f"{_number(trial.seconds)} s, {trial.n_iter} iterations, {trial.method}"
        yield f"{head}: not solved ({trial.status}), gap {gap}{known}, {seconds}"
    for peer, title in PEERS.items():
        ratio = worthy(trial, peer)
        if ratio is not None and ratio > MOST_RATIO:
            seconds = f"{_number(trial.seconds)} s, {trial.n_iter} iterations, {trial.method}"
            yield f"{head}: {ratio:.1f} times {title} ({seconds})"
    if trial.right and trial.provable and not trial.certified:
        seconds = _number(trial.certify_seconds)
        yield f"{head}: {trial.certificate} in {seconds} s: {trial.certify_reason}"


def worthy(trial: Trial, peer: str) -> float | None:
    """Return our time over the peer's, where the peer takes long enough."""
    seconds = getattr(trial, peer)
    return trial.ratio(peer) if seconds is not None and seconds > WORTH_SECONDS else None


def markdown(trials: list[Trial], seed: int, threads: int) -> str:
    """Return the report."""
    groups: tuple[tuple[str, Callable[[Trial], str]], ...] = (
        ("loss", lambda t: t.loss),
        ("penalty", lambda t: t.penalty),
        ("scale", lambda t: t.scale),
        ("method", lambda t: t.method or t.status),
    )
    lines = [
        f"# F8, seed {seed}, {threads} thread(s): {len(trials)} instances",
        "",
        *_totals(trials),
    ]
    for title, key in groups:
        lines += ["", f"## By {title}", "", *_table(title, trials, key)]
    wrong = [line for trial in trials for line in complaints(trial)]
    lines += ["", "## Failures", "", *(f"- {line}" for line in wrong or ["none"])]
    return "\n".join(lines) + "\n"


def _totals(trials: list[Trial]) -> Iterator[str]:
    n = len(trials)
    solved = sum(t.solved for t in trials)
    yield f"- solved to {TARGET:g}: {solved} of {n}"
    for peer, title in PEERS.items():
        ratios = _ratios(trials, peer)
        above = sum(r > MOST_RATIO for r in ratios)
        yield (
            f"- {title} above {1e3 * WORTH_SECONDS:g} ms: above {MOST_RATIO:g}x: {above} of "
            f"{len(ratios)}; median ratio {_median(ratios)} (to be at most {MEDIAN_RATIO:g})"
        )
        every = [r for t in trials if (r := t.ratio(peer)) is not None]
        yield f"- {title} however fast: median ratio {_median(every)} of {len(every)}"
    right = [t for t in trials if t.right and t.provable]
    certified = sum(t.certified for t in right)
    late = sum(t.certificate == "CERTIFIED" and not t.certified for t in right)
    yield f"- right answers certified in time: {certified} of {len(right)} ({late} too late)"
    failed = [t.name for t in trials if t.clarabel_error is None or t.clarabel_error > TARGET]
    yield f"- Clarabel in CVXPY itself not within {TARGET:g}: {len(failed)}"
    yield f"- faults (exceptions, invalid gaps, values that disagree): {sum(map(_faulty, trials))}"


def _faulty(trial: Trial) -> bool:
    return bool(trial.faults)


def _table(title: str, trials: list[Trial], key: Callable[[Trial], str]) -> Iterator[str]:
    heads = [title, "instances", "solved"]
    for peer in ("CVXPY", "direct"):
        heads += [f"{peer}: compared", "median", "worst"]
    yield "| " + " | ".join([*heads, "certified", "faults"]) + " |"
    yield "|" + "---|" * (len(heads) + 2)
    for name in sorted({key(t) for t in trials}):
        group = [t for t in trials if key(t) == name]
        cells = [name, str(len(group)), f"{sum(t.solved for t in group)}"]
        for peer in PEERS:
            ratios = _ratios(group, peer)
            cells += [str(len(ratios)), _median(ratios), _number(max(ratios, default=None))]
        right = [t for t in group if t.right and t.provable]
        cells.append(f"{sum(t.certified for t in right)} of {len(right)}")
        yield "| " + " | ".join([*cells, str(sum(map(_faulty, group)))]) + " |"


def _ratios(trials: list[Trial], peer: str) -> list[float]:
    return [ratio for t in trials if (ratio := worthy(t, peer)) is not None]


def _median(ratios: list[float]) -> str:
    return _number(statistics.median(ratios) if ratios else None)


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.3g}"
