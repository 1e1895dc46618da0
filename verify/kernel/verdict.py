"""Answers that end a check early. Standard library only."""

from __future__ import annotations


class Verdict(Exception):
    """An answer, status and reason, that ends a check early."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def malformed(reason: str) -> Verdict:
    """Return the answer to a document that is not as SCHEMA.md says."""
    return Verdict("REFUTED", f"malformed: {reason}")


def false(reason: str) -> Verdict:
    """Return the answer to a document whose statements are not true."""
    return Verdict("REFUTED", f"false document: {reason}")


def shown(value: object) -> str:
    """Return the beginning of a value for a message, whatever a stranger has put there."""
    try:
        return repr(str(value)[:40])
    except (ValueError, RecursionError):  # thousands of digits, lists in lists in lists
        return f"a value of type {type(value).__name__}"
