"""The part of ``gtvcvx report`` that checks its proof in the browser, offline."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from gtvcvx.cli import _html as html
from verify.web import checker_source

# Checked in about two seconds, and a page that mail still carries; measured on 2 MB: .5 s.
MOST_CHARACTERS = 8_000_000

_SECTION = """\
<div id="proof-tools" hidden>
<p><button type="button" id="proof-check">Check this proof</button>
<label>to a relative gap of <input id="proof-rtol" value="{rtol}" size="8" inputmode="decimal">
</label><button type="button" id="proof-save" class="quiet">Save the certificate</button></p>
<p class="note">The button runs a checker that is part of this page on the certificate that is
part of it, here and offline: exact arithmetic, no server, nothing installed. A page from somebody
whom you do not trust can say anything: then save the certificate, and check it with a checker of
your own.</p>
<div id="proof-answer" role="status"></div>
</div>
<noscript><p class="note">Where scripts are allowed, this page can check its proof.</p></noscript>
<script type="application/json" id="proof-certificate">{certificate}</script>"""


def tools(certificate: str | None, rtol: float) -> tuple[str, Sequence[str]]:
    """Return the button with the certificate, or why they are not there, and the scripts needed.

    Parameters
    ----------
    certificate
        Text of a certificate with its data; None where there is none to embed.
    rtol
        Tolerance of whoever makes the report, which the reader may change.
    """
    if certificate is None:
        return _note("it is very large, or no text that has the problem data in it"), ()
    if len(certificate) > MOST_CHARACTERS:
        return _note(f"its {len(certificate) / 1e6:.0f} MB are too many to be part of it"), ()
    folder = files(__name__.rpartition(".")[0])
    button = folder.joinpath("proof_button.js").read_text(encoding="utf-8")
    part = _SECTION.format(rtol=repr(rtol), certificate=inert(certificate))
    return part, (checker_source(), button)


def _note(why: str) -> str:
    return html.paragraph(f"The certificate cannot be checked in this page: {why}.", "note")


def inert(text: str) -> str:
    """Return JSON that says the same and cannot end, or begin, an element of a page.

    In JSON these characters are in strings alone, where an escape stands for them.
    """
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
