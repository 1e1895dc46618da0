"""Arguments of ``gtvcvx federate``."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any, NamedTuple

from gtvcvx.cli._arguments import (
    DEFAULT_RTOL,
    ArgumentParser,
    command_parser,
    positive,
    positive_int,
    probability,
    seed,
)


class Method(NamedTuple):
    """A federated algorithm that does with what a problem file says.

    Attributes
    ----------
    kind : str
        Name of its class in `gtvcvx.federated`.
    lam : {"problem", "own", "none"}
        Whose ``--lam`` is: the problem's, which the algorithm solves; the algorithm's own
        parameter, for which that of the problem is the default; or nobody's.
    summary : str
    """

    kind: str
    lam: str
    summary: str


#: By name. Those that need several servers, are told clusters, or train models that are no losses
#: of problem files, are not here.
METHODS = {
    "fedadmm": Method("FedADMM", "problem", "linearized ADMM on the edges; absent clients freeze"),
    "primal-dual": Method("PrimalDual", "problem", "Algorithm 1 of the GTV paper as messages"),
    "fedrelax": Method("FedRelax", "problem", "block minimization, all at once; squared penalty"),
    "mocha": Method("MOCHA", "problem", "the same, colour by colour; squared penalty"),
    "fedavg": Method("FedAvg", "own", "averages of models pulled to the server's by --lam"),
    "pfedme": Method("PFedMe", "own", "the same along Moreau envelopes, half the pull"),
    "fedsgd": Method("FedSGD", "none", "averages of gradients: one model for all"),
    "ifca": Method("IFCA", "none", "a server's --set k=K models; clients choose; not certified"),
    "local": Method("Local", "none", "each client by itself, lambda = 0"),
    "global": Method("Global", "none", "one model for all, from all losses"),
}

_DESCRIPTION = """\
Run a federated algorithm: each node of PROBLEM is a client with its own loss, which sends messages
to those that it has an edge to, or to a server. What was reached is certified against the problem
that the algorithm solves, and the run (models, flow, history of value, certified gap and bytes) is
written for 'gtvcvx report --federated'.

algorithms:
{methods}

Exit status 0 if the result is CERTIFIED to RTOL, 1 if not: it is too early, the run diverged, or
the algorithm solves no convex problem. Ctrl-C ends the rounds: what is there is written and
certified."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    known = "\n".join(f"  {name:<13}{method.summary}" for name, method in METHODS.items())
    parser = command_parser(
        commands,
        "federate",
        "run a federated algorithm",
        _DESCRIPTION.format(methods=known),
        "gtvcvx.cli._federate",
    )
    parser.add_argument("problem", metavar="PROBLEM", help="problem, npz, as 'fit' writes it")
    _add_algorithm(parser)
    _add_network(parser)
    _add_output(parser)


def _add_algorithm(parser: ArgumentParser) -> None:
    algorithm = parser.add_argument_group("algorithm")
    algorithm.add_argument(
        "--algorithm", type=_method, required=True, metavar="NAME", help="one of those above"
    )
    algorithm.add_argument("--rounds", type=positive_int, required=True, metavar="N")
    algorithm.add_argument(
        "--lam",
        type=positive,
        help="lambda in place of that of PROBLEM; for fedavg and pfedme, the pull to the server's "
        "model (default: that of PROBLEM)",
    )
    algorithm.add_argument(
        "--rho", type=positive, help="parameter of ADMM, as --set rho=RHO (default: 1)"
    )
    algorithm.add_argument(
        "--set",
        dest="settings",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another parameter of the algorithm, as in gtvcvx.federated, such as step=exact, "
        "which takes losses with kinks; may be given several times",
    )


def _add_network(parser: ArgumentParser) -> None:
    network = parser.add_argument_group("clients and messages")
    network.add_argument(
        "--availability",
        type=_present,
        metavar="P",
        help="probability, in (0, 1], that a client is there in a round (default: 1)",
    )
    network.add_argument(
        "--sampling",
        type=positive_int,
        metavar="M",
        help="how many of the clients that are there take part in a round (default: all)",
    )
    network.add_argument(
        "--delay",
        type=_delays,
        metavar="P0,P1,...",
        help="probabilities that a message comes 0, 1, ... rounds late",
    )
    network.add_argument(
        "--loss", type=_lost, metavar="P", help="probability, in [0, 1), that a message is lost"
    )
    network.add_argument("--seed", type=seed, default=0, help="of all that is random (default: 0)")
    network.add_argument(
        "--transport",
        choices=("memory", "processes"),
        default="memory",
        help="where clients run: in this process (default), or each in its own",
    )


def _add_output(parser: ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", required=True, metavar="RUN", help="run to write, npz")
    output.add_argument(
        "--record-every",
        type=positive_int,
        metavar="N",
        help="rounds between two records (default: about a hundred records)",
    )
    output.add_argument(
        "--reference",
        metavar="SOLUTION",
        help="solution, npz, that the distance of the nodes is recorded to",
    )
    output.add_argument(
        "--rtol",
        type=positive,
        default=DEFAULT_RTOL,
        help=f"relative gap to certify (default: {DEFAULT_RTOL:g})",
    )
    output.add_argument("--certificate", metavar="FILE", help="certificate to write, JSON or .gtvc")
    output.add_argument(
        "--no-search",
        dest="search",
        action="store_false",
        help="certify with the algorithm's own flow only: do not solve the dual problem if that "
        "does not suffice",
    )
    output.add_argument(
        "--time-limit",
        type=positive,
        metavar="SECONDS",
        help="time limit of the rounds; the certificate may take as long again",
    )


def _method(text: str) -> Method:
    """Read the name of an algorithm."""
    if text not in METHODS:
        raise ArgumentTypeError(f"one of {', '.join(METHODS)} is expected, got {text!r}")
    return METHODS[text]


def _setting(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE: a number, true, false or a word."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier() and value):
        raise ArgumentTypeError(f"NAME=VALUE is expected, got {text!r}")
    return name, _value(value)


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _present(text: str) -> float:
    value = probability(text)
    if value == 0:
        raise ArgumentTypeError(f"a probability in (0, 1] is expected, got {text!r}")
    return value


def _lost(text: str) -> float:
    value = probability(text)
    if value == 1:
        raise ArgumentTypeError(f"a probability in [0, 1) is expected, got {text!r}")
    return value


def _delays(text: str) -> list[float]:
    return [probability(part) for part in text.split(",")]
