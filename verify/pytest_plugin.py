"""pytest plugin: certify solutions in tests, and keep the certificates.

A test asks for the fixture ``certified`` and calls it like `verify.assert_certified`::

    @pytest.mark.gtv(rtol=1e-8)
    def test_fit(certified):
        certified(problem, w, u)

The marker sets the tolerance of a test, class or module. ``--gtv-certificates=DIR`` saves every
certificate, also those of failing tests. The summary counts them, on the workers of pytest-xdist
too: what is known of a certificate travels as a user property of the test's report, which also puts
it into JUnit XML files.

pytest loads this file at every start once the package is installed, so it imports nothing but the
standard library and pytest; NumPy and the builder come with the first certificate.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from verify.certificates._certificate import Certificate

DEFAULT_RTOL = 1e-6
#: A test proves nothing with a tolerance of 1: the bound 0 of nonnegative losses is that good.
LARGEST_RTOL = 0.01
PROPERTY = "gtv_certificate"
STATUSES = ("CERTIFIED", "REFUTED", "UNPROVED")
_SUMMARY = pytest.StashKey["_Summary"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that saves certificates."""
    parser.getgroup("gtv", "certificates of GTV solutions").addoption(
        "--gtv-certificates",
        metavar="DIR",
        default=None,
        help="save the certificate of each call of the fixture 'certified' to a file in DIR",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and what collects the counts."""
    config.addinivalue_line(
        "markers",
        f"gtv(rtol={DEFAULT_RTOL:g}): relative gap that the fixture 'certified' has to prove",
    )
    folder = _folder(config)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise pytest.UsageError(f"--gtv-certificates: {folder} is not a folder")
    config.stash[_SUMMARY] = _Summary()
    config.pluginmanager.register(config.stash[_SUMMARY], "gtv-verify-summary")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the counts and the worst gap, if there was any certificate."""
    summary = config.stash[_SUMMARY]
    if not summary.counts:
        return
    line = summary.line()
    folder = _folder(config)
    if folder is not None:
        line += f"; saved in {folder}"
    good = set(summary.counts) == {"CERTIFIED"}
    terminalreporter.write_line(line, green=good, red=not good)


class _Summary:
    """Counts of the certificates of all tests, from their reports."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.worst: float | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the properties of a test that has ended."""
        if report.when != "teardown":  # the reports of all phases carry them
            return
        for name, value in report.user_properties:
            if name == PROPERTY:
                found = json.loads(str(value))
                self.counts[found["status"]] += 1
                if found["rel_gap"] is not None:
                    self.worst = max(found["rel_gap"], self.worst or 0.0)

    def line(self) -> str:
        """Return the summary."""
        counts = [f"{self.counts[s]} {s.lower()}" for s in STATUSES if self.counts[s]]
        worst = "none" if self.worst is None else f"{self.worst:.1e}"
        return f"gtv certificates: {', '.join(counts)}; worst relative gap proved: {worst}"


class Certified:
    """What the fixture ``certified`` gives: `verify.assert_certified` that keeps a record.

    Attributes
    ----------
    rtol : float
        Tolerance of the marker ``gtv``, else 1e-6.
    certificates : list of Certificate
        What the test has asked for so far, those that failed included.
    """

    def __init__(self, item: pytest.Item, rtol: float, folder: Path | None) -> None:
        self.rtol = rtol
        self.certificates: list[Certificate] = []
        self._item, self._folder = item, folder

    def __call__(
        self, problem: Any, w: Any, u: Any = None, rtol: float | None = None
    ) -> Certificate:
        """Certify w, and fail the test unless the status is CERTIFIED.

        Parameters
        ----------
        problem, w, u : object or mapping, array_like, array_like
            See `verify.assert_certified`; a given u must prove w itself.
        rtol : float or None
            Tolerance of this call in place of the marker's, at most 0.01.

        Returns
        -------
        Certificate
        """
        __tracebackhide__ = True
        from verify.certificates._assertion import certify_both, failure_text

        if rtol is not None and not 0 <= rtol <= LARGEST_RTOL:
            raise ValueError(f"rtol must be between 0 and {LARGEST_RTOL:g}, got {rtol!r}")
        certificate = certify_both(problem, w, u, self.rtol if rtol is None else rtol)
        self.certificates.append(certificate)
        path = self._save(certificate)
        proved = certificate.exact and math.isfinite(certificate.rel_gap)
        record = {
            "status": certificate.status,
            "rel_gap": certificate.rel_gap if proved else None,
            "rtol": certificate.rtol,
            "file": None if path is None else path.name,
        }
        self._item.user_properties.append((PROPERTY, json.dumps(record)))
        if certificate.status != "CERTIFIED":
            where = "" if path is None else f"\n  certificate: {path}"
            raise AssertionError(failure_text(certificate) + where)
        return certificate

    def _save(self, certificate: Certificate) -> Path | None:
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / _file_name(self._item.nodeid, len(self.certificates))
        certificate.save(path)
        return path


@pytest.fixture
def certified(request: pytest.FixtureRequest) -> Certified:
    """Certify solutions: ``certified(problem, w, u=None)`` fails the test unless w is proved."""
    return Certified(request.node, _rtol(request.node), _folder(request.config))


def _rtol(item: pytest.Item) -> float:
    """Return the tolerance of the closest marker."""
    marker = item.get_closest_marker("gtv")
    if marker is None:
        return DEFAULT_RTOL
    rtol = marker.kwargs.get("rtol", DEFAULT_RTOL)
    number = isinstance(rtol, (int, float)) and not isinstance(rtol, bool)
    if marker.args or set(marker.kwargs) - {"rtol"} or not number or not 0 <= rtol <= LARGEST_RTOL:
        given = [repr(a) for a in marker.args] + [f"{k}={v!r}" for k, v in marker.kwargs.items()]
        pytest.fail(
            f"marker gtv: one number 0 <= rtol <= {LARGEST_RTOL:g} is expected, as in "
            f"gtv(rtol=1e-6), got gtv({', '.join(given)})",
            pytrace=False,
        )
    return float(rtol)


def _folder(config: pytest.Config) -> Path | None:
    name = config.getoption("--gtv-certificates")
    return None if name is None else config.invocation_params.dir / name


def _file_name(nodeid: str, number: int) -> str:
    """Return a name for any file system; the hash keeps tests apart that look the same in it."""
    readable = re.sub(r"[^A-Za-z0-9._=-]+", "-", nodeid).strip("-")[-120:]
    mark = hashlib.sha256(nodeid.encode()).hexdigest()[:8]
    return f"{readable}-{mark}-{number}.json"
