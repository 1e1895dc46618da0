"""The certificate as a part of the page, where a button checks it, offline."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from gtvcvx.cli.report._page import source
from verify.web import checker_source

# Checked in about two seconds, and a page that mail still carries; measured on 2 MB: .5 s.
MOST_CHARACTERS = 8_000_000


@dataclass(frozen=True)
class Embedded:
    """A certificate that the page can check, or why there is none.

    Attributes
    ----------
    certificate : Markup or None
        Text that cannot end, or begin, an element of a page.
    rtol : float
        Tolerance of whoever makes the report, which the reader may change.
    why_not : str
        Reason, where there is no certificate.
    """

    certificate: Markup | None
    rtol: float
    why_not: str = ""

    @property
    def scripts(self) -> list[str]:
        """Scripts that check it."""
        return [] if self.certificate is None else [checker_source(), source("proof_button.js")]


def embedded(certificate: str | None, rtol: float) -> Embedded:
    """Return a certificate with its data ready for the page; None where there is none to embed."""
    if certificate is None:
        return Embedded(None, rtol, "it is very large, or no text that has the problem data in it")
    if len(certificate) > MOST_CHARACTERS:
        why = f"its {len(certificate) / 1e6:.0f} MB are too many to be part of it"
        return Embedded(None, rtol, why)
    return Embedded(Markup(inert(certificate)), rtol)


def inert(text: str) -> str:
    """Return JSON that says the same and cannot end, or begin, an element of a page.

    In JSON these characters are in strings alone, where an escape stands for them.
    """
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
