"""IDX files of users, and the digits of scikit-learn shared among nodes."""

import gzip
import hashlib
import struct

import numpy as np
import pytest

from gtvcvx.datasets import LabelledImages, _images, load_digits_8x8, load_idx, load_idx_images


def idx(array, code):
    """An array as an IDX file has it."""
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
    return head + array.tobytes()


ARRAYS = [
    (np.arange(24, dtype=np.uint8).reshape(2, 3, 4), 0x08),
    (np.arange(-3, 3, dtype=np.int8), 0x09),
    (np.arange(-300, 300, 100, dtype=">i2").reshape(2, 3), 0x0B),
    (np.array([70000, -1], dtype=">i4"), 0x0C),
    (np.array([[0.5, -2.0]], dtype=">f4"), 0x0D),
    (np.array([1e300, -0.1], dtype=">f8"), 0x0E),
]


@pytest.mark.parametrize(("array", "code"), ARRAYS)
@pytest.mark.parametrize("packed", [False, True])
def test_arrays_of_every_type_are_read(tmp_path, array, code, packed):
    content = idx(array, code)
    (tmp_path / "a").write_bytes(gzip.compress(content) if packed else content)
    found = load_idx(tmp_path / "a")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")


def test_a_checksum_is_compared(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(idx(*ARRAYS[0]))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_idx(path, sha256=digest.upper()).shape == (2, 3, 4)
    with pytest.raises(ValueError, match=f"{'0' * 64} is expected, got {digest}"):
        load_idx(path, sha256="0" * 64)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no IDX file"),
        (b"\x89PNG\r\n", "no IDX file.*got 89 50 4e 47"),
        (b"\0\0\x07\1\0\0\0\1x", "no IDX file"),
        (b"\0\0\x08\0", "no IDX file"),
        (b"\0\0\x08\3\0\0\0\1", "ends before the lengths of its 3 axes"),
        (idx(*ARRAYS[0])[:-1], r"24 bytes are expected for the shape \(2, 3, 4\), got 23"),
        (idx(*ARRAYS[0]) + b"x", "got 25"),
        (b"\0\0\x08\3" + b"\xff" * 12, "bytes are expected for the shape"),
        (gzip.compress(idx(*ARRAYS[0]))[:-4], "broken or cut off"),
        (b"\x1f\x8b nothing", "broken or cut off"),
    ],
)
def test_broken_files_are_refused(tmp_path, content, message):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_idx(tmp_path / "a")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"t10k-images-idx3-ubyte\.gz: there is no such"):
        load_idx_images(tmp_path, "test")
    with pytest.raises(ValueError, match="'train' or 'test'"):
        load_idx_images(tmp_path, "t10k")


def write(folder, counts, names=("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte")):
    """Black images with so many of each label."""
    labels = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
    images = idx(np.zeros((len(labels), 28, 28), np.uint8), 0x08)
    (folder / names[0]).write_bytes(gzip.compress(images, 1))
    (folder / names[1]).write_bytes(idx(labels, 0x08))


MNIST_TEST = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)


@pytest.mark.parametrize(
    ("counts", "source"),
    [
        (MNIST_TEST, "user's MNIST, test part (by its numbers of labels; another SHA-256)"),
        ((1000,) * 10, "user's Fashion-MNIST, test part (by its numbers"),
        ((999, 1001) * 5, "neither MNIST nor Fashion-MNIST"),
    ],
)
def test_data_are_known_by_their_labels(tmp_path, counts, source):
    write(tmp_path, counts)
    found = load_idx_images(tmp_path, "test")
    assert source in found.source
    assert found.images.shape == (10000, 28, 28)
    assert found.maximum == 255.0


def test_published_files_are_known_by_their_checksums(tmp_path, monkeypatch):
    names = ("t10k-images.idx3-ubyte", "t10k-labels-idx1-ubyte.gz")
    write(tmp_path, MNIST_TEST, names)
    sums = tuple(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in names)
    monkeypatch.setitem(_images._OFFICIAL, sums, "MNIST")
    assert load_idx_images(tmp_path, "test").source == "user's MNIST, test part (published SHA-256)"
    assert all(len(digest) == 64 for pair in _images._OFFICIAL for digest in pair)
    assert {sum(counts) for counts in _images._COUNTS} == {60_000, 10_000}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((5, 5), r"bytes of the shape \(10000, 28, 28\) are expected"),
        ((0,) * 10 + (10_000,), "10000 labels from 0 to 9 are expected"),
    ],
)
def test_other_arrays_are_refused(tmp_path, counts, message):
    write(tmp_path, counts)
    with pytest.raises(ValueError, match=message):
        load_idx_images(tmp_path, "test")


def test_digits_are_those_of_scikit_learn():
    pytest.importorskip("sklearn")
    digits = load_digits_8x8()
    assert digits.images.shape == (1797, 8, 8)
    features = digits.features()
    assert features.shape == (1797, 64)
    assert (features.min(), features.max()) == (0.0, 1.0)
    assert "8x8 digits" in digits.source


SMALL = LabelledImages(np.zeros((12, 1, 1)), np.repeat([0, 1, 2], 4).astype(np.int64), 1.0, "small")


def test_nodes_have_images_of_their_labels_and_none_in_common():
    found = SMALL.share([{0, 1}, {0, 1}, [2]], [3, 5, 4], 0)
    assert [len(rows) for rows in found] == [3, 5, 4]
    assert sorted(np.concatenate(found)) == list(range(12))
    assert set(SMALL.labels[found[2]]) == {2}
    again = SMALL.share([{0, 1}, {0, 1}, [2]], [3, 5, 4], 0)
    assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


def test_too_few_images_are_an_error_unless_nodes_may_have_the_same():
    with pytest.raises(ValueError, match=r"node 1: 3 images of the labels \[2\] .* and 1 of small"):
        SMALL.share([{2}, {2}], 3, 0)
    found = SMALL.share([{2}] * 5, 3, 0, replace=True)
    assert all(len(set(rows)) == 3 for rows in found)
    assert len({tuple(sorted(rows)) for rows in found}) > 1
