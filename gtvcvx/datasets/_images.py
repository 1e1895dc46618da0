"""Images with labels: the 8x8 digits of scikit-learn, and a user's MNIST or Fashion-MNIST."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._extras import extra_module
from gtvcvx.datasets._idx import load_idx
from verify._display import fields_text

# SHA-256 of the gzip files as their authors publish them, images and labels; several public
# repositories give the same sums.
_OFFICIAL = {
    ("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
     "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"): "MNIST",
    ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
     "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"): "MNIST",
    ("08dc20ab1689590a0bcd66e874647b6ee8464e2d501b5a3f1f78831db19a3fdc",
     "b0197879cbda89f3dc7b894f9fd52b858e68ea4182b6947c9d8c2b67e5f18dcc"): "Fashion-MNIST",
    ("78dcbbfb5a27efaf1b6c1d616caca68560be8766c5bffcb2791df9273a534229",
     "42bd18137a62d5998cdeae52bf3a0676ac6b706f5cf8439b47bb5b151ae3dccf"): "Fashion-MNIST",
}  # fmt: skip
# Images of each label: by these, files that were packed anew are told apart.
_COUNTS = {
    (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949): "MNIST",
    (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009): "MNIST",
    (6000,) * 10: "Fashion-MNIST",
    (1000,) * 10: "Fashion-MNIST",
}
_PARTS = {"train": ("train", 60_000), "test": ("t10k", 10_000)}
_SIDE = 28


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Grey images and what they show.

    Attributes
    ----------
    images : ndarray, shape (n, height, width)
        Grey values from 0 to ``maximum``.
    labels : ndarray of int64, shape (n,)
        0 to 9.
    maximum : float
        The largest grey value there can be: 16 or 255.
    source : str
        Which images these are, and how that was found out.
    """

    images: NDArray[Any]
    labels: IntArray
    maximum: float
    source: str

    __repr__ = fields_text

    def features(self) -> FloatArray:
        """Grey values between 0 and 1, one row an image, shape (n, height * width)."""
        return self.images.reshape(len(self.images), -1).astype(np.float64) / self.maximum

    def share(
        self,
        classes: Sequence[Collection[int]],
        sizes: int | Sequence[int],
        seed: int | Sequence[int],
        *,
        replace: bool = False,
    ) -> list[IntArray]:
        """Draw the images of each of several nodes at random.

        Parameters
        ----------
        classes : sequence of collections of int
            The labels that a node sees, one collection a node.
        sizes : int or sequence of int
            Images a node, of all its labels together.
        seed : int or sequence of int
            Of the random numbers.
        replace : bool
            Whether several nodes may have the same image; a node itself has none twice. To be
            said wherever results are shown.

        Returns
        -------
        list of ndarray of int64
            Rows of the images of each node, in random order.

        Raises
        ------
        ValueError
            There are too few images of some labels.
        """
        rng = np.random.default_rng(seed)
        counts = np.broadcast_to(np.asarray(sizes, dtype=np.int64), (len(classes),))
        order = rng.permutation(len(self.labels))
        used = np.zeros(len(self.labels), dtype=np.bool_)
        found = []
        for node, (wanted, count) in enumerate(zip(classes, counts.tolist(), strict=True)):
            if replace:
                order = rng.permutation(len(self.labels))
            free = order[np.isin(self.labels[order], sorted(wanted)) & ~used[order]]
            if len(free) < count:
                raise ValueError(
                    f"node {node}: {count} images of the labels {sorted(wanted)} are wanted, and "
                    f"{len(free)} of {self.source} are left"
                )
            found.append(free[:count].astype(np.int64))
            used[found[-1]] = not replace
        return found


def load_digits_8x8() -> LabelledImages:
    """Load the 1,797 digits of 8 x 8 pixels that come with scikit-learn (extra ``ml``).

    Returns
    -------
    LabelledImages
        With grey values from 0 to 16.

    Raises
    ------
    ImportError
        There is no scikit-learn.

    Notes
    -----
    From the UCI repository (E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits");
    its test part. They are no MNIST: results on them are named after them.
    """
    found = extra_module("sklearn.datasets", "ml", "8x8 digits").load_digits()
    source = "8x8 digits (scikit-learn)"
    return LabelledImages(found.images, found.target.astype(np.int64), 16.0, source)


def load_idx_images(
    folder: str | os.PathLike[str], part: Literal["train", "test"] = "train"
) -> LabelledImages:
    """Read a user's MNIST or Fashion-MNIST from a folder with the files of one of them.

    Parameters
    ----------
    folder : path-like
        With ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte``, or ``t10k-...``, with
        ``.gz`` at the end or without.
    part : {"train", "test"}
        60,000 or 10,000 images.

    Returns
    -------
    LabelledImages
        ``source`` says which data they are: by the SHA-256 of both files if they are the published
        ones, otherwise by the number of images of each label; or that they are neither.

    Raises
    ------
    FileNotFoundError
        A file is missing; the message says which.
    ValueError
        Another shape, or labels that do not go with the images.
    """
    if part not in _PARTS:
        raise ValueError(f"part: 'train' or 'test' is expected, got {part!r}")
    stem, count = _PARTS[part]
    paths = [
        _either(Path(folder), f"{stem}-{kind}")
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    ]
    images, labels = (load_idx(path) for path in paths)
    if images.dtype != np.uint8 or images.shape != (count, _SIDE, _SIDE):
        raise ValueError(
            f"{paths[0]}: bytes of the shape {(count, _SIDE, _SIDE)} are expected, got "
            f"{images.dtype} of the shape {images.shape}"
        )
    if labels.shape != (count,) or not np.isin(labels, range(10)).all():
        raise ValueError(f"{paths[1]}: {count} labels from 0 to 9 are expected")
    return LabelledImages(images, labels.astype(np.int64), 255.0, _source(paths, labels, part))


def _either(folder: Path, name: str) -> Path:
    """Return the file under one of the names that it goes by, or else that of the gzip file."""
    names = (f"{name}.gz", name, name.replace("-idx", ".idx"))
    return next((folder / each for each in names if (folder / each).is_file()), folder / names[0])


def _source(paths: Sequence[Path], labels: NDArray[Any], part: str) -> str:
    sums = tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    if sums in _OFFICIAL:
        return f"user's {_OFFICIAL[sums]}, {part} part (published SHA-256)"
    name = _COUNTS.get(tuple(np.bincount(labels, minlength=10).tolist()))
    if name is not None:
        return f"user's {name}, {part} part (by its numbers of labels; another SHA-256)"
    return f"user's images of {paths[0].name}, neither MNIST nor Fashion-MNIST"
