"""Renders a panel as a Markdown document: the questions, and the answers of each voice."""

from __future__ import annotations

from collections.abc import Iterator

from denizen.clock import moment
from denizen.errors import NotFound
from denizen.ids import SpaceId
from denizen.panel import panels, rounds
from denizen.panel.rounds import Reply, Round
from denizen.panel.voting import tally
from denizen.spaces import posting
from denizen.storage.database import Tx

_TITLES = {"crosstalk": "They answer each other", "vote": "A vote"}
_STATES = {"waiting": "has not begun", "running": "is answering", "failed": "failed", "cancelled": "was cancelled"}


def markdown(tx: Tx, panel_id: SpaceId) -> str:
    """Renders everything that was said in the panel, in order."""
    panel = panels.get(tx, panel_id)
    parts = [f"# {panel.name}"]
    for turn in range(1, panel.turns + 1):
        for each in rounds.of_turn(tx, panel_id, turn):
            parts += _round(tx, each)
    return "\n\n".join(parts) + "\n"


def _round(tx: Tx, told: Round) -> Iterator[str]:
    if told.kind == "ask":
        yield f"## Turn {told.turn}"
        yield _asked(tx, told)
    else:
        yield f"### {_TITLES[told.kind]}"
        if told.question:
            yield f"> {told.question}"
    for each in told.spoken:
        yield f"**{each.name}**"
        yield said(each)
    yield from _outcome(told)
    for each in told.replies:
        if each.part == "synthesis" and each.state == "done":
            yield "### Synthesis"
            yield each.text or ""


def _asked(tx: Tx, told: Round) -> str:
    try:
        message = posting.get_message(tx, told.message_id)
    except NotFound:
        return "> (gone)"
    text = message.text if message.deleted_at is None else "(deleted)"
    lines = [f"**{message.author_name}**, {moment(message.created_at):%Y-%m-%d %H:%M} UTC", "", *text.splitlines()]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def said(reply: Reply) -> str:
    """Returns the reply's text, or its state: errors are marked as such."""
    if reply.state != "done":
        why = f": {reply.error}" if reply.error else ""
        return f"_({_STATES[reply.state]}{why})_"
    if reply.part == "vote" and reply.result is not None:
        vote = reply.result
        return f"{vote['position']} ({round(vote['confidence'] * 100)} % sure): {vote['reason']}"
    return reply.text or ""


def _outcome(told: Round) -> Iterator[str]:
    if told.votes:
        names = {each.voice: each.name for each in told.spoken}
        camps = tally(told.votes, told.groups).camps
        yield "\n".join(f"- {camp.position}: {', '.join(names[each] for each in camp.voices)}" for camp in camps)
