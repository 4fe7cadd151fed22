"""Conversations with ChatGPT: the ZIP archive of its data export, or `conversations.json` from it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from denizen.portability.foreign.conversations import (
    ForeignAgent,
    ForeignConversation,
    LeftOut,
    Who,
    as_dict,
    as_list,
    as_notes,
    as_text,
    as_time,
    branch,
    dated,
    parse_json,
    read_bytes,
    read_zip,
    text_of_parts,
    unreadable,
)

SOURCE: Final = "ChatGPT"
_MARKS: Final = re.compile("\ue200[^\ue201]*\ue201")
"""Where the page showed a source or a widget: without what it searched, it says nothing."""
_NAMES: Final = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")


def read(path: Path) -> ForeignAgent:
    """Reads the whole export. Of each conversation, the branch that was shown last."""
    left_out = LeftOut()
    notes: dict[str, str] = {}
    found = [
        conversation
        for document in _documents(path)
        for given in as_list(document)
        if (conversation := _conversation(as_dict(given), notes, left_out)).messages
    ]
    if not found:
        raise unreadable(path, "there are no conversations of ChatGPT in it")
    return ForeignAgent(SOURCE, SOURCE, "", as_notes(iter(notes.items()), left_out), tuple(found), +left_out)


def _documents(path: Path) -> Iterator[Any]:
    if path.is_dir():
        for each in sorted(path.glob("conversations*.json")):
            yield parse_json(each, read_bytes(each))
    elif zipfile.is_zipfile(path):
        for _, data in read_zip(path, _NAMES):
            yield parse_json(path, data)
    else:
        yield parse_json(path, read_bytes(path))


def _conversation(given: dict[str, Any], notes: dict[str, str], left_out: LeftOut) -> ForeignConversation:
    nodes = as_dict(given.get("mapping"))
    last = given.get("current_node")
    shown = branch(nodes, last if last in nodes else next(reversed(nodes), None), "parent")
    messages = [said for node in shown if (said := _message(node, notes, left_out)) is not None]
    aside = {id for id, node in nodes.items() if _is_said(as_dict(as_dict(node).get("message")))}
    left_out["messages of other branches"] += len(aside - {str(node["id"]) for node in shown})
    id = as_text(given.get("conversation_id") or given.get("id")) or as_text(last)
    title = as_text(given.get("title")).strip() or "Untitled"
    return ForeignConversation(id, title, tuple(dated(messages, as_time(given.get("create_time")))))


def _is_said(message: dict[str, Any]) -> bool:
    return as_dict(message.get("author")).get("role") in ("user", "assistant") and not _is_hidden(message)


def _is_hidden(message: dict[str, Any]) -> bool:
    return as_dict(message.get("metadata")).get("is_visually_hidden_from_conversation") is True


def _message(node: dict[str, Any], notes: dict[str, str], left_out: LeftOut) -> tuple[str, Who, str, Any] | None:
    message = as_dict(node.get("message"))
    content, role = as_dict(message.get("content")), as_dict(message.get("author")).get("role")
    if not message:
        return None
    kind = content.get("content_type")
    if kind == "user_editable_context":
        for key, name in (("user_profile", "About the person"), ("user_instructions", "How to answer")):
            if text := as_text(content.get(key)).strip():
                notes[name] = text
        return None
    if role not in ("user", "assistant") or _is_hidden(message):
        left_out["system messages" if role == "system" else "results of tools"] += bool(content.get("parts"))
        return None
    if message.get("recipient", "all") != "all":
        left_out["calls of tools"] += 1
        return None
    if kind not in ("text", "multimodal_text"):
        left_out["thoughts, code and other parts"] += 1
        return None
    text = _MARKS.sub("", text_of_parts(content.get("parts"), left_out)).strip()
    who: Who = "person" if role == "user" else "agent"
    return (str(node["id"]), who, text, as_time(message.get("create_time"))) if text else None
