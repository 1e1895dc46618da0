"""Apps of Flower (extra ``flower``): the same programs as in `simulate`, on Flower's nodes.

Its message API is used and not its strategies, which return one aggregated model: here every client
has its own. ``examples/flower_gtv`` is an app for ``flwr run``.
"""

from gtvcvx.federated.flower._apps import client_app, partition_of, server_app
from gtvcvx.federated.flower._outcome import Absence, Outcome
from gtvcvx.federated.flower._router import AbsenceWarning

__all__ = [
    "Absence",
    "AbsenceWarning",
    "Outcome",
    "client_app",
    "partition_of",
    "server_app",
]
