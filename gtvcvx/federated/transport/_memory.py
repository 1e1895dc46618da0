"""All programs in this process; messages go through bytes all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gtvcvx._arrays import IntArray
from gtvcvx.federated.programs import Report, quiet
from gtvcvx.federated.transport._deployment import BusyError, Deployment, Posted


class InMemory:
    """Runs one program after the other."""

    restarts = False
    # Of the class: subclasses may have a beginning of their own.
    _busy = False

    def __repr__(self) -> str:
        return "InMemory()"

    def start(self, deployment: Deployment) -> None:
        """Start all participants."""
        if self._busy:
            raise BusyError
        self._busy = True
        self._deployment = deployment
        self._form = deployment.form()
        n = deployment.net.n_participants
        self._participants = {i: deployment.participant(i, self._form) for i in range(n)}

    def step(
        self,
        round_: int,
        phase: int,
        inboxes: Mapping[int, Sequence[bytes]],
        present: Mapping[int, IntArray],
    ) -> Mapping[int, Posted]:
        """Let participants take a step."""
        memo: dict[int, object] = {}
        with quiet():
            return {
                i: self._participants[i].step(round_, phase, frames, present.get(i), memo)
                for i, frames in inboxes.items()
                if i in self._participants
            }

    def crash(self, client: int) -> None:
        """End a client at once."""
        self._participants.pop(client, None)

    def restart(self, client: int, round_: int) -> None:
        """Start a client again, without memory."""
        participant = self._deployment.participant(client, self._form, round_)
        self._participants[client] = participant

    def reports(self) -> Mapping[int, Report]:
        """Return the states of those who are there."""
        out = {i: participant.report() for i, participant in self._participants.items()}
        for i, report in out.items():
            self._deployment.check_report(i, report)
        return out

    def lost(self) -> Mapping[int, str]:
        """Return nobody: clients go when they are told to."""
        return {}

    def close(self) -> None:
        """Forget everything."""
        self._participants, self._busy = {}, False
