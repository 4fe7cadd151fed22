"""Writes fixtures/0041.jsonl: a small but complete life, one JSON object for each row, parents before children.

    python -m tests.storage.make_fixture

A fixture is made when its migration is new and is not changed afterwards: it stands for the databases that people have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "fixtures" / "0041.jsonl"
START = 1_767_603_600_000_000
"""Microseconds: Monday, 5 January 2026, nine o'clock, UTC."""
SECOND = 1_000_000

Row = tuple[str, dict[str, Any]]


def main() -> None:
    FILE.write_text("".join(json.dumps({"table": table, "row": row}) + "\n" for table, row in life()))


def life() -> Iterator[Row]:
    """Noor and Sam share a room with two agents, Ada and Grace; Noor talks with Ada alone as well."""
    yield "organizations", {"id": "org-1", "name": "Lighthouse", "settings": "{}", "created_at": START}
    yield from people()
    yield from agents()
    yield from rooms()
    yield from talk()
    yield from inboxes()
    yield from minds()
    yield from tokens()
    yield from browsers()
    yield from intentions()
    yield from outside()
    yield from memories()
    yield from long_ago()
    yield from board()
    yield from long_term()
    yield from stances()
    yield from voices()
    yield from statuses()
    yield from kept_watch()
    yield from proof()
    yield from elsewhere()


def people() -> Iterator[Row]:
    kinds = [("noor", "human"), ("sam", "human"), ("ada", "agent"), ("grace", "agent"), ("builds", "service")]
    for handle, kind in kinds:
        yield (
            "entities",
            {
                "id": f"entity-{handle}",
                "organization_id": "org-1",
                "kind": kind,
                "handle": handle,
                "name": handle.title(),
                "metadata": "{}",
                "role": {"noor": "owner", "sam": "admin"}.get(handle, kind),
                "left_at": None,
                "created_at": START,
            },
        )
    yield "entity_pictures", {"entity_id": "entity-noor", "link_key": "cd" * 16, "data": "JPEG", "created_at": START}


def agents() -> Iterator[Row]:
    for handle, status, holder, epoch in [("ada", "active", "instance-1", 3), ("grace", "suspended", None, 1)]:
        agent = f"entity-{handle}"
        yield (
            "agents",
            {
                "id": agent,
                "organization_id": "org-1",
                "status": status,
                "definition": json.dumps({"name": handle.title(), "model": "demo", "instructions": "Be kind."}),
                "version": 2,
                "urgent": json.dumps({"words": ["stop"]}) if handle == "ada" else None,
                "zone": "Europe/Berlin" if handle == "ada" else None,
                "held_by": None if handle == "ada" else "agent:day",
                "held_until": None if handle == "ada" else START + 15 * 3600 * SECOND,
                "parked_cause": "key" if handle == "ada" else None,
                "parked_detail": json.dumps({"provider": "OpenAI"}) if handle == "ada" else None,
                "parked_until": START + 600 * SECOND if handle == "ada" else None,
                "parked_tries": 1 if handle == "ada" else 0,
                "created_at": START,
            },
        )
        yield (
            "leases",
            {"agent_id": agent, "holder": holder, "epoch": epoch, "until": START + 30 * SECOND if holder else 0},
        )
    yield "instances", {"id": "instance-1", "seen_at": START}


def rooms() -> Iterator[Row]:
    for space, kind, private, last in [("room", "conversation", 0, 3), ("aside", "panel", 1, 1)]:
        yield (
            "spaces",
            {
                "id": f"space-{space}",
                "organization_id": "org-1",
                "kind": kind,
                "name": space.title(),
                "private": private,
                "last_seq": last,
                "floor": "one",
                "agent_run_limit": 12,
                "agent_run": 1,
                "created_at": START,
                "bridged": 0 if private else 1,
            },
        )
    members = [("room", "noor", "all"), ("room", "sam", "all"), ("room", "ada", "all"), ("room", "grace", "mentions")]
    for space, handle, attention in [*members, ("aside", "noor", "all"), ("aside", "ada", "none")]:
        yield (
            "memberships",
            {
                "space_id": f"space-{space}",
                "entity_id": f"entity-{handle}",
                "role": "owner" if handle == "noor" else "member",
                "attention": attention,
                "read_seq": 1,
                "notified_seq": 1,
                "joined_at": START,
            },
        )


ADAS = {"cycle_id": "cycle-1", "outside": 1}


def talk() -> Iterator[Row]:
    yield message(
        1, "noor", "Good morning, @ada. **Did the build pass?**", plain="Good morning, @ada. Did the build pass?"
    )
    yield message(
        2, "ada", "It did: 212 tests, none failed. 🦊", hop=1, cycle_id="cycle-1", reply_to="message-1", outside=1
    )
    attached = {"id": "file-1", "name": "log.txt", "media_type": "text/plain", "size": 5, "digest": "0f" * 32}
    marked = {"reactions": '{"👍": ["entity-noor"]}', "pinned_at": START}
    yield message(3, "sam", "And on Windows?", files=json.dumps([attached]), **marked)
    yield from attachments()
    yield (
        "messages",
        message(1, "noor", "Only between us.", space="aside", id="message-aside", metadata='{"mood": "quiet"}')[1],
    )


def attachments() -> Iterator[Row]:
    """A file of a message, and a content that no file has any more."""
    content = {"organization_id": "org-1", "link_key": "ab" * 16, "size": 5, "created_at": START}
    read = {"reading": "done", "width": 640, "height": 480, "tries": 1}
    yield "contents", {"id": "content-1", "digest": "0f" * 32, "dropped_at": None, **content, **read}
    yield "contents", {"id": "content-2", "digest": None, "dropped_at": START, **content}
    yield (
        "files",
        {
            "id": "file-1",
            "organization_id": "org-1",
            "uploader_id": "entity-sam",
            "content_id": "content-1",
            "name": "log.txt",
            "media_type": "text/plain",
            "message_id": "message-3",
            "agent_id": None,
            "alt": "A green lamp.",
            "created_at": START,
        },
    )
    yield (
        "files",
        {
            "id": "file-2",
            "organization_id": "org-1",
            "uploader_id": "entity-ada",
            "content_id": "content-1",
            "name": "result.txt",
            "media_type": "text/plain",
            "message_id": None,
            "agent_id": "entity-ada",
            "alt": None,
            "created_at": START,
        },
    )
    kept = {"bytes": 90_000, "file_bytes": 5, "messages": 5, "cycles": 2}
    yield "sizes", {"organization_id": "org-1", "day": START // (86_400 * SECOND), **kept}
    yield "retentions", {"space_id": "space-room", "days": 365, "archive": 1}
    yield "file_pages", {"content_id": "content-1", "page": 1, "text": "green"}
    yield "heard_files", {"agent_id": "entity-ada", "file_id": "file-1", "cycle": 1, "next_page": 1}


def message(seq: int, author: str, text: str, *, space: str = "room", **columns: Any) -> Row:
    row = {
        "id": f"message-{seq}",
        "space_id": f"space-{space}",
        "seq": seq,
        "author_id": f"entity-{author}",
        "text": text,
        "plain": None,
        "mentions": '["entity-ada"]' if "@ada" in text else None,
        "reply_to": None,
        "metadata": None,
        "hop": 0,
        "cycle_id": None,
        "outside": 0,
        "files": None,
        "created_at": START + seq * SECOND,
    }
    return "messages", row | columns


def inboxes() -> Iterator[Row]:
    """An event in each state, in each lane, and one that does not wake."""
    yield event(1, "mention", "done", cycle_id="cycle-1", space_id="space-room", message_id="message-1")
    yield event(2, "space_message", "taken", cycle_id="cycle-2", space_id="space-room", message_id="message-3")
    yield event(3, "service_trigger", "pending", lane=0, payload='{"text": "Deploy finished"}', attempts=1)
    yield event(4, "timer", "pending", hop=7, wakes=0, not_before=START + 60 * SECOND)
    yield event(5, "tool_result", "dead", attempts=5, payload='{"call": "c1"}')


def event(number: int, type_: str, state: str, **columns: Any) -> Row:
    row = {
        "number": number,
        "agent_id": "entity-ada",
        "id": f"event-{number}",
        "type": type_,
        "lane": 1,
        "state": state,
        "wakes": 1,
        "hop": 0,
        "waits": 0,
        "attempts": 0,
        "interruptions": 0,
        "not_before": 0,
        "cycle_id": None,
        "space_id": None,
        "message_id": None,
        "payload": None,
        "created_at": START + number * SECOND,
    }
    return "events", row | columns


def minds() -> Iterator[Row]:
    yield (
        "minds",
        {
            "agent_id": "entity-ada",
            "cycle_count": 1,
            "last_cycle_at": START + 3 * SECOND,
            "window_from": 1,
            "era": 1,
            "era_version": 2,
            "news": 4,
            "news_told": 3,
            "told": '{"members": {"space-room": ["noor", "sam", "grace"]}}',
            "outside": 1,
        },
    )
    yield "minds", dict.fromkeys(MIND_COUNTS, 0) | {"agent_id": "entity-grace", "window_from": 1, "told": "{}"}
    yield "selves", {"agent_id": "entity-ada", "era": 1, "text": "You are Ada.", "created_at": START}
    yield from cycles()
    yield from thoughts()


MIND_COUNTS = ("cycle_count", "last_cycle_at", "era", "era_version", "news", "news_told")


def cycles() -> Iterator[Row]:
    """One that has ended, and one that a crash would have to resume."""
    ended = {"number": 1, "outcome": "acted", "ended_at": START + 3 * SECOND, "stop_reason": "natural"}
    yield cycle("cycle-1", 1, **ended, steps=2, summary="Told Noor that the build passed.", told='{"news": 3}')
    yield cycle("cycle-2", 5, outcome="open", steps=1, attempts=1, interruptions=2, active_space_id="space-room")


def cycle(identifier: str, first_seq: int, **columns: Any) -> Row:
    row = {
        "id": identifier,
        "agent_id": "entity-ada",
        "number": None,
        "outcome": "open",
        "first_seq": first_seq,
        "started_at": START + first_seq * SECOND,
        "ended_at": None,
        "steps": 0,
        "attempts": 0,
        "interruptions": 0,
        "not_before": 0,
        "handed_back": 0,
        "active_space_id": None,
        "stop_reason": None,
        "summary": None,
        "told": None,
        "outside_from": 4,
        "input_tokens": 1200,
        "output_tokens": 80,
        "cost_micros": 310,
    }
    return "cycles", row | columns


def thoughts() -> Iterator[Row]:
    """What Ada saw and did, in order, with what it cost and what it changed."""
    entries = [("inbox", "cycle-1"), ("response", "cycle-1"), ("results", "cycle-1"), ("response", "cycle-1")]
    for number, (kind, cycle_id) in enumerate([*entries, ("inbox", "cycle-2"), ("response", "cycle-2")], start=1):
        yield (
            "log",
            {
                "number": number,
                "agent_id": "entity-ada",
                "seq": number,
                "cycle_id": cycle_id,
                "kind": kind,
                "message": json.dumps({"kind": "response" if kind == "response" else "request", "parts": []}),
                "tokens": 40,
                "request": '{"era": 1, "tools": "digest-1"}' if kind == "response" else None,
                "outside": '[{"tool": "build"}]' if kind == "results" else None,
                "created_at": START + number * SECOND,
            },
        )
    for cycle_id, step, state, changes in [("cycle-1", 0, "done", 1), ("cycle-2", 0, "intent", 0)]:
        yield (
            "effects",
            {
                "cycle_id": cycle_id,
                "step": step,
                "position": 0,
                "tool": "send_message" if changes else "fetch_page",
                "state": state,
                "changes": changes,
                "result": '{"message_id": "message-2"}' if changes else None,
                "rule": None if changes else "in_persons_words",
                "created_at": START + 2 * SECOND,
            },
        )
    yield (
        "overflow",
        {
            "id": "overflow-1",
            "agent_id": "entity-ada",
            "cycle_id": "cycle-1",
            "text": "212 passed\n" * 20,
            "created_at": START + 2 * SECOND,
        },
    )
    yield "toolsets", {"digest": "digest-1", "tools": '["send_message", "skip"]'}
    yield from ledger()


def ledger() -> Iterator[Row]:
    for number, kind, detail in [(1, "usage", None), (2, "skip", "not addressed to me"), (3, "failure", "overloaded")]:
        used = kind == "usage"
        yield (
            "ledger",
            {
                "number": number,
                "agent_id": "entity-ada",
                "cycle_id": "cycle-1" if used else f"cycle-gone-{number}",
                "kind": kind,
                "model": "demo" if used else None,
                "input_tokens": 1200 if used else 0,
                "output_tokens": 80 if used else 0,
                "cache_read_tokens": 1000 if used else 0,
                "cache_write_tokens": 0,
                "cost_micros": 310 if used else None,
                "detail": detail,
                "created_at": START + number * SECOND,
            },
        )


def tokens() -> Iterator[Row]:
    """One in use, one that has run out, and one that was revoked."""
    ended = {"token-2": {"expires_at": START + 60 * SECOND}, "token-3": {"revoked_at": START + SECOND}}
    for number, (identifier, columns) in enumerate([("token-1", {}), *ended.items()], start=1):
        row = {
            "id": identifier,
            "entity_id": "entity-noor",
            "kind": "session" if number == 1 else "token",
            "role": "member",
            "speaks_for_others": int(number == 2),
            "name": f"Laptop {number}",
            "digest": f"{number}" * 64,
            "created_at": START,
            "expires_at": None,
            "revoked_at": None,
            "last_used_at": START if number == 1 else None,
        }
        yield "tokens", row | columns
    yield (
        "identities",
        {"issuer": "https://id.example", "subject": "noor", "entity_id": "entity-noor", "created_at": START},
    )


def browsers() -> Iterator[Row]:
    """Noor is notified in her browser; of one message she was not told yet."""
    yield "server_keys", {"name": "push", "sealed": "sealed-key", "created_at": START}
    which = {"id": "subscription-1", "entity_id": "entity-noor", "token_id": "token-1"}
    keys = {"endpoint": "https://push.example/abc", "p256dh": "BPoint", "auth": "secret"}
    yield "push_subscriptions", {**which, **keys, "created_at": START}
    what = {"subscription_id": "subscription-1", "subject_id": "message-3", "kind": "message"}
    yield "push_notices", {**what, "tries": 1, "next_at": START + SECOND, "done_at": None, "created_at": START}


def intentions() -> Iterator[Row]:
    """What Ada means to do, and what Grace will when she is resumed."""
    times = {"created_at": START, "updated_at": START + SECOND}
    yield "goals", {"agent_id": "entity-ada", "number": 2, "text": "Ship", "status": "active", "priority": 0} | times
    yield "notes", {"agent_id": "entity-ada", "key": "sam", "text": "Sam prefers charts.", "outside": 1} | times
    cron = '{"kind":"cron","expression":"0 9 * * *","zone":"Europe/Berlin"}'
    yield plan("plan-1", "ada", "plan", cron, name="Daily report", last_run=START, reckoned_at=START + SECOND)
    yield plan("plan-2", "ada", "timer", '{"kind":"once","at":1767607200000000,"zone":"UTC"}', hop=2)
    beat = '{"kind":"heartbeat","minutes":30,"start":"09:00:00","end":"17:00:00","weekdays":["Mon"],"zone":"UTC"}'
    yield plan("plan-3", "grace", "heartbeat", beat, name="Heartbeat", state="held")


def plan(identifier: str, handle: str, kind: str, schedule: str, **columns: Any) -> Row:
    row = {
        "id": identifier,
        "agent_id": f"entity-{handle}",
        "kind": kind,
        "name": "",
        "instruction": "Look at the builds.",
        "schedule": schedule,
        "state": "waiting",
        "next_run": START + 3600 * SECOND,
        "last_run": None,
        "reckoned_at": START,
        "hop": 0,
        "created_at": START,
    }
    return "plans", row | columns


def outside() -> Iterator[Row]:
    """What people are asked, what is signed and sealed, and what it all costs."""
    made = {"agent_id": "entity-ada", "cycle_id": "cycle-2", "step": 0, "created_at": START, "hop": 1}
    asked = {"tool": "confirm", "mode": "pause", "state": "waiting", "arguments": '{"question":"Deploy?"}'}
    shown = {"space_id": "space-room", "shown": 1, "after_seq": 3, "expires_at": START + 3600 * SECOND}
    yield (
        "calls",
        {
            "id": "call-1",
            "position": 0,
            **made,
            **asked,
            **shown,
            "approval": 1,
            "released_at": None,
            "why": "Read a page.",
        },
    )
    yield (
        "grants",
        {
            "id": "grant-1",
            "agent_id": "entity-ada",
            "tool": "build",
            "digest": "digest-1",
            "arguments": "{}",
            "uses_left": 2,
            "expires_at": START + 3600 * SECOND,
            "given_by": "entity-noor",
            "call_id": "call-2",
            "space_id": "space-room",
            "created_at": START,
        },
    )
    late = {"tool": "build", "mode": "late", "state": "answered", "arguments": "{}", "result": "Built."}
    settled = {"runner": "instance-1", "settled_at": START + SECOND, "settled_by": "entity-noor"}
    yield "calls", {"id": "call-2", "position": 1, **made, **late, **settled}
    key = {"organization_id": "org-1", "name": "OPENAI_API_KEY", "sealed": "gAAAA", "hint": "cdef"}
    for number, owner in enumerate(("", "entity-noor"), start=1):
        yield "secrets", {"id": f"secret-{number}", "owner_id": owner, **key, "created_at": START, "updated_at": START}
    hook = {"agent_id": "entity-ada", "name": "Builds", "scheme": "github", "sealed": "gAAAA", "urgent": 1}
    yield "webhooks", {"id": "webhook-1", **hook, "created_at": START, "revoked_at": None, "last_used_at": START}
    # Of a model that the ledger does not have: what it has is counted by the migration itself.
    tokens = {"calls": 2, "input_tokens": 900, "output_tokens": 30, "cache_read_tokens": 600, "cache_write_tokens": 100}
    whose = {"organization_id": "org-1", "agent_id": "entity-ada"}
    yield "spending", {**whose, "day": START // (86_400 * SECOND), "model": "big", **tokens, "cost_micros": 4_500}
    paid = {"payer_id": "entity-ada", "organization_id": "org-1", "tokens": 9_000, "cost_micros": 20_000}
    yield "call_reservations", {**paid, "call": "cycle", "epoch": 3, "until": 0}
    yield "call_reservations", {**paid, "call": "call-1", "epoch": 0, "until": START + 120 * SECOND}


def memories() -> Iterator[Row]:
    """What Ada can recall: a passage among the postings, and one that is too new for them."""
    whose = {"agent_id": "entity-ada"}
    heard = {"kind": "heard", "space_id": "space-room", "speaker_id": "entity-noor", "message_id": "message-1"}
    did = {"kind": "did", "text": "fetch_page: the build passed", "place": 39, "characters": 28}
    yield "passages", {**whose, "number": 1, "cycle": 1, **heard, "place": 0, "characters": 39, "at": START + SECOND}
    yield "passages", {**whose, "number": 2, "cycle": 1, **did, "event_id": "event-1", "at": START + 2 * SECOND}
    yield "postings", {**whose, "block": 0, "term": "build", "entries": "...."}
    embedded = {"embedder": "local", "embedded": 1, "worded": 1}
    indexed = {"fingerprinted": 1, "fingerprint_form": 108}
    yield "fingerprints", {**whose, "hash": 3_735_928_559, "number": 1}
    yield "recalls", {**whose, "passages": 2, "length": 6, "settled": 1, "terms": 1, **embedded, **indexed}
    yield "vectors", {**whose, "embedder": "local", "first": 1, "dimensions": 8, "codes": "........"}
    yield "wordings", {**whose, "embedder": "local", "number": 1, "codes": "...."}


def long_ago() -> Iterator[Row]:
    """What ten cycles came to, what was forgotten, and what was stopped."""
    digest = {"first": 1, "last": 10, "people": {"entity-noor": ["Noor", 7]}, "did": {"send_message": 4}, "lines": []}
    yield (
        "layers",
        {"agent_id": "entity-ada", "level": 1, "first": 1, "digest": json.dumps(digest), "created_at": START},
    )
    forgotten = {"kind": "message", "subject_id": "message-9", "by_id": "entity-noor", "receipt": '{"messages":1}'}
    yield "redactions", {"id": "redaction-1", "organization_id": "org-1", **forgotten, "created_at": START}
    crossed = {"cycle_id": "cycle-1", "from_space_id": "space-aside", "to_space_id": "space-room", "words": 9}
    yield "crossings", {"number": 1, "agent_id": "entity-ada", **crossed, "created_at": START}


def board() -> Iterator[Row]:
    """A panel with an advisor, who was asked once."""
    space = {"id": "space-board", "organization_id": "org-1", "kind": "panel", "name": "Board", "private": 0}
    yield "spaces", {**space, "last_seq": 1, "created_at": START}
    where = {"space_id": "space-board"}
    yield "panels", {**where, "organization_id": "org-1", "settings": "{}", "turns": 1, "created_at": START}
    buber = {"id": "advisor-buber", **where, "position": 1, "handle": "buber", "name": "Martin Buber"}
    looks = {"description": "You look for the encounter.", "colour": "#2f6f9f", "in_group": "", "active": 1}
    yield "advisors", {**buber, **looks, "settings": "{}", "created_at": START, "removed_at": None}
    yield message(1, "noor", "Should I move?", space="board", id="message-board-1")
    asked = {"id": "round-1", **where, "turn": 1, "step": 0, "kind": "ask", "message_id": "message-board-1"}
    yield (
        "rounds",
        {**asked, "asked_by": "entity-noor", "question": None, "state": "complete", "crosstalk": 0, "synthesis": 0,
         "created_at": START, "completed_at": START + SECOND},
    )  # fmt: skip
    reply = {"round_id": "round-1", "voice": "advisor-buber", "part": "reply", **where, "organization_id": "org-1"}
    recipe = {"system": "You are Martin Buber.", "cap": 4000, "lines": [], "digest": ""}
    yield (
        "replies",
        {**reply, "position": 0, "name": "Martin Buber", "state": "done", "holder": None, "epoch": 1, "until": 0,
         "attempts": 1, "text": "Whom would you leave?", "thinking": None, "result": None, "error_code": None,
         "error": None, "recipe": json.dumps(recipe), "model": "demo", "input_tokens": 40, "output_tokens": 6,
         "cache_read_tokens": 0, "cache_write_tokens": 0, "cost_micros": 0, "reserved_tokens": 0,
         "reserved_micros": 0, "created_at": START, "started_at": START, "ended_at": START + SECOND},
    )  # fmt: skip
    spent = {"organization_id": "org-1", "day": 20458, **where, "model": "demo", "calls": 1, "input_tokens": 40}
    yield "panel_spending", {**spent, "output_tokens": 6, "cache_read_tokens": 0, "cache_write_tokens": 0,
                             "cost_micros": 0}  # fmt: skip


def long_term() -> Iterator[Row]:
    """What the room came to, and what is remembered of Noor; one memory was forgotten."""
    known = {"facts": [{"text": "The build passes on Mondays.", "confidence": 0.9, "sources": ["message-1"]}]}
    rolled = {"summary": "Noor asked about the build.", "memory": json.dumps(known), "model": "demo"}
    yield (
        "rollings",
        {"space_id": "space-room", "reader_id": "", **rolled, "upto": 1, "passes": 1, "updated_at": START},
    )
    owner = "user:entity-noor"
    whose = {"organization_id": "org-1", "scope": "user", "owner": owner, "user_id": "entity-noor"}
    what = {"kind": "item", "category": "preferences", "text": "Noor likes short answers.", "hash": "feed"}
    learned = {"space_id": "space-room", "sources": '["message-1"]', "length": 4}
    at = {"created_at": START, "updated_at": START}
    yield "memories", {"number": 1, "id": "memory-1", **whose, **what, **learned, **at}
    change = {"kind": "learned", "text": "Noor likes short answers.", "sources": '["message-1"]'}
    yield "memory_changes", {"number": 1, "memory": 1, **change, "model": "demo", "created_at": START}
    yield "memory_sources", {"message_id": "message-1", "number": 1}
    yield "memory_owners", {"owner": owner, "items": 1, "length": 4}
    yield "memory_terms", {"owner": owner, "term": "short", "number": 1, "shape": 4100}
    yield "memory_policies", {"space_id": "space-aside", "policy": '{"enabled":false}', "updated_at": START}
    yield "kept_out", {"owner": owner, "hash": "dead", "created_at": START}


def stances() -> Iterator[Row]:
    """Ada answers briefly in the room, and has been gentler there since Sam was cross."""
    here = {"agent_id": "entity-ada", "space_id": "space-room"}
    yield (
        "stances",
        {
            **here,
            "turns": 2,
            "reviewed_turn": 1,
            "review_asked": 0,
            "preset": "concise",
            "preset_reason": "default (first turn)",
            "profile_line": "concise: Be brief.",
            "reflected_turns": 2,
            "mood": "empathetic",
            "skill": "novice",
            "complexity": "simple",
            "mind_line": "your mood is empathetic",
            "imprints": '{"tea": "without sugar"}',
            "overrides": None,
            "updated_at": START,
        },
    )
    counters = '{"turns": 1, "frustration": 1, "confusion": 0, "satisfaction": 0, "neutral": 0, "scores": [-0.8], '
    counters += '"lengths": [20]}'
    yield "feelings", {**here, "person_id": "entity-sam", "counters": counters, "updated_at": START}
    yield (
        "signals",
        {
            "number": 1,
            **here,
            "person_id": "entity-sam",
            "cycle": 1,
            "name": "user_frustrated",
            "rule": "score -0.80, strongly",
            "score": -800,
            "created_at": START,
        },
    )
    yield (
        "reflections",
        {
            "number": 1,
            **here,
            "cycle": 1,
            "metaprompt": "frustration_recovery",
            "cause": "user_frustrated",
            "outcome": "changed",
            "reason": "Sam is cross.",
            "state": '{"mood": "empathetic", "user_skill": "novice", "task_complexity": "simple"}',
            "by_id": None,
            "created_at": START,
        },
    )
    yield "reflecting", {"agent_id": "entity-ada", "cycle": 1, "holder": "instance-1"}


def voices() -> Iterator[Row]:
    """Martin Buber has been patient since Noor was cross."""
    here = {"space_id": "space-board", "voice": "advisor-buber"}
    state = {"mood": "patient", "skill": "novice", "complexity": "simple", "mind_line": "your mood is patient"}
    yield "voice_stances", {**here, "reflected_turns": 1, **state, "imprints": '{"move": "soon"}', "updated_at": START}
    counters = '{"turns": 1, "frustration": 1, "confusion": 0, "satisfaction": 0, "neutral": 0, "scores": [-0.8], '
    counters += '"lengths": [14]}'
    yield "voice_feelings", {**here, "person_id": "entity-noor", "counters": counters, "updated_at": START}
    seen = {"name": "user_frustrated", "rule": "score -0.80, strongly", "score": -800}
    yield "voice_signals", {"number": 1, **here, "person_id": "entity-noor", "turn": 1, **seen, "created_at": START}
    asked = {"metaprompt": "frustration_recovery", "cause": "user_frustrated", "outcome": "changed", "by_id": None}
    after = {"state": '{"mood": "patient", "user_skill": "novice", "task_complexity": "simple"}'}
    why = {"reason": "Noor is cross."}
    yield "voice_reflections", {"number": 1, **here, "turn": 1, **asked, **why, **after, "created_at": START}
    yield "panel_reflecting", {"space_id": "space-board", "turn": 1, "holder": "instance-1"}


def statuses() -> Iterator[Row]:
    """Ada cannot think: OpenAI rejects her key. Sam waits."""
    where = {"space_id": "space-room", "agent_id": "entity-ada", "cause": "key", "detail": '{"provider": "OpenAI"}'}
    when = {"retry_at": START + 600 * SECOND, "created_at": START, "updated_at": START}
    yield "space_statuses", {**where, "message_id": "message-3", **when}
    asked = {"agent_id": "entity-grace", "space_id": "space-room", "cycle_id": "cycle-2", "seq": 3}
    yield "stop_requests", {**asked, "by_id": "entity-sam", "created_at": START}
    told = {"agent_id": "entity-ada", "cause": "key", "detail": '{"provider": "OpenAI"}', "created_at": START}
    sent = {"sent_at": START + SECOND, "tries": 1, "next_at": START + 60 * SECOND}
    yield "alerts", {**told, **sent}
    why = "OpenAI rejected the API key. Check it under Administration › Keys, then try again."
    yield "panel_alerts", {"space_id": "space-board", "cause": "key", "detail": why, "created_at": START, **sent}


def kept_watch() -> Iterator[Row]:
    """What Ada read and wrote where; Noor has opened a private space, and that is in the audit log."""
    yield "cycle_spaces", {"cycle_id": "cycle-1", "space_id": "space-room", "agent_id": "entity-ada"}
    yield "fact_spaces", {"agent_id": "entity-ada", "fact": "goal:1", "space_id": "space-room"}
    opened = {"id": "opening-1", "organization_id": "org-1", "space_id": "space-room", "by_id": "entity-noor"}
    when = {"after_seq": 3, "created_at": START, "until": START + 3_600 * SECOND}
    yield "openings", {**opened, "reason": "A complaint has come.", **when}
    who = {"organization_id": "org-1", "created_at": START, "by_id": "entity-noor", "token_id": "token-1"}
    what = {"kind": "private spaces", "action": "open_private_space", "subject_id": "space-room"}
    yield "audit", {"number": 1, **who, **what, "detail": '{"opening": "opening-1"}'}


def proof() -> Iterator[Row]:
    """Noor's aside was edited; the roster knows who is there."""
    row = {"number": 1, "chain_id": "space-aside", "row_id": "message-aside", "position": 1}
    yield "amendments", {**row, "salt": "................", "digest": "................", "created_at": START}
    yield "roster", {"kind": "organization", "id": "org-1", "member_id": ""}
    yield "roster", {"kind": "member", "id": "space-aside", "member_id": "entity-noor"}


def elsewhere() -> Iterator[Row]:
    """Eve writes from a room elsewhere; Noor has linked her own account."""
    for handle, kind, role in (("harbour", "service", "service"), ("eve", "human", "guest")):
        entity = {"id": f"entity-{handle}", "organization_id": "org-1", "kind": kind, "handle": handle}
        yield "entities", entity | {"name": handle.title(), "metadata": "{}", "role": role, "created_at": START}
    yield (
        "bridges",
        {
            "id": "bridge-1",
            "organization_id": "org-1",
            "entity_id": "entity-harbour",
            "kind": "webhook",
            "settings": '{"url": "https://example.org/"}',
            "sealed": "v1.sealed",
            "parked_reason": "The address refuses the bridge (HTTP 401).",
            "parked_until": START + 3600 * SECOND,
            "error": "The address refuses the bridge (HTTP 401).",
            "error_at": START,
            "connected_at": START - SECOND,
            "paused_at": START,
            "holder": None,
            "epoch": 3,
            "until": 0,
            "created_at": START,
        },
    )
    channel = {"id": "channel-1", "bridge_id": "bridge-1", "space_id": "space-room", "room": "pier", "cursor": "7"}
    yield "channels", channel | {"parent_id": None, "created_at": START}
    thread = {"id": "channel-2", "bridge_id": "bridge-1", "space_id": "space-room", "room": "<1@x>", "cursor": None}
    yield "channels", thread | {"parent_id": "channel-1", "created_at": START}
    for account, person in (("@eve:harbour", None), ("@noor:harbour", "entity-noor")):
        linked = None if person is None else START
        code = {"code": "00ff", "code_for": "entity-noor", "code_until": START + SECOND, "code_tries": 1}
        address = {"bridge_id": "bridge-1", "account": account, "guest_id": "entity-eve", "person_id": person}
        yield "addresses", address | {"linked_at": linked, **code, "created_at": START}
    carried = {"channel_id": "channel-1", "outside_id": "pier-1", "message_id": "message-1", "emoji": None}
    yield "carried", carried | {"direction": "in", "created_at": START, "reactor_id": None}
    reaction = {"outside_id": "pier-2", "emoji": "👍", "reactor_id": "entity-noor"}
    yield "carried", carried | reaction | {"direction": "in", "created_at": START}
    yield "drafts", {"channel_id": "channel-1", "message_id": "message-9", "outside_id": "pier-2", "created_at": START}
    yield "told_statuses", {"channel_id": "channel-1", "agent_id": "entity-ada", "cause": "failing", "since": START}
    row = {"number": 1, "bridge_id": "bridge-1", "channel_id": "channel-1", "target": "pier", "message_id": "message-1"}
    sent = {"action": "post", "transaction_id": "message-1.channel-1", "detail": None, "tries": 1, "next_at": START}
    yield "outbox", row | sent | {"failed": None, "created_at": START}


if __name__ == "__main__":
    main()
