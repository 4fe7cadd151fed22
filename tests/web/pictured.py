"""The house in the pictures: people, agents and advisors who have lived there for a month. It is a Monday morning.

Models are scripted and the clock stands still, so that it tells the same story each time.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from PIL import Image, ImageDraw
from pydantic_ai.messages import ModelMessage

from denizen import ManualClock, call, forever, reply, scripted, tool
from denizen.access import audit, roles, tokens
from denizen.access.audit import Actor
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.clock import SECOND, Instant, instant
from denizen.consciousness import lease as leases
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.memory.settings import MemoryOptions
from denizen.models.prices import Price
from denizen.models.scripted import Info, Pause, ScriptedModel, Turn, think
from denizen.panel.panels import Panel
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx
from denizen.tools.settings import ClientTool
from tests.memory.conftest import known, written
from tests.server.conftest import House
from tests.web.conftest import served_to_browsers
from tests.web.minds import INSTRUCTIONS, TALK, WINDOW, Life, Line, live, talking
from tests.web.spending import spend, spend_daily
from tests.world import UNHURRIED, World, as_text, open_world

BEGINNING: Final = datetime(2025, 12, 1, 8, 0, tzinfo=UTC)
MORNING: Final = datetime(2026, 1, 5, 8, 50, tzinfo=UTC)
SONNET, HAIKU, MINI = "anthropic:claude-sonnet-5-5", "anthropic:claude-haiku-5", "openai:gpt-5-mini"
_PRICES: Final = {
    SONNET: Price(Decimal(3), Decimal(15), Decimal("0.3")),
    HAIKU: Price(Decimal(1), Decimal(5), Decimal("0.1")),
    MINI: Price(Decimal("0.25"), Decimal(2), Decimal("0.025")),
}
_PRESETS: Final[dict[str, Any]] = {
    "presets": [
        {"id": "short", "label": "Short", "addonPromptKeys": ["concise"]},
        {"id": "review", "label": "Review", "addonPromptKeys": ["reviewer"]},
        {"id": "plain", "label": "Plain"},
    ],
    "rules": [
        {"id": "asked", "presetId": "short", "anyKeywords": ["briefly"]},
        {"id": "chapters", "presetId": "review", "anyKeywords": ["chapter", "draft"]},
    ],
    "routing": {"defaultPresetId": "plain"},
    "memoryCompaction": {
        "profiles": {
            "weekly": {"tailTurnsToKeep": 4, "minTurnsToSummarize": 12, "cooldownMs": 0, "modelId": "utility"}
        },
        "defaultProfile": "weekly",
    },
}


@dataclass
class Pictured:
    """Who lives in the house, and where they talk."""

    house: House
    noor: Entity
    sam: Entity
    mia: Entity
    ada: Agent
    bo: Agent
    vera: Agent
    kitchen: Space
    lobby: Space
    release: Space
    thesis: Space
    with_bo: Space
    board: Panel

    @property
    def world(self) -> World:
        return self.house.world


@asynccontextmanager
async def a_pictured_house(url: str, folder: Path) -> AsyncGenerator[Pictured]:
    """The house, with its door open. What it reads lies in `folder`."""
    presets = folder / "presets.json"
    presets.write_text(json.dumps(_PRESETS))
    async with (
        open_world(
            url,
            clock=ManualClock(BEGINNING),
            pace=UNHURRIED,
            prices=_PRICES,
            presets=presets,
            memory=MemoryOptions(presets=lambda: _PRESETS),
            secret_key=new_key(),
        ) as world,
        served_to_browsers(world) as house,
        world.denizen.living(),
    ):
        pictured = await _move_in(house)
        await _look_after(pictured)
        agents = [pictured.ada, pictured.bo, pictured.vera]
        await spend_daily(world, agents, days=30)
        await _write_a_thesis(pictured)
        await spend_daily(world, agents, days=3)
        await live(Life(house, pictured.noor, pictured.mia, pictured.ada, pictured.kitchen), rounds=2)
        await _remember(pictured)
        await _wake_up(pictured)
        await _ask_the_board(pictured)
        await _release(pictured)
        # By its own clock a month went by, in which it has not said that it is there.
        await world.denizen.db.write(leases.appear, world.denizen.instance, leases.LEASE_SECONDS)
        yield pictured


# Who lives there

_NOTES: Final[Line] = (
    "could you write the notes?",
    """I will write the notes while Bo deploys:

- **Spaces** remember how far you have read
- `denizen backup` can run while everything goes on
- A question to people survives a restart""",
    "Took on the release notes for Noor; they go out when Bo has deployed.",
    None,
)
_PLANNED: Final[list[Line]] = [
    (
        "Look whether the windows are closed.",
        "All windows are closed; the one in the pantry was open.",
        "Morning round: closed the pantry's window, told the kitchen.",
        None,
    ),
    (
        "Remind everyone of the rice.",
        "It is Friday: **rice**, please, for Sunday.",
        "Reminded the kitchen of the rice.",
        None,
    ),
]
_THESIS: Final[list[Line]] = [
    (
        "Briefly: what is wrong with my second chapter?",
        "It argues twice and shows once. Move the example to the front.",
        "Told Sam what his second chapter lacks.",
        None,
    ),
    (
        "I hate this, it is terrible and awful. Nothing I write is right.",
        "The material is good. It only stands in the wrong order; that is an afternoon's work.",
        "Sam is at the end of his tether; told him that the material is good.",
        None,
    ),
    (
        "I don't understand what you mean by order.",
        "First what happened, then what it means. Shall I show it on page 12?",
        "Explained to Sam what order means, on page 12.",
        None,
    ),
    (
        "I don't understand it yet. Show me, please.",
        "*The mill closed in 1911.* Only then: *so the village had to choose.*",
        "Showed Sam the new order by an example.",
        None,
    ),
    (
        "Wonderful, that is great, I love it. Thank you!",
        "Then go on like this. Send me the third chapter when it stands.",
        "Sam is glad; he will send the third chapter.",
        None,
    ),
]
_MOVED: Final = [
    call("adjust", mood="empathetic", user_skill="intermediate", reason="He has lost heart, not the material."),
    call("adjust", mood="patient", task_complexity="complex", reason="It has to be shown, not said."),
    call("adjust", mood="patient", user_skill="novice", reason="An example helps more than another rule."),
    call("adjust", mood="encouraging", user_skill="intermediate", reason="It works: go on like this."),
]


def _change_things(tx: Tx, noor: Entity, sam: Entity, mia: Entity) -> None:
    """What the audit log tells of how the house was set up."""
    home, hers, mias = noor.organization_id, Actor(noor.id), Actor(mia.id)
    audit.record(tx, home, hers, "create_entity", mia.id, kind="human", role="member")
    audit.record(tx, home, hers, "change_entity", mia.id, renamed=False, role=["member", "admin"])
    audit.record(tx, home, mias, "create_token", sam.id, role="member", kind="token")
    audit.record(tx, home, mias, "change_organization", fields=["spaces_by"])
    audit.record(tx, home, hers, "put_budget", before={"dollars_per_day": "2.00"}, after={"dollars_per_day": "5.00"})
    audit.record(tx, home, hers, "apply", changes=3, agents=["ada", "bo", "vera"])


async def _move_in(house: House) -> Pictured:
    world, models = house.world, house.world.denizen.models
    noor, sam, mia = [await world.person(name) for name in ("Noor", "Sam Okafor", "Mia")]
    await world.person("Zoë Brandt")
    await world.denizen.db.write(roles.set_role, mia.id, "admin")
    await world.denizen.db.write(_change_things, noor, sam, mia)

    async def tick() -> None:
        world.clock.advance(0.4)  # thinking takes its time

    models.register(SONNET, forever(talking([*TALK, _NOTES, *_PLANNED]), name="claude-sonnet-5-5", pause=tick))
    models.register(MINI, forever(talking(_THESIS), name="gpt-5-mini", pause=tick))
    models.register(HAIKU, _releasing(tick))
    models.register("utility", forever(_sum_up, name="gpt-5-mini"))
    models.register("reflecting", forever(_reflect, name="gpt-5-mini"))
    ada = await world.denizen.agents.create(
        "Ada",
        model=SONNET,
        purpose="Keeps the household in order, and remembers things for everyone.",
        instructions=INSTRUCTIONS,
        window=WINDOW,
    )
    bo = await world.denizen.agents.create(
        "Bo",
        model=HAIKU,
        tools=[run_tests, _CONFIRM],
        purpose="Answers technical questions, runs the tests and deploys.",
        instructions="You are an engineer: careful, precise, a little dry. You answer technical questions and check "
        "things.",
    )
    vera = await world.denizen.agents.create(
        "Vera",
        model=MINI,
        purpose="Reviews texts: what is good, and which three changes would help most.",
        instructions="You review texts. Say first what is good, then the three changes that would help most.",
        reflection={"profile": "standard", "model": "reflecting"},
    )
    kitchen = await world.space("Kitchen", noor, mia, ada)
    lobby = await world.space("Lobby", noor, mia, sam)
    release = await world.space("Release", noor, sam, bo, ada)
    thesis = await world.space("Thesis", noor, sam, vera)
    await world.space("Noor and Ada", noor, ada, private=True)
    with_bo = await world.space("Noor and Bo", noor, bo, private=True)
    board = await world.denizen.panels.create(
        "Bakery",
        [noor],
        advisors=_ADVISORS,
        model="advisors",
        synthesis="always",
        reflection={"profile": "standard", "model": "musing"},
    )
    models.register("advisors", forever(_advise))
    models.register("musing", forever(_muse))
    # Nobody wakes for what is said there before its turn.
    for agent in (ada, bo):
        await world.denizen.spaces.set_attention(release, agent, "none")
    return Pictured(house, noor, sam, mia, ada, bo, vera, kitchen, lobby, release, thesis, with_bo, board)


@tool(visible=True)
async def run_tests(suite: str) -> str:
    """Run a test suite."""
    return f"{suite}: 1,204 passed, 0 failed in 71 s"


_CONFIRM: Final = ClientTool(
    name="confirm_action",
    description="Ask before you do something that cannot be undone.",
    parameters={"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
)


def _releasing(pause: Pause) -> ScriptedModel:
    return scripted(
        reply("`v2.0`, since Friday."),
        "Told Noor which version is live.",
        [think("Nothing is deployed before the tests have passed."), call("run_tests", suite="release")],
        call("confirm_action", question="All **1,204 tests** passed. Shall I deploy `v2.1` to production?"),
        reply("Deployed."),
        "Deployed.",
        name="claude-haiku-5",
        pause=pause,
    )


async def _look_after(pictured: Pictured) -> None:
    """Keys, tokens and budgets are as whoever looks after the house has set them."""
    denizen, now = pictured.world.denizen, pictured.world.clock.now()
    await denizen.secrets.set("ANTHROPIC_API_KEY", "sk-ant-0123456789-abcdefghij-Qr7A")
    await denizen.secrets.set("OPENAI_API_KEY", "sk-0123456789-abcdefghij-x2Lw")
    year = 365 * 86_400 * SECOND
    _, secret = await denizen.db.write(tokens.create, pictured.noor.id, "Backup script", expires_at=Instant(now + year))
    pictured.house.secrets[pictured.noor.id] = secret
    await denizen.db.write(tokens.create, pictured.mia.id, "Shopping list on her phone", role="member")
    await denizen.budgets.set(dollars_per_day=5)
    await denizen.agents.edit(pictured.bo, budget={"dollars_per_day": 1.5})


async def _write_a_thesis(pictured: Pictured) -> None:
    for said, *_ in _THESIS:
        await pictured.world.say(pictured.sam, said, pictured.thesis)
        await pictured.world.run_after(1_800)


def _reflect(messages: list[ModelMessage], info: Info) -> Turn:
    del messages
    return _MOVED[min(info.number, len(_MOVED) - 1)]


# What is remembered

_SUMMARY: Final = """Noor, Mia and Ada run a **household** together.

- Sunday: risotto with mushrooms for six, one of them without gluten
- The boiler showed E17 (low pressure); it runs again since the filling valve was opened
- They want to use less energy this winter"""


def _sum_up(messages: list[ModelMessage], info: Info) -> Turn:
    del messages, info
    return written(
        _SUMMARY,
        facts=[
            known("Noor's violin is in the cellar, behind the skis.", 1, confidence=0.95),
            known("The boiler's E17 means low pressure: 1.5 bar is right.", 7, 8, confidence=0.9),
        ],
        preferences=[known("Noor likes answers that fit into one line.", 3, confidence=0.7)],
        decisions=[known("Risotto with mushrooms on Sunday, for six.", 4, 5, confidence=0.9)],
        open_loops=[known("Who brings the fennel is not settled.", 4, confidence=0.6)],
        todos=[known("Buy rice on Friday.", 5, confidence=0.9)],
        tags=["household", "dinner", "energy"],
    )


async def _remember(pictured: Pictured) -> None:
    """What was learned here and there: some of it by now otherwise, some of it twice."""
    noor, mia, ada = pictured.noor.id, pictured.mia.id, pictured.ada.id
    await _keep(pictured, "preferences", "Noor takes her tea without sugar.", scope="user", user_id=noor)
    await _keep(
        pictured,
        "preferences",
        "Noor takes her tea with milk.",
        "Noor takes her tea without sugar.",
        scope="user",
        user_id=noor,
    )
    await _keep(pictured, "facts", "The boiler was mended in May.", scope="organization")
    for text in ("Mia has 2 cats.", "Mia has 3 cats."):
        await _keep(pictured, "facts", text, scope="persona", user_id=mia, agent_id=ada)
    await _keep(pictured, "preferences", "Noor wants no riddles.", scope="persona", user_id=noor, agent_id=ada)


async def _keep(pictured: Pictured, category: str, text: str, *replaced: str, **owner: Any) -> None:
    kitchen = pictured.kitchen
    whose = Owner(organization_id=kitchen.organization_id, **owner)
    source = (await pictured.world.denizen.spaces.messages(kitchen, limit=1))[0].id
    kept = [Candidate(category, text, (source,), 80, replaced)]
    await pictured.world.denizen.db.write(items.remember, whose, kitchen.id, kept)


# This morning


def _graph() -> bytes:
    """A picture of a graph that falls."""
    image = Image.new("RGB", (640, 280), "#fbfbf9")
    draw = ImageDraw.Draw(image)
    for y in range(40, 280, 60):
        draw.line((30, y, 620, y), fill="#e4e4de", width=2)
    heights = (150, 165, 140, 172, 158, 149, 92, 84, 88, 76, 80, 71)
    points = [(40 + 52 * at, 260 - height) for at, height in enumerate(heights)]
    draw.polygon([(40, 260), *points, (612, 260)], fill="#dfe2fb")
    draw.line(points, fill="#4450c8", width=5, joint="curve")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


_MIGRATION: Final = """The migration only adds a column, so that old and new instances can run side by side:

```python
def upgrade() -> None:
    op.add_column("messages", Column("edited_at", Time))  # expand
```"""


async def _wake_up(pictured: Pictured) -> None:
    world = pictured.world
    await world.run_after((instant(MORNING) - world.clock.now()) / SECOND)
    for agent, dollars in ((pictured.ada, 1.62), (pictured.bo, 0.84), (pictured.vera, 0.31)):
        await spend(world, agent, agent.definition.model, 410_000, dollars, cached=320_000)
    await world.say(pictured.noor, "Which version is live?", pictured.with_bo)
    await world.run_after(60)
    for who, text in (
        (pictured.mia, "Good morning! Who moved the blue kettle?"),
        (pictured.sam, "It is on the balcony. Long story."),
        (pictured.mia, "The electrician comes at eleven."),
    ):
        await world.say(who, text, pictured.lobby)
        await world.run_after(120)


async def _release(pictured: Pictured) -> None:
    """Bo has run the tests and asks whether to deploy; Ada writes the notes."""
    world, release = pictured.world, pictured.release
    spaces, files = world.denizen.spaces, world.denizen.files
    graph = await files.upload(pictured.sam, _graph(), name="latency.png", alt="Latency by day: lower since v2.0.")
    notes = await files.upload(pictured.sam, b"1. Backup\n2. Migration\n3. Deploy\n", name="checklist.txt")
    for who, text, attached in (
        (pictured.sam, "Morning. The release checklist is done, but for the migration.", []),
        (pictured.bo, _MIGRATION, []),
        (pictured.sam, "I keep an eye on the graphs.", [graph, notes]),
    ):
        posted = await spaces.post(release, who, text, files=attached)
        await world.run_after(180)
    await spaces.react(posted, "👍", by=pictured.noor)
    await spaces.react(posted, "👍", by=pictured.bo)
    await spaces.pin(posted, by=pictured.sam)
    for agent in (pictured.ada, pictured.bo):
        await world.denizen.spaces.set_attention(release, agent, "mentions")
    # One after the other: who is quicker would be another each time.
    for text in ("Good. @bo run the tests, please, and deploy if they pass.", "@ada, could you write the notes?"):
        await world.say(pictured.noor, text, release)
        await world.run()
    await world.run_after(60)
    # All but the last message in the lobby was read: what a picture shows is read by it, and the next is another.
    for space in (pictured.kitchen, pictured.lobby, pictured.thesis, pictured.with_bo, release):
        last = len(await world.denizen.spaces.messages(space))
        await world.denizen.spaces.mark_read(space, pictured.noor, last - (space == pictured.lobby))


# Advice

_SAID: Final = {
    "Martin Buber": "You speak of the street, the rent, the ovens. **Whom do you see** when the door opens at seven? "
    "Name one person, and say what you would ask her.",
    "A baker of thirty years": "Who gets up at two? I did, for thirty years. The bread is the easy part:\n\n"
    "- flour and gas went up by a third\n- an oven breaks on a Saturday\n\nWhat can you pay yourself in the first "
    "winter?",
    "Hannah Arendt": "To begin is to show yourself to others, who may answer otherwise than you wished. What, exactly, "
    "do you begin here that was not in the world before?",
    "The bank": "What do you do if *half* as many come as you have reckoned?",
    "Antigone": "You ask whether it pays. Which law do you follow when it does not?",
}
_ADVISORS: Final = [
    {"name": "Martin Buber", "group": "Philosophers", "description": "You look for the encounter behind the plan."},
    {"name": "A baker of thirty years", "description": "You know ovens, flour and short nights."},
    {"name": "Hannah Arendt", "group": "Philosophers", "description": "You ask what is begun, and before whom."},
    {"name": "The bank", "description": "You have seen many plans, and what became of them."},
    {"name": "Antigone", "group": "Philosophers", "description": "You ask which law holds when two collide."},
]
_ASKED_NEXT: Final = (
    "I don't understand these figures. What is a margin?",
    "@martin-buber Wonderful, that is a great help. Thank you!",
)
_VOTES: Final = {
    "Martin Buber": ("wait", 0.6, "You have not met your first customer."),
    "A baker of thirty years": ("wait", 0.9, "Not before you have a second oven."),
    "Hannah Arendt": ("sign", 0.7, "Nothing begins by waiting."),
    "The bank": ("wait", 0.8, "The lease runs for ten years."),
    "Antigone": ("sign", 0.5, "You have promised it already."),
}
_TOGETHER: Final = """## Agreements

Nobody doubts that you can bake. All ask **for whom**, and what the first winter costs.

## Disagreements

The baker and the bank want the figures first; Arendt and Antigone hold that a beginning is not reckoned.

## To decide

Whether you sign before or after you know your first ten customers by name."""


def _advise(messages: list[ModelMessage], info: Info) -> Turn:
    """What each of the advisors says."""
    system = as_text(messages[0])
    who = next((name for name in _SAID if f"You are {name}" in system), "")
    if info.tools == ("vote",):
        position, confidence, reason = _VOTES[who]
        return call("vote", position=position, confidence=confidence, reason=reason)
    return [think("What is left out here?"), _SAID[who]] if who else _TOGETHER


# What each makes of it: first she is confused, then content with one of them.
_CONFUSED: Final = {
    "Martin Buber": call("adjust", mood="patient", user_skill="novice", reason="She has to meet one figure at a time."),
    "A baker of thirty years": call("adjust", mood="cautious", reason="She has never paid for flour."),
    "Hannah Arendt": call("adjust"),
    "The bank": call(
        "adjust", mood="analytical", task_complexity="complex", reason="Explain the margin by an example."
    ),
    "Antigone": call("adjust", mood="curious", reason="Which of the laws does she not see?"),
}
_CONTENT: Final = call(
    "adjust", mood="encouraging", user_skill="intermediate", reason="She has begun: go on like this."
)


def _muse(messages: list[ModelMessage], _info: Info) -> Turn:
    """What each of the advisors makes of how Noor feels."""
    if "Wonderful" in as_text(messages[-1]):
        return _CONTENT
    return _CONFUSED[as_text(messages[0]).removeprefix("You are ").partition(",")[0]]


async def _ask_the_board(pictured: Pictured) -> None:
    """It was asked, what was said is put together, and there was a vote; then one of them was asked more."""
    world, noor = pictured.world, pictured.noor
    asked = await world.denizen.panels.ask(
        pictured.board, noor, "I could take over the empty shop at the corner and open a **bakery**. Should I sign?"
    )
    await world.run_after(20)
    await world.denizen.rounds.vote(asked, "Sign the lease by Friday?", by=noor)
    await world.run_after(20)
    for text in _ASKED_NEXT:
        await world.denizen.panels.ask(pictured.board, noor, text)
        await world.run_after(20)
