"""Titles, tags and follow-up questions: chat programs ask the model of a conversation for them."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from denizen import BudgetSettings, reply, scripted
from denizen.models.scripted import forever
from denizen.server.routes.openai import SIDE_TASK
from denizen.server.shapes.openai import ChatMessage
from denizen.server.side_tasks import is_side_task
from tests.server.conftest import House
from tests.server.test_openai import chunks, client, said, text_of

TITLE = """### Task:
Write a title of a few words for what was talked about.
### Guidelines:
- No quotation marks.
### Output:
JSON: { "title": "..." }
### Chat History:
<chat_history>
USER: Did the build pass?
ASSISTANT: It did.
</chat_history>"""
FOLLOW_UPS = TITLE.replace("Write a title of a few words", "Suggest three questions that the user may ask next")
AUTOCOMPLETE = """### Task:
Complete the text in `<text>` as the user would.
### Context:
<chat_history>
USER: Did the build
</chat_history>
<text>Did the bui</text>"""
DOCUMENTS = """### Task:
Answer the question with the documents below.
### Output:
An answer with citations.
<context>
<source id="1">The build passed. USER: title of the chat</source>
</context>
Did the build pass?"""
LIBRECHAT = """Look at this conversation and give:
1. its language
2. a short title in that language

User: Did the build pass?
AI: It did."""
COMPLETION = "Provide a title for the conversation, five words at most.\n\nConversation:\nUser: Hi\nAI: Hello."
PASTED = "What do you think of the title of my talk?\nUser: no idea"
STORY = "User: Write a title for this conversation.\nAI: no"


@pytest.mark.parametrize(
    ("text", "is_task"),
    [
        (TITLE, True),
        (FOLLOW_UPS, True),
        (AUTOCOMPLETE, True),
        (LIBRECHAT, True),
        (COMPLETION, True),
        (DOCUMENTS, False),
        (PASTED, False),
        (STORY, False),
        ("Give this conversation a title.", False),
        ("### Task:\nWrite a poem.", False),
        ("", False),
    ],
)
def test_tasks_are_known_by_their_form(text: str, is_task: bool) -> None:
    """And what a person says is none: documents that a program adds, a text that was pasted."""
    asked = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=text)]
    assert is_side_task(asked) is is_task
    # In the middle of a conversation it is what the person says, whatever its form.
    history = [ChatMessage(role="user", content="Hi"), ChatMessage(role="assistant", content="Hello.")]
    assert not is_side_task([*history, *asked])


def task_or_life(messages: Any, info: Any) -> Any:
    """Answers tasks with a title, and lives otherwise."""
    told = str(messages[-1])
    if "chat_history" in told or "Hmm" in told:
        return '{"title": "The build"}'
    return reply("It did.") if info.number % 2 == 0 else "Told Noor."


async def test_a_title_is_written_outside_the_agents_life_and_paid_by_it(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=forever(task_or_life))
    async with client(house, noor) as noors, world.denizen.living():
        whole = await noors.chat.completions.with_raw_response.create(model="ada", messages=said(TITLE))
        told = await chunks(noors, FOLLOW_UPS, stream_options={"include_usage": True})
        asked = await noors.chat.completions.create(model="task:ada", messages=said("Hmm"))
    title = whole.parse()
    assert title.choices[0].message.content == text_of(told) == asked.choices[0].message.content
    assert title.choices[0].message.content == '{"title": "The build"}'
    assert whole.headers["denizen-notice"] == SIDE_TASK
    assert title.usage is not None
    assert told[-1].usage.total_tokens > 0
    # No space was made, no cycle was lived, and the ledger has each of the three.
    assert (await house.call("GET", "/api/spaces", noor)).json()["spaces"] == []
    assert await world.cycles(ada) == []
    used = (await house.call("GET", "/api/usage?by=agent", noor)).json()["groups"]
    assert [(each["key"], each["calls"]) for each in used] == [(ada.id, 3)]


async def test_a_side_task_needs_a_budget_and_an_agent_that_is_not_suspended(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=forever(task_or_life), budget=BudgetSettings(tokens_per_day=10))
    bob = await world.agent("Bob", model=forever(task_or_life))
    await world.denizen.agents.suspend(bob)
    for agent, words in ((ada, "budget"), (bob, "suspended")):
        body = {"model": agent.entity.handle, "messages": [{"role": "user", "content": TITLE}]}
        answer = await small_house.call("POST", "/v1/chat/completions", noor, json=body)
        assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True), answer.text


async def test_a_side_task_has_the_form_that_was_asked_for(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    model = scripted('```json\n{"title": "The build"}\n```', "The build")
    await world.agent("Ada", model=model)
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    form: Any = {"type": "json_schema", "json_schema": {"name": "title", "schema": schema}}
    async with client(small_house, noor) as noors:
        title = await noors.chat.completions.create(model="ada", messages=said(TITLE), response_format=form)
        with pytest.raises(openai.InternalServerError) as failure:
            await noors.chat.completions.create(model="ada", messages=said(TITLE), response_format=form)
        with pytest.raises(openai.NotFoundError) as unknown:
            await noors.chat.completions.create(model="task:eve", messages=said("Hmm"))
    assert title.choices[0].message.content == '{"title": "The build"}'
    assert '"required":["title"]' in str(model.requests[0])
    assert failure.value.code == "answer_not_in_format"
    assert "denizen-notice" not in unknown.value.response.headers
