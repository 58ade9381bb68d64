"""Ids for things that happen: sortable by time, unique by chance (ULID, github.com/ulid/spec)."""

from __future__ import annotations

from datetime import datetime

from memory.times import to_micros

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ENTROPY_BYTES = 10


def ulid(now: datetime, entropy: bytes) -> str:
    """26 characters: 48 bits of milliseconds since 1970, then 80 bits of `entropy` (10 bytes)."""
    if len(entropy) != ENTROPY_BYTES:
        raise ValueError(f"a ULID takes {ENTROPY_BYTES} bytes of entropy, not {len(entropy)}")
    millis = max(0, to_micros(now) // 1000)
    number = (millis << 80) | int.from_bytes(entropy, "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))
