"""The extensions that make the site; run by .ci/run where the extra ``docs`` is installed."""

from __future__ import annotations

import sys

import pytest
from _documents import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("latex2mathml")
sys.path.append(str(ROOT / "docs" / "_ext"))
import docstrings
import gallery
import repository
from sphinx.errors import ExtensionError

from gtvcvx.estimators import NetworkLasso
from gtvcvx.penalties import CompiledForm


@pytest.mark.parametrize(
    ("link", "file", "expected"),
    [
        ("[trust.md](../trust.md#answers)", "docs/how-to/x.md", "[](/trust.md#answers)"),
        ("[there](../verify/SCHEMA.md)", "docs/x.md", "[there](/schema.md)"),
        ("[docs/trust.md](../docs/trust.md)", "verify/SCHEMA.md", "[](/trust.md)"),
        ("[records](docs/decisions/README.md)", "README.md", "[records](/decisions/README.md)"),
        ("[a](../examples/state_incomes.py)", "docs/x.md", "[a](/gallery/state_incomes.md)"),
        ("[a](../examples/papers/_page.py)", "docs/x.md", "[a](../examples/papers/_page.py)"),
        ("![a](pictures/overview.png)", "docs/x.md", "![a](/pictures/overview.png)"),
        ("[gone](gone.md)", "docs/x.md", "[gone](gone.md)"),
        ("[far](https://example.org/a)", "docs/x.md", "[far](https://example.org/a)"),
    ],
)
def test_links_of_files_become_links_of_the_site(link, file, expected):
    found = repository._LINK.sub(lambda m: repository.rewritten(m, ROOT / file, ROOT), link)
    assert found == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gap <= rtol max(1, |P(w)|)", r"gap <= rtol max(1, \|P(w)\|)"),
        ("``|x|`` and :math:`|x|`", "``|x|`` and :math:`|x|`"),
        ("the labels_ of a fit, lam_", r"the labels\_ of a fit, lam\_"),
        ("lam_max", "lam_max"),
        ("   .. math:: |x|", "   .. math:: |x|"),
    ],
)
def test_signs_of_prose_are_no_markup(line, expected):
    lines = [line]
    docstrings.escape(None, "", "", None, None, lines)
    assert lines == [expected]


def test_members_of_other_packages_are_left_out():
    assert docstrings.skip_member(None, "", "", NetworkLasso.get_params, False, None)
    assert docstrings.skip_member(None, "", "", CompiledForm.from_bytes, False, None)
    assert docstrings.skip_member(None, "", "", NetworkLasso.fit, False, None) is None


def example(folder, text):
    (folder / "examples").mkdir()
    script = folder / "examples" / "small.py"
    script.write_text(f'"""A small one.\n\nWhat you learn: nothing.\n"""\n\n{text}')
    return script


def test_the_gallery_shows_what_a_script_prints_and_draws(tmp_path):
    text = (
        "# gallery: --n 3 'a b'\nimport sys\nprint(sys.argv[1:])\nopen('p.png', 'w').write('x')\n"
    )
    script = example(tmp_path, text)
    gallery.write_page(script, tmp_path)
    page = (tmp_path / "small.md").read_text()
    assert page.startswith("# A small one\n\nWhat you learn: nothing.\n")
    assert "python examples/small.py --n 3 'a b'" in page
    assert "['--n', '3', 'a b']" in page
    assert "](small-0.png)" in page
    assert (tmp_path / "small-0.png").read_text() == "x"
    assert ":img-top: small-0.png" in gallery.index([script], tmp_path)


def test_a_script_that_fails_fails_the_site(tmp_path):
    script = example(tmp_path, "raise SystemExit('broken')\n")
    with pytest.raises(ExtensionError, match="broken"):
        gallery.write_page(script, tmp_path)
    assert not (tmp_path / "small.md").exists()
