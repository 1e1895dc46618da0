"""The ServerApp: it carries messages, and in the end prints the models and their certificate."""

import numpy as np

from flower_gtv.task import ALGORITHM, STATES, graph, load_loss
from gtvcvx import federated as fed
from gtvcvx.federated import flower


def report(outcome: flower.Outcome) -> None:
    """Print the models. These data are public, so that the server can certify the result."""
    for state, (constant, slope) in zip(STATES, outcome.models.values(), strict=True):
        print(f"{state:12} {constant:8.4f} {slope:+8.4f} a year")
    losses = [load_loss(i) for i in range(len(STATES))]
    whole = fed.Network(losses, graph())
    run = outcome.with_data(whole)
    print(run.certificate())
    print(f"{len(outcome.absences)} absences, {outcome.seconds / outcome.rounds:.2f} s a round")
    same = fed.simulate(outcome.algorithm, whole, outcome.rounds)
    print(f"distance from simulate: {np.abs(run.w - same.w).max():g}", flush=True)


app = flower.server_app(ALGORITHM, graph(), done=report)
