"""The logic of `denizen chat`: handles typed lines and incoming messages. A `Display` shows them.

A typed message is kept until it is posted: it is sent under a key of its own, again and again while the connection is
lost, so that it is neither lost nor posted twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from pydantic import JsonValue
from rich.console import ConsoleRenderable

from denizen.cli.chat import attaching, marking, rendering, wording
from denizen.cli.chat.conversation import Event, Presence, SpaceView, feed, thinking
from denizen.cli.chat.finding import find_space
from denizen.cli.chat.panels import Answers
from denizen.cli.chat.questions import News, concerns, read_answer
from denizen.cli.chat.remembering import LastSpace
from denizen.cli.chat.typed import Command, Mistyped, Say, read_line
from denizen.client import Call, Client, Connected, Lost, Me, Member, Message, MessageChanged, Space
from denizen.clock import SECOND, Clock
from denizen.errors import DenizenError, InvalidInput, RequestRefused, ServerUnreachable
from denizen.ids import new_id
from denizen.shapes.events import PanelReply
from denizen.shapes.files import FileOut
from denizen.shapes.panels import RoundOut

PANEL: Final = "panel"
"""The kind of a space whose advisors answer."""
HISTORY: Final = 20
"""How many messages are shown of a space that is entered, and with each `/more`."""
MOST_HISTORY: Final = 100
POLL_SECONDS: Final = 5.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 10.0
LEAVING_SECONDS: Final = 5.0
"""How long leaving waits for messages that are not posted yet."""


class Display(Protocol):
    """Shows a conversation."""

    async def say(self, messages: Sequence[Message], own_id: str) -> None:
        """Shows these messages, after everything that was shown before."""
        ...

    async def show(self, *blocks: ConsoleRenderable) -> None:
        """Shows something that is not a message."""
        ...

    async def begin(self, title: str) -> None:
        """Begins another space, or another time."""
        ...

    def refresh(self) -> None:
        """Redraws the live text, who is thinking, and how much is new."""
        ...

    def give_back(self, text: str) -> None:
        """Returns a refused message to the input, where it can be changed."""
        ...


@dataclass
class UnsentMessage:
    """A typed message on its way."""

    space_id: str
    text: str
    files: Sequence[str] = ()
    """The ids of uploads."""
    key: str = field(default_factory=new_id)
    posted: int | None = None
    """Its sequence number once it is posted."""
    shown: bool = False


class Talk:
    """One person talking, in one space at a time."""

    def __init__(self, client: Client, display: Display, remembering: LastSpace, clock: Clock, me: Me) -> None:
        self.me = me
        self.spaces: list[Space] = []
        self.space: Space | None = None
        self.choosing = False
        """Whether there are several spaces to choose from, and none was chosen yet."""
        self.state = SpaceView()
        self.unread: dict[str, int] = {}
        self.asked_in: frozenset[str] = frozenset()
        """The spaces with a question that this person may answer."""
        self._attached: list[FileOut] = []
        """The files of the next message."""
        self.outgoing: list[UnsentMessage] = []
        self._client = client
        self._display = display
        self._remembering = remembering
        self._clock = clock
        self._read: dict[str, int] = {}
        """The last number shown here, if it is newer than what the server has."""
        self._unmarked: set[str] = set()
        """The spaces for which the server is to be told that."""
        self._something_read = asyncio.Event()
        self._telling = asyncio.Lock()
        self._oldest = 1
        self._sending: asyncio.Queue[UnsentMessage] = asyncio.Queue()
        self._tasks: asyncio.TaskGroup
        self._following: asyncio.Task[None] | None = None

    # State

    def now(self) -> float:
        return self._clock.now() / SECOND

    def thinkers(self) -> list[Member]:
        """The members of the space that are thinking now."""
        ids = thinking(self.state, self.now())
        return [member for member in self.members() if member.id in ids]

    def how(self, member: Member) -> str:
        """Returns the name of someone who is thinking, with the tool in use, if any."""
        tool = self.state.doing.get(member.id)
        return member.name if tool is None else f"{member.name} (with {tool})"

    def troubled(self) -> list[str]:
        """The names of agents in the space with a status that says why they have not answered."""
        return list(dict.fromkeys(each.name for each in self.state.statuses))

    def paused(self) -> list[Member]:
        """The members of the space that wait for an answer."""
        return [member for member in self.members() if member.id in self.state.paused]

    def members(self) -> Sequence[Member]:
        return self.space.members if self.space is not None else ()

    def unsent(self) -> list[UnsentMessage]:
        """The messages typed in this space that are not shown as posted yet."""
        here = self.space.id if self.space is not None else ""
        return [each for each in self.outgoing if each.space_id == here and not each.shown]

    # Events

    async def run(self, wanted: str | None, lines: AsyncIterator[str]) -> None:
        """Talks, line by line, until the input ends or a line says to quit."""
        async with asyncio.TaskGroup() as self._tasks:
            background = [
                self._tasks.create_task(self._send(), name="sending"),
                self._tasks.create_task(self._poll(), name="looking around"),
                self._tasks.create_task(self._mark(), name="telling what was read"),
            ]
            try:
                await self._begin(wanted)
                async for line in lines:
                    if not await self._obey(line):
                        break
                await self._finish_sending()
                await self._finish_telling()
            finally:
                for task in [*background, *([self._following] if self._following else [])]:
                    task.cancel()

    async def _begin(self, wanted: str | None) -> None:
        self.spaces = await self._client.spaces()
        self._count_unread()
        space = first_space(self.spaces, wanted, self._remembering.place.space, self.me)
        if space is not None:
            await self._enter(space)
        elif self.spaces:
            self.choosing = True
            await self._list_spaces()
            await self._note("Where to? Type the name of a space; Tab completes it.")
        else:
            await self._note("You are in no space yet.")

    async def _enter(self, space: Space) -> None:
        """Enters the space."""
        seen = self._seen_of(space)
        unread = max(space.last_seq - seen, 0)
        history = await self._client.messages(space.id, limit=min(max(HISTORY, unread), MOST_HISTORY))
        if self._following is not None:
            self._following.cancel()
        self.choosing = False
        self.space = space
        self.state = SpaceView(
            last=history[-1].seq if history else 0, shown={message.id: message for message in history}
        )
        self._oldest = history[0].seq if history else 1
        self.unread.pop(space.id, None)
        await self._display.begin(space.name)
        if self._oldest > 1:
            await self._note("/more shows what was said before.")
        await self._show_history(history, seen)
        if not history:
            await self._note(f"No messages yet. {_others(space, self.me)} will hear you.")
        self._remembering.save(space.id)
        self._mark_read(space, self.state.last)
        self._following = self._tasks.create_task(await self._stream_of(space), name=f"stream of {space.id}")
        with suppress(ServerUnreachable):
            await self._look_for_questions()
        self._display.refresh()

    async def _show_history(self, history: Sequence[Message], seen: int) -> None:
        old = [message for message in history if message.seq <= seen]
        new = [message for message in history if message.seq > seen]
        await self._display.say(old, self.me.id)
        if old and new:
            await self._display.begin("new")
        await self._display.say(new, self.me.id)

    async def _follow(self, space_id: str) -> None:
        was_lost = False
        try:
            async with aclosing(self._client.stream(space_id, after=self.state.last)) as events:
                async for event in events:
                    if isinstance(event, Lost) and not was_lost:
                        was_lost = True
                        await self._note("The connection is lost. Trying again; what you write is kept.", "yellow")
                    elif isinstance(event, Connected) and was_lost:
                        was_lost = False
                        await self._note("Connected again.", "green")
                    await self._feed(event)
        except RequestRefused:
            await self._note("You are not in this space any more. /spaces shows where you are.", "yellow")

    async def _stream_of(self, space: Space) -> Coroutine[Any, Any, None]:
        if space.kind != PANEL:
            return self._follow(space.id)
        answers = Answers()
        if await answers.read(self._client, space.id):
            await self._note("`denizen panel transcript` shows the earlier answers of this panel.")
        return self._follow_panel(space.id, answers)

    async def _follow_panel(self, panel_id: str, answers: Answers) -> None:
        """Follows people's messages, and the answers of the advisors."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(panel_id), name=f"messages of {panel_id}")
            tasks.create_task(self._show_answers(panel_id, answers), name=f"answers of {panel_id}")

    async def _show_answers(self, panel_id: str, answers: Answers) -> None:
        """Shows each answer when it is complete; after a lost connection, those that came meanwhile."""
        with suppress(RequestRefused):
            async with aclosing(self._client.stream_panel(panel_id)) as events:
                async for event in events:
                    if isinstance(event, Connected | RoundOut | PanelReply):  # There may be a new answer.
                        with suppress(ServerUnreachable):
                            await self._display.say(await answers.read(self._client, panel_id), self.me.id)

    async def _feed(self, event: Event) -> None:
        known = {(each.agent_id, each.text) for each in self.state.statuses}
        self.state, shown = feed(self.state, event, self.now())
        for status in self.state.statuses:
            if (status.agent_id, status.text) not in known:
                await self._note(wording.status_note(status), "yellow")
        messages = [each for each in shown if isinstance(each, Message)]
        if messages:
            for message in messages:
                self._arrived(message)
            await self._display.say(messages, self.me.id)
            if self.space is not None:
                self._mark_read(self.space, messages[-1].seq)
        for each in shown:
            if isinstance(each, marking.Mark):
                await self._note(marking.in_words(each, self._names()))
            elif not isinstance(each, Message):
                await self._tell(each)
        self._display.refresh()

    async def _tell(self, news: News) -> None:
        await self._display.show(*rendering.news_block(news, self._names()))

    def _names(self) -> dict[str, str]:
        return {member.id: member.name for member in self.members()} | {self.me.id: "You"}

    def _arrived(self, message: Message) -> None:
        if message.author.id == self.me.id:
            # Recognized by its text, because the stream may announce it before its sender gets the response.
            mine = next((each for each in self.unsent() if each.posted in (None, message.seq)), None)
            if mine is not None and (mine.posted == message.seq or mine.text.strip() == message.text.strip()):
                mine.shown = True
        self._forget_sent()

    def _forget_sent(self) -> None:
        here = self.space.id if self.space is not None else ""
        self.outgoing = [
            each
            for each in self.outgoing
            if each.posted is None or (each.space_id == here and each.posted > self.state.last)
        ]

    async def _send(self) -> None:
        """Posts the typed messages in order, each until it is posted or refused."""
        while True:
            outgoing = await self._sending.get()
            pause = FIRST_PAUSE_SECONDS
            while True:
                try:
                    more: dict[str, JsonValue] = {"files": list(outgoing.files)} if outgoing.files else {}
                    message = await self._client.post(outgoing.space_id, outgoing.text, key=outgoing.key, **more)
                    outgoing.posted = message.seq
                    break
                except ServerUnreachable:
                    await self._clock.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
                except RequestRefused as error:
                    self.outgoing.remove(outgoing)
                    await self._note(f"Not said: {error}", "red")
                    self._display.give_back(outgoing.text)
                    break
            self._sending.task_done()
            self._forget_sent()
            self._display.refresh()

    async def _finish_sending(self) -> None:
        """Waits until the typed messages are posted; shows those that take too long as not sent."""
        try:
            async with asyncio.timeout(LEAVING_SECONDS):
                await self._sending.join()
        except TimeoutError:
            for each in self.outgoing:
                if each.posted is None:
                    await self._note(f"Not said, because the connection is lost: {each.text}", "red")

    async def _finish_telling(self) -> None:
        """Waits until the server knows what was read here, unless that takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                await self._tell_what_was_read()

    async def _poll(self) -> None:
        """Checks now and then what is new in other spaces, and the agents' states."""
        while True:
            await self._clock.sleep(POLL_SECONDS)
            try:
                self.spaces = await self._client.spaces()
                agents = await self._client.agents()
                await self._look_for_questions()
            except ServerUnreachable:
                continue
            if self._unmarked:
                self._something_read.set()
            self._count_unread()
            await self._feed(Presence(tuple(agents)))

    async def _look_for_questions(self) -> None:
        """Finds what the stream does not have: questions in other spaces, or in none, and those that were settled while
        the connection was lost.
        """
        space, before = self.space, self.state.questions.waiting.values()
        asked = await self._client.calls()
        self.asked_in = frozenset(each.space_id for each in asked if each.space_id and each.mode == "pause")
        still = {each.id for each in asked}
        gone = [await self._as_it_stands(each) for each in before if each.id not in still]
        nowhere = [each for each in asked if each.space_id is None and concerns(each, space)]
        for call in [*gone, *nowhere]:
            if space is not None and self.space is not None and space.id == self.space.id:
                await self._feed(call)

    async def _as_it_stands(self, call: Call) -> Call:
        try:
            return await self._client.call(call.id)
        except RequestRefused:
            # Its agent left our spaces, or it was forgotten: it is not ours to answer any more.
            return call.model_copy(update={"state": "cancelled"})

    def _count_unread(self) -> None:
        here = self.space.id if self.space is not None else ""
        for space in self.spaces:
            if space.id == here:
                self.space = space
            new = space.last_seq - self._seen_of(space)
            self.unread[space.id] = 0 if space.id == here else max(new, 0)

    def _seen_of(self, space: Space) -> int:
        """Returns how far this person has read there: as the server knows, or newer here."""
        return max(space.read_seq, self._read.get(space.id, 0))

    def _mark_read(self, space: Space, seq: int) -> None:
        """Marks what was shown as read on every device; sent in the background, so that nobody waits for it."""
        if seq > self._seen_of(space):
            self._read[space.id] = seq
            self._unmarked.add(space.id)
            self._something_read.set()

    async def _mark(self) -> None:
        while True:
            await self._something_read.wait()
            self._something_read.clear()
            await self._tell_what_was_read()

    async def _tell_what_was_read(self) -> None:
        """Once for each space, however much was shown there meanwhile. If it fails now, it is sent later."""
        async with self._telling:  # So that leaving waits for what is on its way.
            for space_id in list(self._unmarked):
                self._unmarked.discard(space_id)
                try:
                    await self._client.mark_read(space_id, self._read[space_id])
                except ServerUnreachable:
                    self._unmarked.add(space_id)
                except RequestRefused:
                    continue  # The person is not a member any more.

    # Input

    async def _obey(self, line: str) -> bool:
        """Executes the line; returns False if it says to quit."""
        match read_line(line):
            case None:
                # Files need no text.
                if self._attached:
                    await self._speak("")
            case Mistyped(sentence):
                await self._note(sentence, "yellow")
            case Say(text):
                await self._speak(text)
            case Command("/quit", _):
                return False
            case Command(name, argument):
                try:
                    await self._command(name, argument)
                except DenizenError as error:
                    await self._note(str(error), "yellow")
        return True

    async def _speak(self, text: str) -> None:
        if self.space is None:
            try:
                await self._command("/join", text)
            except DenizenError as error:
                await self._note(str(error), "yellow")
            return
        outgoing = UnsentMessage(self.space.id, text, [each.id for each in self._attached])
        self._attached = []
        self.outgoing.append(outgoing)
        self._sending.put_nowait(outgoing)
        self._display.refresh()

    async def _command(self, name: str, argument: str) -> None:
        match name:
            case "/join":
                self.spaces = await self._client.spaces()
                await (self._enter(find_space(self.spaces, argument, self.me)) if argument else self._list_spaces())
            case "/spaces":
                self.spaces = await self._client.spaces()
                self._count_unread()
                await self._list_spaces()
            case "/who":
                ids = [member.id for member in self.thinkers()]
                await self._display.show(rendering.table_of_members(self.members(), ids, self.state.paused, self.me.id))
            case "/agents":
                await self._display.show(rendering.table_of_agents(await self._client.agents()))
            case "/retry" | "/ask":
                await self._act(name, argument)
            case "/stop":
                await self.stop(argument)
            case "/more":
                await self._more()
            case "/attach":
                await self._attach(argument)
            case "/files" | "/save":
                await self._show_or_save_files(name, argument)
            case "/react":
                await self._react(argument)
            case "/pin":
                await self._pin(argument)
            case "/pins":
                await self._list_pins()
            case "/answer" if not argument:
                await self._display.show(rendering.table_of_questions(self.state.questions, self._names()))
            case "/answer" | "/yes" | "/no":
                await self._answer(name, argument)
            case _:
                await self._display.show(rendering.table_of_commands())

    async def _list_spaces(self) -> None:
        here = self.space.id if self.space is not None else ""
        await self._display.show(rendering.table_of_spaces(self.spaces, here, self.unread, self.me.id))

    async def _answer(self, command: str, typed: str) -> None:
        call, result = read_answer(self.state.questions, command, typed)
        try:
            answered = await self._client.answer(call.id, result)
        except ServerUnreachable as error:
            await self._note(f"Not answered: {error}", "red")
            self._display.give_back(f"{command} {typed}".strip())
        except RequestRefused as error:
            await self._note(f"Not answered: {error}", "yellow")
            await self._feed(await self._as_it_stands(call))
        else:
            await self._feed(answered)

    async def _act(self, command: str, named: str) -> None:
        """Applies the command to the statuses of this space: for one agent, or for all it fits."""
        action = {"/retry": "try_again", "/ask": "ask"}[command]
        wanted = named.removeprefix("@").casefold()
        handles = {member.id: member.handle for member in self.members()}
        fitting = {
            each.agent_id: each.name
            for each in self.state.statuses
            if each.agent_id is not None
            and action in each.actions
            and wanted in ("", each.name.casefold(), handles.get(each.agent_id, "").casefold())
        }
        if self.space is None or not fitting:
            await self._note("No agent here waits for that.", "yellow")
            return
        for agent_id, name in fitting.items():
            if action == "try_again":
                await self._client.try_again(agent_id, space=self.space.id)
                await self._note(f"{name} tries again.")
            else:
                await self._client.ask_for_answer(self.space.id, agent_id)
                await self._note(f"{name} is asked for an answer.")

    async def stop(self, named: str = "") -> None:
        """Stops what the agents of this space, or the one named, are writing."""
        if self.space is None:
            return
        wanted = named.removeprefix("@").casefold()
        meant = next(
            (each for each in self.members() if wanted in (each.name.casefold(), each.handle.casefold())), None
        )
        if wanted and meant is None:
            await self._note(f"There is no {named} in this space. /who lists its members.", "yellow")
            return
        stopped = await self._client.stop(self.space.id, None if meant is None else meant.id)
        if not stopped:
            await self._note("No agent is writing here.", "yellow")

    async def _attach(self, path: str) -> None:
        if path:
            self._attached.append(await attaching.upload(self._client, path))
        elif not self._attached:
            await self._note("No files go with your next message. /attach PATH adds one.")
            return
        names = "; ".join(attaching.file_line(each) for each in self._attached)
        await self._note(f"With your next message: {names}. Write it, or press Enter to send only the files.")

    async def _show_or_save_files(self, command: str, typed: str) -> None:
        messages = await self._client.messages(self._here().id, limit=attaching.LOOKED_AT)
        found = attaching.files_in(messages)
        if command == "/save" and typed:
            await self._note(f"Saved as {await attaching.save(self._client, found, typed)}.")
        elif not found:
            await self._note(f"The last {attaching.LOOKED_AT} messages have no files.")
        else:
            await self._note("\n".join(f"{attaching.file_line(each)}: /save {each.name}" for each in found))

    async def _react(self, typed: str) -> None:
        emoji, _, words = typed.partition(" ")
        if not emoji:
            raise InvalidInput("Name the emoji: /react 👍, or /react 👍 WORDS of the message.")
        space = self._here()
        messages = await self._client.messages(space.id, limit=marking.LOOKED_AT)
        message = marking.message_meant(messages, words.strip(), not_by=self.me.id)
        removes = marking.has_reacted(message, emoji, self.me.id)
        change = self._client.remove_reaction if removes else self._client.react
        await self._tell_marks(message, await change(space.id, message.id, emoji))

    async def _pin(self, words: str) -> None:
        space = self._here()
        message = marking.message_meant(await self._client.messages(space.id, limit=marking.LOOKED_AT), words)
        change = self._client.pin if message.pinned_at is None else self._client.unpin
        await self._tell_marks(message, await change(space.id, message.id))

    async def _tell_marks(self, before: Message, now: Message) -> None:
        """Say what changed, unless the stream was quicker; also of a message that is not displayed."""
        self.state = replace(self.state, shown={before.id: before, **self.state.shown})
        await self._feed(MessageChanged(now))

    async def _list_pins(self) -> None:
        pinned = await self._client.pins(self._here().id)
        if not pinned:
            await self._note("Nothing is pinned here. /pin WORDS pins a message.")
            return
        await self._note(
            "\n".join(f"📌 {rendering.printable(each.author.name)}: {marking.quoted(each)}" for each in pinned)
        )

    def _here(self) -> Space:
        if self.space is None:
            raise InvalidInput("Go to a space first: /join NAME.")
        return self.space

    async def _more(self) -> None:
        if self.space is None or self._oldest <= 1:
            await self._note("There is nothing before this.")
            return
        earlier = await self._client.messages(self.space.id, before=self._oldest, limit=HISTORY)
        self._oldest = earlier[0].seq if earlier else 1
        await self._display.begin("earlier")
        await self._display.say(earlier, self.me.id)
        await self._display.begin("up to here" if self._oldest > 1 else "that was all, up to here")

    async def _note(self, sentence: str, style: str = "dim") -> None:
        await self._display.show(rendering.note(sentence, style))


def first_space(spaces: Sequence[Space], wanted: str | None, last: str | None, me: Me) -> Space | None:
    """Returns the wanted space, otherwise this person's last one, otherwise the only one."""
    if wanted is not None:
        return find_space(spaces, wanted, me)
    if len(spaces) == 1:
        return spaces[0]
    return next((space for space in spaces if space.id == last), None)


def _others(space: Space, me: Me) -> str:
    names = [member.name for member in space.members if member.id != me.id]
    if not names:
        return "Nobody"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
