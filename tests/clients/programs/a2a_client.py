"""The client of `a2a-sdk`: the card, a task, a stream, the task again, the list, and a canceled task that has ended."""

from __future__ import annotations

import asyncio
import json
import os
from uuid import uuid4

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError


def question(text: str) -> SendMessageRequest:
    said = Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    return SendMessageRequest(message=said)


def text_of(artifacts) -> str:
    return "".join(part.text for each in artifacts for part in each.parts)


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['DENIZEN_TOKEN']}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        whole = await create_client(os.environ["DENIZEN_AGENT"], ClientConfig(httpx_client=http, streaming=False))
        [answer] = [each async for each in whole.send_message(question("Hello"))]
        streaming = await create_client(os.environ["DENIZEN_AGENT"], ClientConfig(httpx_client=http))
        updates = [each async for each in streaming.send_message(question("Count"))]
        task = await whole.get_task(GetTaskRequest(id=updates[0].task.id))
        listed = await whole.list_tasks(ListTasksRequest())
        try:
            await whole.cancel_task(CancelTaskRequest(id=task.id))
            refused = False
        except TaskNotCancelableError:
            refused = True
    told = {
        "plain": text_of(answer.task.artifacts),
        "last_update": TaskState.Name(updates[-1].status_update.status.state),
        "streamed": text_of(task.artifacts),
        "listed": listed.total_size,
        "refused": refused,
    }
    print(json.dumps(told))


asyncio.run(main())
