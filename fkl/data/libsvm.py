"""LIBSVM's text format, with lines ``label index:value ...``, and targets of two classes.

`read_libsvm` reads it as scikit-learn does, but accepts indices in any order. `read_sparse` and `read_dense` read
published files, and refuse anything that these do not have: blank lines, comments, indices from 0.

Source of the files and of the format: https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, cut_text

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix

LABEL = "label"
"""Name of the target in a table of this format."""
LINE = re.compile(r"\s*[+-]?[\d.][^\s:#;]*(?:\s+qid:\d+)?(?P<pairs>(?:\s+(?:0|[1-9]\d*):[^\s:#]+)*)\s*(?:#.*)?")
CLOCK = re.compile(r"\s+([01]?\d|2[0-3]):[0-5]\d")
LOOKED_AT = 50
"""Number of lines by which the format is recognised."""
BLOCK = 1 << 24
"""Bytes of text that `read_dense` parses at a time."""
SHOWN = 60
"""Characters of a wrong line that are quoted."""


def two_classes(labels: NDArray[np.float64], where: str, negative: float, first_line: int = 1) -> NDArray[np.float64]:
    """Signs of labels.

    Parameters
    ----------
    labels : (n,) float64
        One per line.
    where : str
        Name of the file, for messages.
    negative : float
        Label of the class -1; the label of the class 1 is 1.
    first_line : int
        Line of the first label.

    Returns
    -------
    (n,) float64
        -1 or 1.

    Raises
    ------
    FklError
        If there is another label, or only one of the two.
    """
    # Only the two labels, and each of them at least once
    is_known = (labels == negative) | (labels == 1.0)
    if not is_known.all():
        row = int(is_known.argmin())
        raise FklError(f"{where}, line {row + first_line}: label {labels[row]:g} is neither {negative:g} nor 1")
    for label in (negative, 1.0):
        if label not in labels:
            raise FklError(f"{where}: no sample has the label {label:g}, where two classes are expected")
    return np.where(labels == 1.0, 1.0, -1.0)


def is_libsvm(text: str) -> bool:
    """Whether the first lines are samples, and not numbers and times of day."""
    lines = (line for line in text.split("\n", 1000)[:1000] if line.strip() and not line.lstrip().startswith("#"))
    matches = [LINE.fullmatch(line) for line in islice(lines, LOOKED_AT)]
    return all(matches) and any(
        match is not None and match["pairs"] and not CLOCK.fullmatch(match["pairs"]) for match in matches
    )


def has_index_0(raw: bytes) -> bool:
    """Whether features are counted from 0 and not from 1."""
    return re.search(rb"\s0:", re.sub(rb"#.*", b"", raw)) is not None


def read_libsvm(
    raw: bytes, where: str, features: int | None = None, first: int = 0
) -> tuple["csr_array", NDArray[np.float64]]:
    """Samples and labels as scikit-learn reads them: any labels, comments, blank lines; also indices in any order.

    Parameters
    ----------
    raw : bytes
        The file.
    where : str
        Its name, for messages.
    features : int or None
        Number d of features; None for as many as the highest index requires.
    first : int
        Index of the first feature, 0 or 1.

    Returns
    -------
    x : (n, d) csr_array of float64
    labels : (n,) float64

    Raises
    ------
    FklError
        If a line is not a sample of d finite features; the message names file and line.
    """
    from scipy.sparse import csr_array

    # Groups of a ranking are another kind of task
    if b"qid:" in raw:
        line = raw.count(b"\n", 0, raw.index(b"qid:")) + 1
        raise FklError(f"{where}, line {line}: has qid, the groups of a ranking, which no method learns; remove it")
    # Parse all at once; only if that fails, search for the line to blame
    parsed = _parse_in_any_order(raw)
    written = "a label and different index:value pairs"
    if parsed is None:
        raise FklError(_blame_line(raw, where, lambda block, _: _parse_in_any_order(block) is not None, written))
    sparse, labels = csr_array(parsed[0]), parsed[1]
    if not len(labels):
        raise FklError(f"{where}: has no samples")
    # Indices from `first` on; width from the largest index, unless it is known
    highest = int(sparse.indices.max(initial=0)) - first + 1
    width = highest if features is None else features
    # Values and labels must be finite, and indices in range
    wrong = np.flatnonzero(~np.isfinite(sparse.data) | (sparse.indices < first) | (sparse.indices - first >= width))
    if wrong.size or not np.isfinite(labels).all():
        row = int(np.searchsorted(sparse.indptr, wrong[0], side="right")) - 1 if wrong.size else len(labels)
        row = min(row, int(np.append(~np.isfinite(labels), True).argmax()))
        samples = (n for n, line in enumerate(raw.split(b"\n"), 1) if line.partition(b"#")[0].strip())
        finite = "a finite label and finite values" + f" of features {first} to {width - 1 + first}" * bool(features)
        raise FklError(f"{where}, line {next(islice(samples, row, None))}: must have {finite}")
    return csr_array((sparse.data, sparse.indices - first, sparse.indptr), shape=(len(labels), width)), labels


def _parse_in_any_order(raw: bytes) -> "tuple[csr_matrix, NDArray[np.float64]] | None":
    """Samples with the indices of the text; None if a line is not a sample."""
    return _try_parsing(raw, None) or _try_parsing(b"\n".join(map(_in_order, raw.split(b"\n"))), None)


def _in_order(line: bytes) -> bytes:
    """A line with ascending indices."""
    label, *pairs = line.partition(b"#")[0].split() or [b""]
    try:
        return b" ".join([label, *sorted(pairs, key=lambda pair: int(pair.partition(b":")[0]))])
    except ValueError:
        return line


def read_sparse(
    raw: bytes, where: str, features: int, negative: float = -1.0
) -> tuple["csr_array", NDArray[np.float64]]:
    """Samples of a LIBSVM text, with sparse features.

    Parameters
    ----------
    raw : bytes
        The file, n lines.
    where : str
        Its name, for messages.
    features : int
        Number d of features; the highest index of a file can be lower.
    negative : float
        Label of the class -1; the label of the other class is 1.

    Returns
    -------
    x : (n, d) csr_array of float64
    y : (n,) float64
        -1 or 1.

    Raises
    ------
    FklError
        If a line is not a sample of d finite features and one of the two labels (the message names file and line), or
        one of the classes has no sample.
    """
    x, labels = _parse_samples(raw, where, features)
    return x, two_classes(labels, where, negative)


def read_dense(
    pieces: Iterable[bytes], where: str, features: int, rows: int, negative: float = -1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """First samples of a LIBSVM text, block after block into one array: the text can be larger than the memory.

    Parameters
    ----------
    pieces : iterable of bytes
        The file, cut anywhere; it is read only as far as needed.
    where, features, negative
        As in `read_sparse`.
    rows : int
        Number of samples.

    Returns
    -------
    x : (rows, features) float64
    y : (rows,) float64
        -1 or 1.

    Raises
    ------
    FklError
        The errors of `read_sparse`, and one if there are fewer samples.
    """
    # Fill the arrays block by block, so the text may be larger than the memory
    x, labels = np.empty((rows, features)), np.empty(rows)
    done = 0
    for block in _whole_lines(pieces):
        values, targets = _parse_samples(block, where, features, first_line=done + 1)
        taken = min(len(targets), rows - done)
        x[done : done + taken] = values[:taken].toarray()
        labels[done : done + taken] = targets[:taken]
        done += taken
        if done == rows:
            return x, two_classes(labels, where, negative)
    raise FklError(f"{where}: {done} rows where {rows} are needed")


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of about `BLOCK` bytes that end with a line."""
    # Blocks end with a line, because a sample must not be cut
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK and b"\n" in piece:
            lines, _, rest = b"".join(waiting).rpartition(b"\n")
            yield lines + b"\n"
            waiting, size = [rest], len(rest)
    last = b"".join(waiting)
    if last:
        yield last


def _parse_samples(
    raw: bytes, where: str, features: int, first_line: int = 1
) -> tuple["csr_array", NDArray[np.float64]]:
    """Samples and labels of a text with one sample per line."""
    from scipy.sparse import csr_array

    # A line that is no sample has no row, so the counts differ
    parsed = _try_parsing(raw, features)
    # The parser skips empty lines and comments. Published files have none, so line numbers in messages are right.
    if parsed is None or len(parsed[1]) != raw.count(b"\n") + (not raw.endswith(b"\n") and raw != b""):

        def fits(lines: bytes, count: int) -> bool:
            parsed = _try_parsing(lines, features)
            return parsed is not None and len(parsed[1]) == count

        written = f"a label and index:value pairs of ascending indices from 1 to {features}"
        raise FklError(_blame_line(raw, where, fits, written, first_line))
    # All values finite
    x, labels = csr_array(parsed[0]), parsed[1]
    finite = np.isfinite(x.data)
    if not finite.all():
        entry = int(finite.argmin())
        row = int(np.searchsorted(x.indptr, entry, side="right")) - 1
        raise FklError(
            f"{where}, line {row + first_line}, feature {x.indices[entry] + 1}: {x.data[entry]} is not a finite number"
        )
    return x, labels


def _try_parsing(raw: bytes, features: int | None) -> "tuple[csr_matrix, NDArray[np.float64]] | None":
    """The text as scikit-learn parses it; None if it fails. Without `features`, indices are unchanged."""
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(io.BytesIO(raw), n_features=features, zero_based=features is None)
    except (ValueError, OverflowError):  # the second for an index too large for an integer
        return None


def _blame_line(raw: bytes, where: str, fits: Callable[[bytes, int], bool], written: str, first_line: int = 1) -> str:
    """Message about the first line that is not a sample, found by bisection; `fits` takes lines and their number."""
    # Bisection: parsing is fast, so few parses find the line
    lines = raw.removesuffix(b"\n").split(b"\n")
    good, bad = 0, len(lines)  # all lines before `good` fit, those before `bad` do not
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(b"\n".join(lines[good:middle]), middle - good):
            good = middle
        else:
            bad = middle
    shown = cut_text(lines[good].decode("utf-8", errors="replace"), SHOWN)
    return f"{where}, line {good + first_line}: {shown!r} is not {written}"
