"""The kernel's rule for rows with several classes: on the right side, and as close as it says."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction as F

import pytest

import gtvcvx as gtv
import verify
from verify.kernel import exponentials
from verify.kernel.data import canonical
from verify.kernel.grid_powers import ONE
from verify.kernel.losses import term_of
from verify.kernel.verdict import Verdict

SCORES = ([0], [0, 0], [F(1, 3), -5, 0], [0, 10**6], [-700, 0, F(-7, 2)], [2**60, 2**60 - 1])


def term(X, y, node=None, **weights):
    node = [0] * len(y) if node is None else node
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": max(node) + 1,
        "dim": 6,
        "edges": [],
        "weights": [],
        "lam": 1.0,
        "penalty": {"kind": "l2"},
        "terms": [{"kind": "multinomial", "node": node, "X": X, "y": y, **weights}],
    }
    return term_of(canonical(data)["terms"][0], 6)


@pytest.mark.parametrize("z", SCORES)
def test_log_sums_are_enclosed(z):
    low, high = exponentials.log_sum_exp(z)
    with localcontext() as context:
        context.prec, context.Emin = 120, -(10**9)
        most = max(z)
        total = sum((Decimal(F(x - most).numerator) / F(x - most).denominator).exp() for x in z)
        exact = F(total.ln()) + most
    assert F(low, ONE) <= exact <= F(high, ONE)
    assert high - low < 300  # the roundings of the sum


def test_the_value_is_that_of_the_formula():
    W = [[F(1, 2), F(-3, 4), F(2)], [F(0), F(1), F(-1, 3)]]
    w = [x for row in W for x in row]
    X, y = [[1.0, 0.5], [2.0, -1.0], [0.25, 3.0]], [0.0, 2.0, 1.0]
    bounds = term(X, y).value([w], 0)
    expected = 0.0
    for x, own in zip(X, y, strict=True):
        z = [sum(a * float(row[k]) for a, row in zip(x, W, strict=True)) for k in range(3)]
        expected += (math.log(sum(map(math.exp, z))) - z[int(own)]) / 3
    assert bounds.lo <= bounds.hi <= bounds.lo + F(1, 10**33)
    assert float(bounds.hi) == pytest.approx(expected, rel=1e-14)


def test_conjugate_and_image():
    X, y, node = [[1.0, 0.5], [2.0, -1.0], [0.25, 3.0]], [0.0, 2.0, 1.0], [0, 0, 1]
    r = [["0x1p-3", "0x1p-4"], ["0x0p+0", "0x1p-1"], ["0x1p-1", "0x1/0x3"]]
    bound, image, k = term(X, y, node).dual(r, "r")
    expected, pulled = 0.0, [[0.0] * 6 for _ in range(2)]
    values = [[0.125, 0.0625], [0.0, 0.5], [0.5, 1 / 3]]
    for x, own, i, given in zip(X, map(int, y), node, values, strict=True):
        m = node.count(i)
        slopes = [*given[:own], -sum(given), *given[own:]]
        for p in [*(m * v for v in given), 1 - m * sum(given)]:
            expected += p * math.log(p) / m if p > 1e-12 else 0.0
        for j, a in enumerate(x):
            for c, s in enumerate(slopes):
                pulled[i][3 * j + c] += a * s
    assert float(bound) == pytest.approx(expected, rel=1e-12)
    for i in range(2):
        assert [float(v) / 2**k for v in image[i]] == pytest.approx(pulled[i], abs=1e-15)


@pytest.mark.parametrize("r", [["-0x1p-60", "0x1p-1"], ["0x1p-1", "0x8000000000001p-52"]])
def test_chances_below_zero_are_refused(r):
    with pytest.raises(Verdict, match="outside the domain of the multinomial conjugate"):
        term([[1.0, 0.0]], [0.0]).dual([r], "r")
    # At the corners there is no entropy: an upper bound of it that is zero.
    assert 0 <= term([[1.0, 0.0]], [0.0]).dual([["0x0p+0", "0x1p+0"]], "r")[0] < F(1, 10**33)


def test_conjugates_are_bounded_from_above():
    one = term([[1.0, 0.0]], [2.0])
    for k in range(1, 200, 7):
        p, q = F(k, 300), F(1, 3**k)
        bound = one.dual([[f"{p.numerator:#x}/{p.denominator:#x}",
                           f"{q.numerator:#x}/{q.denominator:#x}"]], "r")[0]  # fmt: skip
        with localcontext() as context:
            context.prec = 200
            parts = [Decimal(v.numerator) / v.denominator for v in (p, q, 1 - p - q)]
            exact = sum(v * v.ln() for v in parts)
        assert 0 <= bound - F(exact) < F(1, 10**33)


def test_no_feasible_pair_has_a_negative_gap():
    """Fenchel and Young: at any w, for any chances, whatever is rounded."""
    rng = random.Random(5)
    for _ in range(40):
        m = rng.randint(1, 3)
        X = [[rng.randint(-8, 8) / 4 for _ in range(2)] for _ in range(m)]
        y = [float(rng.randrange(3)) for _ in range(m)]
        one = term(X, y)
        w = [F(rng.randint(-30, 30), rng.randint(1, 9)) for _ in range(6)]
        r = []
        for _ in range(m):
            p = [rng.randint(0, 9) for _ in range(3)]
            r.append([f"{v:#x}/{m * max(sum(p), 1):#x}" for v in p[:2]])
        bound, image, k = one.dual(r, "r")
        product = sum(F(v) * x for v, x in zip(image[0], w, strict=True)) / 2**k
        assert one.value([w], 0).hi + bound - product >= 0


def test_the_chances_of_the_point_itself_leave_no_gap():
    z = [F(1, 2), F(-1), F(2)]
    one = term([[1.0, 0.0]], [1.0])
    w = [*z, F(0), F(0), F(0)]
    total = sum(math.exp(v) for v in z)
    r = [(math.exp(z[k]) / total).hex() for k in (0, 2)]
    bound, image, k = one.dual([r], "r")
    product = sum(F(v) * x for v, x in zip(image[0], w, strict=True)) / 2**k
    assert 0 <= one.value([w], 0).hi + bound - product < F(1, 10**15)


@pytest.mark.parametrize("change", ["negated", "other", "scaled"])
def test_lies_about_multipliers_break_the_balance(change):
    problem = gtv.GTVProblem(
        gtv.EmpiricalGraph(2, [(0, 1)]),
        gtv.MultinomialLogisticLoss.stack([[[1.0], [2.0]], [[1.0], [0.5]]], [[0, 1], [2, 1]]),
        "l2",
        0.1,
    )
    solution = problem.solve(rtol=1e-8)
    document = verify.certify(problem, solution.w, solution.u).document
    assert verify.check(document).status == "CERTIFIED"
    row = document["dual"]["r"][0][0]
    document["dual"]["r"][0][0] = {
        "negated": [f"-{row[0]}", row[1]],
        "other": row[::-1],
        "scaled": [row[0], "0x0p+0"],
    }[change]
    assert verify.check(document).status == "REFUTED"


def test_weights_are_in_the_place_of_one_over_m():
    X, y, w = [[1.0, 0.5], [2.0, -1.0]], [0.0, 2.0], [F(k, 3) for k in range(6)]
    r = [["0x1p-4", "0x1p-5"], ["0x0p+0", "0x1p-2"]]
    plain, same, other = (
        term(X, y),
        term(X, y, weight=[0.5, 0.5]),
        term(X, y, weight=[0.25, 3.0]),
    )
    assert plain.value([w], 0) == same.value([w], 0)
    assert plain.dual(r, "r") == same.dual(r, "r")
    one, two = term(X[:1], y[:1]).value([w], 0), term(X[1:], y[1:]).value([w], 0)
    assert float(other.value([w], 0).hi) == pytest.approx(0.25 * float(one.hi) + 3 * float(two.hi))
    # p = r / c: a quarter of the chances where the weight is four times as large, and no more room.
    four = term(X[:1], y[:1], weight=[4.0]).dual([["0x1p-2", "0x1p-3"]], "r")[0]
    assert float(four) == pytest.approx(4 * float(term(X[:1], y[:1]).dual(r[:1], "r")[0]))
    with pytest.raises(Verdict, match="outside the domain"):
        term(X[:1], y[:1], weight=[0.0625]).dual(r[:1], "r")
