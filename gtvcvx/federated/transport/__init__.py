"""How programs run and are reached: in this process, or each in its own."""

from gtvcvx.federated.transport._deployment import Deployment, Posted, Transport
from gtvcvx.federated.transport._memory import InMemory

__all__ = ["Deployment", "InMemory", "Posted", "Transport"]
