"""For whom a request of OpenAI's API is made: the owner of the token, or a user for whom the token speaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Depends, Request
from starlette.datastructures import Headers

from denizen.access import on_behalf_of, roles
from denizen.access.on_behalf_of import NamedUser, RepresentedPerson
from denizen.errors import HandleTaken, InvalidInput
from denizen.server.auth import ROLE_ASKED, Authenticated, Caller, require
from denizen.server.context import context_of
from denizen.server.problems import Problem

ANSWER_HEADERS: Final = "denizen.answer_headers"
"""The key of an ASGI scope under which a route puts headers of its answer, whether that is a stream or an error."""
PREFIXES: Final = ("Denizen-User", "X-OpenWebUI-User")
"""Of the headers that name a user: `-Id`, `-Name` and `-Email`. The first that is there counts."""
PERSON_HEADER: Final = "Denizen-Person"
NOTICE_HEADER: Final = "Denizen-Notice"
HEADERS_IGNORED: Final = (
    "The headers that name a user were ignored: this token does not speak for others. "
    "The request was made for its owner."
)
USER_IS_A_SPACE: Final = (
    "`user` names a private space of the token's owner, not a person: this token does not speak for others."
)
_TRIES: Final = 3
"""How often a person is created at the same time as another of the same name or id."""


def user_in(headers: Headers) -> NamedUser | None:
    """The user that the headers name."""
    for prefix in PREFIXES:
        if subject := headers.get(f"{prefix}-Id", "").strip():
            # Open WebUI encodes names like a part of an address; others send them as they are.
            name, email = (unquote(headers.get(f"{prefix}-{part}", "")).strip() for part in ("Name", "Email"))
            return NamedUser(subject, name, email)
    return None


async def _openai_caller(who: Authenticated) -> Caller:
    if not who.token.speaks_for_others:
        require(who, "member")
    return who


ROLE_ASKED[_openai_caller] = "member"

OpenAICaller = Annotated[Caller, Depends(_openai_caller)]
"""A route's parameter: a person, or a service with a token that speaks for people."""


async def person_of(request: Request, caller: Caller, user: str | None = None) -> Caller:
    """The caller of the request as the person for whom it is made, whom the answer's headers name.

    `user` is the field of that name in the body.
    """
    named = user_in(request.headers)
    if not caller.token.speaks_for_others:
        require(caller, "member")
        ignored = HEADERS_IGNORED if named is not None else USER_IS_A_SPACE if user else None
        return _told(request, caller, ignored)
    named = named or (NamedUser(user) if user else None)
    if named is not None:
        spoken = await _person(request, caller, named)
        caller = replace(caller, entity=spoken.person, role=spoken.role)
        require(caller, "member")
    elif not roles.reaches(caller.role, "member"):
        raise Problem(
            "not_allowed",
            f"Only people talk to agents here. Name the person: send {PREFIXES[0]}-Id or `user`.",
        )
    # Limits on streams are counted for each person.
    request.scope["caller"] = caller
    return _told(request, caller, None)


def add_notice(request: Request, sentence: str) -> None:
    """Adds this to the header of the answer that says what the program may not expect."""
    headers = _answer_headers(request)
    headers[NOTICE_HEADER] = f"{headers[NOTICE_HEADER]} {sentence}" if NOTICE_HEADER in headers else sentence


def _answer_headers(request: Request) -> dict[str, str]:
    return request.scope.setdefault(ANSWER_HEADERS, {})


def _told(request: Request, caller: Caller, notice: str | None) -> Caller:
    _answer_headers(request)[PERSON_HEADER] = f"@{caller.entity.handle}"
    if notice is not None:
        add_notice(request, notice)
    return caller


async def _person(request: Request, caller: Caller, user: NamedUser) -> RepresentedPerson:
    db = context_of(request).runtime.db
    for tries_left in reversed(range(_TRIES)):
        known = await db.read(on_behalf_of.find, caller.token, user)
        if known is not None:
            return known
        try:
            return await db.write(on_behalf_of.take_in, caller.requester, caller.token, user)
        except (InvalidInput, HandleTaken):
            # Another request of the same user may have been first.
            if not tries_left:
                raise
    raise AssertionError
