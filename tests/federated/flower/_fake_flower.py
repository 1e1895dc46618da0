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

    ``fate(partition, k)`` of the k-th request to a node is "ok"; "lost", the request; "unanswered",
    the answer; "error", in place of the answer; "late", delivered before the next request;
    "overtaken", delivered after it; "twice", now and before the next; "amnesia", the node's state.
    """

    app: ClientApp
    partitions: list
    fate: object = lambda partition, k: "ok"
    contexts: dict = field(default_factory=dict)
    # Nodes that are connected, by the number of calls so far.
    connected: object = None
    calls: int = 0
    requests: list = field(default_factory=list)
    answers: list = field(default_factory=list)

    def __post_init__(self):
        draw = random.Random(0)
        self.count, self.before, self.after = {}, {}, {}
        for partition in self.partitions:
            self.add(draw.getrandbits(63), partition)

    def add(self, node, partition):
        config = {} if partition is None else {"partition-id": partition}
        self.contexts[node] = SimpleNamespace(node_config=config, state=RecordDict())
        self.count[node] = itertools.count()

    def partition(self, node):
        return self.contexts[node].node_config.get("partition-id")

    def get_node_ids(self):
        self.calls += 1
        return list(self.contexts) if self.connected is None else self.connected(self)

    def send_and_receive(self, messages, timeout):
        replies = [self._one(message, timeout) for message in messages]
        return [reply for reply in replies if reply is not None]

    def _one(self, message, timeout):
        node = message.metadata.dst_node_id
        assert message.ttl == timeout
        self.requests.append(dict(message.content["gtvcvx"]))
        fate = self.fate(self.partition(node), next(self.count[node]))
        if fate == "lost":
            return None
        self._deliver(self.before, node)
        if fate == "amnesia":
            self.contexts[node].state.clear()
        if fate in ("late", "twice"):
            self.before[node] = message
        if fate == "overtaken":
            self.after[node] = message
        reply = None if fate in ("late", "overtaken") else self._run(message)
        if fate != "overtaken":
            self._deliver(self.after, node)
        if fate == "error":
            return error_reply(message, "<class 'OSError'>:<'no disk'>")
        return None if fate == "unanswered" else reply

    def _deliver(self, delayed, node):
        if node in delayed:
            self._run(delayed.pop(node))

    def _run(self, message):
        context = self.contexts[message.metadata.dst_node_id]
        try:
            reply = self.app.function(message, context)
        except Exception as error:
            return error_reply(message, f"{type(error)}:<'{error}'>")
        self.answers.append(dict(reply.content["gtvcvx"]))
        return reply
