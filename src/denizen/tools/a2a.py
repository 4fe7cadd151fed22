"""Agents elsewhere as tools, by A2A (Agent2Agent): a call gives one a task and returns its answer.

Requests go only to the origin of the configured address, whatever the card of the agent says: they carry secrets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid5

import httpx2
from pydantic_ai.tools import ToolDefinition

from denizen.amounts import human_size
from denizen.clock import Clock
from denizen.errors import ToolFailed
from denizen.masking import masked, without
from denizen.telemetry.traces import passed_on
from denizen.tools.outbound import Outbound
from denizen.tools.references import Secret, filled
from denizen.tools.schemas import checker
from denizen.tools.settings import A2aTool, destination
from denizen.tools.tool import CallIdentity, OutsideTool

CARD: Final = "/.well-known/agent-card.json"
LONGEST: Final = 1_000_000
"""How many bytes of an answer are read."""
_ASK_AGAIN_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
"""How long to wait before the task is looked at again, after the first look, the second and so on."""
_UNFINISHED: Final = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
_UNAVAILABLE: Final = (429, 502, 503, 504)
"""Statuses of a server that is busy or starts again: what it was asked may be asked once more."""
_KEYS: Final = UUID("0b1c7e52-1f6d-4c0b-9a53-1f0a7d2f4e88")
"""Under which calls become the ids of messages."""
_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "description": "What the agent shall do, or your answer to it."},
        "context_id": {"type": "string", "description": "To go on with an earlier conversation: its context_id."},
        "task_id": {"type": "string", "description": "To answer a question of the agent: the task_id that asked it."},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def a2a_tool(settings: A2aTool, *, secret: Secret, outbound: Outbound, clock: Clock) -> OutsideTool:
    """The tool that gives a task to this agent."""

    async def call(arguments: Mapping[str, Any], occasion: CallIdentity) -> str:
        headers, secrets = filled(settings.headers, secret)
        remote = _Remote(settings, headers, outbound.client(settings.allow_private), clock)
        try:
            return without(await remote.ask(arguments, occasion), secrets)
        except ToolFailed as error:
            raise ToolFailed(without(str(error), secrets)) from None
        except httpx2.HTTPError as error:
            # Without its cause, which may hold what was sent.
            raise ToolFailed(without(_trouble(settings, error), secrets)) from None

    return OutsideTool(
        definition=ToolDefinition(
            name=settings.name, description=settings.description, parameters_json_schema=_PARAMETERS
        ),
        check=checker(settings.name, _PARAMETERS),
        call=call,
        on_crash=settings.on_crash,
        independent=settings.independent,
        seconds=settings.seconds,
        visible=settings.visible,
        results=settings.results,
        effect=settings.effect,
    )


class _Unavailable(ToolFailed):
    """The server elsewhere does not answer for a while."""


@dataclass(frozen=True, slots=True)
class _Remote:
    """An agent elsewhere."""

    settings: A2aTool
    headers: Mapping[str, str]
    client: httpx2.AsyncClient
    clock: Clock

    async def ask(self, arguments: Mapping[str, Any], occasion: CallIdentity) -> str:
        """Give it the task, and wait until it has ended or asks something."""
        message = {
            "messageId": str(uuid5(_KEYS, f"{occasion.agent_id} {occasion.key}")),
            "role": "ROLE_USER",
            "parts": [{"text": arguments["text"]}],
            **({"contextId": arguments["context_id"]} if arguments.get("context_id") else {}),
            **({"taskId": arguments["task_id"]} if arguments.get("task_id") else {}),
        }
        where = _interface(self._read(await self._card()), self.settings)
        found = await self._call(where, "SendMessage", {"message": message})
        if isinstance(found.get("message"), dict):
            return _texts([found["message"]])
        task, looks = _dict(found.get("task")), 0
        while _state(task) in _UNFINISHED:
            seconds = _ASK_AGAIN_SECONDS[min(looks, len(_ASK_AGAIN_SECONDS) - 1)]
            await self.clock.wait(asyncio.Event(), seconds)
            looks += 1
            task = await self._look_again(where, task)
        return result_of(self.settings.name, task)

    async def _card(self) -> bytes:
        try:
            return await self._fetch("GET", _card_url(self.settings.url))
        except httpx2.HTTPError as error:
            raise ToolFailed(_not_given(self.settings, error)) from error

    async def _look_again(self, where: str, task: dict[str, Any]) -> dict[str, Any]:
        """The task as it is now. While its server cannot be reached, as it was: the agent has it all the same."""
        try:
            return await self._call(where, "GetTask", {"id": task.get("id")})
        except (httpx2.HTTPError, _Unavailable):
            return task

    async def _call(self, where: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        answer = _dict(self._read(await self._fetch("POST", where, body)))
        if error := _dict(answer.get("error")):
            raise ToolFailed(f"The agent refused: {str(error.get('message') or error.get('code'))[:2_000]}")
        return _dict(answer.get("result"))

    async def _fetch(self, method: str, url: str, body: Mapping[str, Any] | None = None) -> bytes:
        headers = {"user-agent": "denizen", "a2a-version": "1.0", **passed_on(), **self.headers}
        async with self.client.stream(method, url, headers=headers, json=body) as answer:
            read = bytearray()
            async for part in answer.aiter_bytes():
                read += part
                if len(read) > LONGEST:
                    raise ToolFailed(f"The answer of {answer.url.host} is larger than {human_size(LONGEST)}.")
            if not answer.is_success:
                said = bytes(read).decode(errors="replace")[:2_000]
                failed = _Unavailable if answer.status_code in _UNAVAILABLE else ToolFailed
                raise failed(f"{answer.url.host} answered with the status {answer.status_code}: {said}")
            return bytes(read)

    def _read(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError as error:
            raise ToolFailed(f"There is no A2A agent at {self.settings.url}: the answer is not JSON.") from error


def _card_url(url: str) -> str:
    return url if url.endswith(".json") else f"{url.rstrip('/')}{CARD}"


def _interface(card: Any, settings: A2aTool) -> str:
    """The address that takes tasks. Raises `ToolFailed` if there is none that we may use."""
    offered = [_dict(each) for each in _list(_dict(card).get("supportedInterfaces"))]
    fitting = [
        str(each.get("url", ""))
        for each in offered
        if each.get("protocolBinding") == "JSONRPC" and str(each.get("protocolVersion", "")).startswith("1.")
    ]
    if not fitting:
        raise ToolFailed(f"The agent at {settings.url} offers no JSON-RPC of A2A 1.0, which Denizen uses.")
    same = [each for each in fitting if _origin(each) == _origin(settings.url)]
    if not same:
        raise ToolFailed(
            f"The card of the agent at {settings.url} leads to another server. The owner of the agent here has to set "
            "the address of that server."
        )
    return same[0]


def _origin(url: str) -> tuple[str, str, int]:
    return url.partition("://")[0].lower(), *destination(url)


def result_of(name: str, task: Mapping[str, Any]) -> str:
    """A task that has ended, or asks something, as text for the model. Raises `ToolFailed` if it has failed. Pure."""
    said = _texts(_list(task.get("artifacts")))
    status = _dict(task.get("status"))
    note = _texts([status["message"]]) if isinstance(status.get("message"), dict) else ""
    names = f"context_id {task.get('contextId') or '-'}, task_id {task.get('id') or '-'}"
    match _state(task):
        case "TASK_STATE_COMPLETED":
            return f"{said or note or 'It did not say anything.'}\n\n[{names}]"
        case "TASK_STATE_INPUT_REQUIRED" | "TASK_STATE_AUTH_REQUIRED":
            asked = "\n\n".join(each for each in (said, note) if each)
            return f"It asks: {asked or 'it waits for more.'}\n\n[Answer with {name}: {names}]"
        case state:
            ended = {"TASK_STATE_REJECTED": "declined the task", "TASK_STATE_CANCELED": "canceled the task"}
            why = note or said
            raise ToolFailed(f"The agent {ended.get(state, 'failed')}{f': {why}' if why else '.'}")


def _state(task: Mapping[str, Any]) -> str:
    return str(_dict(task.get("status")).get("state", ""))


def _texts(holders: Sequence[Any]) -> str:
    """The texts of messages or artifacts; of everything else in them, what it is."""
    return "\n\n".join(_text(_dict(part)) for each in holders for part in _list(_dict(each).get("parts")))


def _text(part: Mapping[str, Any]) -> str:
    if isinstance(part.get("text"), str):
        return part["text"]
    if "data" in part:
        return json.dumps(part["data"], ensure_ascii=False)
    where = f" at {part['url']}" if isinstance(part.get("url"), str) else ""
    return f"[file {part.get('filename') or ''} {part.get('mediaType') or ''}{where}]"


def _dict(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def _trouble(settings: A2aTool, error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return _not_given(settings, error)
    host = destination(settings.url)[0]
    return f"The connection to {host} broke before it had answered. Whether it has the task is unknown."


def _not_given(settings: A2aTool, error: httpx2.HTTPError) -> str:
    host = destination(settings.url)[0]
    return f"{host} could not be reached: {masked(str(error)) or 'no connection'}. The task was not given."
