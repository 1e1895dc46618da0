"""``gtvcvx federate``: a federated algorithm on a problem, round by round, and its proof."""

from __future__ import annotations

import inspect
import warnings
from argparse import Namespace
from typing import Any

import verify
from gtvcvx import federated as fed
from gtvcvx.cli._loading import check_outputs, load_problem, load_solution
from gtvcvx.cli._proof import certificate_data, certificate_lines, exit_status
from gtvcvx.cli._report import counted, emit, entry, working
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution


def run(args: Namespace) -> int:
    """Load, run, write, certify, report."""
    inputs = {"PROBLEM": args.problem}
    if args.reference is not None:
        inputs["--reference"] = args.reference
    check_outputs({"--output": args.output, "--certificate": args.certificate}, inputs)
    with working(args, "reading"):
        problem = load_problem(args.problem)
        reference = None
        if args.reference is not None:
            reference = load_solution(args.reference, problem, args.problem)
    if args.lam is not None and args.algorithm.lam == "problem":
        problem = problem.with_lam(args.lam)
    algorithm = _algorithm(args, problem)
    done, notes = _simulate(args, algorithm, problem, reference)
    # Written before the certificate is computed: an interrupt there costs only the verdict.
    done.save(args.output)
    certificate = _certify(args, done)
    written = {"output": args.output, "certificate": None}
    if args.certificate is not None and isinstance(certificate, verify.Certificate):
        certificate.save(args.certificate)
        written["certificate"] = args.certificate
    proof = _proof_lines(certificate)
    paths = ", ".join(path for path in written.values() if path)
    emit(
        args,
        [*_run_lines(done, problem, notes), *proof, entry("Written", paths)],
        {
            **_run_data(done, notes),
            "certificate": _proof_data(certificate),
            "written": written,
        },
    )
    return exit_status(certificate.status)


def _algorithm(args: Namespace, problem: GTVProblem) -> fed.Algorithm:
    """Return the algorithm with the parameters given; others are refused by name."""
    method, given = args.algorithm, _settings(args, problem)
    kind = getattr(fed, method.kind)
    known = inspect.signature(kind).parameters
    for name in given:
        if name not in known:
            which = ", ".join(known) or "none at all"
            raise ValueError(f"--set: {method.kind} has no parameter {name!r}, it has {which}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in given:
            raise ValueError(f"--set: {method.kind} needs {name}=VALUE")
    try:
        algorithm: fed.Algorithm = kind(**given)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return algorithm


def _settings(args: Namespace, problem: GTVProblem) -> dict[str, Any]:
    """Return the parameters of the algorithm; a name that is given twice is refused."""
    given: dict[str, Any] = {} if args.rho is None else {"rho": args.rho}
    if args.lam is not None and args.algorithm.lam != "problem":
        given["lam"] = args.lam
    for name, value in args.settings:
        if name in given:
            raise ValueError(f"--set: {name} is given twice")
        given[name] = value
    # Gradient steps are the other way of FedAvg, which has no lambda then.
    if args.algorithm.lam == "own" and not {"lam", "steps"} & set(given):
        given["lam"] = problem.lam
    return given


def _simulate(
    args: Namespace, algorithm: fed.Algorithm, problem: GTVProblem, reference: Solution | None
) -> tuple[fed.Run, list[str]]:
    """Return the run, and what there is to warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            done = fed.simulate(
                algorithm,
                problem,
                args.rounds,
                **_conditions(args),
                seed=args.seed,
                record_every=args.record_every,
                reference=reference,
                transport=args.transport,
                time_limit=args.time_limit,
                verbose=False if args.quiet else None,
            )
        except fed.ClientError as error:
            # What a client's program says of its data, in a process of its own.
            raise ValueError(str(error)) from error
    return done, list(dict.fromkeys(str(warning.message) for warning in caught))


def _conditions(args: Namespace) -> dict[str, Any]:
    """Return who is there, and what becomes of messages; what is not asked for is left out."""
    makers = {
        "availability": fed.Bernoulli,
        "sampling": fed.Sampling,
        "delay": fed.Delay,
        "loss": fed.Loss,
    }
    given = {name: getattr(args, name) for name in makers}
    return {name: makers[name](value) for name, value in given.items() if value is not None}


def _certify(args: Namespace, done: fed.Run) -> verify.Certificate | fed.Uncertified:
    try:
        with working(args, "certifying"):
            return done.certificate(args.rtol, search=args.search, time_limit=args.time_limit)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted during certification; the run is in {args.output}"
        ) from None


def _run_lines(done: fed.Run, problem: GTVProblem, notes: list[str]) -> list[str]:
    last = done.history.last()
    ended = done.status.replace("_", " ") + (f": {done.message}" if done.message else "")
    lines = [
        entry("Algorithm", repr(done.algorithm)),
        entry("Solves", done.algorithm.guarantee),
        entry("Problem", _problem_text(done.net, problem)),
        entry("Rounds", f"{done.rounds}, {ended}"),
    ]
    active = done.history.mean_active
    if active is not None:
        lines.append(entry("Clients", f"{active:.3g} of {len(done.nodes)} active on average"))
    if last:
        sent = f"{last['bytes_up']} up, {last['bytes_down']} down, {last['messages']} messages"
        lines += [entry("Bytes", sent), entry("Value", f"{last['value']:.12g}")]
    for name, column in (("Gap", "gap"), ("Distance", "distance")):
        if column in last:
            lines.append(entry(name, f"{last[column]:.3g}"))
    return lines + [entry("Warning", note) for note in notes]


def _problem_text(net: fed.Network, problem: GTVProblem) -> str:
    servers = f"{counted(net.n_servers, 'server')}, " if net.n_servers else ""
    return (
        f"{counted(net.n_clients, 'client')}, {servers}{counted(net.graph.n_edges, 'link')}, "
        f"{counted(net.dim, 'coefficient')} each; penalty {problem.penalty.name}, "
        f"lambda = {problem.lam:g}"
    )


def _run_data(done: fed.Run, notes: list[str]) -> dict[str, Any]:
    return {
        "algorithm": repr(done.algorithm),
        "solves": done.algorithm.guarantee,
        "clients": done.net.n_clients,
        "servers": done.net.n_servers,
        "links": done.net.graph.n_edges,
        "rounds": done.rounds,
        "status": done.status,
        "message": done.message,
        "seed": done.seed,
        "seconds": done.seconds,
        "last": done.history.last(),
        "active_on_average": done.history.mean_active,
        "warnings": notes,
    }


def _proof_lines(certificate: verify.Certificate | fed.Uncertified) -> list[str]:
    if isinstance(certificate, fed.Uncertified):
        return [entry("Certificate", f"{certificate.status}: {certificate.reason}")]
    return certificate_lines(certificate)


def _proof_data(certificate: verify.Certificate | fed.Uncertified) -> dict[str, Any]:
    if isinstance(certificate, fed.Uncertified):
        names = ("status", "reason", "distance")
        return {name: getattr(certificate, name) for name in names}
    return certificate_data(certificate)
