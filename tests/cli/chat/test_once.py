"""`denizen chat --once` as scripts use it: a process of its own, with a server and without."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from denizen import Runtime
from denizen.errors import ModelUnreachable
from denizen.ids import AgentId
from denizen.models.request import ATTEMPTS
from denizen.models.scripted import forever, reply, skip
from denizen.spaces import directory
from tests import warm
from tests.cli.chat.houses import House, echoing, has_replied, open_house
from tests.servers import free_port


@dataclass(frozen=True)
class Ran:
    status: int | None
    out: str
    err: str


async def chat(*arguments: str, environ: dict[str, str], cwd: Path, piped: str | bytes | None = None) -> Ran:
    """`denizen chat` with these arguments, to its end."""
    process = await asyncio.create_subprocess_exec(
        *warm.denizen(), "chat", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=environ, cwd=cwd,
    )  # fmt: skip
    try:
        async with asyncio.timeout(200):
            out, err = await process.communicate(piped.encode() if isinstance(piped, str) else piped)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(process.returncode, out.decode(), err.decode())


async def test_the_answer_is_all_that_is_printed(house: House, tmp_path: Path) -> None:
    ran = await chat("kitchen", "--once", "Hello", environ=house.environ(tmp_path), cwd=tmp_path)

    assert ran == Ran(0, "Ada: Ada hears you.\n", "")


async def test_a_dash_stands_for_stdin_as_with_other_commands(house: House, tmp_path: Path) -> None:
    """The agent was sent the dash. What is not UTF-8 ended in a traceback."""
    environ = house.environ(tmp_path)
    ran = await chat("kitchen", "--once", "-", environ=environ, cwd=tmp_path, piped="From a pipe\n")
    assert ran == Ran(0, "Ada: Ada hears you.\n", "")
    assert await house.runtime.spaces.transcript(house.kitchen) == ["Noor: From a pipe", "Ada: Ada hears you."]
    for once in (("--once", "-"), ()):
        ran = await chat("kitchen", *once, environ=environ, cwd=tmp_path, piped=b"\xff\xfe")
        told = "The text on stdin is not UTF-8. Convert it, then send it again. [invalid_input]\n"
        assert ran == Ran(1, "", told)


async def test_the_server_of_this_machine_is_found_with_the_token_it_keeps(house: House, tmp_path: Path) -> None:
    """With nothing given, the usual address is asked, and the token in the home folder lets one in."""
    (tmp_path / "token").write_text(house.token + "\n")
    environ = house.environ(tmp_path, DENIZEN_URL="", DENIZEN_TOKEN="", DENIZEN_PORT=house.url.rpartition(":")[2])
    ran = await chat("@ada", "--once", "Hello", environ=environ, cwd=tmp_path)

    assert ran == Ran(0, "Ada: Ada hears you.\n", "")


async def test_json_is_for_programs_and_text_can_be_piped(house: House, tmp_path: Path) -> None:
    """In the private space with Ada, found by her handle."""
    ran = await chat("@ada", "--json", environ=house.environ(tmp_path), cwd=tmp_path, piped="Are you there?\n")

    told = json.loads(ran.out)
    assert told["space"] == {"id": house.room.id, "name": "Noor and Ada"}
    assert (told["message"]["seq"], told["message"]["text"]) == (1, "Are you there?")
    assert [(each["author"]["name"], each["text"]) for each in told["replies"]] == [("Ada", "Ada hears you.")]
    assert told["finished"] is True


async def test_it_waits_for_agents_that_answer_each_other_and_not_for_those_who_skip(
    ready_sqlite_url: str, tmp_path: Path
) -> None:
    """Ada asks Bo, Bo answers, Ada has nothing to add: then all is said."""
    ada = forever(
        lambda messages, info: "Done." if has_replied(messages) else reply("@bo?") if info.number == 0 else skip("said")
    )
    async with open_house(ready_sqlite_url, ada=ada, bo=echoing("Bo")) as house:
        ran = await chat("kitchen", "--once", "Hello", environ=house.environ(tmp_path), cwd=tmp_path)
    assert ran.out.splitlines() == ["Ada: @bo?", "Bo: Bo hears you."]
    assert ran.status == 0


async def test_an_agent_that_asks_is_not_finished(house_that_asks: House, tmp_path: Path) -> None:
    """It is told, with how to answer it; programs get the question, and what is said next answers it."""
    house = house_that_asks
    environ = house.environ(tmp_path)
    ran = await chat("@ada", "--once", "Go", environ=environ, cwd=tmp_path)
    assert ran == Ran(
        1,
        "",
        "Ada waits for an answer: Deploy v2.1? where: the barn\n"
        "Give it in `denizen chat 'Noor and Ada'` with /yes, /no, or /answer and your own words.\n",
    )
    (question,) = await house.runtime.calls.waiting(house.noor)
    assert question.parsed_arguments == {"question": "Deploy v2.1?", "where": "the barn"}

    again = await chat("@ada", "--once", "Yes, go ahead", "--json", environ=environ, cwd=tmp_path)
    told = json.loads(again.out)
    assert (again.status, told["finished"], told["questions"]) == (0, True, [])
    assert [each["text"] for each in told["replies"]] == ['So it is {"answer": "Yes, go ahead", "by": "Noor"}.']


async def test_an_agent_that_cannot_answer_is_told_of_at_once(house: House, tmp_path: Path) -> None:
    """One sentence on the error stream and an exit status that scripts see, whoever of the two is asked."""
    environ = house.environ(tmp_path)
    await house.runtime.agents.suspend(house.ada)
    ran = await chat("@ada", "--once", "Hello?", environ=environ, cwd=tmp_path)
    assert ran == Ran(1, "", "Ada is suspended. Your message is kept. Ada answers when somebody resumes it.\n")

    await house.runtime.agents.delete(house.bo)
    ran = await chat("kitchen", "--once", "@bo, and you?", "--json", environ=environ, cwd=tmp_path)
    told = json.loads(ran.out)
    assert (ran.status, told["finished"], told["replies"]) == (1, False, [])
    [status] = told["statuses"]
    assert (status["agent_id"], status["cause"]) == (house.bo.id, "deleted")
    assert ran.err == status["text"] + "\n" == "Bo was deleted and will not answer. Ask somebody else.\n"


async def test_an_agent_that_will_try_again_is_waited_for(ready_sqlite_url: str, tmp_path: Path) -> None:
    """It has failed and rests; that is no answer, and scripts see it."""
    ada = forever(lambda *_: ModelUnreachable("Nobody answers."))
    async with open_house(ready_sqlite_url, ada=ada) as house:
        ran = await chat("@ada", "--once", "Hello?", "--timeout", "6", environ=house.environ(tmp_path), cwd=tmp_path)
    assert (ran.status, ran.out) == (1, "")
    assert "Ada has trouble answering" in ran.err


async def test_what_delays_an_answer_is_told_while_one_waits(ready_sqlite_url: str, tmp_path: Path) -> None:
    """Once, on the error stream: the tries of an agent whose provider fails can take minutes."""
    failures = iter([ModelUnreachable("Nobody answers.")] * ATTEMPTS)
    ada = forever(lambda messages, _: next(failures, "Done." if has_replied(messages) else reply("At last.")))
    async with open_house(ready_sqlite_url, ada=ada) as house:
        ran = await chat("@ada", "--once", "Hello?", environ=house.environ(tmp_path), cwd=tmp_path)
    assert (ran.status, ran.out) == (0, "Ada: At last.\n")
    assert ran.err.splitlines() == ["Ada has trouble answering: its model cannot be reached. It tries again by itself."]


async def test_without_a_server_an_agent_that_cannot_answer_is_told_of(tmp_path: Path, environ: dict[str, str]) -> None:
    """The same where the agents live in the process."""
    environ["DENIZEN_PORT"] = str(free_port())
    await chat("lobby", "--once", "Hello @ada", environ=environ, cwd=tmp_path)
    async with Runtime(f"sqlite:///{environ['DENIZEN_HOME']}/denizen.db") as runtime:
        [organization] = await runtime.db.read(directory.list_organizations)
        ada = await runtime.db.read(directory.find_entity, organization.id, "ada")
        await runtime.agents.suspend(AgentId(ada.id))
    ran = await chat("@ada", "--once", "Hello?", environ=environ, cwd=tmp_path)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.splitlines()[-1] == "Ada is suspended. Your message is kept. Ada answers when somebody resumes it."


async def test_without_a_server_the_agents_live_in_the_process(tmp_path: Path, environ: dict[str, str]) -> None:
    """The first world is made, the demo model answers, and the next run finds what was said."""
    environ["DENIZEN_PORT"] = str(free_port())
    first = await chat("lobby", "--once", "Hello @ada", environ=environ, cwd=tmp_path)
    again = await chat("lobby", "--once", "Hello @bo", "--json", environ=environ, cwd=tmp_path)

    assert first.out.startswith("Ada: ")
    assert (first.status, again.status) == (0, 0)
    assert "the agents live in this process" in first.err
    assert json.loads(again.out)["message"]["seq"] > 1


@pytest.mark.parametrize(
    ("arguments", "changed", "sentence"),
    [
        (["kichen", "--once", "x"], {}, "There is no space 'kichen'. Did you mean 'Kitchen'? [invalid_input]"),
        (
            ["--once", "x"],
            {},
            "Name the space: `denizen chat Kitchen --once …`. You are in: Kitchen, Cellar, 'Noor and Ada'.",
        ),
        (["kitchen", "--once", " "], {}, "There is nothing to say: the text is empty. [invalid_input]"),
        (["kitchen", "--once", "x"], {"DENIZEN_TOKEN": "dz_wrong"}, "Give the right one with --token"),
        (["kitchen", "--once", "x"], {"DENIZEN_TOKEN": ""}, "wants an access token"),
        (["kitchen", "--once", "x"], {"DENIZEN_URL": "http://127.0.0.1:1"}, "No Denizen server answers at"),
        (["kitchen", "--once", "x", "--json", "--url", "nowhere"], {}, "is not a server address"),
    ],
)
async def test_what_goes_wrong_is_one_sentence(
    house: House, tmp_path: Path, arguments: list[str], changed: dict[str, str], sentence: str
) -> None:
    ran = await chat(*arguments, environ=house.environ(tmp_path, **changed), cwd=tmp_path)

    assert (ran.status, ran.out) == (1, "")
    assert sentence in ran.err
    assert len(ran.err.strip().splitlines()) == 1


async def test_an_agent_that_takes_too_long_is_named(ready_sqlite_url: str, tmp_path: Path) -> None:
    """Time is up, the message stands, and the exit status says that not all is done."""
    free = asyncio.Event()

    async def wait() -> None:
        await free.wait()

    ada = forever(lambda messages, _: "Done." if has_replied(messages) else reply("Well."), pause=wait)
    async with open_house(ready_sqlite_url, ada=ada) as house:
        arguments = ("kitchen", "--once", "Hello", "--timeout", "0.2")
        ran = await chat(*arguments, environ=house.environ(tmp_path), cwd=tmp_path)
        assert (ran.status, ran.out, ran.err) == (1, "", "Not finished after 0.2 seconds: Ada.\n")
        assert await house.runtime.spaces.transcript(house.kitchen) == ["Noor: Hello"]
        free.set()
