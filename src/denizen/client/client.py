"""One person's way to a server: a small method for each thing it does, over REST and streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, JsonValue, ValidationError

from denizen.client.shapes import (
    Accepted,
    Advisor,
    Agent,
    AgentDetail,
    Answer,
    AnswerAgain,
    Applied,
    Budget,
    Call,
    ConversationMemory,
    Crossings,
    CycleDetail,
    Cycles,
    Entities,
    Entity,
    Found,
    Goal,
    Health,
    Imported,
    Inbox,
    Key,
    Login,
    LogPage,
    Me,
    Member,
    Memories,
    Memory,
    MemoryReport,
    Message,
    Mind,
    Models,
    NewToken,
    NewWebhook,
    Note,
    Organization,
    OrganizationMemory,
    Panel,
    PanelCost,
    Plan,
    Profiles,
    ReadState,
    Recalled,
    Receipt,
    Receipts,
    ReplyContext,
    Request,
    Round,
    Rounds,
    Signals,
    Space,
    Stance,
    StatesOfMind,
    Suggestion,
    Token,
    TriedMetaprompt,
    TriedProfile,
    Usage,
    Value,
    Webhook,
)
from denizen.client.streaming import Connected, Happened, LifeEvent, Read, Stands, StreamEvent, decode, resuming
from denizen.clock import Clock, SystemClock
from denizen.errors import InvalidInput, RequestRefused, ServerError, ServerUnreachable, TokenRefused

REQUEST_SECONDS: Final = 20.0
SILENT_SECONDS: Final = 45.0
"""A stream that says nothing for so long is dead: the server shows every 15 seconds that it is not."""
_BUSY: Final = (429, 502, 503, 504)
"""Statuses of a server, or of what stands before it, that will answer later."""
_GRACE_SECONDS: Final = 15.0
"""How much longer than the server we wait for an answer that it waits for."""


class _Spaces(Value):
    spaces: list[Space]
    next: str | None = None


class _Agents(Value):
    agents: list[Agent]
    next: str | None = None


class _Page(Value):
    messages: list[Message]


class _Calls(Value):
    calls: list[Call]


class _Answers(Value):
    answers: list[AnswerAgain]


class _Recall(Value):
    found: list[Recalled]


class _Goals(Value):
    goals: list[Goal]


class _Notes(Value):
    notes: list[Note]


class _Plans(Value):
    plans: list[Plan]


class _Stances(Value):
    stances: list[Stance]


class _Keys(Value):
    keys: list[Key]


class _Tokens(Value):
    tokens: list[Token]


class _Webhooks(Value):
    webhooks: list[Webhook]


class _Document(Value):
    document: Mapping[str, JsonValue]


class _Panels(Value):
    panels: list[Panel]


class _Advisors(Value):
    advisors: list[Advisor]


class _Suggestions(Value):
    suggestions: list[Suggestion]


class _Problem(Value):
    code: str = ""
    detail: str = ""


_LONG: Final = httpx2.Timeout(REQUEST_SECONDS, read=600)
"""For what takes as long as there is much of it."""

_Told = TypeVar("_Told", bound=BaseModel)


class Client:
    """Use it as `async with Client(url, token) as denizen`. Agents and entities are named by id or by `@handle`."""

    def __init__(self, url: str, token: str, *, clock: Clock | None = None) -> None:
        self.url = _checked(url)
        self._clock = clock or SystemClock()
        headers = {"Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if not token.isascii() or not token.isprintable():
            raise InvalidInput("The access token has characters that no token has: copy it again.")
        # Proxies of the environment are for the world outside; a server of one's own is not there.
        self._http = httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=REQUEST_SECONDS, trust_env=False, follow_redirects=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def health(self) -> Health:
        """That there is a Denizen, and which. Needs no token."""
        return await self._ask(Health, "GET", "/healthz")

    async def me(self) -> Me:
        return await self._ask(Me, "GET", "/api/me")

    # The organization and its people

    async def organization(self) -> Organization:
        return await self._ask(Organization, "GET", "/api/organization")

    async def change_organization(self, **changes: JsonValue) -> Organization:
        """Its `name`, its `settings`: what is not given stays."""
        return await self._ask(Organization, "PATCH", "/api/organization", json=changes)

    async def entities(self, *, kind: str | None = None, after: str = "", limit: int = 50) -> Entities:
        """A page of people, agents and services, by handle."""
        return await self._ask(Entities, "GET", "/api/entities", params=_given(kind=kind, after=after, limit=limit))

    async def entity(self, entity: str) -> Entity:
        return await self._ask(Entity, "GET", _path("entities", entity))

    async def create_entity(
        self,
        name: str,
        *,
        kind: str = "human",
        handle: str | None = None,
        role: str | None = None,
        key: str | None = None,
    ) -> Entity:
        """A person or a service, in no space yet and without a token."""
        wanted = _given(name=name, kind=kind, handle=handle, role=role)
        return await self._ask(Entity, "POST", "/api/entities", json=wanted, headers=_keyed(key))

    async def change_entity(self, entity: str, *, name: str | None = None, role: str | None = None) -> Entity:
        return await self._ask(Entity, "PATCH", _path("entities", entity), json=_given(name=name, role=role))

    async def remove_entity(self, entity: str) -> None:
        """A person or a service is here no more; what it said stays."""
        await self._tell("DELETE", _path("entities", entity))

    # Spaces, members, messages

    async def spaces(self) -> list[Space]:
        """The spaces one is in, with their members."""
        found: list[Space] = []
        after: str | None = ""
        while after is not None:
            page = await self._ask(_Spaces, "GET", "/api/spaces", params=_given(after=after or None, limit=200))
            found += page.spaces
            after = page.next
        return found

    async def spaces_named(self, name: str) -> list[Space]:
        """Those of them that have this very name."""
        return [each for each in await self.spaces() if each.name == name]

    async def space(self, space_id: str) -> Space:
        return await self._ask(Space, "GET", _path("spaces", space_id))

    async def create_space(
        self, name: str, members: Iterable[str] = (), *, private: bool = False, key: str | None = None
    ) -> Space:
        """A new space that one runs, with these members in it."""
        wanted = {"name": name, "members": list(members), "private": private}
        return await self._ask(Space, "POST", "/api/spaces", json=wanted, headers=_keyed(key))

    async def change_space(self, space_id: str, *, name: str | None = None, private: bool | None = None) -> Space:
        return await self._ask(Space, "PATCH", _path("spaces", space_id), json=_given(name=name, private=private))

    async def add_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> Member:
        wanted = _given(entity=entity, attention=attention, role=role)
        return await self._ask(Member, "POST", _path("spaces", space_id, "members"), json=wanted)

    async def change_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> Member:
        wanted = _given(attention=attention, role=role)
        return await self._ask(Member, "PATCH", _path("spaces", space_id, "members", entity), json=wanted)

    async def remove_member(self, space_id: str, entity: str) -> None:
        await self._tell("DELETE", _path("spaces", space_id, "members", entity))

    async def mark_read(self, space_id: str, seq: int) -> ReadState:
        """What comes after that number is unread."""
        return await self._ask(ReadState, "PUT", _path("spaces", space_id, "read"), json={"seq": seq})

    async def messages(
        self, space_id: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Message]:
        """Messages after a number, or the last ones before one, or the newest; the oldest of them first."""
        given = _given(after=after, before=before, limit=limit)
        return (await self._ask(_Page, "GET", _path("spaces", space_id, "messages"), params=given)).messages

    async def post(self, space_id: str, text: str, *, key: str | None = None, **more: JsonValue) -> Message:
        """The message stands in the space. Posting again with the same key is posting once.

        `more`: `reply_to`, `urgent`, `metadata`, `organizationId`.
        """
        said = {"text": text, **more}
        return await self._ask(Message, "POST", _path("spaces", space_id, "messages"), json=said, headers=_keyed(key))

    async def edit_message(self, space_id: str, message_id: str, text: str) -> Message:
        path = _path("spaces", space_id, "messages", message_id)
        return await self._ask(Message, "PATCH", path, json={"text": text})

    async def delete_message(self, space_id: str, message_id: str) -> None:
        """Its text is gone, its place stays."""
        await self._tell("DELETE", _path("spaces", space_id, "messages", message_id))

    async def message(self, message_id: str) -> Message:
        """One message of a space one is in."""
        return await self._ask(Message, "GET", _path("messages", message_id))

    async def search(
        self,
        words: str,
        *,
        space: str | None = None,
        author: str | None = None,
        before: str | None = None,
        limit: int = 20,
    ) -> Found:
        """Messages of one's spaces that have all the words, the newest first."""
        asked = _given(q=words, space=space, author=author, before=before, limit=limit)
        return await self._ask(Found, "GET", "/api/messages/search", params=asked)

    # What agents ask

    async def calls(self) -> list[Call]:
        """What agents ask and oneself may answer, the oldest first."""
        return (await self._ask(_Calls, "GET", "/api/calls")).calls

    async def call(self, call_id: str) -> Call:
        """A call as it stands."""
        return await self._ask(Call, "GET", _path("calls", call_id))

    async def answer(self, call_id: str, result: JsonValue) -> Call:
        """The call has this result, and its agent goes on with it. One that has an answer is refused another: 409."""
        return await self._ask(Call, "POST", _path("calls", call_id, "answer"), json={"result": result})

    # Agents

    async def agents(self) -> list[Agent]:
        """Those that are not dead."""
        found: list[Agent] = []
        after: str | None = ""
        while after is not None:
            page = await self._ask(_Agents, "GET", "/api/agents", params=_given(after=after or None))
            found += page.agents
            after = page.next
        return found

    async def agent(self, agent: str) -> AgentDetail:
        return await self._ask(AgentDetail, "GET", _path("agents", agent))

    async def create_agent(
        self, name: str, fields: Mapping[str, JsonValue] | None = None, *, key: str | None = None
    ) -> AgentDetail:
        """A new agent; `fields` are `handle`, `spaces` and those of a definition."""
        wanted = {"name": name, **(fields or {})}
        return await self._ask(AgentDetail, "POST", "/api/agents", json=wanted, headers=_keyed(key))

    async def edit_agent(self, agent: str, changes: Mapping[str, JsonValue]) -> AgentDetail:
        """Only what is given is changed; None resets a field to its default."""
        return await self._ask(AgentDetail, "PATCH", _path("agents", agent), json=dict(changes))

    async def suspend_agent(self, agent: str) -> Agent:
        return await self._ask(Agent, "POST", _path("agents", agent, "suspend"))

    async def resume_agent(self, agent: str) -> Agent:
        return await self._ask(Agent, "POST", _path("agents", agent, "resume"))

    async def delete_agent(self, agent: str) -> None:
        """It is dead; its past stays."""
        await self._tell("DELETE", _path("agents", agent))

    async def fork_agent(
        self,
        agent: str,
        handle: str | None = None,
        *,
        name: str | None = None,
        at: int | None = None,
        key: str | None = None,
    ) -> AgentDetail:
        """A new agent with the past of this one, up to cycle `at`."""
        wanted = _given(handle=handle, name=name, at=at)
        return await self._ask(AgentDetail, "POST", _path("agents", agent, "fork"), json=wanted, headers=_keyed(key))

    async def models(self) -> Models:
        return await self._ask(Models, "GET", "/api/models")

    async def trigger(
        self,
        agent: str,
        service: str,
        text: str = "",
        *,
        data: JsonValue = None,
        id: str | None = None,
        urgent: bool = False,
        key: str | None = None,
    ) -> Accepted:
        """Tell the agent of something that happened. With an `id` or a key, telling it twice is telling it once."""
        told = _given(service=service, text=text, data=data, id=id, urgent=urgent)
        return await self._ask(Accepted, "POST", _path("agents", agent, "trigger"), json=told, headers=_keyed(key))

    async def chat(
        self,
        agent: str,
        text: str,
        *,
        space: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        seconds: float = 60.0,
        key: str | None = None,
        organization_id: str | None = None,
        memory_control: Mapping[str, JsonValue] | None = None,
    ) -> Answer:
        """Say something to an agent, and what it says to it until its cycle ends or the time is over."""
        said = _given(agent=agent, text=text, space=space, metadata=metadata, seconds=seconds)
        said |= _given(organizationId=organization_id, memoryControl=memory_control)
        waiting = httpx2.Timeout(REQUEST_SECONDS, read=seconds + _GRACE_SECONDS)
        return await self._ask(Answer, "POST", "/api/chat", json=said, headers=_keyed(key), timeout=waiting)

    # Their minds

    async def mind(self, agent: str) -> Mind:
        return await self._ask(Mind, "GET", _path("agents", agent, "mind"))

    async def inbox(self, agent: str, *, state: str | None = None, after: str | None = None, limit: int = 50) -> Inbox:
        asked = _given(state=state, after=after, limit=limit)
        return await self._ask(Inbox, "GET", _path("agents", agent, "inbox"), params=asked)

    async def requeue(self, agent: str, event_id: str) -> None:
        """A dead event is tried again."""
        await self._tell("POST", _path("agents", agent, "inbox", event_id, "requeue"))

    async def mark_urgent(self, agent: str, event_id: str) -> None:
        await self._tell("POST", _path("agents", agent, "inbox", event_id, "urgent"))

    async def cycles(self, agent: str, *, before: int | None = None, limit: int = 50) -> Cycles:
        asked = _given(before=before, limit=limit)
        return await self._ask(Cycles, "GET", _path("agents", agent, "cycles"), params=asked)

    async def cycle(self, agent: str, number: int) -> CycleDetail:
        return await self._ask(CycleDetail, "GET", _path("agents", agent, "cycles", str(number)))

    async def request(self, agent: str, cycle: int, step: int) -> Request:
        """What the model was asked in that step, exactly, and what it answered."""
        path = _path("agents", agent, "cycles", str(cycle), "steps", str(step))
        return await self._ask(Request, "GET", path)

    async def replay(self, agent: str, cycle: int, *, step: int | None = None) -> list[Request]:
        """The same of every step of a cycle, or of one."""
        steps = [step] if step is not None else range(len((await self.cycle(agent, cycle)).each_step))
        return [await self.request(agent, cycle, each) for each in steps]

    async def rethink(self, agent: str, cycle: int, model: str, *, step: int | None = None) -> list[AnswerAgain]:
        """What another model answers to the same requests; nothing is written."""
        path, wanted = _path("agents", agent, "cycles", str(cycle), "rethink"), _given(model=model, step=step)
        return (await self._ask(_Answers, "POST", path, json=wanted, timeout=_LONG)).answers

    async def log(self, agent: str, *, after: int | None = None, before: int | None = None, limit: int = 50) -> LogPage:
        asked = _given(after=after, before=before, limit=limit)
        return await self._ask(LogPage, "GET", _path("agents", agent, "log"), params=asked)

    async def recall(
        self, agent: str, words: str, *, when: str | None = None, who: str | None = None, space: str | None = None
    ) -> list[Recalled]:
        asked = _given(q=words, when=when, who=who, space=space)
        return (await self._ask(_Recall, "GET", _path("agents", agent, "recall"), params=asked)).found

    async def crossings(self, agent: str, *, before: int | None = None, limit: int = 50) -> Crossings:
        asked = _given(before=before, limit=limit)
        return await self._ask(Crossings, "GET", _path("agents", agent, "crossings"), params=asked)

    async def goals(self, agent: str) -> list[Goal]:
        return (await self._ask(_Goals, "GET", _path("agents", agent, "goals"))).goals

    async def add_goal(self, agent: str, text: str, **more: str) -> Goal:
        """`more`: `status`, `priority`."""
        return await self._ask(Goal, "POST", _path("agents", agent, "goals"), json={"text": text, **more})

    async def change_goal(self, agent: str, number: int, **changes: str) -> Goal:
        return await self._ask(Goal, "PUT", _path("agents", agent, "goals", str(number)), json=changes)

    async def delete_goal(self, agent: str, number: int) -> None:
        await self._tell("DELETE", _path("agents", agent, "goals", str(number)))

    async def notes(self, agent: str) -> list[Note]:
        return (await self._ask(_Notes, "GET", _path("agents", agent, "notes"))).notes

    async def set_note(self, agent: str, key: str, text: str) -> Note:
        return await self._ask(Note, "PUT", _path("agents", agent, "notes", key), json={"text": text})

    async def delete_note(self, agent: str, key: str) -> None:
        await self._tell("DELETE", _path("agents", agent, "notes", key))

    async def plans(self, agent: str) -> list[Plan]:
        return (await self._ask(_Plans, "GET", _path("agents", agent, "plans"))).plans

    async def set_plan(self, agent: str, name: str, instruction: str, **when: str) -> Plan:
        """`when`: one of `cron`, `at` and `after`, and perhaps `zone`."""
        wanted = {"instruction": instruction, **when}
        return await self._ask(Plan, "PUT", _path("agents", agent, "plans", name), json=wanted)

    async def delete_plan(self, agent: str, name: str) -> None:
        await self._tell("DELETE", _path("agents", agent, "plans", name))

    # How agents stand to their conversations

    async def profiles(self) -> Profiles:
        """The prompt profiles of the house, and the names of metaprompts and quick-start profiles."""
        return await self._ask(Profiles, "GET", _path("profiles"))

    async def try_profile(self, text: str, *, mode: str = "") -> TriedProfile:
        """Which profile a message would have, and why."""
        return await self._ask(TriedProfile, "POST", _path("profiles", "try"), json={"text": text, "mode": mode})

    async def stances(self, agent: str) -> list[Stance]:
        return (await self._ask(_Stances, "GET", _path("agents", agent, "stances"))).stances

    async def stance(self, agent: str, space_id: str) -> Stance:
        """The agent's profile and state of mind in a conversation."""
        return await self._ask(Stance, "GET", _path("agents", agent, "stances", space_id))

    async def set_stance_settings(self, agent: str, space_id: str, settings: Mapping[str, JsonValue]) -> Stance:
        """These hold there instead of the agent's: `preset`, `mode`, `reflection`. Empty: the agent's own do."""
        path = _path("agents", agent, "stances", space_id, "settings")
        return await self._ask(Stance, "PUT", path, json=dict(settings))

    async def set_state_of_mind(self, agent: str, space_id: str, **state: str) -> Stance:
        """`state`: `mood`, `user_skill`, `task_complexity`."""
        return await self._ask(Stance, "PUT", _path("agents", agent, "stances", space_id, "state"), json=state)

    async def reset_state_of_mind(self, agent: str, space_id: str) -> None:
        await self._tell("DELETE", _path("agents", agent, "stances", space_id, "state"))

    async def states_of_mind(
        self, agent: str, space_id: str, *, before: int | None = None, limit: int = 50
    ) -> StatesOfMind:
        """How the state of mind came to be what it is, the newest first."""
        params = _given(before=before, limit=limit)
        return await self._ask(
            StatesOfMind, "GET", _path("agents", agent, "stances", space_id, "history"), params=params
        )

    async def signals(self, agent: str, space_id: str, *, before: int | None = None, limit: int = 50) -> Signals:
        """What was seen in how people feel there, the newest first."""
        params = _given(before=before, limit=limit)
        return await self._ask(Signals, "GET", _path("agents", agent, "stances", space_id, "signals"), params=params)

    async def try_metaprompt(
        self,
        agent: str,
        space_id: str,
        metaprompt: str | None = None,
        *,
        template: str | None = None,
        apply: bool = False,
    ) -> TriedMetaprompt:
        """Ask a metaprompt now, by its id or with a template. Only with `apply` does the answer change anything."""
        wanted = _given(metaprompt=metaprompt, template=template, apply=apply)
        return await self._ask(
            TriedMetaprompt,
            "POST",
            _path("agents", agent, "stances", space_id, "try"),
            json=wanted,
            timeout=httpx2.Timeout(REQUEST_SECONDS, read=600),
        )

    # Use, budgets, forgetting

    async def usage(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        by: str = "day",
        agent: str | None = None,
    ) -> Usage:
        asked = _given(since=_iso(since), until=_iso(until), by=by, agent=agent)
        return await self._ask(Usage, "GET", "/api/usage", params=asked)

    async def budget(self) -> Budget:
        return await self._ask(Budget, "GET", "/api/organization/budget")

    async def set_budget(self, **limits: float | None) -> Budget:
        """These are the limits, and no others: `dollars_per_day`, `tokens_per_day`, `dollars`, `tokens`."""
        return await self._ask(Budget, "PUT", "/api/organization/budget", json=limits)

    async def forget(self, kind: str, id: str, *, also_replies: bool = False, dry_run: bool = False) -> Receipt:
        """A message, memory, person or space is gone everywhere."""
        wanted = {"kind": kind, "id": id, "also_replies": also_replies, "dry_run": dry_run}
        return await self._ask(Receipt, "POST", "/api/forget", json=wanted)

    async def receipts(self, *, before: str | None = None, limit: int = 50) -> Receipts:
        return await self._ask(Receipts, "GET", "/api/receipts", params=_given(before=before, limit=limit))

    # What is remembered

    async def memories(
        self,
        scope: str = "user",
        *,
        agent: str | None = None,
        query: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Memories:
        """What is remembered of oneself (`user`), between oneself and an agent (`persona`), or for everyone
        (`organization`)."""
        asked = _given(scope=scope, agent=agent, q=query, before=before, limit=limit)
        return await self._ask(Memories, "GET", "/api/memory", params=asked)

    async def memory(self, memory_id: str) -> Memory:
        return await self._ask(Memory, "GET", _path("memory", memory_id))

    async def correct_memory(self, memory_id: str, text: str) -> Memory:
        """It says this from now on."""
        return await self._ask(Memory, "PATCH", _path("memory", memory_id), json={"text": text})

    async def forget_memory(self, memory_id: str) -> None:
        """It is gone, whoever else has it, and does not come again."""
        await self._tell("DELETE", _path("memory", memory_id))

    async def memory_report(self) -> MemoryReport:
        return await self._ask(MemoryReport, "GET", "/api/memory/report")

    async def conversation_memory(self, space_id: str) -> ConversationMemory:
        return await self._ask(ConversationMemory, "GET", _path("spaces", space_id, "memory"))

    async def set_memory_policy(self, space_id: str, **policy: JsonValue) -> ConversationMemory:
        """What shall be remembered of a conversation: `enabled`, `scopes`, `share_with_organization`."""
        return await self._ask(ConversationMemory, "PATCH", _path("spaces", space_id, "memory"), json=policy)

    async def conversation_memories(self, space_id: str, *, before: str | None = None, limit: int = 50) -> Memories:
        asked = _given(before=before, limit=limit)
        return await self._ask(Memories, "GET", _path("spaces", space_id, "memories"), params=asked)

    async def agent_memories(self, agent: str, *, before: str | None = None, limit: int = 50) -> Memories:
        """What is remembered between an agent and oneself; for admins, and anyone."""
        asked = _given(before=before, limit=limit)
        return await self._ask(Memories, "GET", _path("agents", agent, "memories"), params=asked)

    async def organization_memory(self) -> OrganizationMemory:
        return await self._ask(OrganizationMemory, "GET", "/api/organization/memory")

    async def change_organization_memory(self, **changes: JsonValue) -> OrganizationMemory:
        return await self._ask(OrganizationMemory, "PATCH", "/api/organization/memory", json=changes)

    # Keys and ways in

    async def keys(self) -> list[Key]:
        return (await self._ask(_Keys, "GET", "/api/keys")).keys

    async def set_key(self, name: str, value: str, *, whose: str = "organization") -> Key:
        """The key is kept, sealed: the organization's, or one's own (`me`)."""
        return await self._ask(Key, "PUT", _path("keys", name), json={"value": value, "whose": whose})

    async def delete_key(self, name: str, *, whose: str = "organization") -> None:
        await self._tell("DELETE", _path("keys", name), params={"whose": whose})

    async def tokens(self, entity: str | None = None, *, everyone: bool = False) -> list[Token]:
        """One's own, another's, or those of all for whom one may make some."""
        asked = _given(entity=entity, everyone=everyone or None)
        return (await self._ask(_Tokens, "GET", "/api/tokens", params=asked)).tokens

    async def create_token(
        self,
        name: str,
        *,
        entity: str | None = None,
        role: str | None = None,
        expires_at: datetime | None = None,
    ) -> NewToken:
        """For oneself or, if one may, for another. The secret is shown this once."""
        wanted = _given(name=name, entity=entity, role=role, expires_at=_iso(expires_at))
        return await self._ask(NewToken, "POST", "/api/tokens", json=wanted)

    async def rotate_token(self, token_id: str) -> NewToken:
        return await self._ask(NewToken, "POST", _path("tokens", token_id, "rotate"))

    async def revoke_token(self, token_id: str) -> None:
        await self._tell("DELETE", _path("tokens", token_id))

    async def create_login(self, entity: str | None = None) -> Login:
        """A link with which one signs in with a browser, once."""
        return await self._ask(Login, "POST", "/api/logins", json=_given(entity=entity))

    async def webhooks(self, agent: str) -> list[Webhook]:
        return (await self._ask(_Webhooks, "GET", _path("agents", agent, "webhooks"))).webhooks

    async def create_webhook(
        self, agent: str, name: str, *, scheme: str = "generic", secret: str | None = None, urgent: bool = False
    ) -> NewWebhook:
        """An address for a service. The secret is shown this once."""
        wanted = _given(name=name, scheme=scheme, secret=secret, urgent=urgent)
        return await self._ask(NewWebhook, "POST", _path("agents", agent, "webhooks"), json=wanted)

    async def revoke_webhook(self, webhook_id: str) -> None:
        """Nothing is received there any more."""
        await self._tell("DELETE", _path("webhooks", webhook_id))

    # Files

    async def apply(
        self, documents: Iterable[tuple[str, Mapping[str, JsonValue]]], *, dry_run: bool = False
    ) -> Applied:
        """What the documents of definition files say is so; each comes with its place, under which it is told of."""
        told = [{"place": place, "document": dict(document)} for place, document in documents]
        return await self._ask(
            Applied, "POST", "/api/apply", json={"documents": told, "dry_run": dry_run}, timeout=_LONG
        )

    async def document(self, agent: str) -> Mapping[str, JsonValue]:
        """The agent as such a document; where it holds a secret, the name of one stands."""
        return (await self._ask(_Document, "GET", _path("agents", agent, "document"))).document

    def export_agent(self, agent: str) -> AsyncGenerator[str]:
        """The lines of a file that holds the agent with its whole life."""
        return self._lines(_path("agents", agent, "export"))

    def export_space(self, space_id: str) -> AsyncGenerator[str]:
        """The lines of a file that holds the space with everything that was said in it."""
        return self._lines(_path("spaces", space_id, "export"))

    async def import_file(self, path: Path, *, handle: str | None = None, name: str | None = None) -> Imported:
        """What the file holds is there, all of it or nothing. An agent is suspended until it is resumed."""
        asked, headers = _given(handle=handle, name=name), {"Content-Type": "application/jsonl"}
        return await self._ask(
            Imported, "POST", "/api/import", params=asked, headers=headers, content=_parts(path), timeout=_LONG
        )

    async def _lines(self, path: str) -> AsyncGenerator[str]:
        line = b""
        try:
            async with self._http.stream("GET", path, timeout=_LONG) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _refusal(response)
                # By bytes: texts may hold other characters that some take for the end of a line.
                rest = b""
                async for part in response.aiter_bytes():
                    *whole, rest = (rest + part).split(b"\n")
                    for line in whole:
                        yield f"{line.decode()}\n"
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error
        if not line.startswith(b'{"row":"end"'):
            raise ServerError(
                "What the server sent is not whole, because something was forgotten meanwhile or it broke "
                "off: export it again."
            )

    # Streams: for ever, each going on after the last event that came

    async def stream(self, space_id: str, *, after: int) -> AsyncGenerator[StreamEvent]:
        """What is said in a space after that number, and live what is being written and asked."""

        async def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            at = int(last or 0)
            async with aclosing(self._events(_path("spaces", space_id, "stream"), str(at))) as events:
                async for _, event in events:
                    if isinstance(event, Message):
                        if event.seq <= at:
                            continue
                        if event.seq > at + 1:
                            return  # one is missing: the next connection has it
                        at = event.seq
                    yield str(at), event

        async with aclosing(resuming(once, str(after), self._clock)) as events:
            async for event in events:
                if not isinstance(event, Read | Stands | Happened):
                    yield event

    # Panels

    async def panels(self) -> list[Panel]:
        """The panels one is in."""
        return (await self._ask(_Panels, "GET", "/api/panels")).panels

    async def panel(self, panel_id: str) -> Panel:
        return await self._ask(Panel, "GET", _path("panels", panel_id))

    async def create_panel(
        self,
        name: str,
        advisors: Iterable[Mapping[str, JsonValue]] = (),
        *,
        members: Iterable[str] = (),
        private: bool = False,
        settings: Mapping[str, JsonValue] | None = None,
        key: str | None = None,
    ) -> Panel:
        body = {
            "name": name, "advisors": list(advisors), "members": list(members), "private": private,
            "settings": dict(settings or {}),
        }  # fmt: skip
        return await self._ask(Panel, "POST", "/api/panels", json=body, headers=_keyed(key))

    async def change_panel(self, panel_id: str, *, name: str | None = None, **settings: JsonValue) -> Panel:
        """The panel with another name, or with these settings changed."""
        body = _given(name=name) | {"settings": settings}
        return await self._ask(Panel, "PATCH", _path("panels", panel_id), json=body)

    async def add_advisor(self, panel_id: str, fields: Mapping[str, JsonValue]) -> Advisor:
        return await self._ask(Advisor, "POST", _path("panels", panel_id, "advisors"), json=dict(fields))

    async def change_advisor(self, panel_id: str, advisor_id: str, **changes: JsonValue) -> Advisor:
        return await self._ask(Advisor, "PATCH", _path("panels", panel_id, "advisors", advisor_id), json=changes)

    async def remove_advisor(self, panel_id: str, advisor_id: str) -> None:
        await self._tell("DELETE", _path("panels", panel_id, "advisors", advisor_id))

    async def order_advisors(self, panel_id: str, advisor_ids: Iterable[str]) -> list[Advisor]:
        body = {"advisors": list(advisor_ids)}
        return (await self._ask(_Advisors, "PUT", _path("panels", panel_id, "advisors", "order"), json=body)).advisors

    async def switch_group(self, panel_id: str, group: str, active: bool) -> list[Advisor]:
        """The advisors of the group answer, or do not; gives all."""
        body = {"group": group, "active": active}
        return (await self._ask(_Advisors, "PUT", _path("panels", panel_id, "advisors", "group"), json=body)).advisors

    async def export_advisors(self, panel_id: str) -> dict[str, Any]:
        return (await self._tell("GET", _path("panels", panel_id, "advisors", "export"))).json()

    async def import_advisors(
        self, panel_id: str, document: Mapping[str, Any], *, replace: bool = False
    ) -> list[Advisor]:
        body = {**document, "replace": replace}
        return (await self._ask(_Advisors, "POST", _path("panels", panel_id, "advisors", "import"), json=body)).advisors

    async def suggest_advisors(self, panel_id: str, topic: str, *, count: int = 8) -> list[Suggestion]:
        body, waiting = {"topic": topic, "count": count}, httpx2.Timeout(REQUEST_SECONDS, read=300)
        path = _path("panels", panel_id, "advisors", "suggest")
        return (await self._ask(_Suggestions, "POST", path, json=body, timeout=waiting)).suggestions

    async def ask_panel(
        self, panel_id: str, text: str, *, key: str | None = None, organization_id: str | None = None
    ) -> Round:
        """The message stands in the panel, and everyone it is for has it to answer."""
        path, said = _path("panels", panel_id, "rounds"), _given(text=text, organizationId=organization_id)
        return await self._ask(Round, "POST", path, json=said, headers=_keyed(key))

    async def rounds(self, panel_id: str, *, before: int | None = None, limit: int = 20) -> Rounds:
        """The rounds of the last turns before that one."""
        return await self._ask(
            Rounds, "GET", _path("panels", panel_id, "rounds"), params=_given(before=before, limit=limit)
        )

    async def round(self, panel_id: str, round_id: str) -> Round:
        return await self._ask(Round, "GET", _path("panels", panel_id, "rounds", round_id))

    async def cancel_round(self, panel_id: str, round_id: str, advisor: str | None = None) -> Round:
        """The advisor, or everyone who has not finished, answers no more."""
        return await self._of_round(panel_id, round_id, "cancel", {"advisor": advisor})

    async def retry_round(self, panel_id: str, round_id: str, advisor: str | None = None) -> Round:
        """The advisor, or everyone who has failed or was cancelled, is asked again."""
        return await self._of_round(panel_id, round_id, "retry", {"advisor": advisor})

    async def synthesize(self, panel_id: str, round_id: str) -> Round:
        return await self._of_round(panel_id, round_id, "synthesis", None)

    async def crosstalk(self, panel_id: str, round_id: str, *, rounds: int = 1) -> Round:
        """The advisors answer each other; gives the first round of it."""
        return await self._of_round(panel_id, round_id, "crosstalk", {"rounds": rounds})

    async def vote(self, panel_id: str, round_id: str, question: str = "") -> Round:
        """Gives the round of the vote."""
        return await self._of_round(panel_id, round_id, "vote", {"question": question})

    async def _of_round(self, panel_id: str, round_id: str, what: str, body: Mapping[str, JsonValue] | None) -> Round:
        return await self._ask(Round, "POST", _path("panels", panel_id, "rounds", round_id, what), json=body)

    async def reply_context(self, panel_id: str, round_id: str, advisor: str) -> ReplyContext:
        """What the advisor was shown when it answered."""
        path = _path("panels", panel_id, "rounds", round_id, "replies", advisor, "context")
        return await self._ask(ReplyContext, "GET", path)

    async def panel_cost(self, panel_id: str, text: str) -> PanelCost:
        """What the message would cost."""
        return await self._ask(PanelCost, "POST", _path("panels", panel_id, "cost"), json={"text": text})

    async def panel_transcript(self, panel_id: str) -> str:
        """All of it, in Markdown."""
        return (await self._tell("GET", _path("panels", panel_id, "transcript"))).text

    async def stream_panel(self, panel_id: str) -> AsyncGenerator[LifeEvent]:
        """What happens in the panel from now on: `Happened` with `panel.round`, `panel.reply`, `panel.delta`."""

        def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            return self._events(_path("spaces", panel_id, "stream"), last)

        async with aclosing(resuming(once, None, self._clock)) as events:
            async for event in events:
                yield event

    async def stream_agent(self, agent: str, *, after: int | None = None) -> AsyncGenerator[LifeEvent]:
        """An agent's life: how it is; for admins also every cycle after a number, and the open one as it comes."""

        def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            return self._events(_path("agents", agent, "stream"), last)

        async with aclosing(resuming(once, None if after is None else str(after), self._clock)) as events:
            async for event in events:
                yield event

    async def stream_everything(self, *, after: str | None = None) -> AsyncGenerator[LifeEvent]:
        """Every message of every space one is in, and what happens there."""

        def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            return self._events("/api/stream", last)

        async with aclosing(resuming(once, after, self._clock)) as events:
            async for event in events:
                yield event

    async def _events(self, path: str, last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
        """One connection's worth of events, each with its id: it ends where the connection does."""
        headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
        waiting = httpx2.Timeout(REQUEST_SECONDS, read=SILENT_SECONDS)
        try:
            async with self._http.stream("GET", path, headers=headers, timeout=waiting) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _refusal(response)
                yield None, Connected()
                async for id, event in _decoded(response):
                    yield id, event
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error

    async def _ask(self, kind: type[_Told], method: str, path: str, **request: Any) -> _Told:
        response = await self._tell(method, path, **request)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise ServerError(f"What answers at {self.url} does not speak as a Denizen server does.") from error

    async def _tell(self, method: str, path: str, **request: Any) -> httpx2.Response:
        try:
            response = await self._http.request(method, path, **request)
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error
        if not response.is_success:
            raise _refusal(response)
        return response

    def _unreachable(self, error: httpx2.RequestError) -> ServerUnreachable:
        why = "It takes too long." if isinstance(error, httpx2.TimeoutException) else ""
        return ServerUnreachable(f"No Denizen server answers at {self.url}. {why}".strip())


async def _parts(path: Path) -> AsyncGenerator[bytes]:
    with path.open("rb") as file:
        while part := await asyncio.to_thread(file.read, 65_536):
            yield part


async def _decoded(response: httpx2.Response) -> AsyncIterator[tuple[str | None, LifeEvent]]:
    async for sent in httpx2.EventSource(response):
        if (event := decode(sent)) is not None:
            yield sent.id or None, event


def _refusal(response: httpx2.Response) -> ServerError:
    try:
        problem = _Problem.model_validate_json(response.content)
    except ValidationError:
        problem = _Problem()
    if response.status_code == 401:
        return TokenRefused(f"The server does not let us in: {problem.detail or 'the access token is not good.'}")
    said = problem.detail or f"The server answered with status {response.status_code}."
    if response.status_code in _BUSY:
        return ServerUnreachable(said)
    return RequestRefused(said, problem=problem.code, status=response.status_code)


def _path(*parts: str) -> str:
    return "/".join(["/api", *(quote(each, safe="@") for each in parts)])


def _given(**fields: Any) -> dict[str, Any]:
    """Those that were given: the server knows what the others are by default."""
    return {name: value for name, value in fields.items() if value is not None}


def _keyed(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


def _iso(at: date | None) -> str | None:
    return None if at is None else at.isoformat()


def _checked(url: str) -> str:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise InvalidInput(f"{url!r} is no address of a server: write something like http://127.0.0.1:8420.") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"{url!r} is no address of a server: write something like http://127.0.0.1:8420.")
    return url.rstrip("/")
