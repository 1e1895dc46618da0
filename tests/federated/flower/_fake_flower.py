"""What the adaptor uses of Flower, in memory: messages, records, apps, and a grid that can fail.

Types are as strict as Flower's: a record takes numbers, text, bytes and lists of one of them.
"""

import itertools
import random
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

SCALARS = (int, float, str, bytes, bool)


class ConfigRecord(dict):
    def __init__(self, values):
        for name, value in values.items():
            entries = value if isinstance(value, list) else [value]
            for entry in entries:
                if not isinstance(entry, SCALARS) or type(entry) is not type(entries[0]):
                    raise TypeError(f"{name}: {entry!r}")
        super().__init__(values)


class RecordDict(dict):
    pass


class Message:
    def __init__(self, content, dst_node_id=None, message_type="", *, ttl=None, group_id="", **kw):
        assert isinstance(content, RecordDict)
        reply_to = kw.pop("reply_to", None)
        assert not kw
        self.content, self.error, self.ttl, self.group_id = content, None, ttl, group_id
        source = None if reply_to is None else reply_to.metadata.dst_node_id
        self.metadata = SimpleNamespace(
            src_node_id=source, dst_node_id=dst_node_id, message_type=message_type
        )

    def has_error(self):
        return self.error is not None


def error_reply(message, reason):
    reply = Message(RecordDict(), reply_to=message)
    reply.error = SimpleNamespace(code=2, reason=reason)
    return reply


class ClientApp:
    def train(self):
        def register(function):
            self.function = function
            return function

        return register


class ServerApp:
    def main(self):
        def register(function):
            self.function = function
            return function

        return register


def install(monkeypatch):
    """Let ``import flwr.app`` give the fake."""
    app = ModuleType("flwr.app")
    app.Message, app.RecordDict, app.ConfigRecord = Message, RecordDict, ConfigRecord
    app.MessageType = SimpleNamespace(TRAIN="train")
    clientapp, serverapp = ModuleType("flwr.clientapp"), ModuleType("flwr.serverapp")
    clientapp.ClientApp, serverapp.ServerApp = ClientApp, ServerApp
    monkeypatch.setitem(sys.modules, "flwr", ModuleType("flwr"))
    for module in (app, clientapp, serverapp):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@dataclass
class Grid:
    """Nodes with one client each, and a script of what goes wrong.

    ``fate(partition, nth request)`` is "ok", "lost" (the request), "unanswered" (the answer),
    "error", or "twice" (delivered again after the answer, when the next request comes).
    """

    app: ClientApp
    partitions: list
    fate: object = lambda partition, count: "ok"
    seed: int = 0
    contexts: dict = field(default_factory=dict)
    count: dict = field(default_factory=dict)
    late: dict = field(default_factory=dict)
    sent: list = field(default_factory=list)
    present: object = None

    def __post_init__(self):
        draw = random.Random(self.seed)
        for partition in self.partitions:
            self.add(draw.getrandbits(63), partition)

    def add(self, node, partition):
        config = {} if partition is None else {"partition-id": partition}
        self.contexts[node] = SimpleNamespace(node_config=config, state=RecordDict())
        self.count[node] = itertools.count()

    def partition(self, node):
        return self.contexts[node].node_config.get("partition-id")

    def get_node_ids(self):
        return list(self.contexts) if self.present is None else self.present(self)

    def send_and_receive(self, messages, timeout):
        replies = [self._one(message, timeout) for message in messages]
        return [reply for reply in replies if reply is not None]

    def _one(self, message, timeout):
        node = message.metadata.dst_node_id
        assert message.ttl == timeout
        self.sent.append(dict(message.content["gtvcvx"]))
        fate = self.fate(self.partition(node), next(self.count[node]))
        if fate == "lost":
            return None
        if node in self.late:
            self._run(self.late.pop(node))
        reply = self._run(message)
        if fate == "twice":
            self.late[node] = message
        if fate == "error":
            return error_reply(message, "<class 'OSError'>:<'no disk'>")
        return None if fate == "unanswered" else reply

    def _run(self, message):
        context = self.contexts[message.metadata.dst_node_id]
        try:
            return self.app.function(message, context)
        except Exception as error:
            return error_reply(message, f"{type(error)}:<'{error}'>")
