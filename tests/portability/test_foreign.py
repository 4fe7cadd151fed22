# ruff: noqa: E501  exports are long lines
"""Agents and conversations of other programs become a dated history here, that can be recalled."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.access.requesters import THIS_PROCESS
from denizen.checker import check_database
from denizen.clock import moment
from denizen.errors import InvalidInput
from denizen.ids import AgentId
from denizen.portability.foreign import conversations
from denizen.portability.foreign.conversations import ForeignAgent, as_time
from denizen.portability.foreign.reading import PROGRAMS, read_foreign
from denizen.portability.foreign.translating import Importer, Translation
from denizen.spaces.directory import Entity
from tests.world import World, as_text

DAY = 86_400


def said(agent: ForeignAgent) -> list[tuple[str, list[str]]]:
    """What was said in each conversation, by whom and when."""
    return [
        (each.title, [f"{moment(one.at):%Y-%m-%d} {one.who}: {one.text}" for one in each.messages])
        for each in agent.conversations
    ]


# The formats, in small


def letta_old() -> dict[str, Any]:
    """One agent, whose messages wrap what a person wrote in JSON."""

    def wrapped(**told: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": json.dumps(told)}]

    def call(name: str, **arguments: str) -> dict[str, Any]:
        return {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}

    thought = [{"type": "text", "text": "She likes tea, I note it."}]
    return {
        "agent_type": "memgpt_agent",
        "name": "Sam",
        "system": "You are Letta. Use core_memory_append.",
        "core_memory": [
            {"label": "persona", "value": "I am Sam, a patient gardener."},
            {"label": "human", "value": "Her name is Noor.\n" + "She grows roses. " * 60},
        ],
        "tools": [{"name": "send_message"}, {"name": "web_search"}],
        "created_at": "2025-04-01T03:47:27",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "You are Letta."}], "created_at": "2025-04-01T03:47:27"},
            {"role": "user", "content": wrapped(type="login", time="now"), "created_at": "2025-04-01T03:47:28"},
            {"role": "user", "content": wrapped(type="user_message", message="I drink tea."), "created_at": "2025-04-02T10:00:00"},
            {"role": "assistant", "content": thought, "tool_calls": [call("core_memory_append", text="tea")], "created_at": "2025-04-02T10:00:05"},
            {"role": "tool", "content": wrapped(status="OK"), "created_at": "2025-04-02T10:00:06"},
            {"role": "assistant", "content": thought, "tool_calls": [call("send_message", message="Noted: tea.")], "created_at": "2025-04-02T10:00:07"},
        ],
    }  # fmt: skip


def letta_new() -> dict[str, Any]:
    """Several agents with shared blocks, whose messages are as they were written."""
    old = letta_old()
    messages = [
        {"id": "message-0", "role": "user", "content": [{"type": "text", "text": "Hello!"}], "created_at": "2025-10-10T07:14:31+00:00"},
        {"id": "message-1", "role": "assistant", "content": "Hello, Noor.", "tool_calls": None, "created_at": "2025-10-10T07:14:33+00:00"},
    ]  # fmt: skip
    agent = {"id": "agent-0", "name": "Sam", "system": "You help.", "block_ids": ["block-1"], "messages": messages}
    blocks = [{"id": f"block-{at}", **each} for at, each in enumerate(old["core_memory"])]
    return {"agents": [agent, {"id": "agent-1", "name": "Other"}], "blocks": blocks, "tools": old["tools"]}


def node(
    id: str, parent: str | None, role: str, text: str | None, at: float | None = None, **more: Any
) -> dict[str, Any]:
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = (
        None if text is None else {"id": id, "author": {"role": role}, "content": content, "create_time": at, **more}
    )
    return {"id": id, "parent": parent, "children": [], "message": message}


def chatgpt_export() -> list[dict[str, Any]]:
    start = 1_700_000_000.5
    context = {
        "content_type": "user_editable_context",
        "user_profile": "I am a baker.",
        "user_instructions": "Be brief.",
    }
    picture = {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "image_asset_pointer"}, "What bread is this?"],
    }
    nodes = [
        node("root", None, "", None),
        node("sys", "root", "system", "You are ChatGPT."),
        node("ctx", "sys", "user", "", content=context),
        node("q1", "ctx", "user", "How long does rye rise?", start),
        node("a0", "q1", "assistant", "An hour.", start + 1),
        node("a1", "q1", "assistant", "Twelve hours\ue200cite\ue202turn0search1\ue201.", start + 2),
        node("tool", "a1", "assistant", "search(rye)", start + 3, recipient="web"),
        node("q2", "tool", "user", "x", start + 2 * DAY, content=picture),
        node("a2", "q2", "assistant", "A rye loaf.", None),
    ]
    later = [
        node("p1", None, "user", "Plan a trip to Rome.", start + DAY),
        node("p2", "p1", "assistant", "Go in May.", start + DAY + 1),
    ]
    return [
        {"conversation_id": "c1", "title": "Rye", "create_time": start, "current_node": "a2", "mapping": {each["id"]: each for each in nodes}},
        {"id": "c2", "title": "Rome", "create_time": start + DAY, "current_node": "p2", "mapping": {each["id"]: each for each in later}},
        {"id": "c3", "title": "Empty", "mapping": {}},
    ]  # fmt: skip


def openwebui_export() -> list[dict[str, Any]]:
    thought = '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n> Hm.\n</details>'
    call = '<details type="tool_calls" done="true" name="sum" arguments="&quot;{}&quot;">\n</details>'
    messages = {
        "1": {"id": "1", "parentId": None, "role": "user", "content": "Two plus two?", "timestamp": 1_720_000_000},
        "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "Five.", "timestamp": 1_720_000_001},
        "3": {
            "id": "3",
            "parentId": "1",
            "role": "assistant",
            "content": f"{thought}\n{call}\nFour. <details>Two\nand two.</details>",
            "timestamp": 1_720_000_002,
        },
    }
    return [{"id": "w1", "title": "Sums", "chat": {"history": {"messages": messages, "currentId": "3"}}}]


def write_letta(folder: Path) -> Path:
    path = folder / "sam.af"
    path.write_text(json.dumps(letta_old()))
    return path


def write_chatgpt(folder: Path) -> Path:
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps(chatgpt_export()))
        archive.writestr("../../evil.txt", "never unpacked")
    return path


def write_openwebui(folder: Path) -> Path:
    path = folder / "chats.json"
    path.write_text(json.dumps(openwebui_export()))
    return path


def write_openclaw(folder: Path) -> Path:
    home = folder / "openclaw"
    (home / "agents/main/sessions").mkdir(parents=True)
    (home / "workspace/memory").mkdir(parents=True)
    text = [{"type": "text", "text": "The door code is 4711."}]
    lines = [
        {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-04-08T01:03:43.107Z"},
        {"type": "model_change", "modelId": "m"},
        {"type": "message", "id": "m1", "timestamp": "2026-04-08T01:04:00Z", "message": {"role": "user", "content": text}},
        {"type": "message", "id": "m2", "timestamp": "2026-04-08T01:04:02Z", "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "Remembered."}]}},
        {"type": "message", "id": "m3", "timestamp": "2026-04-08T01:04:03Z", "message": {"role": "toolResult", "content": []}},
    ]  # fmt: skip
    (home / "agents/main/sessions/s1.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in lines) + "{broken\n"
    )
    (home / "agents/main/sessions/notes.jsonl").write_text('{"not": "a session"}\n')
    (home / "workspace/SOUL.md").write_text("You are calm.")
    (home / "workspace/MEMORY.md").write_text("Noor likes lists.")
    (home / "workspace/memory/2026-04-08.md").write_text("Fixed the door.")
    (home / "workspace/link.md").symlink_to("/etc/hostname")
    return home


def write_hermes(folder: Path) -> Path:
    home = folder / "hermes"
    (home / "memories").mkdir(parents=True)
    (home / "memories/MEMORY.md").write_text("Uses zsh.\n§\nHas two cats.")
    with sqlite3.connect(home / "state.db") as database:
        database.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT, started_at REAL)")
        database.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL)"
        )
        database.execute("INSERT INTO sessions VALUES ('h1', 'Cats', 1760000000.0)")
        rows = [
            (1, "system", "You are."),
            (2, "user", "Name my cats."),
            (3, "tool", "{}"),
            (4, "assistant", "Mio and Tao."),
        ]
        database.executemany(
            "INSERT INTO messages VALUES (?, 'h1', ?, ?, ?)",
            [(id, role, text, 1760000000.0 + id) for id, role, text in rows],
        )
    database.close()
    return home


WRITTEN: dict[str, Callable[[Path], Path]] = {
    "letta": write_letta,
    "chatgpt": write_chatgpt,
    "openwebui": write_openwebui,
    "openclaw": write_openclaw,
    "hermes": write_hermes,
}


def test_there_is_an_example_of_every_format() -> None:
    assert WRITTEN.keys() == PROGRAMS.keys()


def test_letta(tmp_path: Path) -> None:
    sam = read_foreign("letta", write_letta(tmp_path))
    assert (sam.name, sam.instructions) == ("Sam", "I am Sam, a patient gardener.")
    assert said(sam) == [("Sam", ["2025-04-02 person: I drink tea.", "2025-04-02 agent: Noted: tea."])]
    assert [key for key, _ in sam.notes] == ["human", "human (2)", "human (3)"]
    assert " ".join(text for _, text in sam.notes) == letta_old()["core_memory"][1]["value"].strip()
    assert sam.left_out == {
        "system messages": 1,
        "events such as logins and heartbeats": 1,
        "calls of tools": 1,
        "thoughts": 2,
        "results of tools": 1,
        "tools": 2,
        "system prompts (they explain Letta's own tools)": 1,
    }


def test_letta_with_several_agents(tmp_path: Path) -> None:
    path = tmp_path / "new.af"
    path.write_text(json.dumps(letta_new()))
    sam = read_foreign("letta", path)
    assert (sam.instructions, sam.notes[0][0]) == ("You help.", "human")
    assert said(sam) == [("Sam", ["2025-10-10 person: Hello!", "2025-10-10 agent: Hello, Noor."])]
    assert sam.left_out == {"other agents of the file": 1, "tools": 2}


def test_letta_of_the_type_that_speaks_in_its_text(tmp_path: Path) -> None:
    """And written as JSON in JSON, as Letta's own scripts have written some."""
    document = letta_new()
    agent = document["agents"][0]
    looked_up = {"function": {"name": "web_search", "arguments": "{}"}}
    agent["messages"][1]["tool_calls"] = [looked_up]
    path = tmp_path / "v1.af"
    path.write_text(json.dumps(json.dumps(document | {"agents": [agent | {"agent_type": "letta_v1_agent"}]})))
    sam = read_foreign("letta", path)
    assert said(sam) == [("Sam", ["2025-10-10 person: Hello!", "2025-10-10 agent: Hello, Noor."])]
    assert sam.left_out == {"calls of tools": 1, "tools": 2}


def test_chatgpt(tmp_path: Path) -> None:
    """The branch that was shown last, with dates that never go back; what ChatGPT knew of the person as notes."""
    found = read_foreign("chatgpt", write_chatgpt(tmp_path))
    assert said(found) == [
        (
            "Rye",
            [
                "2023-11-14 person: How long does rye rise?",
                "2023-11-14 agent: Twelve hours.",
                "2023-11-16 person: What bread is this?",
                "2023-11-16 agent: A rye loaf.",
            ],
        ),
        ("Rome", ["2023-11-15 person: Plan a trip to Rome.", "2023-11-15 agent: Go in May."]),
    ]
    assert dict(found.notes) == {"About the person": "I am a baker.", "How to answer": "Be brief."}
    assert found.left_out == {
        "system messages": 1,
        "messages of other branches": 1,
        "calls of tools": 1,
        "pictures and other files": 1,
    }
    plain = tmp_path / "conversations.json"
    plain.write_text(json.dumps(chatgpt_export()))
    assert read_foreign("chatgpt", plain) == found


def test_openwebui(tmp_path: Path) -> None:
    found = read_foreign("openwebui", write_openwebui(tmp_path))
    spoken = "Four. <details>Two\nand two.</details>"
    assert said(found) == [("Sums", ["2024-07-03 person: Two plus two?", f"2024-07-03 agent: {spoken}"])]
    assert found.left_out == {"messages of other branches": 1, "thoughts": 1, "calls of tools": 1}


def test_openclaw(tmp_path: Path) -> None:
    found = read_foreign("openclaw", write_openclaw(tmp_path))
    assert said(found) == [("Session", ["2026-04-08 person: The door code is 4711.", "2026-04-08 agent: Remembered."])]
    assert found.instructions == "You are calm."
    assert dict(found.notes) == {"MEMORY": "Noor likes lists.", "2026-04-08": "Fixed the door."}
    assert found.left_out == {"results of tools": 1, "lines that are not JSON": 1}


def test_what_openclaw_adds_is_not_said_by_anybody(tmp_path: Path) -> None:
    """It speaks to its agent in the person's place, and puts metadata before the words of a person."""
    sender = 'Sender (untrusted metadata):\n```json\n{\n  "label": "Noor"\n}\n```\n\n'
    turns = [
        ("user", f"{sender}[Thu 2026-03-05 16:29 GMT+8] hello"),
        ("assistant", "[[reply_to_current]] Hey."),
        ("user", f"Read HEARTBEAT.md if it exists (workspace context). Follow it strictly.\nCurrent time: {DAY}"),
        ("assistant", "HEARTBEAT_OK"),
        ("user", "[1] is a list (untrusted metadata):"),
        ("assistant", "NO_REPLY"),
    ]
    lines: list[dict[str, Any]] = [{"type": "session", "id": "s", "timestamp": "2026-03-05T08:29:00Z"}]
    for role, text in turns:
        lines.append({"type": "message", "message": {"role": role, "content": [{"type": "text", "text": text}]}})
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    found = read_foreign("openclaw", path)
    told = ["person: hello", "agent: Hey.", "person: [1] is a list (untrusted metadata):"]
    assert said(found) == [("Session", [f"2026-03-05 {each}" for each in told])]
    assert found.left_out == {"heartbeats, and answers that were not sent": 3}


def test_hermes(tmp_path: Path) -> None:
    found = read_foreign("hermes", write_hermes(tmp_path))
    assert said(found) == [("Cats", ["2025-10-09 person: Name my cats.", "2025-10-09 agent: Mio and Tao."])]
    assert dict(found.notes) == {"MEMORY": "Uses zsh.", "MEMORY*": "Has two cats."}
    assert found.left_out == {"system messages": 1, "results of tools": 1}


def test_hermes_of_a_later_version(tmp_path: Path) -> None:
    """Rows that were not said, or are there twice, are marked in further columns; pictures are JSON behind a mark."""
    home = write_hermes(tmp_path)
    picture = '\x00json:[{"type": "text", "text": "Whose cat is this?"}, {"type": "image_url", "image_url": {}}]'
    with closing(sqlite3.connect(home / "state.db")) as database:
        for column in ("active INTEGER DEFAULT 1", "compacted INTEGER DEFAULT 0", "display_kind TEXT"):
            database.execute(f"ALTER TABLE messages ADD COLUMN {column}")
        for column in ("_compressed_summary INTEGER DEFAULT 0", "display_order INTEGER"):
            database.execute(f"ALTER TABLE messages ADD COLUMN {column}")
        database.execute("ALTER TABLE sessions ADD COLUMN source TEXT")
        database.execute("INSERT INTO sessions VALUES ('h2', NULL, 1760086400.0, 'cli')")
        database.execute("INSERT INTO sessions VALUES ('h3', 'A helper', 1760086500.0, 'subagent')")
        rows = [
            ("h2", "user", "Undone.", 0, 0, None, 0, 11),
            ("h2", "user", "Before compaction.", 0, 1, None, 0, 12),
            ("h2", "user", "Before compaction.", 1, 0, None, 0, 12),
            ("h2", "assistant", "So far: cats.", 1, 0, None, 1, 13),
            ("h2", "user", "[You are resumed]", 1, 0, "hidden", 0, 14),
            ("h2", "user", picture, 1, 0, None, 0, 15),
            ("h2", "user", "\x01json:torn", 1, 0, None, 0, 16),
            ("h2", "assistant", "Yours.", 1, 0, None, 0, 17),
            ("h3", "user", "Search the web.", 1, 0, None, 0, 18),
        ]
        database.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp, active, compacted, display_kind,"
            " _compressed_summary, display_order) VALUES (?, ?, ?, 1760086401.0, ?, ?, ?, ?, ?)",
            rows,
        )
        database.commit()
    _, session = said(read_foreign("hermes", home))
    told = ["person: Before compaction.", "person: Whose cat is this?", "agent: Yours."]
    assert session == ("Session", [f"2025-10-10 {each}" for each in told])
    assert read_foreign("hermes", home).left_out == {
        "messages that were taken back": 1,
        "summaries of earlier messages": 1,
        "system messages": 2,
        "results of tools": 1,
        "pictures and other files": 1,
        "messages that are not JSON": 1,
        "sessions of helpers of its own": 1,
    }


# The life here


async def bring(world: World, agent: ForeignAgent, noor: Entity, folder: Path, **options: Any) -> Translation:
    whole = Translation(agent, Importer(noor.id, noor.handle, noor.name), **options)
    for name, lines in (("space", whole.space_file()), ("agent", whole.agent_file())):
        file = folder / f"{name}.jsonl"
        file.write_text("".join(lines))
        by = THIS_PROCESS.acting_as(noor.id)
        await world.denizen.organizations.import_file(file, organization=noor.organization_id, by=by)
    return whole


@pytest.mark.parametrize("program", WRITTEN)
async def test_what_was_said_is_dated_and_recalled(world: World, tmp_path: Path, program: str) -> None:
    """As if it had been lived here: every message in the space, every exchange a cycle, no invariant broken."""
    noor = await world.person("Noor")
    found = read_foreign(program, WRITTEN[program](tmp_path))
    whole = await bring(world, found, noor, tmp_path)

    messages = await world.denizen.spaces.messages(whole.space_id)
    assert len(messages) == found.messages
    assert [each.created_at for each in messages] == sorted(each.created_at for each in messages)
    assert all(each.metadata["imported"] for each in messages)
    ada = await world.denizen.agents.get(AgentId(whole.agent_id))
    assert ada.definition.instructions == found.instructions
    assert {each.key: each.text for each in await world.denizen.notes.list(ada)} == dict(found.notes)
    for conversation in found.conversations:
        for message in conversation.messages:
            told = await world.denizen.minds.recall(ada, message.text, space=whole.space_id, reader=noor)
            assert (message.text, message.at) in [(each.text, each.at) for each in told]
    assert await check_database(world.denizen.db) == []


async def test_an_imported_agent_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    """In the space of the two it has its past in mind, with dates; others learn nothing of it."""
    noor, eve = await world.person("Noor"), await world.person("Eve")
    whole = await bring(world, read_foreign("chatgpt", write_chatgpt(tmp_path)), noor, tmp_path, trusted=True)
    await world.denizen.agents.resume(AgentId(whole.agent_id))
    ada = await world.denizen.agents.get(AgentId(whole.agent_id))
    assert (ada.name, ada.entity.handle) == ("ChatGPT", "chatgpt")
    private = await world.denizen.spaces.get(whole.space_id)
    assert private.private
    assert await world.denizen.minds.recall(ada, "rye", reader=eve) == []

    await world.say(noor, "And wheat?", private)
    await world.run()
    assert len(await world.cycles(ada)) == 4
    [request, *_] = await world.denizen.minds.replay(ada, 4, reader=noor)
    told = "\n".join(as_text(each) for each in request.messages)
    assert "The conversation “Rome” begins." in told
    assert "Now: Wednesday 2023-11-15" in told
    assert (
        told.index("How long does rye rise?") < told.index("Plan a trip to Rome.") < told.index("What bread is this?")
    )
    assert await check_database(world.denizen.db) == []


async def test_a_long_history_is_in_layers(world: World, tmp_path: Path) -> None:
    """Only the newest cycles are in the window; the older ones are summarized at the first waking, and recalled."""
    noor = await world.person("Noor")
    nodes, last = {}, None
    for at in range(60):
        for role, text in (("user", f"Question number {at} about tomatoes"), ("assistant", f"Answer number {at}")):
            id = f"{role}{at}"
            nodes[id], last = node(id, last, role, text, 1_700_000_000 + at * DAY), id
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"id": "c", "title": "Garden", "current_node": last, "mapping": nodes}]))
    whole = await bring(world, read_foreign("chatgpt", path), noor, tmp_path)
    ada = await world.denizen.agents.get(AgentId(whole.agent_id))
    await world.denizen.agents.resume(ada)
    private = await world.denizen.spaces.get(whole.space_id)
    for text in ("Hello?", "Still there?"):
        await world.say(noor, text, private)
        await world.run()
    [request, *_] = await world.denizen.minds.replay(ada, 62, reader=noor)
    told = "\n".join(as_text(each) for each in request.messages)
    assert "[EARLIER CYCLES" in told
    assert "Question number 59 about tomatoes" in told
    found = await world.denizen.minds.recall(ada, "question number 3", space=private.id, reader=noor)
    assert "Question number 3 about tomatoes" in [each.text for each in found[:3]]
    assert await check_database(world.denizen.db) == []


async def test_text_of_others_is_from_outside_unless_vouched_for(small_world: World, tmp_path: Path) -> None:
    noor = await small_world.person("Noor")
    found = read_foreign("letta", write_letta(tmp_path))
    marks = []
    for options in ({"handle": "doubted"}, {"handle": "believed", "trusted": True}):
        whole = await bring(small_world, found, noor, tmp_path, **options)
        marks.append({each.outside for each in await small_world.denizen.spaces.messages(whole.space_id)})
    assert marks == [{True}, {False}]


# What is hostile


def test_the_same_export_has_the_same_ids(tmp_path: Path) -> None:
    noor = Importer("n", "noor", "Noor")  # pyright: ignore[reportArgumentType]
    found = read_foreign("chatgpt", write_chatgpt(tmp_path))
    first, again = Translation(found, noor), Translation(read_foreign("chatgpt", tmp_path / "export.zip"), noor)
    other = Translation(found, noor, handle="other")
    assert (first.agent_id, list(first.agent_file())) == (again.agent_id, list(again.agent_file()))
    assert first.agent_id != other.agent_id


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"agents": [[]], "mapping": 7}',
        b"PK\x03\x04broken",
    ],
)
def test_what_is_no_export_is_refused_with_a_sentence(tmp_path: Path, program: str, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="file cannot be imported: "):
        read_foreign(program, path)


def test_an_archive_is_not_unpacked_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_BYTES", 1_000_000)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 50_000_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(InvalidInput, match="unpacked it is larger than"):
        read_foreign("chatgpt", path)
    large = tmp_path / "large.json"
    large.write_bytes(b" " * 1_000_001)
    with pytest.raises(InvalidInput, match="it is larger than"):
        read_foreign("openwebui", large)


def test_a_damaged_archive_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """Its list of files is whole, and what is in them is not."""
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([{"n": number} for number in range(1_000)]))
    data = bytearray(path.read_bytes())
    data[60:200] = b"\xff" * 140
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match="not a ZIP archive that can be read"):
        read_foreign("chatgpt", path)


@given(st.text(alphabet="ab \n", max_size=4_000))
def test_a_long_note_is_cut_and_keeps_every_word(text: str) -> None:
    notes = conversations.as_notes(iter([("note", text)]), conversations.LeftOut())
    assert "".join("".join(piece.split()) for _, piece in notes) == "".join(text.split())
    assert all(0 < len(piece) <= conversations.NOTE_CHARACTERS for _, piece in notes)


def test_a_conversation_that_goes_in_circles_ends(tmp_path: Path) -> None:
    nodes = {"a": node("a", "b", "user", "Round", 1.7e9), "b": node("b", "a", "assistant", "and round", "never")}  # type: ignore[arg-type]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"id": "c", "title": 7, "current_node": "b", "mapping": nodes}]))
    assert said(read_foreign("chatgpt", path)) == [
        ("Untitled", ["2023-11-14 person: Round", "2023-11-14 agent: and round"])
    ]


@pytest.mark.parametrize(
    "value", [None, True, -5, 0, 1e300, float("nan"), float("inf"), "yesterday", "9999-99-99", [], {}]
)
def test_a_time_that_is_none_is_no_time(value: object) -> None:
    assert as_time(value) is None
