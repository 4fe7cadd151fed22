"""Agents of Letta: `.af` files, in the version with one agent and in the one with several."""

from __future__ import annotations

import json
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
    dated,
    parse_json,
    read_bytes,
    text_of_parts,
    unreadable,
)

SOURCE: Final = "Letta"
_SPEAKS_IN_TEXT: Final = "letta_v1_agent"
_LARGEST: Final = 40_000
"""Characters of instructions: those of an agent that are longer become notes."""


def read(path: Path) -> ForeignAgent:
    """Reads an agent file. One with several agents is read for the first."""
    document = parse_json(path, read_bytes(path))
    if isinstance(document, str):  # JSON in JSON: so Letta's own scripts have written it
        document = parse_json(path, document.encode())
    document = as_dict(document)
    left_out = LeftOut()
    agent, blocks = _agent_of(path, document, left_out)
    messages = list(_messages(agent, left_out))
    name = as_text(agent.get("name")).strip() or path.stem
    _count(agent, document, left_out)
    persona, notes = _split(blocks)
    system = as_text(agent.get("system")).strip()
    # The system prompt of Letta explains Letta's own tools: the persona says who the agent is.
    instructions = (persona or system)[:_LARGEST]
    left_out["system prompts (they explain Letta's own tools)"] += bool(persona and system)
    begun = as_time(agent.get("created_at") or document.get("created_at"))
    told = ForeignConversation("letta", name, tuple(dated(messages, begun)))
    return ForeignAgent(SOURCE, name, instructions, as_notes(iter(notes), left_out), (told,), +left_out)


def _agent_of(path: Path, document: dict[str, Any], left_out: LeftOut) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if "agents" in document:
        agents = [as_dict(each) for each in as_list(document["agents"])]
        if not agents or not agents[0]:
            raise unreadable(path, "there is no agent in it")
        left_out["other agents of the file"] += len(agents) - 1
        wanted = {each for each in as_list(agents[0].get("block_ids")) if isinstance(each, str)}
        every = [as_dict(each) for each in as_list(document.get("blocks"))]
        return agents[0], [each for each in every if not wanted or each.get("id") in wanted]
    if "core_memory" in document or "agent_type" in document:
        return document, [as_dict(each) for each in as_list(document.get("core_memory"))]
    raise unreadable(path, "it is not an agent file of Letta")


def _split(blocks: list[dict[str, Any]]) -> tuple[str, list[tuple[str, str]]]:
    """The persona, and the other blocks as notes."""
    persona, notes = "", list[tuple[str, str]]()
    for block in blocks:
        label, value = as_text(block.get("label")), as_text(block.get("value")).strip()
        if label == "persona":
            persona = value
        elif value:
            notes.append((label, value))
    return persona, notes


def _count(agent: dict[str, Any], document: dict[str, Any], left_out: LeftOut) -> None:
    left_out["tools"] += len(as_list(agent.get("tools")) or as_list(document.get("tools")))
    left_out["MCP servers"] += len(as_list(document.get("mcp_servers")))
    left_out["files"] += len(as_list(document.get("files")))
    left_out["skills"] += len(as_list(document.get("skills")))
    left_out["environment variables of tools"] += len(agent.get("tool_exec_environment_variables") or ())


def _messages(agent: dict[str, Any], left_out: LeftOut) -> Iterator[tuple[str, Who, str, Any]]:
    speaks_in_text = agent.get("agent_type") == _SPEAKS_IN_TEXT
    for number, each in enumerate(map(as_dict, as_list(agent.get("messages")))):
        id, at = as_text(each.get("id")) or str(number), as_time(each.get("created_at"))
        content = text_of_parts(each.get("content"), left_out)
        match each.get("role"):
            case "user":
                if text := _said_by_person(content, left_out):
                    yield id, "person", text, at
            case "assistant":
                sent = list(_sent(each, left_out))
                # Agents of other types speak with `send_message`, and only think in the text beside a call.
                if content and (speaks_in_text or not as_list(each.get("tool_calls"))):
                    sent.insert(0, content)
                elif content:
                    left_out["thoughts"] += 1
                for place, text in enumerate(sent):
                    yield f"{id}.{place}", "agent", text, at
            case "system":
                left_out["system messages"] += 1
            case "tool" | "approval":
                left_out["results of tools" if each.get("role") == "tool" else "approvals of tools"] += 1
            case _:
                left_out["messages of an unknown kind"] += 1


def _said_by_person(content: str, left_out: LeftOut) -> str:
    """What a person wrote: older versions wrap it in JSON, beside events of their own."""
    if not content.startswith("{"):
        return content
    try:
        told = as_dict(json.loads(content))
    except (ValueError, RecursionError):
        return content
    match told.get("type"):
        case "user_message":
            return as_text(told.get("message")).strip()
        case str():
            left_out["events such as logins and heartbeats"] += 1
            return ""
        case _:
            return content


def _sent(message: dict[str, Any], left_out: LeftOut) -> Iterator[str]:
    for call in as_list(message.get("tool_calls")):
        function = as_dict(as_dict(call).get("function"))
        if function.get("name") != "send_message":
            left_out["calls of tools"] += 1
            continue
        try:
            arguments = as_dict(json.loads(as_text(function.get("arguments"))))
        except (ValueError, RecursionError):
            arguments = {}
        if text := as_text(arguments.get("message")).strip():
            yield text
