"""The database schema, the same for SQLite and PostgreSQL. Only text, integers and bytes: both drivers return the same.

Times are microseconds since 1970, UTC. JSON is text that its owner encodes. Booleans are 1 and 0. Tables that only grow
have a serial number as key: rows are appended, and an index finds those of an owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    event,
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

blobs = MetaData(naming_convention=metadata.naming_convention)
"""The contents of files: on SQLite in a database file of their own, on PostgreSQL beside the other tables."""

# SQLite numbers rows itself only if the type is exactly INTEGER.
_Number = BigInteger().with_variant(Integer(), "sqlite")


def _number() -> Column[int]:
    return Column("number", _Number, primary_key=True, autoincrement=True)


def _key(name: str, target: str | None = None) -> Column[str]:
    return Column(name, Text, *([ForeignKey(target)] if target else []), primary_key=True)


def _ref(name: str, target: str) -> Column[str]:
    return Column(name, Text, ForeignKey(target), nullable=False)


def _owned(name: str, target: str) -> Column[str]:
    """A reference to a row that takes this one with it when it is deleted."""
    return Column(name, Text, ForeignKey(target, ondelete="CASCADE"), nullable=False)


def _text(name: str, default: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=False, server_default=default)


def _int(name: str, default: int | None = None) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=None if default is None else text(str(default)))


def _flag(name: str, default: int = 0) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=text(str(default)))


def _bytes(name: str) -> Column[bytes]:
    return Column(name, LargeBinary)


def _usage() -> Iterator[Column[int]]:
    """What model calls have used: how many calls, tokens, and millionths of a dollar."""
    counted = ("calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros")
    return (_int(name, 0) for name in counted)


def _alert(detail: str | None) -> Iterator[Column[Any]]:
    """An alert to owners, and the progress of sending it to the webhook."""
    yield _text("detail", detail)
    yield _int("created_at")
    yield Column("sent_at", BigInteger)  # when it was sent to the webhook; NULL: not yet
    yield _int("tries", 0)
    yield _int("next_at", 0)  # when the webhook may be tried again


def _state_of_mind() -> Iterator[Column[Any]]:
    yield _int("reflected_turns", 0)  # turns that were reflected on
    yield _text("mood", "neutral")
    yield _text("skill", "unknown")
    yield _text("complexity", "unknown")
    yield Column("mind_line", Text)  # what the agent or advisor is told of it; NULL: nothing
    yield _text("imprints", "{}")  # what metaprompts imprinted: JSON, texts by key


def _signal(turn: str) -> Iterator[Column[Any]]:
    """A signal from sentiment and errors. `turn`: the column of the cycle or the turn after which it was detected."""
    yield Column("person_id", Text)  # the person it is about; NULL: nobody
    yield _int(turn)
    yield _text("name")
    yield _text("rule")  # the rule that detected it
    yield Column("score", BigInteger)  # thousandths, from -1000 to 1000; NULL: it has none
    yield _int("created_at")


def _reflection(turn: str) -> Iterator[Column[Any]]:
    """A metaprompt that was asked, or a change by hand. `turn`: the column of the cycle or turn that it followed."""
    yield Column(turn, BigInteger)  # NULL: by hand
    yield Column("metaprompt", Text)  # the metaprompt's id; NULL if someone set or reset the state
    yield _text("cause")  # the signal, interval, manual, set, reset
    yield _text("outcome")  # changed, unchanged, failed
    yield _text("reason", "")
    yield _text("state")  # mood, skill and complexity after it: JSON
    yield Column("by_id", Text)  # who did it by hand
    yield _int("created_at")


def _partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index of the rows for which the condition holds."""
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


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
    _text("role", "member"),  # owner, admin, member, guest; agent, service
    Column("left_at", BigInteger),  # when a person or service left; NULL: has not left
    _int("created_at"),
    UniqueConstraint("organization_id", "handle"),
)

entity_pictures = Table(
    "entity_pictures",  # how people and agents look, made small
    metadata,
    _key("entity_id", "entities.id"),
    _text("link_key"),  # part of its address: another for each picture
    Column("data", LargeBinary, nullable=False),  # JPEG
    _int("created_at"),
)

identities = Table(
    "identities",  # the subjects of people at an identity provider
    metadata,
    _key("issuer"),
    _key("subject"),
    _ref("entity_id", "entities.id"),
    _int("created_at"),
    Index("ix_identities_entity", "entity_id"),
    sqlite_with_rowid=False,
)


agents = Table(
    "agents",
    metadata,
    _key("id", "entities.id"),
    _ref("organization_id", "organizations.id"),
    _text("status", "active"),  # active, suspended, dead; its lease and its cycle say what it is doing
    _text("definition"),
    _int("version", 1),  # of the definition; a change begins a new era
    Column("urgent", Text),  # its urgency rule, apart from the definition: every post reads it
    Column("zone", Text),  # its time zone, for its plans; NULL: UTC
    Column("held_by", Text),  # why it is suspended, if not by its owner: the budget that is used up
    Column("held_until", BigInteger),  # when it resumes by itself; NULL: not by itself
    Column("parked_cause", Text),  # why it cannot think until something changes; NULL: it can
    Column("parked_detail", Text),  # values for the sentence about it: JSON
    Column("parked_until", BigInteger),  # when it retries by itself
    _int("parked_tries", 0),  # how often it has retried without success
    _int("created_at"),
    _partial_index("ix_agents_held", "held_until", where="held_by IS NOT NULL"),
    _partial_index("ix_agents_parked", "parked_until", where="parked_cause IS NOT NULL"),
)

leases = Table(
    "leases",
    metadata,
    _key("agent_id", "agents.id"),
    Column("holder", Text),
    _int("epoch", 0),
    _int("until", 0),
    _partial_index("ix_leases_held", "holder", where="holder IS NOT NULL"),
)

instances = Table("instances", metadata, _key("id"), _int("seen_at"))

minds = Table(
    "minds",
    metadata,
    _key("agent_id", "agents.id"),
    _int("cycle_count", 0),
    _int("last_cycle_at", 0),
    _int("window_from", 1),  # the first sequence number of the log in the window
    _int("era", 0),  # the era of the present self; 0 before the first
    _int("era_version", 0),  # the version of the definition that this era's self was rendered from
    _int("news", 0),  # counts changes around the agent
    _int("news_told", 0),
    _text("told", "{}"),  # the surroundings that it was last told
    _flag("outside"),  # whether its window, layers or self hold text from outside, or based on such
    _bytes("head"),  # the head of the chain of its cycles (chains.py); NULL: none yet
)

selves = Table(
    "selves",
    metadata,
    _key("agent_id", "agents.id"),
    Column("era", BigInteger, primary_key=True),
    _text("text"),
    Column("layers", Text),  # the text of the layers before the window; NULL: none
    Column("shortened", Text),  # window entries whose results are shortened: JSON, characters by number
    _flag("outside"),  # whether the layers are based on text from outside
    _int("created_at"),
)

layers = Table(
    "layers",  # digests of ten, a hundred, a thousand cycles, and chapters
    metadata,
    _key("agent_id", "agents.id"),
    Column("level", Integer, primary_key=True),  # 1: ten cycles, 2: a hundred; 0: a chapter of ten
    Column("first", BigInteger, primary_key=True),  # the number of its first cycle
    _text("digest"),
    _int("created_at"),
    sqlite_with_rowid=False,
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
    _text("floor", "all"),  # which agents take up a person's message, if there are several: all, addressed, one
    _int("agent_run_limit", 12),  # the most messages with which agents may wake each other; 0: none
    _int("agent_run", 0),  # such messages since a person last wrote, or let them continue
    _int("created_at"),
    _bytes("head"),  # the head of the chain of its messages (chains.py); NULL: none yet
    _flag("bridged"),  # whether a channel has ever bound it to a room elsewhere
)

memberships = Table(
    "memberships",
    metadata,
    _key("space_id", "spaces.id"),
    _key("entity_id", "entities.id"),
    _text("role", "member"),
    _text("attention", "all"),  # all, mentions, none
    _int("read_seq", 0),  # the number of the last message that the member has read
    _int("notified_seq", 0),  # the number of the last message that push notifications were decided for
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
    Column("plain", Text),  # NULL: the same as the text
    Column("mentions", Text),
    Column("reply_to", Text),
    Column("metadata", Text),
    _int("hop", 0),
    Column("cycle_id", Text),  # the cycle that posted it, for an agent's message
    Column("edited_at", BigInteger),
    Column("deleted_at", BigInteger),  # its text is deleted then, its row stays
    _flag("outside"),  # whether it is text from outside, or an agent wrote it after reading such
    Column("files", Text),  # the files attached to it: JSON; NULL: none
    Column("reactions", Text),  # who reacted how: JSON, ids by emoji; NULL: nobody
    Column("pinned_at", BigInteger),  # NULL: not pinned
    Column("marked_at", BigInteger),  # when a reaction or the pin last changed: readers keep the newest state
    _int("created_at"),
    _bytes("salt"),  # NULL after an edit or redaction
    _bytes("digest"),  # as it was posted, in the chain of its space; NULL: not in a chain
    UniqueConstraint("space_id", "seq"),
    _partial_index("ix_messages_pinned", "space_id", "seq", where="pinned_at IS NOT NULL"),
    _partial_index("ix_messages_reacted", "space_id", where="reactions IS NOT NULL"),
    _partial_index("ix_messages_outside", "space_id", "seq", where="outside = 1"),
)


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
    _flag("waits"),  # whether a person waits for this agent's answer
    _int("attempts", 0),
    _int("interruptions", 0),  # how often a process died while handling it
    _int("not_before", 0),
    Column("cycle_id", Text),
    Column("space_id", Text),
    Column("message_id", Text),
    Column("payload", Text),
    _int("created_at"),
    # A message's event is unique by its message; events from elsewhere by their own id.
    _partial_index("ix_events_id", "agent_id", "id", unique=True, where="message_id IS NULL"),
    # Finds the agents with this message in their inbox, past or present: for edits and forgetting.
    _partial_index("ix_events_message", "message_id", where="message_id IS NOT NULL"),
    # In the order of draining, so that taking the first few reads only those.
    _partial_index("ix_events_open", "agent_id", "state", "lane", "number", where="state <> 'done'"),
    # Says when an agent goes on in a space, without a look at all that wait there.
    _partial_index(
        "ix_events_put_off", "agent_id", "space_id", "not_before", where="state = 'pending' AND not_before > 0"
    ),
)

stop_requests = Table(
    "stop_requests",  # people have told agents to stop what they write to a space; until the cycle ends
    metadata,
    _key("agent_id", "agents.id"),
    _key("space_id", "spaces.id"),
    _text("cycle_id"),  # the cycle that was open; it may be undone
    _int("seq"),  # the newest message of the space then
    _ref("by_id", "entities.id"),
    _int("created_at"),
    sqlite_with_rowid=False,
)

space_statuses = Table(
    "space_statuses",  # why a person who waits for an agent has no answer yet
    metadata,
    _key("space_id", "spaces.id"),
    _key("agent_id", "agents.id"),
    _key("cause"),
    _text("detail", "{}"),  # values for the sentence: JSON, never text of a message
    Column("message_id", Text),  # the newest message that waits because of it
    Column("retry_at", BigInteger),  # when the agent retries by itself; NULL: not by itself
    _int("created_at"),
    _int("updated_at"),
    Index("ix_space_statuses_agent", "agent_id"),
    sqlite_with_rowid=False,
)

alerts = Table(
    "alerts",  # alerts to owners about an agent; deleted when the cause is over
    metadata,
    _key("agent_id", "agents.id"),
    _key("cause"),
    *_alert("{}"),  # the detail has values for the sentence: JSON, never text of a message
    sqlite_with_rowid=False,
)

panel_alerts = Table(
    "panel_alerts",  # alerts to owners that nobody can answer in a panel; deleted when somebody has answered
    metadata,
    _key("space_id", "spaces.id"),
    _key("cause"),
    *_alert(None),  # the detail says why, and what to do: a sentence, never text of a message
    sqlite_with_rowid=False,
)


cycles = Table(
    "cycles",
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    Column("number", BigInteger),  # assigned when it ends; NULL while it is open
    _text("outcome", "open"),  # open, paused, acted, failed
    _int("first_seq"),
    _int("started_at"),
    Column("ended_at", BigInteger),
    _int("steps", 0),  # this and the cost are filled in when it ends
    _int("attempts", 0),  # failures since the last progress
    _int("interruptions", 0),  # crashes since the last progress
    _int("not_before", 0),
    _flag("handed_back"),  # a shutdown interrupted it: resuming does not count as an attempt
    Column("active_space_id", Text),
    Column("stop_reason", Text),
    Column("summary", Text),
    Column("told", Text),  # news this cycle was told; stored in the mind when it ends
    Column("outside_from", BigInteger),  # its log entries from this number on were made with text from outside
    _int("input_tokens", 0),
    _int("output_tokens", 0),
    _int("cost_micros", 0),  # millionths of a dollar
    _bytes("digest"),  # in the chain of its agent; NULL: open, or not in a chain
    # At most one cycle of an agent is open, whatever else goes wrong.
    _partial_index("ix_cycles_open", "agent_id", unique=True, where="number IS NULL"),
    _partial_index("ix_cycles_number", "agent_id", "number", unique=True, where="number IS NOT NULL"),
    sqlite_with_rowid=False,
)

cycle_spaces = Table(
    "cycle_spaces",  # the source spaces of each cycle: only those who may read all of them may read the cycle
    metadata,
    _key("cycle_id"),
    _key("space_id"),  # *: a private space that is not in this database
    _ref("agent_id", "agents.id"),
    Index("ix_cycle_spaces_agent", "agent_id", "space_id"),
    sqlite_with_rowid=False,
)

fact_spaces = Table(
    "fact_spaces",  # the same for an agent's goals, notes and plans; without a row, a person or a file has set it
    metadata,
    _key("agent_id", "agents.id"),
    _key("fact"),  # goal:1, note:key, plan:id
    _key("space_id"),
    sqlite_with_rowid=False,
)

log = Table(
    "log",
    metadata,
    _number(),
    _ref("agent_id", "agents.id"),
    _int("seq"),
    _text("cycle_id"),
    _text("kind"),  # inbox, recalled, remembered, update, response, results, nudge, note
    _text("message"),
    _int("tokens"),
    Column("request", Text),  # for a response: the parts of its request
    Column("outside", Text),  # the sources of its text from outside: JSON; for a response: [] if its request held such
    _int("created_at"),
    _bytes("salt"),  # NULL after a redaction
    _bytes("digest"),  # as it was written; NULL: without one
    UniqueConstraint("agent_id", "seq"),
)

amendments = Table(
    "amendments",  # edits and redactions in the chains of digests
    metadata,
    _number(),
    _text("chain_id"),  # a space or an agent
    _text("row_id"),  # the id of the message, or the number of the entry in the agent's log
    _int("position"),  # the last message of the space, or cycle of the agent, at the time
    _bytes("salt"),  # NULL after the next one of the same row
    Column("digest", LargeBinary, nullable=False),
    _int("created_at"),
    Index("ix_amendments_chain", "chain_id", "number"),
)

roster = Table(
    "roster",  # the rows of other tables that there must be: shows whether one is lost
    metadata,
    _key("kind"),  # organization, entity, space, member, question
    _key("id"),  # for a member, the space
    _key("member_id"),  # for a member, the entity; otherwise empty
    sqlite_with_rowid=False,
)

effects = Table(
    "effects",
    metadata,
    _key("cycle_id"),
    Column("step", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),  # the position of the call in its response: provider call ids repeat
    _text("tool"),
    _text("state"),  # intent, asked, done
    _flag("changes"),  # whether it changed anything, so that the cycle can no longer be rolled back
    Column("result", Text),
    Column("rule", Text),  # the rule that allowed the call of an outside tool
    Column("outside", Text),  # the sources of text from outside in its result: JSON; NULL: none
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
    # A cycle that leaves no trace deletes its long texts with it.
    Index("ix_overflow_cycle", "cycle_id"),
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
    Column("cost_micros", BigInteger),  # NULL if the price is unknown
    Column("detail", Text),
    _int("created_at"),
    # Only skips and failures, which are few: usage, the bulk of the table, is found by the end of its cycle.
    _partial_index("ix_ledger_others", "agent_id", "number", where="kind <> 'usage'"),
)

tokens = Table(
    "tokens",
    metadata,
    _key("id"),
    _ref("entity_id", "entities.id"),
    _text("kind", "token"),  # token; session of a browser; login: a link that is good for one session
    _text("role", "owner"),  # the token's maximum role; never more than its entity's
    _flag("speaks_for_others"),  # whether its bearer may name the person whom a request of OpenAI's API is made for
    _text("name"),
    _text("digest"),  # SHA-256 of the secret, which is not stored
    _int("created_at"),
    Column("expires_at", BigInteger),  # NULL: never
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),  # rounded to the minute
    UniqueConstraint("digest"),
    Index("ix_tokens_entity", "entity_id"),
)

server_keys = Table(
    "server_keys",  # keys of the server itself, encrypted
    metadata,
    _key("name"),  # push: signs requests to push services
    _text("sealed"),
    _int("created_at"),
)

push_subscriptions = Table(
    "push_subscriptions",  # browsers in which people want to be notified
    metadata,
    _key("id"),
    _ref("entity_id", "entities.id"),
    _owned("token_id", "tokens.id"),  # the session or token that made it: it ends with it
    _text("endpoint"),  # the address at the push service
    _text("p256dh"),  # the browser's public key
    _text("auth"),
    _int("created_at"),
    UniqueConstraint("endpoint"),
    Index("ix_push_subscriptions_entity", "entity_id"),
    Index("ix_push_subscriptions_token", "token_id"),
)

push_notices = Table(
    "push_notices",  # what subscriptions are to be told of; a question stays until it is settled
    metadata,
    Column("subscription_id", Text, ForeignKey("push_subscriptions.id", ondelete="CASCADE"), primary_key=True),
    _key("subject_id"),  # the message or the call
    _text("kind"),  # message, call
    _int("tries", 0),
    _int("next_at"),  # when it may be sent, or tried again
    Column("done_at", BigInteger),  # when it was sent or given up; NULL: not yet
    _int("created_at"),
    sqlite_with_rowid=False,
)

goals = Table(
    "goals",
    metadata,
    _key("agent_id", "agents.id"),
    Column("number", BigInteger, primary_key=True),  # numbered per agent: the number that the model uses
    _text("text"),
    _text("status"),  # active, long-term, paused, done
    _flag("priority", 1),  # 0 high, 1 normal, 2 low
    _flag("outside"),  # whether the agent wrote it after reading text from outside
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
    _flag("outside"),  # whether the agent wrote it after reading text from outside
    _int("created_at"),
    _int("updated_at"),
    sqlite_with_rowid=False,
)


plans = Table(
    "plans",
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    _text("kind"),  # plan, timer, heartbeat
    _text("name"),
    _text("instruction"),
    _text("schedule"),
    _text("state"),  # waiting; held while its agent is suspended; failed if no next time can be computed
    _int("next_run"),
    Column("last_run", BigInteger),  # the time it last ran for, which is not always when it ran
    # when `next_run` was computed, in the future if the clock was set back since; 0 for a time that was given
    _int("reckoned_at"),
    _int("hop", 0),
    _flag("outside"),  # whether the agent made it after reading text from outside
    _int("created_at"),
    Index("ix_plans_agent", "agent_id", "next_run"),
    _partial_index("ix_plans_name", "agent_id", "name", unique=True, where="kind = 'plan'"),
    _partial_index("ix_plans_due", "next_run", where="state = 'waiting'"),
    _partial_index("ix_plans_reckoned", "reckoned_at", where="state = 'waiting'"),
)


calls = Table(
    "calls",  # tool calls that involve somebody outside a cycle: people who see or answer them, late results
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    _text("cycle_id"),
    _int("step"),
    _int("position"),
    _text("tool"),
    _text("mode"),  # visible, pause, async, service, background, late
    _text("state"),  # waiting, answered, interrupted, expired, cancelled, late
    Column("space_id", Text),  # the agent's space at the time
    _flag("shown"),  # whether the people there see it
    _int("after_seq", 0),  # the last message of that space at the time
    _text("arguments"),
    Column("result", Text),
    _int("hop", 0),
    Column("runner", Text),  # the instance that executes it, if any
    _text("on_crash", "report"),  # what happens if that instance dies: retry, report
    _flag("approval"),  # whether answering it takes more than words
    Column("why", Text),  # why an effect needs a person's approval, if that is the question
    _flag("outside"),  # whether its result is text from outside
    Column("released_at", BigInteger),  # when its cycle continued without the answer that it had paused for
    _int("created_at"),
    Column("expires_at", BigInteger),
    Column("settled_at", BigInteger),
    Column("settled_by", Text),
    UniqueConstraint("cycle_id", "step", "position"),
    _partial_index("ix_calls_waiting", "agent_id", where="state = 'waiting'"),
    _partial_index("ix_calls_asked", "space_id", where="state = 'waiting'"),
    _partial_index("ix_calls_expiring", "expires_at", where="state = 'waiting'"),
    _partial_index("ix_calls_space", "space_id", "after_seq", where="shown = 1"),
)

grants = Table(
    "grants",  # approvals of effects that people gave: for one tool and exactly these arguments
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    _text("tool"),
    _text("digest"),  # a digest of the arguments
    _text("arguments"),
    _int("uses_left"),
    _int("expires_at"),
    _ref("given_by", "entities.id"),
    _text("call_id"),  # the question that it answers
    Column("space_id", Text),  # the space where it was asked
    _int("created_at"),
    Index("ix_grants_agent", "agent_id", "tool", "digest"),
)

secrets = Table(
    "secrets",  # encrypted keys of providers and services
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    _text("owner_id", ""),  # the person who owns it; empty: the organization
    _text("name"),  # named like an environment variable: OPENAI_API_KEY
    _text("sealed"),
    _text("hint"),  # its last characters, so that people can recognize it
    _int("created_at"),
    _int("updated_at"),
    UniqueConstraint("organization_id", "owner_id", "name"),
)

webhooks = Table(
    "webhooks",
    metadata,
    _key("id"),
    _ref("agent_id", "agents.id"),
    _text("name"),  # the source that the agent is told for the event
    _text("scheme"),  # github, slack, jira, generic
    _text("sealed"),  # the secret that signs
    _flag("urgent"),
    _int("created_at"),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
    Index("ix_webhooks_agent", "agent_id"),
)

spending = Table(
    "spending",  # usage of each agent by day and model
    metadata,
    _key("organization_id", "organizations.id"),
    Column("day", Integer, primary_key=True),  # days since 1970, UTC
    _key("agent_id", "agents.id"),
    _key("model"),
    *_usage(),
    Index("ix_spending_agent", "agent_id", "day"),
    sqlite_with_rowid=False,
)

call_reservations = Table(
    "call_reservations",  # the most that each running model call may cost, until it is paid
    metadata,
    _key("payer_id"),  # the agent or the panel that pays for the call
    _key("call"),  # cycle, last_step; or an id, for a call outside the cycles
    _ref("organization_id", "organizations.id"),
    _int("epoch", 0),  # the epoch of the lease of its cycle, with which it expires; 0: not of a cycle
    _int("until", 0),  # when a reservation without a cycle expires
    _int("tokens"),
    _int("cost_micros"),
    Index("ix_call_reservations_organization", "organization_id"),
    sqlite_with_rowid=False,
)

passages = Table(
    "passages",  # passages for recall: everything said to an agent or by it, and what it did
    metadata,
    _key("agent_id", "agents.id"),
    Column("number", BigInteger, primary_key=True),  # in order, without gaps
    _int("cycle"),  # the number of its cycle
    _text("kind"),  # heard, said, did, summary
    _text("space_id", ""),  # its space; empty: none; *: several private spaces, so that none may see it
    Column("speaker_id", Text),  # the speaker, if it is someone in the organization
    Column("speaker", Text),  # the speaker, if it is a service, a plan, a timer
    Column("message_id", Text),  # the message whose text it is
    Column("event_id", Text),
    Column("text", Text),  # if it is not a message's
    Column("file_id", Text),  # the file whose text it is, and its page there
    Column("page", Integer),
    _int("start", 0),  # its offset in the message: a long text is several passages
    _int("place"),  # how many characters of its space came before it; a long silence counts as very many
    _int("characters"),
    _flag("own_words"),  # how often it says "I", up to three
    _int("at"),
    Index("ix_passages_place", "agent_id", "space_id", "place"),
    Index("ix_passages_at", "agent_id", "at"),
    Index("ix_passages_cycle", "agent_id", "cycle"),
    _partial_index("ix_passages_message", "message_id", where="message_id IS NOT NULL"),
    _partial_index("ix_passages_file", "file_id", where="file_id IS NOT NULL"),
    sqlite_with_rowid=False,
)

postings = Table(
    "postings",  # the passages of a block in which each term occurs
    metadata,
    _key("agent_id", "agents.id"),
    Column("block", BigInteger, primary_key=True),
    _key("term"),
    Column("entries", LargeBinary, nullable=False),  # four bytes each
    sqlite_with_rowid=False,
)


recalls = Table(
    "recalls",  # the progress of the index of each agent's passages
    metadata,
    _key("agent_id", "agents.id"),
    _int("passages", 0),  # the number of the newest passage
    _int("forgotten", 0),
    _int("length", 0),  # all passages together, in terms
    _int("settled", 0),  # the newest passage whose terms are among the postings
    _text("embedder", ""),  # the embedder of the vectors; empty: there are none
    _int("embedded", 0),  # the newest passage with a vector
    _int("worded", 0),  # the newest passage with vectors for its words
    _int("terms", 0),  # the version of the terms among the postings
    _int("fingerprinted", 0),  # the newest passage with fingerprints; below 0: all are to be made again
    _int("fingerprint_form", 0),  # their version, and the length of the runs of words that they find
    _partial_index("ix_recalls_behind", "agent_id", where="passages - settled >= 32"),  # as many as a segment has
    Index("ix_recalls_terms", "terms"),
)

fingerprints = Table(
    "fingerprints",  # hashes of a few words in a row, by which quotations are found
    metadata,
    _key("agent_id", "agents.id"),
    Column("hash", BigInteger, primary_key=True),
    Column("number", BigInteger, primary_key=True),  # the number of the passage
    sqlite_with_rowid=False,
)

vectors = Table(
    "vectors",  # vectors of passages, a row for several consecutive ones
    metadata,
    _key("agent_id", "agents.id"),
    _key("embedder"),
    Column("first", BigInteger, primary_key=True),
    _int("dimensions"),
    Column("codes", LargeBinary, nullable=False),  # a byte for each dimension
    sqlite_with_rowid=False,
)

wordings = Table(
    "wordings",  # vectors of the words of each passage in their context
    metadata,
    _key("agent_id", "agents.id"),
    _key("embedder"),
    Column("number", BigInteger, primary_key=True),  # the number of the passage
    Column("codes", LargeBinary, nullable=False),  # a bit for each dimension, word by word
    sqlite_with_rowid=False,
)

redactions = Table(
    "redactions",  # receipts of forgetting, without the text
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    _text("kind"),  # message, person, space, memory, expired
    _text("subject_id"),
    Column("by_id", Text),
    _text("receipt"),  # how much was removed where: JSON
    _int("created_at"),
    Index("ix_redactions_organization", "organization_id", "created_at"),
)

crossings = Table(
    "crossings",  # messages that were stopped because they would have carried private text elsewhere
    metadata,
    _number(),
    _ref("agent_id", "agents.id"),
    _text("cycle_id"),
    _text("from_space_id"),
    _text("to_space_id"),
    _int("words"),  # how many in a row
    _int("created_at"),
    Index("ix_crossings_agent", "agent_id", "number"),
)

openings = Table(
    "openings",  # private spaces that an owner has opened temporarily, to read them without being a member
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    _ref("space_id", "spaces.id"),
    _ref("by_id", "entities.id"),
    _text("reason"),
    _int("after_seq"),  # the last message of the space when it was opened
    _int("created_at"),
    _int("until"),
    Index("ix_openings_space", "space_id", "created_at"),
    Index("ix_openings_by", "by_id", "until"),
)

audit = Table(
    "audit",  # the audit log: who changed what, and when; rows are added, never changed or removed
    metadata,
    _number(),
    _ref("organization_id", "organizations.id"),
    _int("created_at"),
    Column("by_id", Text),  # the entity; NULL: the operator, on the server's machine
    Column("token_id", Text),  # the token that was used
    _text("kind"),  # people, tokens, keys, agents, …
    _text("action"),  # the name of the operation
    Column("subject_id", Text),  # its object
    _text("detail", "{}"),  # JSON: never a secret, never the name of a person
    Index("ix_audit_organization", "organization_id", "number"),
    Index("ix_audit_by", "organization_id", "by_id", "number"),
    Index("ix_audit_kind", "organization_id", "kind", "number"),
)
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'audit rows are never changed'); END"
_AUDIT_TRIGGERS = {
    "sqlite": (
        f"CREATE TRIGGER audit_update BEFORE UPDATE ON audit {_REFUSE}",
        f"CREATE TRIGGER audit_delete BEFORE DELETE ON audit {_REFUSE}",
    ),
    "postgresql": (
        """
        CREATE FUNCTION denizen_keep_audit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit rows are never changed'; END $$
        """,
        """
        CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE ON audit
        FOR EACH ROW EXECUTE FUNCTION denizen_keep_audit()
        """,
    ),
}
for _dialect, _triggers in _AUDIT_TRIGGERS.items():
    for _trigger in _triggers:
        event.listen(audit, "after_create", DDL(_trigger).execute_if(dialect=_dialect))

panels = Table(
    "panels",  # the settings of spaces of the kind `panel`
    metadata,
    _key("space_id", "spaces.id"),
    _ref("organization_id", "organizations.id"),
    _text("settings", "{}"),
    _int("turns", 0),  # the number of the last turn
    _int("created_at"),
)


advisors = Table(
    "advisors",
    metadata,
    _key("id"),
    _ref("space_id", "panels.space_id"),
    _int("position"),
    _text("handle"),  # `@handle` addresses it; unique among those that are there
    _text("name"),
    _text("description", ""),
    _text("colour", ""),
    _text("in_group", ""),
    _flag("active", 1),
    _text("settings", "{}"),  # model, limits, phases, what is expected of it
    _int("created_at"),
    Column("removed_at", BigInteger),  # its past replies stay
    Index("ix_advisors_space", "space_id", "position"),
    _partial_index("ix_advisors_handle", "space_id", "handle", unique=True, where="removed_at IS NULL"),
)


rounds = Table(
    "rounds",  # rounds: each time that the advisors of a panel are asked
    metadata,
    _key("id"),
    _ref("space_id", "panels.space_id"),
    _int("turn"),  # the number of the turn: a person's message begins it
    _int("step"),  # within the turn: 0 is the message itself; cross-talk and votes follow
    _text("kind"),  # ask, crosstalk, vote
    _text("message_id"),  # the message that began the turn
    _text("asked_by"),
    Column("question", Text),  # the question of a vote
    _text("state", "open"),  # open, complete
    _int("crosstalk", 0),  # how many rounds of cross-talk are to follow
    _flag("synthesis"),  # whether a synthesis follows when it is complete
    _int("created_at"),
    Column("completed_at", BigInteger),
    UniqueConstraint("space_id", "turn", "step"),
    _partial_index("ix_rounds_open", "space_id", "turn", where="state = 'open'"),
    Index("ix_rounds_message", "message_id"),
)


replies = Table(
    "replies",  # the reply of one voice in one round; written once, by the holder of its lease
    metadata,
    _key("round_id", "rounds.id"),
    _key("voice"),  # the id of an advisor; assistant, synthesis
    _key("part"),  # reply, crosstalk, vote, synthesis, check, camps
    _ref("space_id", "panels.space_id"),
    _ref("organization_id", "organizations.id"),
    _int("position"),
    _text("name"),  # the voice's name at that time
    _text("state", "waiting"),  # waiting, running, done, failed, cancelled
    Column("holder", Text),
    _int("epoch", 0),
    _int("until", 0),
    _int("attempts", 0),
    Column("text", Text),
    Column("thinking", Text),
    Column("result", Text),  # of a vote or a check: JSON
    _flag("outside"),  # whether its request held text from outside
    Column("error_code", Text),
    Column("error", Text),
    Column("recipe", Text),  # the parts of its request: JSON
    Column("model", Text),
    _int("input_tokens", 0),
    _int("output_tokens", 0),
    _int("cache_read_tokens", 0),
    _int("cache_write_tokens", 0),
    Column("cost_micros", BigInteger),  # NULL if the price is unknown
    _int("reserved_tokens", 0),  # the most that the running call may use
    _int("reserved_micros", 0),
    _int("created_at"),
    Column("started_at", BigInteger),
    Column("ended_at", BigInteger),
    _partial_index("ix_replies_unfinished", "created_at", where="state IN ('waiting', 'running')"),
    _partial_index("ix_replies_voice", "space_id", "voice", "part", where="state = 'done'"),
)

panel_spending = Table(
    "panel_spending",  # usage of each panel by day and model
    metadata,
    _key("organization_id", "organizations.id"),
    Column("day", Integer, primary_key=True),  # days since 1970, UTC
    _key("space_id", "panels.space_id"),
    _key("model"),
    *_usage(),
    Index("ix_panel_spending_space", "space_id", "day"),
    sqlite_with_rowid=False,
)

rollings = Table(
    "rollings",  # summaries of conversations
    metadata,
    _key("space_id", "spaces.id"),
    _key("reader_id"),  # empty: the conversation's own; in a panel: the advisor's id
    _text("summary"),  # Markdown
    _text("memory"),  # JSON: facts, preferences, people, projects, decisions, open loops, to-dos, tags
    _int("upto"),  # the number of the last message it covers
    _int("passes", 0),
    _text("model"),  # the model that wrote it
    _int("tried_at", 0),  # when a pass last ended; while one is running, its deadline
    _int("failures", 0),  # failed passes since the last good one
    _flag("outside"),  # whether it is based on text from outside
    _int("updated_at"),
    sqlite_with_rowid=False,
)

memories = Table(
    "memories",  # long-term memories, item by item
    metadata,
    _number(),
    _text("id"),
    _ref("organization_id", "organizations.id"),
    _text("scope"),  # conversation, user, persona, organization
    _text("owner"),  # the owner: the scope with its ids
    _text("space_id"),  # the space where it was learned
    Column("user_id", Text),
    Column("agent_id", Text),
    _text("kind"),  # item; snapshot of a whole conversation
    _text("category"),
    _text("text"),
    Column("document", Text),  # for a snapshot: its JSON
    _text("hash"),
    _int("confidence", 100),  # in per cent
    _text("sources", "[]"),  # the ids of the source messages: JSON
    _int("length"),  # in terms
    _int("uses", 0),
    Column("used_at", BigInteger),
    Column("superseded_by", Text),  # the id of the memory that replaced it
    _flag("outside"),  # whether it is based on text from outside
    _text("embedder", ""),
    Column("vector", LargeBinary),
    _int("created_at"),
    _int("updated_at"),
    UniqueConstraint("id"),
    UniqueConstraint("owner", "hash"),
    Index("ix_memories_owner", "owner", "number"),
    Index("ix_memories_space", "space_id"),
    Index("ix_memories_user", "user_id"),
    Index("ix_memories_organization", "organization_id", "number"),
    _partial_index("ix_memories_superseded", "superseded_by", where="superseded_by IS NOT NULL"),
)

memory_changes = Table(
    "memory_changes",  # what happened to each memory; the database deletes it with its memory
    metadata,
    _number(),
    Column("memory", BigInteger, ForeignKey("memories.number", ondelete="CASCADE"), nullable=False),
    _text("kind"),  # learned, confirmed, said_again, corrected, reverted
    _text("text"),  # the text of the memory from then on
    Column("by_id", Text),  # the person who changed it; NULL: the summary of a conversation
    _text("model", ""),  # the model that wrote it
    _text("replaced", "[]"),  # the ids of the memories that it replaced: JSON
    _text("sources", "[]"),  # the ids of the messages that were the reason: JSON
    _int("created_at"),
    Index("ix_memory_changes_memory", "memory", "number"),
)

memory_sources = Table(
    "memory_sources",  # the memories that are based on a message
    metadata,
    _key("message_id"),
    Column("number", BigInteger, primary_key=True),
    Index("ix_memory_sources_number", "number"),
    sqlite_with_rowid=False,
)

memory_owners = Table(
    "memory_owners",  # the size of each owner's memory
    metadata,
    _key("owner"),
    _int("items", 0),  # items that are not superseded
    _int("length", 0),  # all items together, in terms
    sqlite_with_rowid=False,
)

memory_terms = Table(
    "memory_terms",  # the memories in which each term occurs
    metadata,
    _key("owner"),
    _key("term"),
    Column("number", BigInteger, primary_key=True),
    _int("shape"),  # how often, in how many terms
    Index("ix_memory_terms_number", "number"),
    sqlite_with_rowid=False,
)

memory_policies = Table(
    "memory_policies",  # the memory policy of each conversation
    metadata,
    _key("space_id", "spaces.id"),
    _text("policy"),  # JSON: only explicit choices
    _int("updated_at"),
)

kept_out = Table(
    "kept_out",  # hashes of forgotten memories, which must not be stored again
    metadata,
    _key("owner"),
    _key("hash"),
    _int("created_at"),
    sqlite_with_rowid=False,
)

stances = Table(
    "stances",  # the stance of an agent in each of its conversations: its profile there, and its state of mind
    metadata,
    _key("agent_id", "agents.id"),
    _key("space_id", "spaces.id"),
    _int("turns", 0),  # cycles with a message from there, if profiles are chosen
    _int("reviewed_turn", 0),  # the turn of the last choice of a profile; 0: none yet
    _flag("review_asked"),  # whether the agent's past was compacted since
    Column("preset", Text),  # the profile; NULL: none
    _text("preset_reason", ""),
    Column("profile_line", Text),  # what the agent is told of it; NULL: nothing
    *_state_of_mind(),
    Column("overrides", Text),  # settings that replace the agent's here: JSON; NULL: none
    _int("updated_at"),
    sqlite_with_rowid=False,
)

feelings = Table(
    "feelings",  # sentiment of each person in each conversation with an agent: numbers only
    metadata,
    _key("agent_id", "agents.id"),
    _key("space_id", "spaces.id"),
    _key("person_id", "entities.id"),
    _text("counters"),
    _int("updated_at"),
    sqlite_with_rowid=False,
)

signals = Table(
    "signals",  # signals from sentiment and errors
    metadata,
    _number(),
    _ref("agent_id", "agents.id"),
    _ref("space_id", "spaces.id"),
    *_signal("cycle"),
    Index("ix_signals_stance", "agent_id", "space_id", "number"),
)

reflections = Table(
    "reflections",  # the history of states of mind: metaprompts that were asked, and changes by hand
    metadata,
    _number(),
    _ref("agent_id", "agents.id"),
    _ref("space_id", "spaces.id"),
    *_reflection("cycle"),
    Index("ix_reflections_stance", "agent_id", "space_id", "number"),
)

reflecting = Table(
    "reflecting",  # the agents that reflect, and how far each has come
    metadata,
    _key("agent_id", "agents.id"),
    _int("cycle", 0),  # the number of the last cycle that was reflected on
    Column("holder", Text),  # the instance that reflects on the next one; void when that instance is gone
)

voice_stances = Table(
    "voice_stances",  # the state of mind of each voice of a panel
    metadata,
    _key("space_id", "panels.space_id"),
    _key("voice"),  # the id of an advisor, or assistant
    *_state_of_mind(),
    _int("updated_at"),
    sqlite_with_rowid=False,
)

voice_feelings = Table(
    "voice_feelings",  # sentiment of each person, as seen by each voice of a panel: numbers only
    metadata,
    _key("space_id", "panels.space_id"),
    _key("voice"),
    _key("person_id", "entities.id"),
    _text("counters"),
    _int("updated_at"),
    sqlite_with_rowid=False,
)

voice_signals = Table(
    "voice_signals",  # signals in panels from sentiment and errors
    metadata,
    _number(),
    _ref("space_id", "panels.space_id"),
    _text("voice"),
    *_signal("turn"),
    Index("ix_voice_signals_stance", "space_id", "voice", "number"),
)

voice_reflections = Table(
    "voice_reflections",  # the history of voices' states of mind: metaprompts that were asked, and changes by hand
    metadata,
    _number(),
    _ref("space_id", "panels.space_id"),
    _text("voice"),
    *_reflection("turn"),
    Index("ix_voice_reflections_stance", "space_id", "voice", "number"),
)

panel_reflecting = Table(
    "panel_reflecting",  # the panels whose voices reflect, and how far each has come
    metadata,
    _key("space_id", "panels.space_id"),
    _int("turn", 0),  # the number of the last turn that was reflected on
    Column("holder", Text),  # the instance that reflects on the next one; void when that instance is gone
)


contents = Table(
    "contents",  # what files hold, once for each organization; the bytes are in `chunks`
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    Column("digest", Text),  # SHA-256 of the bytes; NULL: the upload is not finished
    _text("link_key"),  # signs links to its files
    _int("size"),
    _int("created_at"),
    Column("dropped_at", BigInteger),  # no file has it any more: its chunks are deleted, then this row; NULL: in use
    Column("reading", Text),  # waiting, done, unreadable; NULL: there is nothing to read in it
    Column("trouble", Text),  # why it is unreadable
    Column("width", Integer),  # of the picture as models see it
    Column("height", Integer),
    Column("claimed_until", BigInteger),  # a process is reading it
    Column("tries", Integer),  # how often a process has begun to read it
    UniqueConstraint("organization_id", "digest"),
    _partial_index("ix_contents_reading", "created_at", where="reading = 'waiting'"),
    _partial_index("ix_contents_dropped", "dropped_at", where="dropped_at IS NOT NULL"),
)

files = Table(
    "files",  # uploads, and the attachments of messages
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    _ref("uploader_id", "entities.id"),
    _ref("content_id", "contents.id"),
    _text("name"),
    _text("media_type"),
    Column("message_id", Text, ForeignKey("messages.id")),  # NULL: not attached yet
    Column("agent_id", Text),  # the agent that got it from a tool or a service; NULL: none
    Column("alt", Text),  # what a picture shows, in the words of whoever uploaded it; NULL: not described
    _int("created_at"),
    _partial_index("ix_files_message", "message_id", where="message_id IS NOT NULL"),
    _partial_index("ix_files_unattached", "created_at", where="message_id IS NULL AND agent_id IS NULL"),
    _partial_index("ix_files_agent", "agent_id", where="agent_id IS NOT NULL"),
    Index("ix_files_content", "content_id"),
)

file_pages = Table(
    "file_pages",  # the text of files, page by page
    metadata,
    _key("content_id", "contents.id"),
    Column("page", Integer, primary_key=True),  # 1, 2, 3, ...
    _text("text"),
    sqlite_with_rowid=False,
)

heard_files = Table(
    "heard_files",  # files that agents have heard of and cannot recall yet
    metadata,
    _key("agent_id", "agents.id"),
    _key("file_id", "files.id"),
    _int("cycle"),  # the number of the cycle
    _int("next_page", 1),
    Index("ix_heard_files_file", "file_id"),
    sqlite_with_rowid=False,
)

retentions = Table(
    "retentions",  # how long the messages of a space are kept, where it differs from the organization's default
    metadata,
    _key("space_id", "spaces.id"),
    _int("days"),  # 0: for ever
    _flag("archive"),  # whether they are written to a file before they are removed
    sqlite_with_rowid=False,
)
sizes = Table(
    "sizes",  # how much of the database each organization uses, estimated once a day
    metadata,
    _key("organization_id", "organizations.id"),
    Column("day", BigInteger, primary_key=True),  # days since 1970, UTC
    _int("bytes"),  # with its files
    _int("file_bytes"),
    _int("messages"),
    _int("cycles"),
    sqlite_with_rowid=False,
)

chunks = Table(
    "chunks",
    blobs,
    _key("content_id"),
    # 0, 1, 2, ...; all but the last have the same size. -320: the picture made smaller, to at most 320 by 320 pixels
    Column("n", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)


bridges = Table(
    "bridges",  # connections to services where people write: a homeserver, a mailbox, a program
    metadata,
    _key("id"),
    _ref("organization_id", "organizations.id"),
    _ref("entity_id", "entities.id"),  # the service that is a member of its spaces, and has its name
    _text("kind"),
    _text("settings", "{}"),  # JSON; secrets only as references
    Column("sealed", Text),  # the secret that was made for it; NULL: none
    Column("parked_reason", Text),  # why it waits until somebody changes something: a sentence; NULL: it does not
    Column("parked_until", BigInteger),  # when it retries by itself
    Column("error", Text),  # its last problem: a sentence, never text of a message
    Column("error_at", BigInteger),
    Column("connected_at", BigInteger),  # when something last went through
    Column("paused_at", BigInteger),  # since when an admin has it carry nothing; NULL: it is not paused
    Column("holder", Text),  # the instance that carries its messages
    _int("epoch", 0),
    _int("until", 0),
    _int("created_at"),
    Index("ix_bridges_organization", "organization_id"),
    Index("ix_bridges_entity", "entity_id"),
)

channels = Table(
    "channels",  # a room elsewhere, and the space that it is bound to
    metadata,
    _key("id"),
    _ref("bridge_id", "bridges.id"),
    _ref("space_id", "spaces.id"),
    _text("room"),  # its id elsewhere
    Column("cursor", Text),  # how far it was read; NULL: not at all
    Column("parent_id", Text),  # the channel that this conversation was read from; NULL: somebody connected it
    _int("created_at"),
    UniqueConstraint("bridge_id", "room"),
    Index("ix_channels_space", "space_id"),
)

addresses = Table(
    "addresses",  # accounts elsewhere, and who writes with them
    metadata,
    _key("bridge_id", "bridges.id"),
    _key("account"),  # its id elsewhere
    _ref("guest_id", "entities.id"),  # who its messages are by, unless it is linked
    Column("person_id", Text, ForeignKey("entities.id")),  # the person it was linked to
    Column("linked_at", BigInteger),
    Column("code", Text),  # the digest of a code that was sent there, to link it
    Column("code_for", Text, ForeignKey("entities.id")),  # the person who asked for the code
    Column("code_until", BigInteger),
    _int("code_tries", 0),
    _int("created_at"),
    Index("ix_addresses_guest", "guest_id"),
    _partial_index("ix_addresses_person", "person_id", where="person_id IS NOT NULL"),
    sqlite_with_rowid=False,
)

carried = Table(
    "carried",  # what came from a room elsewhere, or went there: each once
    metadata,
    _key("channel_id", "channels.id"),
    _key("outside_id"),  # the id of the event elsewhere
    Column("message_id", Text, ForeignKey("messages.id")),  # NULL: it is no message, or changed one
    Column("emoji", Text),  # it is this reaction to the message; NULL: it is the message itself
    _text("direction"),  # in, out
    _int("created_at"),
    Column("reactor_id", Text),  # whose reaction it is, if it came from elsewhere
    Index("ix_carried_message", "message_id"),
    sqlite_with_rowid=False,
)

drafts = Table(
    "drafts",  # messages that are shown elsewhere while they are written; deleted when they are sent or withdrawn
    metadata,
    _key("channel_id", "channels.id"),
    _key("message_id"),  # the id that the message will have
    Column("outside_id", Text),  # NULL: it was being sent, or is not known to be there
    _int("created_at"),
    sqlite_with_rowid=False,
)

told_statuses = Table(
    "told_statuses",  # which status of an agent was last told in a room elsewhere: each once
    metadata,
    _key("channel_id", "channels.id"),
    _key("agent_id", "agents.id"),
    _key("cause"),
    _int("since"),  # when that status began; of a message that was set aside, its number in the space
    sqlite_with_rowid=False,
)

outbox = Table(
    "outbox",  # what is to be sent elsewhere; deleted when it was
    metadata,
    _number(),  # within a channel in the order of commits: its space is locked
    _ref("bridge_id", "bridges.id"),
    Column("channel_id", Text, ForeignKey("channels.id")),  # NULL: it goes to an account
    _text("target"),  # the room or account elsewhere
    Column("message_id", Text, ForeignKey("messages.id")),
    _text("action"),  # post, edit, delete, react, unreact; status; code
    _text("transaction_id"),  # made from the message's id; the number is given again when the row is gone
    Column("detail", Text),  # the emoji; the agent, cause and beginning of a status; a sealed code. Never text
    _int("tries", 0),  # how often sending has begun
    _int("next_at", 0),  # when it may be sent
    Column("failed", Text),  # why it cannot be delivered: a sentence; NULL: it waits
    _int("created_at"),
    _partial_index("ix_outbox_waiting", "bridge_id", "target", "number", where="failed IS NULL"),
    Index("ix_outbox_message", "message_id"),
    Index("ix_outbox_channel", "channel_id"),
)
