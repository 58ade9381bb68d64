"""The journal's tables of episodic memory: what Chroma and the lexical index are rebuilt from.

    episode_owners   a user as a small number, how much there is to search, where the vectors live;
                     `edition` counts the changes of what there is to search that were no additions
    episodes         one row an episode; the text and metadata are bytes, the rest are columns
    episode_vectors  the embeddings of an episode and its passages, at most one row in each
                     embedder's space: the first vector is that of the whole
    episode_spaces   embedders that vectors came from, by their identity
    owner_spaces     how many vectors of each space a user has
    episode_flaws    episodes to be embedded again, because they have no vector or one that was made
                     by former rules: why, and how often it was tried in vain
    postings         which episodes of a user say a term, how often, and how long they are
    posted_terms     how many episodes of a user say a term

Everything is keyed by the user's number first, so that no read depends on what others have. The
number of an episode (`n`) never leaves the journal. A term is 64 bits of its hash: no text of the
user's choosing is ever a key.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from memory.journal.schema import Serial, bytes_column, metadata, moment_column, owner_column

episode_owners = Table(
    "episode_owners",
    metadata,
    Column("n", Serial, primary_key=True),
    owner_column(),
    Column("active", BigInteger, nullable=False, default=0),
    Column("words", BigInteger, nullable=False, default=0),
    Column("has_own_collection", Boolean, nullable=False, default=False),
    Column("lexicon", Integer, nullable=False),
    Column("edition", BigInteger, nullable=False, default=0),
)
Index("episode_owners_owner", episode_owners.c.owner, unique=True)

episodes = Table(
    "episodes",
    metadata,
    Column("n", Serial, primary_key=True),
    Column("owner_n", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("part", Integer, nullable=False),
    Column("parts", Integer, nullable=False),
    Column("role", Text, nullable=False),
    bytes_column("speaker"),
    Column("agent", Text),
    bytes_column("text"),
    bytes_column("metadata"),
    moment_column("event_time"),
    moment_column("recorded_at"),
    Column("importance", Float, nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("archived", Boolean, nullable=False),
    moment_column("last_access", nullable=True),
    Column("words", Integer, nullable=False),
)
Index("episodes_id", episodes.c.id, unique=True)
Index("episodes_owner", episodes.c.owner_n, episodes.c.n)
Index("episodes_seq", episodes.c.owner_n, episodes.c.session, episodes.c.seq, episodes.c.part)
Index("episodes_message", episodes.c.owner_n, episodes.c.message_id)


def belongs_to(owner_n: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Whether an episode that is looked up by its id is this user's.

    Said in a way for which there is no index: SQLite takes that of a user's episodes for as good
    as that of ids, and would look through all that the user has.
    """
    return episodes.c.owner_n + 0 == owner_n


episode_spaces = Table(
    "episode_spaces",
    metadata,
    Column("space", Serial, primary_key=True),
    Column("hash", LargeBinary(16), nullable=False),
    bytes_column("identity"),
    Column("dims", Integer, nullable=False),
)
Index("episode_spaces_hash", episode_spaces.c.hash, unique=True)

episode_vectors = Table(
    "episode_vectors",
    metadata,
    Column("n", BigInteger, nullable=False),
    Column("space", BigInteger, nullable=False),
    bytes_column("vector"),
    PrimaryKeyConstraint("n", "space"),
)

owner_spaces = Table(
    "owner_spaces",
    metadata,
    Column("owner_n", BigInteger, nullable=False),
    Column("space", BigInteger, nullable=False),
    Column("vectors", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner_n", "space"),
    sqlite_with_rowid=False,
)

episode_flaws = Table(
    "episode_flaws",
    metadata,
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    bytes_column("reason"),
    Column("attempts", Integer, nullable=False),
)
Index("episode_flaws_attempts", episode_flaws.c.attempts, episode_flaws.c.n)

postings = Table(
    "postings",
    metadata,
    Column("owner_n", BigInteger, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("times", Integer, nullable=False),
    Column("words", Integer, nullable=False),
    PrimaryKeyConstraint("owner_n", "term", "n"),
    sqlite_with_rowid=False,
)

posted_terms = Table(
    "posted_terms",
    metadata,
    Column("owner_n", BigInteger, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("episodes", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner_n", "term"),
    sqlite_with_rowid=False,
)
