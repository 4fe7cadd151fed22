"""`denizen chat`: talks with agents in the terminal, or posts one message from a script."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, TextIO, cast

import typer

from denizen.cli.chat import rendering, wording
from denizen.cli.chat.once import OnceResult, say_once
from denizen.cli.chat.opening import opened
from denizen.cli.chat.panels import ask_panel_once
from denizen.cli.chat.remembering import LastSpace
from denizen.cli.chat.talk import PANEL, Talk, first_space
from denizen.cli.console import begin, given_text, is_verbose, print_json, read_stdin, stderr, stdout
from denizen.client import Call, Client, Message, Space, SpaceStatus
from denizen.clock import SystemClock
from denizen.errors import DenizenError, InvalidInput
from denizen.settings.shape import Settings
from denizen.shortening import short_line
from denizen.telemetry.logs import Level, configure_logging

QUESTION_CHARACTERS: Final = 500


def chat(
    context: typer.Context,
    space: Annotated[
        str | None,
        typer.Argument(
            help="A space: its name or the beginning of its name, its id, or @agent for your conversation with it."
        ),
    ] = None,
    once: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Send this (`-`: stdin), print the answer, and exit.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --once: print JSON, for programs.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="With --once: how many seconds to wait for the answer.")] = 120,
    url: Annotated[str | None, typer.Option(envvar="DENIZEN_URL", help="The server to talk to.")] = None,
    token: Annotated[str | None, typer.Option(envvar="DENIZEN_TOKEN", help="The access token.")] = None,
) -> None:
    """Talk with agents in the terminal.

    Uses the running server, or runs the agents in this process if there is none. Piped text is sent as one message.
    """
    loaded = begin(context)
    url, token = url or loaded.dotenv.get("DENIZEN_URL"), token or loaded.dotenv.get("DENIZEN_TOKEN")
    if once is None and not sys.stdin.isatty():
        once = read_stdin().strip("\n")
    elif once is not None:
        once = given_text(once).strip("\n")
    if once is not None and not once.strip():
        raise InvalidInput("There is nothing to say: the text is empty.")
    if as_json and once is None:
        raise InvalidInput("--json goes with --once.")
    # The terminal belongs to the conversation: only important log lines may interrupt it.
    level: Level = "debug" if is_verbose(context) else "warning"
    configure_logging(level, loaded.settings.log_format)
    chatting = _Chatting(loaded.settings, space, level)
    try:
        asyncio.run(chatting.run(url, token, once, as_json=as_json, seconds=timeout))
    except BaseExceptionGroup as group:
        ours = group.subgroup(DenizenError)
        if ours is None:
            raise
        raise _first(ours) from group


class _Chatting:
    """One run of the command."""

    def __init__(self, settings: Settings, wanted: str | None, level: Level) -> None:
        self._settings = settings
        self._wanted = wanted
        self._level: Level = level

    async def run(self, url: str | None, token: str | None, once: str | None, *, as_json: bool, seconds: float) -> None:
        async with opened(self._settings, url, token) as found:
            if found.remark is not None:
                stderr().print(rendering.note(found.remark), soft_wrap=True)
            me = await found.client.me()
            remembering = LastSpace(self._settings.home, me.id)
            remembering.load()
            if once is not None:
                await self._once(found.client, remembering, once, as_json=as_json, seconds=seconds)
            elif sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown"):
                await self._on_screen(found.client, remembering)
            else:
                await self._in_lines(found.client, remembering)

    async def _once(self, client: Client, remembering: LastSpace, text: str, *, as_json: bool, seconds: float) -> None:
        spaces, me = await client.spaces(), await client.me()
        space = first_space(spaces, self._wanted, remembering.place.space, me)
        if space is None:
            raise InvalidInput(_which_space(spaces))

        def show(message: Message) -> None:
            if not as_json and message.author.id != me.id:
                _print_reply(message, me.id)

        delays: set[str] = set()

        def show_delay(status: SpaceStatus) -> None:
            if status.text not in delays:
                delays.add(status.text)
                stderr().print(rendering.note(status.text), soft_wrap=True)

        if space.kind == PANEL:
            heard = await ask_panel_once(client, space, text, seconds=seconds, on_reply=show)
        else:
            heard = await say_once(client, space, text, seconds=seconds, on_reply=show, on_delay=show_delay)
        if as_json:
            print_json(_as_object(space, heard))
        reasons = [wording.status_line(each) for each in heard.statuses if each.text not in delays]
        for line in [*reasons, *heard.errors, *_unanswered(heard.questions, space)]:
            stderr().print(rendering.note(line), soft_wrap=True)
        if heard.unfinished:
            slow = ", ".join(heard.unfinished)
            stderr().print(rendering.note(f"Not finished after {seconds:g} seconds: {slow}."))
        if not heard.is_answered:
            raise typer.Exit(1)

    async def _in_lines(self, client: Client, remembering: LastSpace) -> None:
        from denizen.cli.chat.plain import Plain, typed_lines

        talk = Talk(client, Plain(), remembering, SystemClock(), await client.me())
        await talk.run(self._wanted, typed_lines())

    async def _on_screen(self, client: Client, remembering: LastSpace) -> None:
        from prompt_toolkit.patch_stdout import StdoutProxy

        from denizen.cli.chat.screen import Screen

        screen = Screen(self._settings.home)
        talk = Talk(client, screen, remembering, SystemClock(), await client.me())
        with StdoutProxy(raw=True) as above:
            # Log lines appear above the input line, not in it.
            configure_logging(self._level, self._settings.log_format, stream=cast("TextIO", above))
            try:
                await screen.run(talk, self._wanted)
            finally:
                configure_logging(self._level, self._settings.log_format)


def _which_space(spaces: Sequence[Space]) -> str:
    if not spaces:
        return "You are not in any space yet. Create one in the web client, or with `denizen spaces create`."
    names = ", ".join(dict.fromkeys(shlex.quote(space.name) for space in spaces))
    first = shlex.quote(spaces[0].name)
    return f"Name the space: `denizen chat {first} --once …`. You are in: {names}."


def _print_reply(message: Message, own_id: str) -> None:
    if sys.stdout.isatty():
        stdout().print(*rendering.message_block(message, own_id), sep="\n")
    else:
        sys.stdout.write(rendering.plain_line(message) + "\n")
        sys.stdout.flush()


def _as_object(space: Space, heard: OnceResult) -> dict[str, Any]:
    return {
        "space": {"id": space.id, "name": space.name},
        "message": heard.said.model_dump(mode="json"),
        "replies": [reply.model_dump(mode="json") for reply in heard.replies],
        "questions": [question.model_dump(mode="json") for question in heard.questions],
        "errors": list(heard.errors),
        "statuses": [status.model_dump(mode="json") for status in heard.statuses],
        "finished": heard.is_answered,
    }


def _unanswered(questions: Sequence[Call], space: Space) -> Iterator[str]:
    """Yields the open questions of agents, and how to answer them."""
    names = {member.id: member.name for member in space.members}
    for call in questions:
        asked = short_line(wording.whole(call), QUESTION_CHARACTERS)
        yield f"{names.get(call.agent_id, 'Someone')} waits for an answer: {asked}"
    if questions:
        yield f"Give it in `denizen chat {shlex.quote(space.name)}` with /yes, /no, or /answer and your own words."


def _first(group: BaseExceptionGroup[DenizenError]) -> DenizenError:
    """Returns the error that ended everything."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
