"""Maps in the page of ``gtvcvx report``."""

from __future__ import annotations

import json

import pytest
from _pages import assert_self_contained, read

pytest.importorskip("shapely", reason="shapely (extra geo)")


def geojson(path, labels, kind="Polygon", **others):
    """Write unit squares side by side, with the labels as a property."""
    features = []
    for k, label in enumerate(labels):
        ring = [[k, 0], [k + 1, 0], [k + 1, 1], [k, 1], [k, 0]]
        geometry = {"type": kind, "coordinates": [ring] if kind == "Polygon" else [k, 0]}
        properties = {"size": 1, "name": label}
        features.append({"type": "Feature", "geometry": geometry, "properties": properties})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features, **others}))
    return path


def test_clusters_and_coefficients_are_on_a_map(fitted, run):
    areas = geojson(fitted.folder / "a.geojson", "fedcbaz")  # in any order, with others
    outcome = run("report", fitted.folder / "s.npz", "--areas", areas)
    assert (outcome.status, outcome.err) == (0, "")
    page = read(fitted.folder / "s.html")
    assert_self_contained(page)
    titles = [attributes["alt"] for tag, attributes in page.tags if tag == "img"]
    clusters = next(words for words in page.words if words.endswith(" clusters"))
    assert titles[:4] == [
        f"6 areas, {clusters}",
        f"6 nodes, 7 edges, {clusters}",
        "6 areas, coefficient x1",
        "6 areas, coefficient x2",
    ]
    assert page.facts["Areas"] == str(areas)


@pytest.mark.parametrize(
    ("labels", "change", "words"),
    [
        ("abcde", {}, "(size, name) names all nodes; there is no 'f'"),
        ("abcdef", {"kind": "Point"}, "is no Polygon"),
        ("abcdef", {"features": [{"geometry": None}]}, "a GeoJSON file with features is expected"),
        ("abcdef", {"features": 3}, "a GeoJSON file with features is expected"),
        (
            "abcdef",
            {"features": [{"geometry": {"type": "?"}, "id": x} for x in "abcdef"]},
            "its geometries cannot be read",
        ),
    ],
)
def test_areas_of_something_else_are_refused(fitted, run, labels, change, words):
    areas = geojson(fitted.folder / "a.geojson", labels, **change)
    outcome = run("report", fitted.folder / "s.npz", "--areas", areas)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert f"{areas}: " in outcome.err
    assert words in outcome.err
