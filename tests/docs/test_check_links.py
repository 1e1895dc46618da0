"""docs/check_links.py finds what is broken in a site, and nothing else."""

from __future__ import annotations

import importlib.util

import pytest
from _documents import ROOT

_spec = importlib.util.spec_from_file_location("check_links", ROOT / "docs" / "check_links.py")
check_links = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_links)


@pytest.fixture
def site(tmp_path):
    """A site of two pages with links of all kinds, none of them broken."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "a b.png").touch()
    (tmp_path / "inner" / "index.html").write_text('<h1 id="part.one">x</h1><a href="../#top">')
    (tmp_path / "index.html").write_text(
        '<link rel="canonical" href="https://example.org/x"><img src="a%20b.png">'
        '<a href="inner/index.html#part.one"></a><a href="inner/"></a><a href="#"></a>'
        '<a href="https://example.org/a?b=c#d"></a><a name="here" href="#here"></a>'
        '<img src="data:image/png;base64,AA=="><a href="mailto:a@example.org"></a>'
    )
    check_links.read.cache_clear()
    return tmp_path


def test_a_good_site_passes(site, capsys):
    assert check_links.main([str(site)]) == 0
    assert capsys.readouterr().out == "2 pages, 0 broken links\n"


@pytest.mark.parametrize(
    ("element", "fault"),
    [
        ('<a href="gone.html">', "no such file"),
        ('<img src="gone.png">', "no such file"),
        ('<a href="../index.html">', "no such file"),
        ('<a href="inner/index.html#part.two">', "no such place"),
        ('<a href="#gone">', "no such place"),
        ('<script src="https://example.org/x.js"></script>', "loads it from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads it from elsewhere"),
        ('<a href="htps://example.org">', "begins with https://"),
        ('<a href="https://exam ple.org">', "no address"),
        ('<a href="https://example">', "no address"),
    ],
)
def test_a_broken_link_is_found(site, capsys, element, fault):
    page = site / "index.html"
    page.write_text(page.read_text() + element)
    assert check_links.main([str(site)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert said[0].startswith("index.html: ")
    assert fault in said[0]


def test_no_site_is_no_success(tmp_path, capsys):
    assert check_links.main([str(tmp_path)]) == 2
    assert "no site" in capsys.readouterr().err
