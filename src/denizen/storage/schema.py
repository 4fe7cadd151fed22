"""One schema for SQLite and PostgreSQL. Only text and whole numbers, so that both drivers give the same values.

Times are microseconds since 1970, UTC. JSON is text that its owner encodes. Yes and no are 1 and 0.
Tables that only grow have a number of their own as key: rows are appended, and an index says whose they are.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only where the type is exactly INTEGER.
_Number = BigInteger().with_variant(Integer(), "sqlite")


def _number() -> Column[int]:
    return Column("number", _Number, primary_key=True, autoincrement=True)


def _key(name: str, target: str | None = None) -> Column[str]:
    return Column(name, Text, *([ForeignKey(target)] if target else []), primary_key=True)


def _ref(name: str, target: str) -> Column[str]:
    return Column(name, Text, ForeignKey(target), nullable=False)


def _text(name: str, default: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=False, server_default=default)


def _int(name: str, default: int | None = None) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=None if default is None else text(str(default)))


def _flag(name: str, default: int = 0) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=text(str(default)))


organizations = Table(
    "organizations",
    metadata,
    _key("id"),
    _text("name"),
    _text("settings", "{}"),
    _int("created_at"),
)

entities = Table(
    "entities",
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    _text("kind"),  # human, agent, service
    _text("handle"),
    _text("name"),
    _text("metadata", "{}"),
    _int("created_at"),
    UniqueConstraint("organization_id", "handle"),
)

agents = Table(
    "agents",
    metadata,
    _key("id", "entities.id"),
    _ref("organization_id", "organizations.id"),
    _text("status", "active"),  # active, suspended, dead; what it is doing is told by its lease and its cycle
    _text("definition"),
    _int("version", 1),  # of the definition; a change begins a new era
    Column("urgent", Text),  # its rule of what is urgent, apart from the definition: every post reads it
    Column("zone", Text),  # its time zone, for its plans; NULL is UTC
    _int("created_at"),
)

leases = Table(
    "leases",
    metadata,
    _key("agent_id", "agents.id"),
    Column("holder", Text),
    _int("epoch", 0),
    _int("until", 0),
    Index(
        "ix_leases_held", "holder", sqlite_where=text("holder IS NOT NULL"), postgresql_where=text("holder IS NOT NULL")
    ),
)

instances = Table("instances", metadata, _key("id"), _int("seen_at"))

minds = Table(
    "minds",
    metadata,
    _key("agent_id", "agents.id"),
    _int("cycle_count", 0),
    _int("last_cycle_at", 0),
    _int("window_from", 1),  # the first sequence number of the log that the window shows
    _int("era", 0),  # of the self that is in force; 0 before the first
    _int("era_version", 0),  # of the definition that this era's self was rendered from
    _int("news", 0),  # counts what has changed around the agent
    _int("news_told", 0),
    _text("told", "{}"),  # what it was last told of its surroundings
)

selves = Table(
    "selves",
    metadata,
    _key("agent_id", "agents.id"),
    Column("era", BigInteger, primary_key=True),
    _text("text"),
    _int("created_at"),
)

spaces = Table(
    "spaces",
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    _text("kind"),  # conversation, panel
    _text("name"),
    _flag("private"),
    _int("last_seq", 0),
    _int("created_at"),
)

memberships = Table(
    "memberships",
    metadata,
    _key("space_id", "spaces.id"),
    _key("entity_id", "entities.id"),
    _text("role", "member"),
    _text("attention", "all"),  # all, mentions, none
    _int("joined_at"),
    Index("ix_memberships_entity", "entity_id"),
    sqlite_with_rowid=False,
)

messages = Table(
    "messages",
    metadata,
    _key("id"),
    _ref("space_id", "spaces.id"),
    _int("seq"),
    _ref("author_id", "entities.id"),
    _text("text"),
    Column("plain", Text),  # NULL where it is the same as the text
    Column("mentions", Text),
    Column("reply_to", Text),
    Column("metadata", Text),
    _int("hop", 0),
    Column("cycle_id", Text),  # the cycle that said it, where an agent did
    _int("created_at"),
    UniqueConstraint("space_id", "seq"),
)

_OPEN_EVENTS = text("state <> 'done'")
_NO_MESSAGE = text("message_id IS NULL")

events = Table(
    "events",
    metadata,
    _number(),
    _ref("agent_id", "agents.id"),
    _text("id"),
    _text("type"),
    _flag("lane", 1),  # 0 urgent, 1 normal
    _text("state", "pending"),  # pending, taken, done, dead
    _flag("wakes", 1),
    _int("hop", 0),
    _int("attempts", 0),
    _int("not_before", 0),
    Column("cycle_id", Text),
    Column("space_id", Text),
    Column("message_id", Text),
    Column("payload", Text),
    _int("created_at"),
    # A message's event is unique as its message is; what comes from elsewhere is unique by its own id.
    Index("ix_events_id", "agent_id", "id", unique=True, sqlite_where=_NO_MESSAGE, postgresql_where=_NO_MESSAGE),
    # In the order of draining, so that taking the first few reads only those.
    Index(
        "ix_events_open",
        "agent_id",
        "state",
        "lane",
        "number",
        sqlite_where=_OPEN_EVENTS,
        postgresql_where=_OPEN_EVENTS,
    ),
)

_UNENDED = text("number IS NULL")
_ENDED = text("number IS NOT NULL")

cycles = Table(
    "cycles",
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    Column("number", BigInteger),  # given when it ends; NULL while it is open
    _text("outcome", "open"),  # open, paused, acted, failed
    _int("first_seq"),
    _int("started_at"),
    Column("ended_at", BigInteger),
    _int("steps", 0),  # this and what it cost are filled in when it ends
    _int("attempts", 0),  # resumes and failures since the last progress
    _int("not_before", 0),
    _flag("handed_back"),  # a shutdown interrupted it: resuming it is no attempt
    Column("active_space_id", Text),
    Column("stop_reason", Text),
    Column("summary", Text),
    Column("told", Text),  # news this cycle was told; remembered when it ends
    _int("input_tokens", 0),
    _int("output_tokens", 0),
    _int("cost_micros", 0),  # millionths of a dollar
    # One mind: at most one cycle of an agent is open, whatever else goes wrong.
    Index("ix_cycles_open", "agent_id", unique=True, sqlite_where=_UNENDED, postgresql_where=_UNENDED),
    Index("ix_cycles_number", "agent_id", "number", unique=True, sqlite_where=_ENDED, postgresql_where=_ENDED),
    sqlite_with_rowid=False,
)

log = Table(
    "log",
    metadata,
    _number(),
    _ref("agent_id", "agents.id"),
    _int("seq"),
    _text("cycle_id"),
    _text("kind"),  # inbox, update, response, results, nudge, note
    _text("message"),
    _int("tokens"),
    Column("request", Text),  # of a response: what its request was made of
    _int("created_at"),
    UniqueConstraint("agent_id", "seq"),
)

effects = Table(
    "effects",
    metadata,
    _key("cycle_id"),
    Column("step", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),  # of the call in its response: provider call ids repeat
    _text("tool"),
    _text("state"),  # intent, done
    _flag("changes"),  # whether it changed anything, so that the cycle can no longer be rolled back
    Column("result", Text),
    _int("created_at"),
    sqlite_with_rowid=False,
)

overflow = Table(
    "overflow",
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    _text("cycle_id"),
    _text("text"),
    _int("created_at"),
)

toolsets = Table("toolsets", metadata, _key("digest"), _text("tools"))

ledger = Table(
    "ledger",
    metadata,
    _number(),
    _ref("agent_id", "agents.id"),
    _text("cycle_id"),
    _text("kind"),  # usage, skip, failure
    Column("model", Text),
    _int("input_tokens", 0),
    _int("output_tokens", 0),
    _int("cache_read_tokens", 0),
    _int("cache_write_tokens", 0),
    Column("cost_micros", BigInteger),  # NULL where the price is unknown
    Column("detail", Text),
    _int("created_at"),
)

tokens = Table(
    "tokens",
    metadata,
    _key("id"),
    _ref("entity_id", "entities.id"),
    _text("name"),
    _text("digest"),  # SHA-256 of the secret, which is kept nowhere
    _int("created_at"),
    Column("expires_at", BigInteger),  # NULL: never
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),  # to the minute
    UniqueConstraint("digest"),
    Index("ix_tokens_entity", "entity_id"),
)

goals = Table(
    "goals",
    metadata,
    _key("agent_id", "agents.id"),
    Column("number", BigInteger, primary_key=True),  # of the agent's own: what the model calls it by
    _text("text"),
    _text("status"),  # active, long-term, paused, done
    _flag("priority", 1),  # 0 high, 1 normal, 2 low
    _int("created_at"),
    _int("updated_at"),
    sqlite_with_rowid=False,
)

notes = Table(
    "notes",
    metadata,
    _key("agent_id", "agents.id"),
    _key("key"),
    _text("text"),
    _int("created_at"),
    _int("updated_at"),
    sqlite_with_rowid=False,
)

_NAMED_PLANS = text("kind = 'plan'")
_WAITING_PLANS = text("state = 'waiting'")

plans = Table(
    "plans",
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    _text("kind"),  # plan, timer, heartbeat
    _text("name"),
    _text("instruction"),
    _text("schedule"),
    _text("state"),  # waiting, held while its agent is suspended, failed where no next time can be reckoned
    _int("next_run"),
    Column("last_run", BigInteger),  # the time it last ran for, which is not always when it ran
    _int("reckoned_at"),  # when `next_run` was reckoned; in the future if the clock has been put back since
    _int("hop", 0),
    _int("created_at"),
    Index("ix_plans_agent", "agent_id", "next_run"),
    Index("ix_plans_name", "agent_id", "name", unique=True, sqlite_where=_NAMED_PLANS, postgresql_where=_NAMED_PLANS),
    Index("ix_plans_due", "next_run", sqlite_where=_WAITING_PLANS, postgresql_where=_WAITING_PLANS),
    Index("ix_plans_reckoned", "reckoned_at", sqlite_where=_WAITING_PLANS, postgresql_where=_WAITING_PLANS),
)
