"""Renders a conversation: Rich renderables for messages, days and lists. Pure.

Texts of others must not control the terminal: `printable` makes control characters visible first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Final

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from denizen.amounts import human_size
from denizen.cli.chat import wording
from denizen.cli.chat.namesakes import namesakes
from denizen.cli.chat.questions import Ended, News, PendingQuestion, Questions, Used, how_to_accept
from denizen.cli.chat.typed import COMMANDS
from denizen.cli.console import printable
from denizen.client import Agent, Member, Message, Space
from denizen.shortening import short_line

COLOURS: Final = ("cyan", "magenta", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_blue", "bright_yellow")
OWN_COLOUR: Final = "green"
MARKDOWN_CHARACTERS: Final = 20_000
"""Longer texts are shown as they are: formatting them would take too long."""
DETAIL_CHARACTERS: Final = 500
"""Longer arguments of a question are cut."""
WAITS: Final = "waits for an answer"
"""How the status `paused` of an agent is shown."""
_INDENT: Final = "  "


def colour_of(name: str, *, own: bool) -> str:
    """Returns the colour of a name: always the same, and the user's own is nobody else's."""
    if own:
        return OWN_COLOUR
    return COLOURS[hashlib.blake2s(printable(name).encode(), digest_size=2).digest()[0] % len(COLOURS)]


def author_line(name: str, note: str, *, own: bool) -> Text:
    """Renders the author of a message, with a time or a note."""
    return Text.assemble(
        (printable(name), f"bold {colour_of(name, own=own)}"),
        ("  " + note, "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )


def body(text: str) -> ConsoleRenderable:
    """Renders a text as Markdown, indented by two."""
    clean = printable(text)
    if len(clean) > MARKDOWN_CHARACTERS:
        return _Indented(Text(clean))
    # Links show their address: the text alone may be misleading.
    # Imported here: many commands use this module, and few show Markdown.
    from rich.markdown import Markdown

    return _Indented(Markdown(clean, hyperlinks=False, code_theme="ansi_dark"))


class _Indented:
    """Indented by two, without the blank lines around and the trailing blanks of Rich's Markdown."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inside = options.update_width(max(options.max_width - len(_INDENT), 1))
        lines = [_without_blanks(line) for line in console.render_lines(self._inner, inside, pad=False)]
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        for line in lines:
            yield from [Segment(_INDENT), *line] if line else []
            yield Segment.line()


def _without_blanks(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and (kept[-1].style is None or kept[-1].style.bgcolor is None):
        text, style, control = kept.pop()
        if text := text.rstrip(" "):
            return [*kept, Segment(text, style, control)]
    return kept


def local(moment: datetime) -> datetime:
    """Converts the time to this machine's time zone."""
    return moment.astimezone()


def message_block(message: Message, own_id: str) -> Iterator[ConsoleRenderable]:
    """Renders a message: an empty line, author and time, text."""
    yield Text("")
    at = f"{local(message.created_at):%H:%M}"
    yield author_line(message.author.name, at, own=message.author.id == own_id)
    if message.text:
        yield body(message.text)
    for file in message.files:
        shows = f', "{printable(file.alt)}"' if file.alt else ""
        about = f"{printable(file.name)} ({human_size(file.size)}{shows})"
        yield Text(f"  📎 {about}: /save {printable(file.name)}", style="dim")
    if message.pinned_at is not None or message.reactions:
        yield Text(f"  {marks(message)}", style="dim")


def marks(message: Message) -> str:
    """Renders the pin and the reactions of a message: `📌 pinned  👍 2  🎉`."""
    pinned = ["📌 pinned"] if message.pinned_at is not None else []
    counted = [f"{printable(each.emoji)}{f' {len(each.by)}' if len(each.by) > 1 else ''}" for each in message.reactions]
    return "  ".join([*pinned, *counted])


def conversation(
    messages: Iterable[Message], own_id: str, last_day: date | None
) -> tuple[list[ConsoleRenderable], date | None]:
    """Renders the messages with a line where a day begins; returns the day of the last one as well."""
    blocks: list[ConsoleRenderable] = []
    for message in messages:
        day = local(message.created_at).date()
        if day != last_day:
            blocks += [Text(""), separator(day_name(day))]
            last_day = day
        blocks += message_block(message, own_id)
    return blocks, last_day


def day_name(day: date) -> str:
    return f"{day:%A}, {day.day} {day:%B %Y}"


def separator(title: str) -> ConsoleRenderable:
    return Rule(Text(printable(title), style="dim", overflow="ellipsis", no_wrap=True), style="dim")


def note(sentence: str, style: str = "dim") -> Text:
    """A line that is not part of the conversation."""
    return Text(printable(sentence), style=style)


def news_block(news: News, names: Mapping[str, str]) -> Iterator[ConsoleRenderable]:
    """Renders what is new about a call; `names` are those of the members, by id."""
    match news:
        case PendingQuestion():
            yield from _question(news, names)
        case Ended(call, number):
            yield note(wording.ended(call, number, names.get(call.settled_by or "", "Someone")))
        case Used(call):
            yield note(wording.used(call, names.get(call.agent_id, "Someone")))


def _question(asked: PendingQuestion, names: Mapping[str, str]) -> Iterator[ConsoleRenderable]:
    call, number = asked.call, "" if asked.number is None else f" {asked.number}"
    yield author_line(
        names.get(call.agent_id, "Someone"), f"asks{number}: {printable(wording.in_words(call))}", own=False
    )
    if asked_for := wording.sentence(call):
        yield body(asked_for)
    for line in wording.details(call):
        yield _Indented(Text(printable(short_line(line, DETAIL_CHARACTERS))))
    own_words = f"/yes{number}, /no{number}, or /answer{number} and your own words"
    accept = how_to_accept(call, number)
    yield _Indented(note(own_words if call.mode != "elicitation" else f"{accept}, or /no{number}"))
    if asked.others:
        besides = ", ".join(f"{each} “{wording.in_short(other)}”" for each, other in asked.others.items())
        yield _Indented(note(f"Besides waits: {besides}"))


def plain_line(message: Message) -> str:
    """The message without a terminal: the author, a colon, the text."""
    files = [f"[{printable(file.name)}, {human_size(file.size)}]" for file in message.files]
    return f"{printable(message.author.name)}: {' '.join([printable(message.text), *files]).strip()}"


def table_of_spaces(spaces: Sequence[Space], here: str, unread: Mapping[str, int], own_id: str) -> Table:
    """Lists the user's spaces: the present one, their names, members, and unread messages."""
    table, hints = _table(3), namesakes(spaces, own_id)
    for space in spaces:
        new = unread.get(space.id, 0)
        others = ", ".join(printable(member.name) for member in space.members if member.id != own_id)
        mark = Text("▸ " if space.id == here else "  ", style="bold")
        name = Text(printable(space.name), style="bold" if space.id == here or new else "")
        if space.id in hints:
            name.append(f" ({printable(hints[space.id])})", style="dim")
        table.add_row(mark + name, Text(others, style="dim"), Text(f"{new} new" if new else "", style="yellow"))
    return table


def table_of_questions(questions: Questions, names: Mapping[str, str]) -> ConsoleRenderable:
    """Lists the questions that wait for an answer, or may still be answered."""
    if not questions.known:
        return note("Nobody waits for an answer here.")
    table = _table(4)
    for number, call in questions.known.items():
        name = names.get(call.agent_id, "Someone")
        how = "" if call.state == "waiting" else "waits no longer; a late answer reaches the agent"
        table.add_row(
            Text(f"  {number}", style="cyan"),
            Text(printable(name), style=colour_of(name, own=False)),
            Text(printable(wording.whole(call))),
            Text(how, style="dim"),
        )
    return table


def table_of_members(members: Sequence[Member], thinking: Sequence[str], paused: Collection[str], own_id: str) -> Table:
    """Lists the members of the space."""
    table = _table(3)
    for member in members:
        how = "you" if member.id == own_id else "thinking" if member.id in thinking else member.kind
        how = WAITS if member.id in paused else how
        name = Text(printable(member.name), style=colour_of(member.name, own=member.id == own_id))
        table.add_row(Text("  ") + name, Text(f"@{member.handle}"), Text(how, style="dim"))
    return table


def table_of_agents(agents: Sequence[Agent]) -> Table:
    """Lists all agents with their states."""
    table = _table(3)
    for agent in agents:
        name = Text(printable(agent.name), style=colour_of(agent.name, own=False))
        how = {"alive": "thinking", "paused": WAITS}.get(agent.status, agent.status)
        table.add_row(Text("  ") + name, Text(f"@{agent.handle} {how}"), Text(printable(agent.purpose), style="dim"))
    return table


def table_of_commands() -> Table:
    """The table of `/help`."""
    table = _table(2)
    for name, meaning in COMMANDS.items():
        table.add_row(Text(f"  {name}", style="cyan"), Text(meaning))
    table.add_row(Text("  Alt-Enter", style="cyan"), Text("a new line in what you write"))
    table.add_row(Text("  Tab", style="cyan"), Text("completes @names, /commands and names of spaces"))
    return table


def _table(columns: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(columns):
        table.add_column(overflow="fold")
    return table
