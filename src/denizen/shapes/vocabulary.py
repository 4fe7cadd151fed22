"""The values that fields of answers can have, and the numbers that their descriptions name.

The domain imports them from here: each has one definition.
"""

from __future__ import annotations

from typing import Final, Literal

StatusCause = Literal[
    "key",
    "model",
    "tool",
    "price",
    "definition",
    "failing",
    "refused",
    "too_large",
    "gave_up",
    "interrupted",
    "limit",
    "no_reply",
    "stopped",
    "budget",
    "suspended",
    "deleted",
]
StatusAction = Literal["try_again", "ask", "settings", "resume", "budget"]
"""What a person can do about a status: have the agent try again, ask it for an answer, or open the place to mend it."""

EntityKind = Literal["human", "agent", "service"]
SpaceKind = Literal["conversation", "panel"]
Attention = Literal["all", "mentions", "none"]
MemberRole = Literal["owner", "admin", "member"]
Floor = Literal["all", "addressed", "one"]
"""Who takes up what is said where several agents are: see `denizen.spaces.floor`."""

MENTIONS_LOOKED_AT: Final = 100
"""Unread messages of a space that are looked at for who they mention."""

AgentState = Literal["sleeping", "alive", "paused", "suspended", "dead"]

WebhookScheme = Literal["github", "slack", "jira", "generic"]

CallMode = Literal["visible", "pause", "async", "elicitation", "service", "background", "late"]
"""`pause`, `async` and `elicitation` are answered by people, `service` by the service that has taken the work."""
ASKED: Final[tuple[CallMode, ...]] = ("pause", "async", "elicitation")
"""The modes of calls that people answer. `elicitation` is a question of an MCP server, not of the agent."""
CallState = Literal["waiting", "answered", "interrupted", "expired", "cancelled", "late"]

TokenKind = Literal["token", "session", "login", "jwt"]
"""What a secret is for: programs; a browser; opening one session, once. Or it is another's: of an identity provider."""

Role = Literal["owner", "admin", "member", "guest", "agent", "service"]

BridgeSettingType = Literal["text", "number", "flag", "list"]
BridgeState = Literal["connected", "failing", "parked", "paused", "stopped"]

AuditKind = Literal[
    "people",
    "tokens",
    "keys",
    "webhooks",
    "bridges",
    "agents",
    "budgets",
    "settings",
    "exports",
    "forgetting",
    "private spaces",
    "approvals",
]

BudgetScope = Literal["agent:day", "agent:total", "organization:day", "organization:total", "server:day"]
"""Whose limit, and for how long."""

UsageBy = Literal["day", "agent", "model"]
UsageKind = Literal["agent", "panel", "model"]

ChatOutcome = Literal["acted", "skipped", "failed", "parked", "paused", "suspended", "unheard", "working"]
"""What became of a message. Only `working` may still become something else by itself."""

ForgetKind = Literal["message", "person", "space", "memory"]
ReceiptKind = Literal["message", "person", "space", "memory", "expired"]
"""What a receipt is of; `expired`: messages of a space that were kept as long as they were to be."""

MOST_DAYS: Final = 36_500
"""The longest time for which messages can be set to be kept; 0: for ever."""

AGENTS_CHECKED: Final = 1000
"""How many agents of an organization are checked, at most."""

AGENTS_SHOWN: Final = 100
"""How many agents that need a person are told of, at most."""

MemoryScope = Literal["conversation", "user", "persona", "organization"]

RecallReason = Literal["first", "cadence", "compaction"]
"""Why memories are recalled: the first turn of a conversation, enough turns since the last time, or a compaction."""

MemoryCategory = Literal["facts", "preferences", "people", "projects", "decisions", "open_loops", "todos"]

MemoryChangeKind = Literal["learned", "confirmed", "said_again", "corrected", "reverted"]
"""What happened to a memory. `confirmed`: another message says it; `said_again`: it was outdated, and holds again."""

DifferenceKind = Literal["same", "added", "removed"]

EventType = Literal["space_message", "mention", "service_trigger", "plan_trigger", "timer", "tool_result", "notice"]
Lane = Literal["urgent", "normal"]
SenderKind = Literal["human", "agent", "service"]

OpenState = Literal["pending", "taken", "dead"]
"""What an event that is not done may be."""

EntryKind = Literal["inbox", "recalled", "remembered", "update", "response", "results", "nudge", "note"]

Thinking = Literal["always", "by default", "on request", "no", "unknown"]

ModelSource = Literal["configured", "chosen", "found", "demo"]

AdvisorSort = Literal["figure", "character", "role", "challenger"]

PresetSource = Literal["organization", "server", "shipped"]

RoundKind = Literal["ask", "crosstalk", "vote"]
ReplyPart = Literal["reply", "crosstalk", "vote", "synthesis", "check", "camps"]
ReplyState = Literal["waiting", "running", "done", "failed", "cancelled"]

LineRole = Literal["system", "user", "assistant"]
OmissionReason = Literal["summarized", "too_long", "others_hidden", "others_earlier", "shortened", "deleted"]

GoalStatus = Literal["active", "long-term", "paused", "done"]
Priority = Literal["high", "normal", "low"]

PlanKind = Literal["plan", "timer", "heartbeat"]

ExportKind = Literal["agent", "space"]

Mood = Literal[
    "neutral", "empathetic", "patient", "encouraging", "focused", "analytical", "curious", "creative", "cautious"
]
Skill = Literal["unknown", "novice", "intermediate", "advanced", "expert"]
Complexity = Literal["unknown", "simple", "moderate", "complex"]

ReflectionOutcome = Literal["changed", "unchanged", "failed"]
