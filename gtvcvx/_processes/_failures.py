"""Errors of another process, in words: its exceptions are told as text and raised anew."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass

from gtvcvx._processes._records import RecordError

#: Class, text and traceback of an error, cut at this many characters each: plenty to read.
TEXT = 4000
# A character is six bytes at most as JSON writes it.
ERROR_BYTES = 3 * 6 * TEXT + 100


@dataclass(frozen=True)
class Failure:
    """An error in words."""

    name: str
    text: str
    traceback: str


def in_words(error: BaseException) -> Failure:
    """Return an error as its process saw it."""
    name = type(error).__qualname__
    return Failure(name, str(error), "".join(traceback.format_exception(error)))


def packed_error(failure: Failure) -> bytes:
    """Return a failure as the body of a record."""
    words = [failure.name, failure.text, failure.traceback]
    return json.dumps([word[-TEXT:] for word in words]).encode()


def unpacked_error(body: bytes) -> Failure:
    """Return the failure in the body of a record.

    Raises
    ------
    RecordError
        The body is no list of three texts.
    """
    try:
        words = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RecordError("an error that cannot be read") from error
    if not (isinstance(words, list) and len(words) == 3 and all(type(w) is str for w in words)):
        raise RecordError("an error that cannot be read")
    return Failure(*words)


def as_error(
    label: str,
    failure: Failure,
    usual: Mapping[str, type[Exception]],
    other: type[Exception],
) -> Exception:
    """Return an exception that names the process, with its traceback as a note.

    Parameters
    ----------
    label : str
        Names the process.
    failure : Failure
    usual : mapping of str to class
        Errors that are raised as what they are, by name.
    other : class
        What all others become.
    """
    kind = usual.get(failure.name)
    text = failure.text if kind else f"{failure.name}: {failure.text}"
    error = (kind or other)(text if label in text else f"{label}: {text}")
    error.add_note(f"In the process of {label}:\n{failure.traceback}")
    return error
