"""How programs run and are reached: in this process, or each in its own."""

from gtvcvx.federated.transport._child import ClientError
from gtvcvx.federated.transport._deployment import Deployment, Posted, Transport, check_transport
from gtvcvx.federated.transport._memory import InMemory
from gtvcvx.federated.transport._processes import Processes
from gtvcvx.federated.transport._recorded import Recorded, RecordedFrame, RecordedStep

__all__ = [
    "ClientError",
    "Deployment",
    "InMemory",
    "Posted",
    "Processes",
    "Recorded",
    "RecordedFrame",
    "RecordedStep",
    "Transport",
    "check_transport",
]
