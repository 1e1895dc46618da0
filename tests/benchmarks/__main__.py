"""Time to a true relative gap, beside other solvers: ``python tests/benchmarks --help``."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The checkout is measured, whatever is installed.
sys.path.insert(1, str(ROOT))

import cvxpy as cp  # noqa: E402
from clustering import find_data  # noqa: E402
from external import PROGRAMS  # noqa: E402
from families import FAMILIES, Case, cases  # noqa: E402
from measure import Settings, run_case  # noqa: E402
from peers import EPS_NAMES, PEERS  # noqa: E402

FUZZ = "F8"  # of random instances and real tables: see fuzz.py and tables.py


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python tests/benchmarks", description=__doc__)
    p.add_argument("--family", nargs="+", choices=[*FAMILIES, FUZZ], default=list(FAMILIES))
    p.add_argument("--sizes", nargs="+", type=_positive, help="nodes, instead of the family's own")
    p.add_argument(
        "--only",
        metavar="TEXT",
        help="only instances with this in their name (--list); F8: the one of this name",
    )
    p.add_argument("--peers", nargs="+", choices=PEERS, help="gtvcvx always runs as well")
    p.add_argument("--rtol", nargs="+", type=float, default=[1e-6], help="relative gaps to reach")
    p.add_argument("--repeats", type=_positive, default=3, help="the table shows medians")
    p.add_argument("--time-limit", type=float, metavar="S", help="of each run; 300, F8: 30")
    p.add_argument("--certify-up-to", type=int, default=2_000_000, metavar="NODES")
    p.add_argument("--out", type=Path, default=Path("benchmark-results"), metavar="DIR")
    p.add_argument("--quick", action="store_true", help="one small size of each family, one run")
    p.add_argument("--bandwidth", action="store_true", help="measure the inner loop instead")
    p.add_argument("--path", action="store_true", help="measure paths of lambda instead")
    p.add_argument("--proofs", action="store_true", help="measure what certificates cost instead")
    p.add_argument("--external", type=Path, metavar="DIR", help="environments of other programs")
    p.add_argument("--data", type=Path, metavar="DIR", help="F9: a folder with .mat files")
    p.add_argument("--write-docs", action="store_true", help="put all of DIR in docs/benchmarks.md")
    p.add_argument("--note", metavar="TEXT", help="a line under the tables of this run on the page")
    p.add_argument("--render", action="store_true", help="measure nothing; write what DIR holds")
    p.add_argument("--seed", type=int, default=1, help="F8: another seed, another set of instances")
    p.add_argument("--count", type=_count, default=500, help="F8: number of random instances")
    p.add_argument("--no-tables", action="store_true", help="F8: without the tables of real data")
    p.add_argument("--threads", type=_positive, default=1, help="F8: of everybody")
    p.add_argument("--list", action="store_true", help="show instances and solvers, and stop")
    return p


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"a positive integer is expected, got {text}")
    return number


def _count(text: str) -> int:
    return 0 if text == "0" else _positive(text)


def main() -> int:
    args = parser().parse_args()
    fuzz_only = args.family == [FUZZ]
    if args.time_limit is None:
        args.time_limit = 30.0 if fuzz_only else 300.0
    wrong = [x for x in [*args.rtol, args.time_limit] if not (math.isfinite(x) and x > 0)]
    if wrong:
        parser().error(f"--rtol, --time-limit: a positive number is expected, got {wrong[0]}")
    if FUZZ in args.family:
        if not fuzz_only:
            parser().error(f"--family: {FUZZ} goes alone, it has a report of its own")
        return _fuzz(args)
    if args.data is not None:
        _data(args.data)
    chosen = [
        case
        for family in args.family
        for case in cases(family, args.sizes, args.quick)
        if args.only is None or args.only in str(case)
    ]
    peers = _peers(args)
    if args.list:
        print("\n".join(f"{name:14} {peer.title}" for name, peer in PEERS.items()))
        for family in args.family:
            print(f"\n{family}: {FAMILIES[family].build.__doc__}")
            print("\n".join(f"  {case}" for case in chosen if case.family == family))
        return 0
    alone = args.bandwidth or args.path or args.proofs
    if not chosen and not alone:
        parser().error(f"--only: no instance has {args.only!r} in its name")

    import plots
    import report

    results = report.Results(args.out)
    if args.note:
        results.facts["note"] = args.note
    if not args.render:
        results.facts["machine"] = report.machine()
        if args.bandwidth:
            import bandwidth

            results.facts["bandwidth"] = [
                bandwidth.measure(case) for case in bandwidth.default_cases(args.sizes, args.quick)
            ]
        elif args.path:
            import paths

            results.facts["paths"] = [
                paths.measure(case) for case in paths.default_cases(args.sizes, args.quick)
            ]
        elif args.proofs:
            import certificates

            results.facts["proofs"] = [
                certificates.measure(case)
                for case in certificates.default_cases(args.sizes, args.quick)
            ]
        else:
            _compare(args, chosen, peers, results)
    results.write()
    plots.write_plots(results.rows, args.out)
    print(results.markdown() if alone else f"written to {args.out}")
    if args.write_docs:
        results.write_page()
    return 0


def _data(folder: Path) -> None:
    try:
        missing = find_data(folder)
    except ValueError as error:
        parser().error(str(error))
    print("\n".join(missing))


def _fuzz(args: argparse.Namespace) -> int:
    import fuzz_run

    count, with_tables = (5, False) if args.quick else (args.count, not args.no_tables)
    chosen = fuzz_run.instances(args.seed, count, with_tables, args.only)
    if args.list:
        print("\n".join(map(str, chosen)))
        return 0
    if not chosen:
        parser().error(f"--only: F8 has no instance {args.only!r}")
    return fuzz_run.main(chosen, args.seed, args.time_limit, args.threads, args.out)


def _peers(args: argparse.Namespace) -> list[str]:
    names = args.peers or [name for name, peer in PEERS.items() if peer.default]
    if args.external is not None and not args.peers:
        names = [*names, *PROGRAMS]
    elif args.external is None and not args.list and (asked := PROGRAMS.keys() & set(names)):
        parser().error(f"--peers {', '.join(sorted(asked))}: --external DIR is needed")
    solvers = {name: name.split(":")[0] for name in names}
    absent = [
        name for name, s in solvers.items() if s in EPS_NAMES and s not in cp.installed_solvers()
    ]
    if absent and not args.list:
        print(f"not installed, left out: {', '.join(absent)}")
    return list(dict.fromkeys(["gtvcvx", *(name for name in names if name not in absent)]))


def _compare(args: argparse.Namespace, chosen: list[Case], peers: list[str], results) -> None:
    import external
    import workers

    if args.external is not None:
        asked = [name for name in peers if name in PROGRAMS]
        for line in (missing := external.prepare(args.external, asked)):
            print(f"left out, {line}")
        gone = {line.split(":")[0] for line in missing}
        peers = [name for name in peers if name not in gone]
    if not args.quick:
        results.facts["first_call"] = workers.first_call(Case("F4", 10_000, "", "l2", 0.3))
    settings = Settings(
        targets=sorted(args.rtol, reverse=True),
        repeats=1 if args.quick else args.repeats,
        time_limit=min(args.time_limit, 30.0) if args.quick else args.time_limit,
        certify_up_to=args.certify_up_to,
        log=lambda text: print(text, flush=True),
    )
    too_slow: dict[str, set[str]] = {}
    for case in chosen:
        skipped = too_slow.setdefault(case.series, set())
        rows = run_case(case, [name for name in peers if name not in skipped], settings)
        # Who did not get there in time will not at a larger size.
        skipped |= {row.peer for row in rows if not row.reached} - {"gtvcvx"}
        results.add(rows)
        results.write()


if __name__ == "__main__":
    sys.exit(main())
