"""One model request of a panel: with a time limit, retried by the class of its error, streamed as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, cast

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from denizen.access import secrets
from denizen.access.vault import Vault
from denizen.bus.port import Bus
from denizen.bus.streams import PanelDelta, space_topic
from denizen.clock import Clock
from denizen.cycles.ledger import Charge, charge_of
from denizen.cycles.server_budget import ServerBudget
from denizen.cycles.server_models import ServerModels
from denizen.cycles.utility_budget import UtilityBudgetDeps
from denizen.errors import ModelError, ModelUnknown, ModelUnreachable
from denizen.files.pictures import VARIANT_TYPE
from denizen.ids import OrganizationId
from denizen.models import request
from denizen.models import thinking as models_thinking
from denizen.models.catalog import OWN, Models
from denizen.models.discovery import utility_model_for
from denizen.models.location import is_local
from denizen.models.prices import Price
from denizen.panel.background import Background
from denizen.panel.claims import Claim
from denizen.panel.context import RequestMessage
from denizen.panel.settings import PanelSettings
from denizen.spaces import directory
from denizen.storage.database import Database

T = TypeVar("T")

ATTEMPTS: Final = 6
"""How often a reply is tried, which a provider that is away for fifteen seconds does not fail.

Events of agents are tried again later; a failed reply is not, unless a person asks for it.
"""
LOCAL_BEGIN_SECONDS: Final = 600.0
"""How long a model in this network may take to begin, however little the panel allows.

It may have to be loaded, and many servers answer one request after the other: the last waits for all others.
"""


@dataclass(frozen=True)
class PanelDeps:
    """What a panel answers with in this process."""

    db: Database
    bus: Bus
    clock: Clock
    models: Models
    server_models: ServerModels
    prices: Mapping[str, Price]
    vault: Vault
    background: Background | None = None
    """What advisors are told in addition; None: nothing."""
    server_budget: ServerBudget | None = None
    """The daily budget of all agents and panels of the server together."""
    contexts: Mapping[str, int] = field(default_factory=dict[str, int])
    """The context sizes of models in tokens, by name, where a setting gives them."""

    async def model_for(self, organization_id: OrganizationId, name: str) -> tuple[str, Model]:
        """Returns the model with this name, paid by the organization; `default` is resolved to the real name."""
        await self.server_models.refresh(self.db)
        real = self.server_models.default if name == "default" else name
        if name.startswith(OWN) and await self.db.read(directory.first_organization) != organization_id:
            # As for agents (`agents.restrictions`): a model object from a Python program is for the first organization.
            raise ModelUnknown(f"Your organization has no model {name!r}. Use a model of a provider.")
        key_name = self.models.key_name(real)
        key = None
        if key_name is not None:
            key = await self.db.read(secrets.resolve, self.vault, organization_id, key_name)
        return real, self.models.resolve(real, key)

    def utility_model_of(self, settings: PanelSettings) -> str:
        """Returns the model that suggests and checks in a panel: its own choice, otherwise the cheap one of its model's
        provider.
        """
        own = self.server_models.default if settings.model == "default" else settings.model
        return settings.utility_model or utility_model_for(own)

    @property
    def utility_budget_deps(self) -> UtilityBudgetDeps:
        return UtilityBudgetDeps(self.db, self.clock, self.prices, self.server_budget)

    def has_utility_model(self, settings: PanelSettings) -> bool:
        """Whether there is a model for such tasks besides the panel's own."""
        own = self.server_models.default if settings.model == "default" else settings.model
        return bool(settings.utility_model) or self.utility_model_of(settings) != own

    def charge(self, response: ModelResponse, name: str) -> Charge:
        """Returns the usage and cost of the response."""
        return charge_of(response, name, self.prices)


class TooLate(Exception):
    """The request took too long as a whole."""


async def in_time(clock: Clock, seconds: float, doing: Awaitable[T]) -> T:
    """Awaits the result for at most so many seconds. Raises `TooLate` and cancels it."""
    task, timer = asyncio.ensure_future(doing), asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise TooLate
        return task.result()
    finally:
        timer.cancel()
        task.cancel()
        await asyncio.wait((task, timer))


def messages_of(lines: Sequence[RequestMessage], pictures: Mapping[str, bytes]) -> list[ModelMessage]:
    """Converts the lines to messages for a provider, with those of their pictures that are given."""
    messages: list[ModelMessage] = []
    for line in lines:
        match line.role:
            case "system":
                messages.append(ModelRequest(parts=[SystemPromptPart(line.text)]))
            case "user":
                seen = [pictures[each.file_id] for each in line.pictures if each.file_id in pictures]
                shown = [BinaryContent(each, media_type=VARIANT_TYPE) for each in seen]
                messages.append(ModelRequest(parts=[UserPromptPart([line.text, *shown] if shown else line.text)]))
            case "assistant":
                messages.append(ModelResponse(parts=[TextPart(line.text)]))
    return messages


def settings_for(
    model: Model, max_tokens: int, *, reasoning: bool | None, tool: ToolDefinition | None
) -> ModelSettings:
    """Returns the settings of a request for a reply of at most `max_tokens`. A request with a tool is a
    utility call.
    """
    if tool is not None:
        settings = models_thinking.brief(model, max_tokens)
    else:
        settings = models_thinking.settings(model, max_tokens, thinking=reasoning)
    return cast(ModelSettings, settings)


@dataclass(frozen=True)
class AdvisorRequest:
    """A request as it is sent."""

    model: Model
    lines: Sequence[RequestMessage]
    settings: ModelSettings
    tool: ToolDefinition | None
    first_byte_seconds: float
    key: str
    """Spreads the retries of requests that failed together."""
    pictures: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The pictures that the model is shown, by file."""


class Asking(Protocol):
    """The caller of `ask`, which is told about the progress."""

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Takes the next event of the model's answer."""
        ...

    def used(self, response: ModelResponse) -> None:
        """Notes that an attempt has ended, complete or cut off, with this response."""
        ...

    async def pause(self, seconds: float) -> None:
        """Waits before another attempt."""
        ...

    async def again(self) -> None:
        """Notes that another attempt begins: the result of the last one is void."""
        ...


async def ask(clock: Clock, asked: AdvisorRequest, by: Asking) -> ModelResponse:
    """Returns the model's answer; retries as often as its errors allow."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return await _ask_once(clock, asked, by)
        except ModelError as error:
            delay = request.retry_delay(error, attempt, key=asked.key, most=ATTEMPTS)
            if delay is None:
                raise
            await by.pause(delay)
            await by.again()


async def _ask_once(clock: Clock, asked: AdvisorRequest, by: Asking) -> ModelResponse:
    begun = asyncio.Event()
    seconds = asked.first_byte_seconds
    if is_local(asked.model):
        seconds = max(seconds, LOCAL_BEGIN_SECONDS)

    async def stream() -> ModelResponse:
        try:
            messages = messages_of(asked.lines, asked.pictures)
            async with request.stream(
                asked.model, messages, settings=asked.settings, heard=begun.set, wanted=asked.tool
            ) as answer:
                try:
                    async for event in answer:
                        # A wanted object may come as text, which readers must not see.
                        if asked.tool is None:
                            by.hear(event)
                finally:
                    # Cut off or not: what was read and written is paid for.
                    by.used(answer.response)
            return answer.response
        finally:
            begun.set()

    task = asyncio.ensure_future(stream())
    try:
        if not await clock.wait(begun, seconds):
            raise ModelUnreachable(f"The model did not begin to answer within {seconds:g} seconds. Try again.")
        return await task
    finally:
        task.cancel()
        await asyncio.wait((task,))


class Speaking:
    """The text that one voice is writing, published piece by piece, and kept for readers who come late."""

    def __init__(self, bus: Bus, claim: Claim) -> None:
        self._bus = bus
        self._topic = space_topic(claim.panel_id)
        self._claim = claim
        self._pieces: dict[bool, list[str]] = {False: [], True: []}
        self._length: dict[bool, int] = {False: 0, True: 0}

    @property
    def claim(self) -> Claim:
        return self._claim

    def begin_again(self, claim: Claim) -> None:
        """Voids the text so far."""
        self._claim = claim
        self._pieces, self._length = {False: [], True: []}, {False: 0, True: 0}

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Takes the next event of the model's answer."""
        # The event that comes for each token is checked first.
        match event:
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                self._add(text, thinking=False)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))) if text:
                self._add(text, thinking=True)
            case PartStartEvent(part=TextPart(content=text)) if text:
                self._add(text, thinking=False)
            case PartStartEvent(part=ThinkingPart(content=text)) if text:
                self._add(text, thinking=True)
            case _:
                pass

    def say_again(self) -> None:
        """Publishes all text so far from its beginning."""
        for thinking, pieces in self._pieces.items():
            if pieces:
                self._tell(0, "".join(pieces), thinking)

    def _add(self, text: str, *, thinking: bool) -> None:
        offset = self._length[thinking]
        self._length[thinking] = offset + len(text)
        self._pieces[thinking].append(text)
        if self._bus.attention(self._topic):
            self._tell(offset, text, thinking)

    def _tell(self, offset: int, text: str, thinking: bool) -> None:
        claim = self._claim
        frame = PanelDelta(claim.panel_id, claim.round_id, claim.voice, claim.part, claim.epoch, offset, text, thinking)
        self._bus.publish(self._topic, frame.to_payload())


def said_in(response: ModelResponse) -> tuple[str, str]:
    """Returns the answer and the thinking of the response, strictly separated."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    thinking = "\n\n".join(part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content)
    return text.strip(), thinking
