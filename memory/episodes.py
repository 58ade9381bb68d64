"""From a message to its episodes. Pure.

An episode is one message, or one piece of a long one, word for word. Pieces end where sentences
end, and are short enough that what they say is one thing and every embedder reads them whole.
"""

from __future__ import annotations

from typing import NamedTuple

from memory.codec import content_id
from memory.models import FRAMEWORK, Episode, RecordedMessage, Role
from memory.passages import passages
from memory.text import is_blank, pieces

LONGEST = 1_000
"""Characters of the longest episode in a script with spaces between words."""
LONGEST_UNSPACED = 400
"""Characters of the longest episode in Chinese, Japanese …: as much text, in fewer characters."""

_INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)


class Split(NamedTuple):
    """The episodes of a message; none, and why, when there is nothing in it to remember."""

    episodes: tuple[Episode, ...]
    skipped: str | None = None


def split(message: RecordedMessage) -> Split:
    """The episodes of a message. The same message gives the same ids.

    Instructions (system, developer) did not happen, and blank text says nothing. Pieces that are
    blank are left out.
    """
    if message.role in _INSTRUCTIONS:
        return Split((), f"a {message.role.value} message is an instruction, not an episode")
    text = message.text
    if is_blank(text):
        return Split((), "there is no text in it")
    found = [piece for piece in pieces(text, _longest(text)) if not is_blank(piece)]
    return Split(
        tuple(_episode(message, piece, part, len(found)) for part, piece in enumerate(found))
    )


def searched_text(episode: Episode) -> str:
    """What the arms are given of an episode, to embed and to count: see `searched`."""
    return searched(episode.text, episode.role.value, episode.speaker)


def embedded_texts(text: str, role: str, speaker: str) -> tuple[str, ...]:
    """What is embedded of an episode: the whole of it, then its passages, each as `searched`."""
    return tuple(searched(each, role, speaker) for each in (text, *passages(text)))


def searched(text: str, role: str, speaker: str) -> str:
    """A text with the name of who said it before it, where that is more than a role.

    Who said something is half of what it says, and stands in no word of it. Change this only
    together with `text.LEXICON`: postings and vectors are made of it.
    """
    return text if speaker == role else f"{speaker}: {text}"


def _longest(text: str) -> int:
    """Characters of a piece: fewer when more than a third of the text is in an unspaced script."""
    sample = text[:3_000]
    wide = sum(
        "\u2e80" <= character <= "\ud7ff" or character >= "\U00020000" for character in sample
    )
    return LONGEST_UNSPACED if 3 * wide > len(sample) else LONGEST


def _episode(message: RecordedMessage, text: str, part: int, parts: int) -> Episode:
    return Episode(
        id=content_id("episode", message.id, str(part)),
        session=message.session,
        message_id=message.id,
        seq=message.seq,
        part=part,
        parts=parts,
        role=message.role,
        speaker=message.name or message.role.value,
        agent=message.agent,
        text=text,
        event_time=message.event_time,
        recorded_at=message.recorded_at,
        metadata={name: it for name, it in message.metadata.items() if name != FRAMEWORK},
    )
