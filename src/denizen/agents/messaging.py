"""Posting a message in the name of a person, an agent or a service, from outside an agent's own cycle; asking again.

The HTTP API, `denizen.spaces` and the command line call the same function. `spaces.posting.post` checks membership and
the idempotency key: an agent's own messages pass through it as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from denizen.access.requesters import Requester, find_space
from denizen.agents import managing
from denizen.errors import InvalidInput
from denizen.ids import AgentId, ChannelId, MessageId, SpaceId
from denizen.inbox import stop_requests
from denizen.spaces import ask_again, directory, posting
from denizen.spaces.posting import Draft, Posted
from denizen.storage.database import Tx, storable
from denizen.tools import calls, spoken_answers


def post_message(
    tx: Tx,
    by: Requester,
    space_id: str,
    what: Draft,
    *,
    id: MessageId | None = None,
    reply_to: str | None = None,
    metadata: Mapping[str, JsonValue] | None = None,
    urgent: bool = False,
    asked: AgentId | None = None,
    request: Mapping[str, JsonValue] | None = None,
    files: Sequence[str] = (),
    hop: int = 0,
    via: ChannelId | None = None,
    history_from: int | None = None,
) -> Posted:
    """Post a message to a space that the requester is in. In a panel, a person's message also begins a turn.

    `reply_to` is a message of the space, or a question there; raises `InvalidInput` for anything else. If an
    agent in the space waits for the answer to a question, this is the answer. `asked` is the agent whose answer
    the author waits for: then only a question of that agent is answered. `request` is what a program says that waits
    for it. `files` are ids of finished uploads. `hop`, `via` and `history_from` are those of a message from
    elsewhere, as in `posting.post`.
    """
    author_id, where = by.entity_id, SpaceId(storable(space_id))
    replied = None if reply_to is None else MessageId(storable(reply_to))
    posting.prefetch_post(tx, where, author_id, id)
    question = None if history_from is not None else spoken_answers.question_for(tx, where, author_id, what, replied)
    if question is not None and asked not in (None, question.agent_id):
        question = None
    meant = question.agent_id if question is not None else asked
    posted = posting.post(
        tx,
        where,
        author_id,
        what,
        id=id,
        reply_to=replied,
        metadata=metadata,
        urgent=urgent,
        hop=hop,
        asked=meant,
        request=request,
        files=files,
        via=via,
        history_from=history_from,
        scope=by.role,
    )
    # After the post, which refuses those who are not in the space: they must not learn which messages it has.
    if replied is not None and not (posting.is_in_space(tx, replied, where) or calls.is_shown_in(tx, replied, where)):
        raise InvalidInput("reply_to: there is no such message in this space.")
    if question is not None:
        spoken_answers.answer_in_words(tx, question, posted.id, posted.seq, author_id, what.text)
    if posted.space_kind == "panel":
        # Imported here: a command that posts in no panel does not need it.
        from denizen.panel import rounds

        rounds.begin_turn_of(tx, where, posted, author_id, what.rendered.mentions)
    return posted


def stop_answer(tx: Tx, by: Requester, space_id: str, agent_named: str | None = None) -> list[AgentId]:
    """Tell the agents of the space, or one of them, to stop what they write there. For people in the space.

    Returns those that were writing. What they had written stays, and says that it was stopped; work for other spaces
    goes on.
    """
    space = find_space(tx, by, space_id)
    if directory.get_entity(tx, by.entity_id).kind != "human":
        raise InvalidInput("Only people can stop an answer.")
    if space.kind == "panel":
        raise InvalidInput("This space is a panel. Cancel its round instead.")
    only = None if agent_named is None else [managing.find(tx, by, agent_named).id]
    return stop_requests.ask(tx, space.id, by.entity_id, posting.last_seq(tx, space.id), only)


def ask_for_answer(tx: Tx, by: Requester, space_id: str, agent_named: str) -> None:
    """Wake an agent that left a message in the space unanswered. For people in the space."""
    space, agent = find_space(tx, by, space_id), managing.find(tx, by, agent_named)
    ask_again.ask_for_answer(tx, space.id, agent.id, by.entity_id)
