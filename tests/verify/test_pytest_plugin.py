"""`verify.assert_certified` and the pytest plugin."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import cvxpy  # noqa: F401  inner runs of pytest forget what they import, and NumPy loads only once
import numpy as np
import pytest
from _plain_instances import instance, solve

import verify
from verify import pytest_plugin

pytest_plugins = ("pytester",)

# Convex clustering on two nodes: w = (c, 1 - c) with c = lam / 2 below one half.
PROBLEM = """
import numpy as np
import pytest

DATA = {
    "schema": "gtv-problem/1",
    "n_nodes": 2,
    "dim": 1,
    "edges": [[0, 1]],
    "weights": [1.0],
    "lam": 0.5,
    "penalty": {"kind": "l1"},
    "terms": [{"kind": "point", "node": [0, 1], "a": [[0.0], [1.0]]}],
    "nodes": ["left", "right"],
}
W, U = [[0.25], [0.75]], [[-0.5]]
"""


# The assertion.


def test_certificate_is_returned():
    data = instance(3)
    certificate = verify.assert_certified(data, *solve(data))
    assert certificate.status == "CERTIFIED"
    assert certificate.rtol == 1e-6


def test_failure_names_the_worst_nodes_and_edges():
    data = {**instance(3), "nodes": [f"station {i}" for i in range(12)]}
    w, u = solve(data)
    w[5] += 0.5
    with pytest.raises(AssertionError) as failure:
        verify.assert_certified(data, w, u)
    certificate = verify.certify(data, w, u)
    text = str(failure.value)
    assert text.startswith(f"{certificate.status}: {certificate.reason}\n")
    assert f"gap {certificate.gap:.3e}, relative {certificate.rel_gap:.3e}, rtol 1e-06" in text
    assert f"objective at w <= {certificate.upper:.12g}" in text
    assert f"optimum >= {certificate.lower:.12g}  (exact)" in text
    nodes, edges = text.split("worst nodes:\n")[1].split("worst edges:")
    assert nodes.splitlines()[0].endswith("'station 5'")
    shares = [float(found) for found in re.findall(r"([\d.]+)% of the gap", text)]
    assert all(0 < share <= 100 for share in shares)
    assert shares[0] == pytest.approx(
        100 * certificate.node_gaps.max() / (certificate.node_gaps.sum()
                                             + certificate.edge_gaps.sum()), abs=0.06,
    )  # fmt: skip
    assert "'station 5'" in edges


def test_failure_without_a_flow_says_so():
    data = instance(3)
    data["terms"].append({"kind": "opaque", "node": np.array([0]), "name": "secret"})
    with pytest.raises(AssertionError) as failure:
        verify.assert_certified(data, np.zeros((12, 2)))
    assert str(failure.value).startswith("UNPROVED: ")
    assert "not proved" in str(failure.value)
    assert "no flow was found" in str(failure.value)


def test_bad_input_is_no_failed_assertion():
    with pytest.raises(ValueError, match="w must have shape"):
        verify.assert_certified(instance(3), [[0.0]])
    with pytest.raises(ValueError, match="rtol"):
        verify.assert_certified(instance(3), np.zeros((12, 2)), rtol=-1.0)


# The plugin, inside this process.


def run(pytester, source, *arguments):
    """Run one test file with the plugin alone, warnings as errors."""
    pytester.makepyfile(test_inner=PROBLEM + source)
    return pytester.runpytest_inprocess(
        *("--strict-markers", "--strict-config", "--import-mode=importlib", "-W", "error"),
        *("-p", "no:gtv-verify", "-p", "no:hypothesispytest", *arguments),
        plugins=[pytest_plugin],
    )


def test_fixture_certifies_and_summary_counts(pytester):
    result = run(
        pytester,
        """
def test_good(certified):
    certificate = certified(DATA, W, U)
    assert certificate.status == "CERTIFIED"
    assert certificate.rel_gap <= 1e-12
    assert certified.certificates == [certificate]
    certified(DATA, W)

def test_bad(certified):
    certified(DATA, [[0.25], [0.8]], U)

def test_other():
    pass
""",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*test_inner.py:*: AssertionError*",
            "gtv certificates: 2 certified, 1 refuted; worst relative gap proved: *e-0*",
        ]
    )
    text = result.stdout.str()
    assert ">       certified(DATA, [[[]0.25], [[]0.8]], U)".replace("[[]", "[") in text
    assert re.search(r"E +AssertionError: REFUTED: ", text)
    assert re.search(r"E +worst nodes:\n.*'right'", text)
    assert "verify/pytest_plugin.py" not in text  # the traceback ends in the user's test
    assert result.ret == 1


def test_a_given_flow_must_prove_the_point_itself(pytester):
    source = """
def test_sign(certified):
    certified(DATA, W, [[-x for x in row] for row in U])

def test_without(certified):
    certified(DATA, W)
"""
    result = run(pytester, source)
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    assert re.search(r"E +AssertionError: UNPROVED: w is within rtol, as another flow proves", text)
    assert "1 certified, 1 unproved" in text


def test_the_worst_gap_is_that_of_the_certificates(pytester):
    source = """
@pytest.mark.gtv(rtol=0.01)
def test_coarse(certified):
    assert certified(DATA, [[0.26], [0.75]], U).rel_gap == pytest.approx(1e-4, rel=0.01)
    assert certified(DATA, W, U).rel_gap <= 1e-12
"""
    result = run(pytester, source)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["gtv certificates: 2 certified; worst relative gap proved: 1.0e-04"]
    )


def test_no_certificate_no_summary(pytester):
    result = run(pytester, "def test_other():\n    pass\n")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*gtv certificates*")


def test_tolerance_comes_from_the_call_the_closest_marker_or_the_default(pytester):
    result = run(
        pytester,
        """
def test_default(certified):
    assert certified.rtol == certified(DATA, W, U).rtol == 1e-6

@pytest.mark.gtv(rtol=1e-3)
class TestMarked:
    def test_class(self, certified):
        assert certified(DATA, W, U).rtol == 1e-3

    @pytest.mark.gtv(rtol=1e-9)
    def test_closest(self, certified):
        assert certified(DATA, W, U).rtol == 1e-9
        assert certified(DATA, W, U, rtol=1e-2).rtol == 1e-2

    @pytest.mark.gtv
    def test_bare(self, certified):
        assert certified.rtol == 1e-6

@pytest.mark.gtv(rtol=1e-12)
def test_refused(certified):
    certified(DATA, [[0.2501], [0.75]], U)
""",
    )
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*rtol 1e-12*"])


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("1e-6", "got gtv(1e-06)"),
        ("tol=1e-6", "got gtv(tol=1e-06)"),
        ("rtol='tight'", "got gtv(rtol='tight')"),
        ("rtol=-1.0", "got gtv(rtol=-1.0)"),
        ("rtol=1e300", "got gtv(rtol=1e+300)"),
        ("rtol=1", "got gtv(rtol=1)"),
        ("rtol=float('nan')", "got gtv(rtol=nan)"),
        ("rtol=True", "got gtv(rtol=True)"),
    ],
)
def test_a_bad_marker_is_an_error(pytester, arguments, shown):
    source = f"@pytest.mark.gtv({arguments})\ndef test_it(certified):\n    pass\n"
    result = run(pytester, source)
    result.assert_outcomes(errors=1)
    assert (
        f"marker gtv: one number 0 <= rtol <= 0.01 is expected, as in gtv(rtol=1e-6), {shown}"
        in (result.stdout.str())
    )


def test_marker_is_listed(pytester):
    result = run(pytester, "", "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.gtv(rtol=1e-06): relative gap *"])


def test_certificates_are_saved_and_can_be_checked(pytester):
    result = run(
        pytester,
        """
@pytest.mark.parametrize("shift", [0.0, 0.1], ids=["a/b", "a:b"])
def test_it(certified, shift):
    certified(DATA, W, U)
    certified(DATA, [[0.25 + shift], [0.75]], U)
""",
        "--gtv-certificates=some/folder",
        "--junitxml=report.xml",
    )
    result.assert_outcomes(passed=1, failed=1)
    files = sorted((pytester.path / "some" / "folder").iterdir())
    assert len(files) == 4
    answers = [verify.check(file).status for file in files]
    assert sorted(answers) == ["CERTIFIED", "CERTIFIED", "CERTIFIED", "REFUTED"]
    assert all(re.fullmatch(r"[\w.=-]+\.json", file.name) for file in files)
    refuted = files[answers.index("REFUTED")]
    result.stdout.fnmatch_lines([f"E * certificate: {refuted}", "gtv certificates: *; saved in *"])
    tree = ElementTree.parse(pytester.path / "report.xml")
    records = [json.loads(found.attrib["value"]) for found in tree.iter("property")
               if found.attrib["name"] == "gtv_certificate"]  # fmt: skip
    assert {record["file"] for record in records} == {file.name for file in files}
    assert {record["status"] for record in records} == {"CERTIFIED", "REFUTED"}


def test_a_file_in_place_of_the_folder_is_a_usage_error(pytester):
    (pytester.path / "taken").write_text("")
    result = run(pytester, "def test_it():\n    pass\n", "--gtv-certificates=taken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --gtv-certificates: *taken is not a folder"])
    assert (pytester.path / "taken").read_text() == ""


def test_a_loss_that_cannot_be_proved_is_unproved(pytester):
    result = run(
        pytester,
        """
def test_it(certified):
    DATA["terms"].append({"kind": "opaque", "node": [0], "name": "secret"})
    certified(DATA, W, U)
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["gtv certificates: 1 unproved; worst relative gap proved: none"])


def test_reports_of_other_processes_are_counted():
    """pytest-xdist's workers send reports; what the summary needs must be in them."""
    summary = pytest_plugin._Summary()
    record = json.dumps({"status": "CERTIFIED", "rel_gap": 2e-7, "rtol": 1e-6, "file": None})
    for when in ("setup", "call", "teardown"):
        report = pytest.TestReport(
            "test_x.py::test_y", ("test_x.py", 1, "test_y"), {}, "passed", None, when,
            user_properties=[("gtv_certificate", record), ("other", 1)],
        )  # fmt: skip
        summary.pytest_runtest_logreport(report)
    assert summary.line() == "gtv certificates: 1 certified; worst relative gap proved: 2.0e-07"
