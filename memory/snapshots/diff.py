"""What changed from one context to another. Pure."""

from __future__ import annotations

from memory.models import Context, Item, TierName, TokenCount, Value


class Move(Value):
    """An item that is in both contexts, at another place or with another score."""

    tier: TierName
    id: str
    text: str
    place_before: int
    place_after: int
    score_before: float
    score_after: float


class Diff(Value):
    """From `before` to `after`: snapshot ids. Places count from 0 within the context's items.

    `moved` has what is in both at another place among what both have, or with another score.
    """

    before: str | None
    after: str | None
    added: tuple[Item, ...] = ()
    removed: tuple[Item, ...] = ()
    moved: tuple[Move, ...] = ()
    tokens_before: TokenCount
    tokens_after: TokenCount
    system_changed: bool = False
    message_changed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether both contexts have the same items, tokens, system text and newest message."""
        return not (
            self.added
            or self.removed
            or self.moved
            or self.system_changed
            or self.message_changed
            or self.tokens_before != self.tokens_after
        )


def diff(before: Context, after: Context) -> Diff:
    """What `after` has and `before` had not, and the other way round. Items are told apart by id.

    An item whose text changed (a summary that grew) is removed and added.
    """
    old = {_key(item): (place, item) for place, item in enumerate(before.items)}
    new = {_key(item): (place, item) for place, item in enumerate(after.items)}
    return Diff(
        before=before.snapshot_id,
        after=after.snapshot_id,
        added=tuple(item for key, (_, item) in new.items() if key not in old),
        removed=tuple(item for key, (_, item) in old.items() if key not in new),
        moved=_moved(old, new),
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        system_changed=_instructions(before) != _instructions(after),
        message_changed=before.messages[-1:] != after.messages[-1:],
    )


_Key = tuple[str, str, str]
_Placed = dict[_Key, tuple[int, Item]]


def _key(item: Item) -> _Key:
    return item.tier, item.id, item.text


def _moved(old: _Placed, new: _Placed) -> tuple[Move, ...]:
    stayed = [key for key in new if key in old]
    rank_before = {key: n for n, key in enumerate(key for key in old if key in new)}
    moved = []
    for rank, key in enumerate(stayed):
        (place_before, item_before), (place_after, item_after) = old[key], new[key]
        if rank_before[key] != rank or item_before.score != item_after.score:
            moved.append(
                Move(
                    tier=item_after.tier,
                    id=item_after.id,
                    text=item_after.text,
                    place_before=place_before,
                    place_after=place_after,
                    score_before=item_before.score,
                    score_after=item_after.score,
                )
            )
    return tuple(moved)


def _instructions(context: Context) -> list[object]:
    return [m.get("content") for m in context.messages if m["role"] in ("system", "developer")]
