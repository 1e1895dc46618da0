"""Rounds as Flower's messages: who is asked, what is carried, what counts as absence."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx.federated.flower._client import Record
from gtvcvx.federated.flower._directory import Directory
from gtvcvx.federated.flower._outcome import Absence, Outcome
from gtvcvx.federated.flower._plain import described, packed, unpacked
from gtvcvx.federated.flower._post import Post
from gtvcvx.federated.programs import Participant, Report, quiet
from gtvcvx.federated.runtime._mail import Traffic
from gtvcvx.federated.transport import Deployment, Posted
from gtvcvx.federated.wire import WireFormat, decoded

# How often those who do not answer are asked for their models in the end.
_LAST_ASKS = 3


class AbsenceWarning(UserWarning):
    """A client does not answer, and counts as absent."""


@dataclass
class _Peer:
    """What the router knows of a participant.

    Attributes
    ----------
    since : int
        Last request that it has answered; 0 makes it start.
    joined : int
        Round in which it starts: 1, or later where it has forgotten everything.
    waiting : list of bytes
        Frames for it.
    """

    since: int = 0
    joined: int = 1
    waiting: list[bytes] = field(default_factory=list)


class Router:
    """Carries the frames of clients, and runs the servers; it has no data.

    Parameters
    ----------
    deployment : Deployment
        Of a network without data.
    directory : Directory
    post : Post
    shared_seeds : bool
        Whether clients are told the seeds of their random numbers.
    """

    def __init__(
        self, deployment: Deployment, directory: Directory, post: Post, shared_seeds: bool
    ) -> None:
        self._deployment, self._directory, self._post = deployment, directory, post
        self._shared_seeds = shared_seeds
        self._net, self._form = deployment.net, deployment.form()
        self._peers = [_Peer() for _ in range(self._net.n_participants)]
        self._number = 0
        self._active: list[int] = []
        self._absences: list[Absence] = []
        self._traffic = Traffic()
        with quiet():
            self._servers = {int(i): self._server(int(i)) for i in self._net.server_ids}

    def _server(self, i: int) -> Participant:
        deployment = self._deployment
        label = self._net.label(i)
        return Participant(deployment.program(i), deployment.view(i), self._form, label)

    def run(self) -> Outcome:
        """Do all rounds, and ask for the models.

        Raises
        ------
        RuntimeError
            No client has ever answered after the first round.
        """
        began = time.perf_counter()
        phases = [np.asarray(p).tolist() for p in self._deployment.algorithm.phases(self._net)]
        for round_ in range(1, self._deployment.rounds + 1):
            self._begin(round_)
            for number, members in enumerate(phases):
                self._phase(round_, number, members)
            self._check_alive(round_)
        reports = self._reports()
        return Outcome(
            algorithm=self._deployment.algorithm,
            net=self._net,
            rounds=self._deployment.rounds,
            reports=reports,
            absences=self._absences,
            bytes_up=self._traffic.up,
            bytes_down=self._traffic.down,
            messages=self._traffic.messages,
            seconds=time.perf_counter() - began,
        )

    def _begin(self, round_: int) -> None:
        self._active = self._directory.meet(round_)
        for i in set(range(self._net.n_clients)) - set(self._active):
            self._absent(round_, i, f"there is no node for it{self._directory.because()}")
        for peer in self._peers:
            if peer.joined == round_ > 1:
                # As after a crash: what was sent meanwhile is lost.
                peer.waiting.clear()

    def _absent(self, round_: int, client: int, reason: str) -> None:
        if all(absence.client != client for absence in self._absences):
            label = self._net.label(client)
            text = f"{label} counts as absent in round {round_}: {reason}"
            warnings.warn(text, AbsenceWarning, stacklevel=2)
        self._absences.append(Absence(round_, client, reason))

    def _check_alive(self, round_: int) -> None:
        clients = self._peers[: self._net.n_clients]
        if round_ == 1 and not any(peer.since for peer in clients):
            reason = self._absences[0].reason if self._absences else "none was asked"
            raise RuntimeError(f"no client has answered in the first round: {reason}")

    def _phase(self, round_: int, phase: int, members: Sequence[int]) -> None:
        n, present = self._net.n_clients, list(self._active)
        asked = [i for i in members if i < n and i in self._active]
        sent = self._clients(round_, phase, asked)
        for i in members:
            if i >= n:
                peer = self._peers[i]
                frames, peer.waiting = peer.waiting, []
                there = np.intersect1d(self._net.links(i), present).astype(np.int64)
                with quiet():
                    sent[i] = self._servers[i].step(round_, phase, frames, there)
        for i in sorted(sent):
            for recipients, frame in sent[i]:
                for j in recipients:
                    self._carry(i, j, frame)

    def _carry(self, sender: int, recipient: int, frame: bytes) -> None:
        n, traffic = self._net.n_clients, self._traffic
        traffic.messages += 1
        traffic.up += len(frame) * (sender < n)
        traffic.down += len(frame) * (recipient < n)
        self._peers[recipient].waiting.append(frame)

    def _clients(self, round_: int, phase: int, asked: Sequence[int]) -> dict[int, Posted]:
        """Let clients take a step; those who do not answer are left out from here on."""
        body = {"ask": "step", "round": round_, "phase": phase}
        requests = {i: body | {"frames": list(self._peers[i].waiting)} for i in asked}
        sent: dict[int, Posted] = {}
        for i, answer in self._ask(requests, round_).items():
            posted = self._taken(round_, i, answer)
            if isinstance(posted, str):
                self._active.remove(i)
                self._absent(round_, i, posted)
                continue
            peer = self._peers[i]
            # Nothing has come for it since: frames are carried after the phase.
            peer.since, peer.waiting = self._number, []
            sent[i] = posted
        return sent

    def _ask(self, requests: Mapping[int, Record], round_: int) -> dict[int, Record | str]:
        self._number += 1
        nodes = {i: self._directory.node_of[i] for i in requests}
        whole = {nodes[i]: self._complete(i, body) for i, body in requests.items()}
        answers = self._post.ask(whole, round_)
        return {i: answers[node] for i, node in nodes.items()}

    def _complete(self, i: int, body: Record) -> Record:
        peer = self._peers[i]
        request = {**body, "number": self._number, "since": peer.since, "dim": self._net.dim}
        return request if peer.since else request | {"start": self._start(i, peer.joined)}

    def _start(self, i: int, joined: int) -> bytes:
        """Return all that a client is told beforehand."""
        view = self._deployment.view(i, joined)
        names = ("id", "dim", "links", "weights", "parameters", "joined", "rounds")
        algorithm = self._deployment.algorithm
        told = {
            "algorithm": described(algorithm),
            "label": self._net.label(i),
            "sizes": dict(algorithm.sizes(self._net)),
            "view": {name: getattr(view, name) for name in names},
            "streams": dict(view.streams) if self._shared_seeds else None,
        }
        return packed(told)

    def _taken(self, round_: int, i: int, answer: Record | str) -> Posted | str:
        """Return the frames of an answer, or why it does not count."""
        if isinstance(answer, str):
            return answer
        if "forgotten" in answer:
            peer = self._peers[i]
            peer.since, peer.joined = 0, round_ + 1
            return "it has forgotten its state, and starts anew"
        try:
            return checked_frames(answer, i, round_, self._net.links(i), self._form)
        except (KeyError, TypeError, ValueError) as error:
            return f"its answer is refused: {error}"

    def _reports(self) -> dict[int, Report]:
        """Ask for the models, those who do not answer several times."""
        reports = {i: server.report() for i, server in self._servers.items()}
        missing = set(range(self._net.n_clients))
        for _ in range(_LAST_ASKS):
            connected = missing & set(self._directory.meet(self._deployment.rounds))
            requests: dict[int, Record] = {i: {"ask": "report"} for i in sorted(connected)}
            for i, answer in self._ask(requests, self._deployment.rounds).items():
                if isinstance(answer, str) or "forgotten" in answer:
                    continue
                missing.discard(i)
                report = self._report(i, answer)
                if report is not None:
                    reports[i] = report
            if not missing:
                break
        return reports

    def _report(self, i: int, answer: Record) -> Report | None:
        """Return a client's state; None where it keeps it, or where it cannot be one."""
        if "report" not in answer:
            return None
        try:
            return checked_report(answer["report"], len(self._net.links(i)), self._net.dim)
        except (KeyError, TypeError, ValueError) as error:
            self._absent(self._deployment.rounds, i, f"its model is refused: {error}")
            return None


def checked_report(raw: bytes, links: int, dim: int) -> Report:
    """Return the state of a client with so many links and parameters.

    Raises
    ------
    KeyError, TypeError, ValueError
        It has other fields, or its arrays other shapes.
    """
    report = Report(**unpacked(raw))
    given = [getattr(a, "shape", None) for a in (report.w, report.flows) if a is not None]
    expected = [(dim,), (links, dim)][: len(given)]
    if given != expected:
        raise ValueError(f"shapes {expected} are expected, got {given}")
    return report


def checked_frames(
    answer: Record, sender: int, round_: int, links: IntArray, form: WireFormat
) -> list[tuple[list[int], bytes]]:
    """Return frames and recipients of an answer.

    Raises
    ------
    KeyError, TypeError, ValueError
        The schema does not allow a frame, or it is from or for somebody else.
    """
    to, peers, out = list(answer["to"]), set(links.tolist()), []
    for count, frame in zip(answer["counts"], answer["frames"], strict=True):
        recipients, to = to[:count], to[count:]
        message = decoded(frame, form)
        if (message.sender, message.round) != (sender, round_):
            raise ValueError(f"a frame of participant {message.sender} and round {message.round}")
        if not len(set(recipients) & peers) == len(recipients) == count:
            raise ValueError(f"a frame for {recipients}, those left are {sorted(peers)}")
        # One frame for each link at most.
        peers -= set(recipients)
        out.append((recipients, frame))
    if to:
        raise ValueError(f"recipients {to} without a frame")
    return out
