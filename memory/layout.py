"""Where vectors live in Chroma: the names of collections, and the row that decides them. Pure.

    trimem-NAMESPACE-SPACE-sNNN     vectors of the users whose digest falls on shard NNN
    trimem-NAMESPACE-SPACE-sNNNtT   the same, after the number of shards was changed T times
    trimem-NAMESPACE-SPACE-uOWNER   vectors of one large user

The row is one small value in the journal, so that everybody reads the same at once. While the
number of shards is being changed it names the shards that are being filled (`coming`), to which
everybody writes as well; those that nobody reads any more (`left`) until they are cleared; and the
spaces that are being filled for another embedder (`preparing`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from memory.codec import decode, digest, encode


class Shards(NamedTuple):
    """One way of sharing users out: among how many, and how many ways there were before it."""

    number: int
    turn: int = 0

    def name(self, owner: bytes) -> str:
        return f"s{int.from_bytes(owner[:4], 'big') % self.number:03d}{self._mark}"

    def has(self, name: str) -> bool:
        """Whether a collection whose name ends so is one of these."""
        number, at, turn = name[1:].partition("t")
        return name[:1] == "s" and number.isdecimal() and f"{at}{turn}" == self._mark

    @property
    def _mark(self) -> str:
        return f"t{self.turn}" if self.turn else ""


class Row(NamedTuple):
    """What the journal says of the layout."""

    namespace: str
    shards: Shards
    coming: Shards | None = None
    left: tuple[Shards, ...] = ()
    preparing: tuple[int, ...] = ()

    @classmethod
    def of(cls, value: bytes) -> Row:
        stored: dict[str, Any] = decode(value)
        coming = stored.get("coming")
        return cls(
            namespace=stored["namespace"],
            shards=Shards(stored["shards"], stored.get("turn", 0)),
            coming=Shards(*coming) if coming else None,
            left=tuple(Shards(*each) for each in stored.get("left", ())),
            preparing=tuple(stored.get("preparing", ())),
        )

    def to_bytes(self) -> bytes:
        return encode(
            {
                "namespace": self.namespace,
                "shards": self.shards.number,
                "turn": self.shards.turn,
                "coming": list(self.coming) if self.coming else None,
                "left": [list(each) for each in self.left],
                "preparing": list(self.preparing),
            }
        )

    # --- another number of shards --------------------------------------------------------------

    def moving_to(self, number: int) -> Row:
        """On the way to so many shards. What was coming instead is given up, and to be cleared."""
        if self.coming is not None and self.coming.number == number:
            return self
        given_up = (self.coming,) if self.coming else ()
        turn = 1 + max(each.turn for each in (self.shards, *given_up, *self.left))
        return self._replace(
            coming=None if number == self.shards.number else Shards(number, turn),
            left=(*self.left, *given_up),
        )

    def moved(self) -> Row:
        """With what was coming in the place of what was."""
        if self.coming is None:
            return self
        return self._replace(shards=self.coming, coming=None, left=(*self.left, self.shards))

    def cleared(self) -> Row:
        return self._replace(left=())

    # --- another embedder ----------------------------------------------------------------------

    def prepares(self, space: int) -> Row:
        return self._replace(preparing=tuple(sorted({*self.preparing, space})))

    def prepared(self, space: int) -> Row:
        return self._replace(preparing=tuple(one for one in self.preparing if one != space))


class Layout(NamedTuple):
    """Where the vectors of one embedder live."""

    row: Row
    space: int
    space_key: str

    @property
    def prefix(self) -> str:
        """How the names of all of this journal's collections begin."""
        return f"trimem-{self.row.namespace}-"

    @property
    def space_prefix(self) -> str:
        """How the names of this embedder's collections begin."""
        return f"{self.prefix}{self.space_key}-"

    def collection(self, owner: bytes, *, own: bool) -> str:
        """Where a user's vectors are looked for."""
        return self._own(owner) if own else self._shard(self.row.shards, owner)

    def coming(self, owner: bytes) -> str | None:
        """Where they will be looked for, when the number of shards is being changed."""
        return self._shard(self.row.coming, owner) if self.row.coming else None

    def written(self, owner: bytes, *, own: bool) -> tuple[str, ...]:
        """Where they are put."""
        return (self._own(owner),) if own else self.shards_of(owner)

    def shards_of(self, owner: bytes) -> tuple[str, ...]:
        """The shards that a user without a collection of their own is in."""
        ways = (self.row.shards, self.row.coming)
        return tuple(self._shard(way, owner) for way in ways if way is not None)

    def is_used(self, collection: str) -> bool:
        """Whether a collection of this space is one that anybody reads or will."""
        name = collection.removeprefix(self.space_prefix)
        ways = (self.row.shards, self.row.coming)
        return name[:1] == "u" or any(way.has(name) for way in ways if way is not None)

    def _own(self, owner: bytes) -> str:
        return f"{self.space_prefix}u{owner.hex()}"

    def _shard(self, way: Shards, owner: bytes) -> str:
        return f"{self.space_prefix}{way.name(owner)}"


def space_key(identity: str, dims: int) -> str:
    """What stands for an embedder's space in names."""
    return digest(encode([identity, dims]))[:10]
