"""Searches messages, and gets one message by its id."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from denizen.access import people
from denizen.access.requesters import find_space
from denizen.errors import NotFound
from denizen.ids import MessageId
from denizen.server.auth import Authenticated, Caller, Person
from denizen.server.router import new_router
from denizen.server.shapes.spaces import message_out
from denizen.shapes.spaces import MessageOut, SearchPage
from denizen.spaces import directory, posting, searching
from denizen.spaces.posting import Message
from denizen.spaces.searching import QUERY_CHARACTERS, Cursor, MessageQuery, SearchedWords, SearchResults
from denizen.storage.database import Tx, storable

router = new_router()


@router.get("/api/messages/search", summary="Search messages")
async def search_messages(
    caller: Person,
    q: Annotated[
        str, Query(min_length=1, max_length=QUERY_CHARACTERS, description="Whole words, all of them.", examples=["tea"])
    ],
    space: Annotated[str | None, Query(description="The id of a space you are in; without it, in all of them.")] = None,
    author: Annotated[str | None, Query(description="Whose messages: an id, or a handle with its `@`.")] = None,
    before: Annotated[
        str | None, Query(max_length=20_000, description="What `next` said, to search on from there.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> SearchPage:
    """Messages of your spaces that contain all the words, ignoring case, newest first.

    A request looks at 5,000 messages at most. `next` continues the search, also after an empty page.
    """
    words, place = SearchedWords(q), None if before is None else Cursor.read(before)
    found = await caller.runtime.db.read(_search, caller, words, space, author, place, limit)
    return SearchPage(messages=[message_out(each) for each in found.messages], next=found.next)


def _search(
    tx: Tx,
    caller: Caller,
    words: SearchedWords,
    space: str | None,
    author: str | None,
    before: Cursor | None,
    limit: int,
) -> SearchResults:
    wanted = MessageQuery(
        words,
        None if space is None else find_space(tx, caller.requester, space).id,
        None if author is None else people.find_profile(tx, caller.requester, author).entity.id,
    )
    return searching.search(tx, caller.entity.id, wanted, before=before, limit=limit)


# Behind the search, whose address would be one of a message else.
@router.get("/api/messages/{message_id}", summary="Get a message")
async def get_message(caller: Authenticated, message_id: str) -> MessageOut:
    """In any space that you are a member of, for example the `reply_to` of another message."""
    return message_out(await caller.runtime.db.read(_message, caller, message_id))


def _message(tx: Tx, caller: Caller, message_id: str) -> Message:
    found = posting.get_message(tx, MessageId(storable(message_id)))
    if not directory.is_member(tx, found.space_id, caller.entity.id):
        raise NotFound("message", message_id)
    return found
