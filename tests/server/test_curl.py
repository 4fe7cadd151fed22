"""The API as someone has it who has nothing but curl: a post, a stream that is followed, an error."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.server.conftest import House

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")


async def curl(*arguments: str) -> tuple[int | None, str]:
    """The exit status of curl, and what it printed."""
    process = await asyncio.create_subprocess_exec("curl", "-sS", *arguments, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return process.returncode, out.decode()


async def test_a_stream_is_followed_while_others_talk(small_house: House, tmp_path: Path) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    allowed = tmp_path / "allowed"  # not on the command line, where others on the machine could read it
    allowed.write_text(f'header = "Authorization: Bearer {await small_house.token(noor)}"\n')
    messages = f"{small_house.address}/api/spaces/{hall.id}/messages"
    post = ["-K", str(allowed), "-H", "Content-Type: application/json", "-H", "Idempotency-Key: letter-1"]

    address = f"{small_house.address}/api/spaces/{hall.id}/stream?after=0"
    following = await asyncio.create_subprocess_exec(
        "curl", "-sSN", "-K", str(allowed), address, stdout=asyncio.subprocess.PIPE
    )
    assert following.stdout is not None
    try:
        for _ in range(2):  # the same letter twice is one
            status, answer = await curl(*post, "-d", '{"text": "**Hello.**"}', messages)
            assert (status, json.loads(answer)["seq"], json.loads(answer)["plain"]) == (0, 1, "Hello.")
        async with asyncio.timeout(60):
            told = [await following.stdout.readline()]
            while not (told[-1].startswith(b"data:") and b"Hello" in told[-1]):
                told.append(await following.stdout.readline())
                assert told[-1], "the stream has ended"
    finally:
        following.terminate()
        await following.wait()
    assert {b"event: message\n", b"id: 1\n"} <= set(told[-3:])
    assert json.loads(told[-1].removeprefix(b"data:"))["text"] == "**Hello.**"
    status, answer = await curl("-K", str(allowed), messages)
    assert (status, [each["text"] for each in json.loads(answer)["messages"]]) == (0, ["**Hello.**"])


async def test_what_goes_wrong_has_a_status_and_a_code(small_house: House) -> None:
    shown = "%{http_code} %{content_type}"
    _, answer = await curl("-w", f"\n{shown}", f"{small_house.address}/api/me")
    body, _, status = answer.rpartition("\n")
    assert (status, json.loads(body)["code"]) == ("401 application/problem+json", "unauthorized")
    failed, answer = await curl("-f", f"{small_house.address}/api/me")
    assert (failed, answer) == (22, ""), "with -f a script sees it by the exit status"
