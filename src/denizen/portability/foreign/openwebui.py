"""Chats of Open WebUI, as its settings and its chat menu export them to JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from denizen.portability.foreign.conversations import (
    ForeignAgent,
    ForeignConversation,
    LeftOut,
    Who,
    as_dict,
    as_list,
    as_text,
    as_time,
    branch,
    dated,
    parse_json,
    read_bytes,
    text_of_parts,
    unreadable,
)

SOURCE: Final = "Open WebUI"
_FOLDED: Final = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"[^<>]*>')
_END: Final = "</details>"


def read(path: Path) -> ForeignAgent:
    """Reads exported chats. Of each, the branch that was shown last."""
    document, left_out = parse_json(path, read_bytes(path)), LeftOut()
    given = as_list(document) or [document]
    found = [each for one in given if (each := _conversation(as_dict(one), left_out)).messages]
    if not found:
        raise unreadable(path, "there are no chats of Open WebUI in it")
    return ForeignAgent(SOURCE, SOURCE, "", (), tuple(found), +left_out)


def _conversation(given: dict[str, Any], left_out: LeftOut) -> ForeignConversation:
    chat = as_dict(given.get("chat")) or given
    history = as_dict(chat.get("history"))
    nodes = as_dict(history.get("messages"))
    shown = branch(nodes, history.get("currentId"), "parentId")
    if nodes:
        left_out["messages of other branches"] += len(nodes) - len(shown)
    listed = [as_dict(each) for each in as_list(chat.get("messages"))]
    messages = [said for at, each in enumerate(shown or listed) if (said := _message(at, each, left_out)) is not None]
    id = as_text(given.get("id") or chat.get("id"))
    title = as_text(given.get("title") or chat.get("title")).strip() or "Untitled"
    begun = as_time(given.get("created_at") or chat.get("timestamp"))
    return ForeignConversation(id, title, tuple(dated(messages, begun)))


def _message(at: int, given: dict[str, Any], left_out: LeftOut) -> tuple[str, Who, str, Any] | None:
    role = given.get("role")
    left_out["pictures and other files"] += len(as_list(given.get("files")))
    if role not in ("user", "assistant"):
        left_out["system messages"] += 1
        return None
    text = _spoken(text_of_parts(given.get("content"), left_out), left_out)
    who: Who = "person" if role == "user" else "agent"
    return (as_text(given.get("id")) or str(at), who, text, as_time(given.get("timestamp"))) if text else None


def _spoken(text: str, left_out: LeftOut) -> str:
    """Without the blocks in which the page folds what a model thought and called."""
    kept, at = list[str](), 0
    for block in _FOLDED.finditer(text):
        if block.start() < at:
            continue
        if (end := text.find(_END, block.end())) < 0:
            break
        left_out["thoughts" if block[1] == "reasoning" else "calls of tools"] += 1
        kept.append(text[at : block.start()])
        at = end + len(_END)
    return "".join([*kept, text[at:]]).strip()
