"""The proof in the page of ``gtvcvx report``: embedded, inert, and checked by a button."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx.cli import main
from gtvcvx.cli.report import _certificate, _embedded, _page
from verify.web import checker_source

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
LABELS = ["</script><script>alert(1)</script>", "<!--<script>", "a & b", "\u2028", "日本"]
DATA = re.compile(
    r'<script type="application/json" id="proof-certificate">(.*?)</script>', re.DOTALL
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a folder with a problem whose labels try to end the script, and its solution."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(5, [[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]], None, LABELS)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((5, 2))), "l2", 0.3)
    problem.save(folder / "n.problem.npz")
    problem.solve(rtol=1e-8, verbose=False).save(folder / "n.npz")
    return folder


@pytest.fixture(scope="module")
def page(saved):
    """Return the text of the page."""
    assert main(["report", str(saved / "n.npz"), "--quiet"]) == 0
    return (saved / "n.html").read_text(encoding="utf-8")


def embedded(text):
    (found,) = DATA.findall(text)
    return found


def test_the_embedded_certificate_is_the_one_that_was_built(page, saved):
    found = embedded(page)
    assert not set("<>&\u2028\u2029") & set(found)
    document = json.loads(found)
    assert document["data"]["nodes"] == LABELS
    assert verify.check(document).status == "CERTIFIED"
    solution = gtv.Solution.load(saved / "n.npz")
    assert [[float.fromhex(x) for x in row] for row in document["w"]] == solution.w.tolist()


def test_the_checker_is_the_one_of_the_package(page):
    assert page.count(f"<script>{checker_source()}</script>") == 1
    assert page.count("</script>") == page.count("<script") == 4


def test_scripts_cannot_be_ended_by_their_own_text():
    for text in (_page.source("find_nodes.js"), *_embedded.embedded("{}", 1e-6).scripts):
        assert "</script" not in text.lower()
        assert "<!--" not in text


def test_a_certificate_file_is_embedded_as_it_is(saved, run, tmp_path):
    certificate = tmp_path / "c.json"
    run("certify", saved / "n.problem.npz", saved / "n.npz", "-o", certificate)
    certificate.write_text(certificate.read_text().replace(",", " ,\n"), encoding="utf-8")
    arguments = ("--certificate", certificate, "-o", tmp_path / "r.html", "--rtol", "0.001")
    assert run("report", saved / "n.npz", *arguments).status == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert embedded(text) == _embedded.inert(certificate.read_text(encoding="utf-8"))
    assert 'id="proof-rtol" value="0.001"' in text


def test_without_data_or_text_there_is_nothing_to_embed(page, tmp_path):
    document = json.loads(embedded(page))
    file = tmp_path / "c.json"
    for content in (
        json.dumps({**document, "data": None}).encode(),
        json.dumps([document]).encode(),
        json.dumps(document).encode("utf-16"),
        b"PK\x03\x04",
        b"[" * 100_000,
    ):
        file.write_bytes(content)
        assert _certificate._embeddable(str(file)) is None
    proof = _embedded.embedded(None, 1e-6)
    assert proof.why_not.startswith("it is very large, or no text")
    assert proof.certificate is None
    assert not proof.scripts
    assert "script-src" not in _page._policy([])


def test_very_large_certificates_are_checked_by_command(monkeypatch):
    monkeypatch.setattr(_embedded, "MOST_CHARACTERS", 1000)
    assert _embedded.embedded("1" * 1000, 1e-6).certificate == "1" * 1000
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [[0, 1]]), gtv.PointLoss.stack(np.eye(2)))
    in_arrays = SimpleNamespace(document=object())
    assert _certificate._text(in_arrays, problem) is None
    monkeypatch.setattr(_certificate, "_SHORTEST_NUMBER", 501)
    assert _certificate._text(None, problem) is None  # not even looked into
    proof = _embedded.embedded("1" * 1001, 1e-6)
    assert "too many to be part of it" in proof.why_not
    assert proof.certificate is None
    assert not proof.scripts


class Browser:
    """Chromium without a screen: what it makes of a page."""

    def __init__(self, folder):
        self._folder = folder

    def answer(self, page):
        """Return the word and the text of the verdict, and the rows of facts."""
        text = self._dom(page)
        found = text.partition('<div id="proof-answer" role="status">')[2].partition(
            "</div>\n</div>"
        )[0]
        word = re.search(r"<strong>(.*?)</strong><br>(.*?)</p>", found)
        rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', found)
        assert word is not None, found
        return unescape(word[1]), unescape(word[2]), {unescape(k): unescape(v) for k, v in rows}

    def _dom(self, page):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._folder / "profile")
        command = [
            *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
            *("--disable-quic", f"--user-data-dir={self._folder / 'profile'}"),
            # The fragment presses the button; no name can be looked up.
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000"),
            *("--dump-dom", f"{page.as_uri()}#check"),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        return done.stdout


@pytest.fixture
def browser(tmp_path):
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    return Browser(tmp_path)


def test_the_button_proves_the_solution_and_refutes_a_changed_digit(page, saved, browser, tmp_path):
    word, text, facts = browser.answer(saved / "n.html")
    proof = verify.check(json.loads(embedded(page)))
    figures = proof.to_json()
    assert word == "CERTIFIED"
    assert text.startswith("relative gap")
    assert float(facts["Lower bound on the optimum"]) == figures["lower"]
    assert float(facts["Objective of this solution"].removeprefix("at most ")) == figures["upper"]
    assert f"at most {figures['rel_gap']!r},".replace("e-0", "e-") in facts["Relative gap"]
    assert facts["Tolerance"].startswith("1e-06, which is yours")
    assert json.loads(embedded(page))["sha256"] in facts["Problem"]

    data = embedded(page)
    other = tmp_path / "other.html"
    at = data.index('"weights":["0x1.') + len('"weights":["0x1.')
    changed = data[:at] + ("1" if data[at] == "0" else "0") + data[at + 1 :]
    other.write_text(page.replace(data, changed), encoding="utf-8")
    word, text, facts = browser.answer(other)
    assert word == "REFUTED"
    assert "SHA-256" in text
    assert "Proved" not in facts

    # A changed checker does not run: the policy of the page names the right one by its hash.
    changed = page.replace("const STEPS = 50_000_000", "const STEPS = 60_000_000")
    assert changed != page
    other.write_text(changed, encoding="utf-8")
    assert browser.answer(other)[0] == "ERROR"
