"""What is measured: pure functions of what was found and what should have been."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence


def recall_at(ranked: Sequence[str], evidence: Collection[str], k: int) -> float:
    """The share of the evidence that is among the first `k`."""
    return len(set(evidence).intersection(ranked[:k])) / len(set(evidence))


def ndcg_at(ranked: Sequence[str], evidence: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain, binary: 1 / log2(rank + 1) each (Järvelin 2002)."""
    gain = sum(_discount(place) for place, each in enumerate(ranked[:k]) if each in evidence)
    return gain / sum(map(_discount, range(min(k, len(set(evidence))))))


def _discount(place: int) -> float:
    return 1 / math.log2(place + 2)


def any_of(ranked: Sequence[str], evidence: Collection[str], k: int) -> float:
    """1.0 when anything of the evidence is among the first `k`."""
    return float(bool(set(evidence).intersection(ranked[:k])))


def all_of(ranked: Sequence[str], evidence: Collection[str], k: int) -> float:
    """1.0 when all of the evidence is among the first `k`."""
    return float(set(evidence) <= set(ranked[:k]))


def distinct(names: Iterable[str]) -> list[str]:
    """Each once, in the order in which it came first."""
    return list(dict.fromkeys(names))


def mean(values: Iterable[float]) -> float | None:
    """None of nothing."""
    all_values = list(values)
    return sum(all_values) / len(all_values) if all_values else None


def percentile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least `share` of them do not exceed; None of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
