"""Every client in a process of its own, over TCP of this machine."""

from __future__ import annotations

import selectors
import time
from collections.abc import Mapping, Sequence

from gtvcvx._arrays import IntArray, is_number
from gtvcvx._processes._child import end_all
from gtvcvx._processes._failures import Failure, as_error, unpacked_error
from gtvcvx._processes._inside import is_child
from gtvcvx._processes._link import Link
from gtvcvx._processes._records import RecordError, record
from gtvcvx.federated.process import _records as records
from gtvcvx.federated.process._worker import Start
from gtvcvx.federated.programs import Participant, Report, quiet
from gtvcvx.federated.transport._child import Child, ClientError, pickled
from gtvcvx.federated.transport._deployment import BusyError, Deployment, Posted
from gtvcvx.federated.transport._door import Door
from gtvcvx.federated.transport._router import Router
from gtvcvx.federated.wire import SchemaError

# Seconds in which a process is to come up and knock; 1,000 of them take minutes, but some of them
# come all the time.
_START = 60.0
# Seconds that processes have to end by themselves. They do at once, unless a program hangs.
_END = 3.0


class Processes:
    """Runs each client in a process of its own, which holds the data of that client alone.

    Programs, messages and results are those of ``transport="memory"``, to the last bit where linear
    algebra runs on one thread in both. Servers, which have no data, run in this process; it carries
    the frames and knows the links. A client whose process ends, is silent or breaks the rules
    (a frame that is no message of the schema, another's name, no link to the recipient) is cut
    off: it counts as absent from then on, and a `ClientLostWarning` names it, the round and why.

    Parameters
    ----------
    timeout : float
        Seconds in which a client has to answer in a phase; after that it counts as lost.
    restart : bool
        Whether clients that are lost are started again in the next round, as those that come
        back from a `Crash`.

    Notes
    -----
    Classes of one's own that are sent to clients must be importable; those of a script are, if
    its actions stand under ``if __name__ == "__main__":``.
    """

    def __init__(self, timeout: float = 60.0, restart: bool = False) -> None:
        if not (is_number(timeout) and timeout > 0):
            raise ValueError(f"timeout: a number of seconds > 0 is expected, got {timeout!r}")
        self.timeout = float(timeout)
        self.restarts = bool(restart)
        self._children: dict[int, Child] = {}
        self._servers: dict[int, Participant] = {}
        self._lost: dict[int, str] = {}
        self._failures: dict[int, Failure] = {}
        self._door: Door | None = None

    def __repr__(self) -> str:
        return f"Processes(timeout={self.timeout:g}, restart={self.restarts})"

    @property
    def pids(self) -> dict[int, int]:
        """Process numbers of the clients that are there."""
        return {i: child.process.pid for i, child in sorted(self._children.items())}

    def start(self, deployment: Deployment) -> None:
        """Start all clients at the same time, and wait for them."""
        if is_child():
            raise RuntimeError(
                "processes are started while a client loads the main script: put the script's "
                'actions under if __name__ == "__main__":'
            )
        if self._door is not None:
            raise BusyError
        self._deployment, net = deployment, deployment.net
        self._form = deployment.form()
        self._router = Router(net, self._form, deployment.algorithm.report_size(net))
        self._selector = selectors.DefaultSelector()
        self._door = Door()
        servers = net.server_ids.tolist()
        with quiet():
            self._servers = {i: deployment.participant(i, self._form) for i in servers}
        self._launch(net.clients.tolist(), 1)

    def _launch(self, clients: Sequence[int], joined: int) -> None:
        assert self._door is not None
        starts = {i: self._start_of(i, joined) for i in clients}
        new = {}
        try:
            for i in clients:
                new[i] = Child(starts.pop(i))
                new[i].show_door(self._door.port, i)
            links = self._door.admit(new, _START)
        except BaseException:
            end_all(new.values(), 0.0)
            raise
        for i, child in new.items():
            link = child.link = links[i]
            link.limits = self._router.limits(i)
            self._children[i] = child
            self._selector.register(link.connection, selectors.EVENT_READ, i)
            child.show_start()
        self._answers(records.READY, 0, 0, clients, max(self.timeout, _START))
        for i in clients:
            if i in self._lost:
                raise ClientError(f"{self._label(i)}: {self._lost[i]}, before its first round")

    def _start_of(self, i: int, joined: int) -> bytes:
        deployment = self._deployment
        view = deployment.view(i, joined)
        return pickled(Start(deployment.program(i), view, self._form, self._label(i)))

    def _label(self, i: int) -> str:
        return self._deployment.net.label(i)

    def step(
        self,
        round_: int,
        phase: int,
        inboxes: Mapping[int, Sequence[bytes]],
        present: Mapping[int, IntArray],
    ) -> Mapping[int, Posted]:
        """Let participants take a step."""
        asked = [i for i in inboxes if i in self._children]
        for i in asked:
            body = records.packed_frames(inboxes[i])
            self._put(i, record(records.STEP, round_, phase, body))
        out: dict[int, Posted] = {}
        with quiet():
            for i, frames in inboxes.items():
                if i in self._servers:
                    out[i] = self._servers[i].step(round_, phase, frames, present.get(i))
        for i, body in self._answers(records.SENT, round_, phase, asked, self.timeout).items():
            try:
                out[i] = self._router.checked(i, round_, body)
            except RecordError as error:
                self._lose(i, str(error))
        return out

    def reports(self) -> Mapping[int, Report]:
        """Return the states of those who are there."""
        out = {i: server.report() for i, server in self._servers.items()}
        asked = list(self._children)
        for i in asked:
            self._put(i, record(records.ASK))
        for i, body in self._answers(records.STATE, 0, 0, asked, self.timeout).items():
            try:
                out[i] = self._router.state(i, body)
            except RecordError as error:
                self._lose(i, str(error))
        return out

    def _put(self, i: int, data: bytes) -> None:
        link = self._link(i)
        link.put(data)
        if link.waiting:
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._selector.modify(link.connection, both, i)

    def _answers(
        self, kind: int, round_: int, phase: int, asked: Sequence[int], timeout: float
    ) -> dict[int, bytes]:
        """Return the answers of those who give one in time; the others are lost."""
        wanted, missing = (kind, round_, phase), set(asked)
        answers: dict[int, bytes] = {}
        deadline = time.monotonic() + timeout
        while missing and (left := deadline - time.monotonic()) > 0:
            for key, events in self._selector.select(left):
                # Who was lost a moment ago may still be among these.
                if key.data in self._children:
                    self._hear(key.data, events, wanted, answers)
            over = answers.keys() | self._failures.keys()
            missing = {i for i in missing if i in self._children and i not in over}
        if self._failures:
            # Of the first of them, as in memory, whoever was faster.
            i, failure = min(self._failures.items())
            raise as_error(self._label(i), failure, _USUAL, ClientError)
        for i in missing:
            self._lose(i, f"no answer within {timeout:g} s")
        # Also of those who were lost after they had answered: that is said.
        return {i: answers[i] for i in asked if i in answers}

    def _hear(
        self, i: int, events: int, wanted: tuple[int, int, int], answers: dict[int, bytes]
    ) -> None:
        """Send what is left to send, read what has come, and keep what was asked for."""
        link = self._link(i)
        if events & selectors.EVENT_WRITE:
            link.push()
            if not link.waiting:
                self._selector.modify(link.connection, selectors.EVENT_READ, i)
        if not events & selectors.EVENT_READ:
            return
        there = link.pull()
        try:
            for head, body in link.records():
                if head.kind == records.ERROR:
                    self._failures[i] = unpacked_error(body)
                # Answers of other rounds are dropped, and one that comes twice counts once.
                if head[:3] == wanted:
                    answers.setdefault(i, body)
        except RecordError as error:
            self._lose(i, str(error))
            return
        if not there:
            self._lose(i, link.cut_short() or "its process has ended")

    def _link(self, i: int) -> Link:
        link = self._children[i].link
        assert link is not None
        return link

    def _lose(self, i: int, reason: str) -> None:
        self._lost[i] = reason
        self._end(i)

    def _end(self, i: int) -> None:
        if i not in self._children:
            return
        self._selector.unregister(self._link(i).connection)
        self._children.pop(i).kill()

    def crash(self, client: int) -> None:
        """Kill a client's process."""
        self._end(client)

    def restart(self, client: int, round_: int) -> None:
        """Start a client in a new process."""
        self._end(client)
        self._lost.pop(client, None)
        self._launch([client], round_)

    def lost(self) -> Mapping[int, str]:
        """Return the clients found gone since the last call, and why."""
        lost, self._lost = self._lost, {}
        return lost

    def close(self) -> None:
        """End all processes."""
        children, self._children = self._children, {}
        try:
            end_all(children.values(), _END)
        finally:
            self._servers, self._lost, self._failures = {}, {}, {}
            if self._door is not None:
                self._door.close()
                self._selector.close()
                self._door = None


# Errors of programs that are raised as what they are; others become a ClientError.
_USUAL = {kind.__name__: kind for kind in (SchemaError, ValueError, TypeError)}
