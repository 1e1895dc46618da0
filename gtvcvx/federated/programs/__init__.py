"""Programs of clients and servers: all that they see, and what they do in a round."""

from gtvcvx.federated.programs._local_loss import LocalLoss, local_losses, stacked_locals
from gtvcvx.federated.programs._participant import Participant, quiet
from gtvcvx.federated.programs._program import (
    ClientProgram,
    Inbox,
    Outbox,
    Program,
    Report,
    ServerProgram,
    View,
    newest,
)

__all__ = [
    "ClientProgram",
    "Inbox",
    "LocalLoss",
    "Outbox",
    "Participant",
    "Program",
    "Report",
    "ServerProgram",
    "View",
    "local_losses",
    "newest",
    "quiet",
    "stacked_locals",
]
