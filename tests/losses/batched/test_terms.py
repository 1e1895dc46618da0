"""The catalogue as plain data: what is written, how it is summed, and back without a loss."""

import numpy as np
import pytest
from _catalogue_cases import CASES, problem

import gtvcvx as gtv
from gtvcvx.losses import stacked, stacked_from_terms
from gtvcvx.losses.batched._terms import FIELDS, merged


def plain(terms):
    """Comparable form, exact to the bit."""
    return [
        {
            key: value if isinstance(value, str) else np.asarray(value).tolist()
            for key, value in t.items()
        }
        for t in terms
    ]


@pytest.mark.parametrize("name", CASES)
class TestRoundTrip:
    def test_of_plain_data(self, name):
        p = problem(name)
        again = gtv.GTVProblem.from_data(p.to_data())
        assert plain(again.to_data()["terms"]) == plain(p.to_data()["terms"])
        w = p.losses.project_domain(np.random.default_rng(0).standard_normal((6, p.dim)))
        np.testing.assert_allclose(again.losses.value(w), p.losses.value(w), rtol=1e-14)

    def test_of_files(self, name, tmp_path):
        p = problem(name)
        p.save(tmp_path / "problem.npz")
        again = gtv.GTVProblem.load(tmp_path / "problem.npz")
        assert plain(again.to_data()["terms"]) == plain(p.to_data()["terms"])
        assert again.value(np.zeros((6, p.dim))) == p.value(np.zeros((6, p.dim)))

    def test_lists_serve_as_arrays(self, name):
        terms = problem(name).to_data()["terms"]
        again = stacked_from_terms(plain(terms), problem(name).dim).completed(6)
        assert plain(again.terms()) == plain(terms)


def test_a_network_of_everything(tmp_path):
    """Nodes with the same kinds in other combinations share the terms."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((6, 3, 2)), rng.standard_normal((6, 3))
    losses = [
        gtv.SquaredLoss(X[0], y[0]) + gtv.Ridge(0.1),
        gtv.SquaredLoss(X[1], y[1]) + gtv.Ridge([0.0, 0.2]),
        gtv.SquaredLoss(X[2], y[2]) + gtv.SquaredLoss(X[3], y[3]) + gtv.L1(0.3),
        gtv.PointLoss(y[3][:2]),
        gtv.PointLoss(y[4][:2]) + gtv.Box([0.0, -np.inf], np.inf),
        gtv.SquaredLoss(X[5], y[5]),
    ]
    p = gtv.GTVProblem(gtv.EmpiricalGraph(6, [(0, 1), (2, 3), (4, 5)]), losses)
    kinds = [(t["kind"], t["node"].tolist()) for t in p.to_data()["terms"]]
    assert kinds == [
        ("squared", [0] * 3 + [1] * 3 + [2] * 3 + [5] * 3),
        ("squared", [2] * 3),
        ("point", [3, 4]),
        ("ridge", [0, 1]),
        ("l1", [2]),
        ("box", [4]),
    ]
    p.save(tmp_path / "p.npz")
    again = gtv.GTVProblem.load(tmp_path / "p.npz")
    assert plain(again.to_data()["terms"]) == plain(p.to_data()["terms"])
    # Nodes of one form are one batch: plain, quadratic, composite.
    assert [len(at) for at, _ in again.losses.parts] == [1, 1, 2, 2]
    w = np.abs(rng.standard_normal((6, 2)))
    np.testing.assert_allclose(again.losses.value(w), p.losses.value(w), rtol=1e-14)


class TestTerms:
    def test_fields_and_meaning(self):
        X, y = np.array([[1.0, 2.0]]), np.array([1.0])
        for loss, expected in (
            (gtv.HuberLoss(X, y, 0.5), {"X": X, "y": y, "delta": [0.5]}),
            (gtv.PseudoHuberLoss(X, y, 0.5), {"X": X, "y": y, "delta": [0.5]}),
            (gtv.QuantileLoss(X, y, 0.25), {"X": X, "y": y, "level": [0.25]}),
            (gtv.HingeLoss(X, y), {"X": X, "y": y}),
            (gtv.Ridge(0.5), {"mu": [0.5]}),
            (gtv.Ridge([0.5, 0.0]), {"mu": [[0.5, 0.0]]}),
            (gtv.L1([0.5, 0.5]), {"kappa": [0.5]}),
            (gtv.Box(-np.inf, [1.0, 2.0]), {"lower": [[-np.inf] * 2], "upper": [[1.0, 2.0]]}),
            (gtv.Nonnegative(), {"lower": [[0.0, 0.0]], "upper": [[np.inf, np.inf]]}),
            (gtv.Simplex(3.0), {"total": [3.0]}),
        ):
            (term,) = loss.everywhere(1, 2).terms()
            assert set(term) == {"kind", "node", *expected}
            assert set(FIELDS[term["kind"]]) == set(expected)
            for key, value in expected.items():
                np.testing.assert_array_equal(term[key], value)

    def test_zero_terms_are_left_out(self):
        X, y = [[1.0, 2.0]], [1.0]
        for loss in (
            gtv.LogisticLoss(X, y),
            gtv.LogisticLoss(X, y, ridge=[0.0, 3.0], intercept=1),
            gtv.HingeLoss(X, y) + gtv.Ridge(0.0) + gtv.L1([0.0, 0.0]),
            gtv.HingeLoss(X, y) + gtv.Box(-np.inf, np.inf),
        ):
            assert len(stacked([loss], gtv.EmpiricalGraph(1, [])).terms()) == 1

    def test_regularizers_of_a_node_are_added_up(self):
        loss = gtv.Ridge(0.5) + gtv.Ridge([0.25, 0.0]) + gtv.Box(0.0, 2.0) + gtv.Box(-1.0, [1, 3])
        ridge, box = loss.everywhere(2, 2).terms()
        np.testing.assert_array_equal(ridge["mu"], [[0.75, 0.5]] * 2)
        np.testing.assert_array_equal(box["lower"], 0.0)
        np.testing.assert_array_equal(box["upper"], [[1.0, 2.0]] * 2)

    def test_changing_them_does_not_change_the_loss(self):
        losses = (gtv.HuberLoss([[1.0]], [2.0], 3.0) + gtv.L1(1.0)).everywhere(2)
        for term in losses.terms():
            for key in FIELDS[term["kind"]]:
                term[key][:] = 0.0
        assert losses.value(np.zeros((2, 1))).tolist() == [4.0, 4.0]

    def test_merging_is_idempotent_and_keeps_the_unknown(self):
        terms = (gtv.PointLoss([1.0]) + gtv.PointLoss([2.0]) + gtv.L1(1.0)).everywhere(3).terms()
        opaque = {"kind": "opaque", "node": np.array([0]), "name": "x"}
        again = merged([opaque, *reversed(terms)], 1)
        assert [t["kind"] for t in again] == ["point", "point", "l1", "opaque"]
        assert plain(merged(terms, 1)) == plain(terms)

    def test_ordering_of_nodes_changes_nothing(self):
        """The fast solver renumbers large graphs; terms come back sorted."""
        p = problem("huber-elastic-nonnegative")
        place = np.array([3, 0, 5, 1, 4, 2])
        moved = gtv.StackedLoss([(place[at], batch) for at, batch in p.losses.parts])
        w = np.abs(np.random.default_rng(1).standard_normal((6, p.dim)))
        carried = np.empty_like(w)
        carried[place] = w
        np.testing.assert_allclose(moved.value(carried)[place], p.losses.value(w))
        for term in moved.terms():
            assert (np.diff(term["node"]) >= 0).all()
        again = stacked_from_terms(moved.terms(), p.dim).completed(6)
        np.testing.assert_allclose(again.value(w), moved.value(w))


def test_plain_data_are_the_arrays_of_the_losses_and_terms_are_copies():
    X, y = np.random.default_rng(0).standard_normal((3, 2, 4)), np.ones((3, 2))
    losses = gtv.LassoLoss.stack(X, y, kappa=0.1)
    own = losses.parts[0][1]._parts.X
    assert not np.shares_memory(own, X)
    assert np.shares_memory(losses.plain[0]["X"], own)
    assert not np.shares_memory(losses.terms()[0]["X"], own)
