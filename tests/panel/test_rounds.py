"""Rounds: everyone is asked at once, nobody waits for who fails, and a round always ends."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.clock import SECOND
from denizen.errors import InvalidInput, ModelOverloaded, ModelRejected, ModelUnreachable, NotFound
from denizen.models.scripted import Info, ScriptedModel, Turn, call, forever, scripted, think
from denizen.panel import history, rounds
from denizen.panel.panels import Panel
from denizen.panel.rounds import ASSISTANT, CAMPS, Round
from denizen.panel.voting import tally
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx
from tests.world import World, as_text, listening

REFERENCE = "[For reference, this is what the other voices said in the last turn:\n\n"

Decide = Callable[[str, list[ModelMessage], Info], Any]


def voices(decide: Decide, **options: Any) -> ScriptedModel:
    """A model for all advisors, which is told by the prompt as whom it speaks."""

    def answer(messages: list[ModelMessage], info: Info) -> Turn:
        system = as_text(messages[0])
        who = system.partition("You are ")[2].partition(".")[0] if system.startswith("You are ") else "nobody"
        return decide(who, messages, info)

    return forever(answer, **options)


def echoing(who: str, messages: list[ModelMessage], _info: Info) -> str:
    """Says who it is, and the last that it was told, without its time."""
    return f"{who}: {as_text(messages[-1]).partition('] ')[2]}"


async def a_panel(world: World, model: ScriptedModel, *advisors: Any, **settings: Any) -> tuple[Entity, Panel]:
    world.denizen.models.register("m", model)
    noor = await world.person("Noor")
    return noor, await world.denizen.panels.create("Board", [noor], advisors=advisors, model="m", **settings)


async def answered(world: World, asked: Round) -> dict[str, str | None]:
    """What each said, or the code of what went wrong."""
    now = await world.denizen.rounds.get(asked)
    return {each.name: each.text if each.state == "done" else each.error_code or each.state for each in now.spoken}


async def in_words(world: World, panel: Panel) -> list[str]:
    """Each round: its place, its kind, and what came of each voice."""
    return [
        f"{each.turn}.{each.step} {each.kind} {each.state}: "
        + ", ".join(f"{said.name} {said.part} {said.state}" for said in each.replies)
        for each in await world.denizen.rounds.list(panel)
    ]


async def test_everyone_answers_and_sees_what_it_may(world: World) -> None:
    """Whole requests, over turns with an advisor that joins late, one that is switched off, and one that is renamed."""
    model = voices(echoing)
    noor, panel = await a_panel(world, model, {"name": "Seth", "description": "You sell."}, "Buber")
    denizen = world.denizen
    await denizen.panels.ask(panel, noor, "One")
    await denizen.run_until_idle()
    seth, buber = await denizen.advisors.list(panel)
    await denizen.advisors.edit(panel, buber, active=False)
    await denizen.advisors.add(panel, "Pema")
    world.clock.advance(60)
    await denizen.panels.ask(panel, noor, "Two")
    await denizen.run_until_idle()
    await denizen.advisors.edit(panel, buber, active=True)
    await denizen.advisors.edit(panel, seth, name="Seth Godin")
    world.clock.advance(60)
    asked = await denizen.panels.ask(panel, noor, "Three")
    await denizen.run_until_idle()

    assert await answered(world, asked) == {
        "Seth Godin": "Seth Godin: Three", "Buber": "Buber: Three", "Pema": "Pema: Three",
    }  # fmt: skip
    said = {as_text(each[0]).partition("\n")[0]: [as_text(line) for line in each[1:]] for each in model.requests[-3:]}
    assert said == {
        "You are Seth Godin. You sell.": [
            "[2026-01-05T09:00] One", "Seth: One", "[2026-01-05T09:01] Two", "Seth: Two",
            f"{REFERENCE}Pema: Pema: Two]",
            "[2026-01-05T09:02] Three",
        ],
        "You are Buber.": [
            "[2026-01-05T09:00] One", "Buber: One", "[2026-01-05T09:01] Two",
            f"{REFERENCE}Seth Godin: Seth: Two\n\nPema: Pema: Two]",
            "[2026-01-05T09:02] Three",
        ],
        "You are Pema.": [
            "[2026-01-05T09:00] One", "[2026-01-05T09:01] Two", "Pema: Two",
            f"{REFERENCE}Seth Godin: Seth: Two]",
            "[2026-01-05T09:02] Three",
        ],
    }  # fmt: skip
    # Phases go by an advisor's own turns.
    phases = {each.name: (each.recipe or {})["phase"] for each in (await denizen.rounds.get(asked)).spoken}
    assert phases["Seth Godin"] == {"name": "question", "turn": 3, "of": 3}
    assert phases["Buber"] == phases["Pema"] == {"name": "question", "turn": 2, "of": 3}
    # What each was shown can be looked at, to the letter.
    shown = await denizen.rounds.context(asked, seth)
    assert shown.exact
    assert [line.text for line in shown.lines[1:]] == said["You are Seth Godin. You sell."]


async def test_twelve_of_whom_three_fail_one_hangs_and_one_is_slow(unhurried_world: World) -> None:
    """The others are unaffected, and the round ends."""
    world = unhurried_world
    hanging, slow = asyncio.Event(), asyncio.Event()
    seven = asyncio.Event()
    done: list[str] = []

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        match who:
            case "A01":
                return ModelRejected("no")
            case "A02":
                return ["Half a ", ModelRejected("broken off")]
            case "A03":
                raise RuntimeError("a defect")
            case "A04":
                await hanging.wait()
            case "A05":
                await slow.wait()
            case _:
                done.append(who)
                if len(done) == 7:
                    seven.set()
        return f"I am {who}."

    names = [f"A{number:02}" for number in range(1, 13)]
    noor, panel = await a_panel(world, voices(decide), *names, first_byte_seconds=20, total_seconds=60)
    denizen = world.denizen
    async with denizen.living():
        asked = await denizen.panels.ask(panel, noor, "Well?")
        await seven.wait()
        await until(denizen.rounds.get, asked, lambda now: sum(each.is_over for each in now.spoken) == 10)
        assert not (await denizen.rounds.get(asked)).all_completed
        slow.set()
        await until(denizen.rounds.get, asked, lambda now: sum(each.is_over for each in now.spoken) == 11)
        while not (now := await denizen.rounds.get(asked)).all_completed:
            world.clock.skip(60)
    assert now.state == "complete"
    assert await answered(world, asked) == {
        "A01": "model_rejected", "A02": "model_rejected", "A03": "internal", "A04": "timed_out",
        **{name: f"I am {name}." for name in names[4:]},
    }  # fmt: skip
    # Nothing of what failed is text, so nothing of it is shown to anyone.
    assert [each.text for each in now.spoken[:4]] == [None] * 4
    assert "a defect" not in json.dumps([each.error for each in now.spoken])


async def test_an_advisor_whose_request_is_cancelled_by_nobody_here_has_failed(small_world: World) -> None:
    """It was handed back as if the process were ending, asked again, and so on, at the provider's price."""
    asked_of: list[str] = []

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        asked_of.append(who)
        return asyncio.CancelledError() if who == "Seth" and asked_of.count("Seth") == 1 else "Here I am."

    noor, panel = await a_panel(small_world, voices(decide), "Seth", "Buber")
    asked = await small_world.denizen.panels.ask(panel, noor, "Well?")
    await small_world.run()
    assert await answered(small_world, asked) == {"Seth": "internal", "Buber": "Here I am."}
    assert sorted(asked_of) == ["Buber", "Seth"]


async def until(look: Callable[[Round], Awaitable[Round]], asked: Round, holds: Callable[[Round], bool]) -> Round:
    """The round, when that is so. Each look is a read of the database, and lets others go on."""
    while not holds(now := await look(asked)):
        pass
    return now


async def test_two_rounds_asked_at_once_are_answered_in_order(world: World) -> None:
    """The second waits for the first, and sees what was said in it."""
    model = voices(echoing)
    noor, panel = await a_panel(world, model, "Seth", "Buber")
    first, second = await asyncio.gather(
        world.denizen.panels.ask(panel, noor, "One"), world.denizen.panels.ask(panel, noor, "Two")
    )
    await world.run()
    assert {first.turn, second.turn} == {1, 2}
    earlier, later = sorted((first, second), key=lambda each: each.turn)
    texts = {each.id: await answered(world, each) for each in (earlier, later)}
    word = {each.id: each.text for each in await world.denizen.spaces.messages(panel.id)}
    for request in model.requests[:2]:
        assert len(request) == 2
        assert as_text(request[-1]).endswith(word[earlier.message_id])
    for request in model.requests[2:]:
        assert "the other voices said in the last turn" in as_text(request[-2])
        assert as_text(request[-1]).endswith(word[later.message_id])
    assert set(texts[later.id].values()) == {f"{who}: {word[later.message_id]}" for who in ("Seth", "Buber")}


async def test_who_is_addressed_answers_alone(small_world: World) -> None:
    world = small_world
    advisors = ({"name": "Seth", "active": False, "group": "Off"}, {"name": "Buber", "group": "The wise"}, "Pema")
    noor, panel = await a_panel(world, voices(echoing), *advisors)
    who: list[list[str]] = []
    for text in ("All?", "@seth only", "@the-wise and @pema", "@nobody-here", "@off only"):
        asked = await world.denizen.panels.ask(panel, noor, text)
        await world.run()
        who.append(list(await answered(world, asked)))
    assert who == [["Buber", "Pema"], ["Seth"], ["Buber", "Pema"], ["Buber", "Pema"], ["Seth"]]


async def test_with_no_advisors_a_panel_is_a_plain_assistant(small_world: World) -> None:
    world = small_world
    model = voices(echoing)
    noor, panel = await a_panel(world, model)
    for text in ("One", "Two"):
        asked = await world.denizen.panels.ask(panel, noor, text)
        await world.run()
    assert await answered(world, asked) == {"Assistant": "a helpful assistant: Two"}
    assert [as_text(each) for each in model.requests[-1][1:]] == [
        "[2026-01-05T09:00] One", "a helpful assistant: One", "[2026-01-05T09:00] Two",
    ]  # fmt: skip


async def test_the_turns_that_a_voice_has_answered_are_counted_up_to_any_turn(small_world: World) -> None:
    """Its own and of its own panel: the assistant is the same voice in all of them."""
    denizen = small_world.denizen
    noor, board = await a_panel(small_world, voices(echoing), "Seth", "Buber")
    plain, other = [await denizen.panels.create(name, [noor], model="m") for name in ("Plain", "Other")]
    for panel, texts in ((board, ("One", "@seth Two", "Three")), (plain, ("One", "Two", "Three")), (other, ("One",))):
        for text in texts:
            await denizen.panels.ask(panel, noor, text)
            await denizen.run_until_idle()

    async def had(panel: Panel, voice: str) -> list[int]:
        return [await denizen.db.read(history.turns_had, panel.id, voice, turn) for turn in range(1, 5)]

    seth, buber = await denizen.advisors.list(board)
    assert await had(board, seth.id) == [0, 1, 2, 3]
    assert await had(board, buber.id) == [0, 1, 1, 2]
    assert await had(plain, ASSISTANT) == [0, 1, 2, 3]
    assert await had(other, ASSISTANT) == [0, 1, 1, 1]


async def test_only_people_begin_rounds_and_once_each(small_world: World) -> None:
    """Posting is enough; posting again under the same id is posting once; what agents say there is not answered."""
    world = small_world
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    ada = await world.agent("Ada", "Nothing to say.")
    await world.denizen.spaces.join(panel.id, ada, attention="none")
    posted = await world.denizen.spaces.post(panel.id, noor, "Once?")
    await world.denizen.spaces.post(panel.id, noor, "Once?", id=posted.id)
    await world.denizen.spaces.post(panel.id, ada, "I am here too.")
    assert await in_words(world, panel) == ["1.0 ask open: Seth reply waiting"]


async def test_errors_are_tried_again_by_their_class(small_unhurried_world: World) -> None:
    """What was streamed in a broken attempt is void: readers are told under a higher epoch."""
    world = small_unhurried_world
    attempts: dict[str, list[float]] = {}

    def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        tried = attempts.setdefault(who, [])
        tried.append(world.clock.now() / SECOND)
        if who == "Seth" and len(tried) == 1:
            return ["Half of", ModelUnreachable("cut")]
        if who == "Buber" and len(tried) < 3:
            return ModelOverloaded("later", retry_after=7)
        return ModelRejected("never") if who == "Pema" else f"{who} at last."

    patience = {"first_byte_seconds": 600, "total_seconds": 3_600}
    noor, panel = await a_panel(world, voices(decide, chunk=4), "Seth", "Buber", "Pema", **patience)
    async with listening(world, panel.space) as heard, world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        while not (now := await world.denizen.rounds.get(asked)).all_completed:
            world.clock.skip(10)
        frames = await heard()
    assert await answered(world, asked) == {
        "Seth": "Seth at last.", "Buber": "Buber at last.", "Pema": "model_rejected",
    }  # fmt: skip
    assert {who: len(tried) for who, tried in attempts.items()} == {"Seth": 2, "Buber": 3, "Pema": 1}
    assert attempts["Buber"][1] - attempts["Buber"][0] >= 7
    seth = now.spoken[0].voice
    told = [(each["epoch"], each["text"]) for each in frames if each["type"] == "panel.delta" and each["voice"] == seth]
    assert "".join(text for epoch, text in told if epoch == 1) == "Half of"
    assert "".join(text for epoch, text in told if epoch == 2) == "Seth at last."


async def test_a_provider_that_is_away_for_a_while_fails_no_reply(small_unhurried_world: World) -> None:
    """Nobody asks an advisor again by itself once its reply has failed, as an agent is asked for its events."""
    world = small_unhurried_world
    began = world.clock.now()

    def decide(_who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        away = world.clock.now() - began < 15 * SECOND
        return ModelUnreachable("reset") if away else "Here I am."

    noor, panel = await a_panel(world, voices(decide), "Seth", first_byte_seconds=600, total_seconds=3_600)
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        while not (await world.denizen.rounds.get(asked)).all_completed:
            world.clock.skip(10)
    assert await answered(world, asked) == {"Seth": "Here I am."}


async def test_cancel_and_retry_one_or_all(world: World) -> None:
    """A round always ends; each advisor can be cancelled and asked again alone."""
    may_go_on, begun = asyncio.Event(), asyncio.Event()
    asked_of: list[str] = []

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        asked_of.append(who)
        if who != "Seth" and not may_go_on.is_set():
            if {"Buber", "Pema"} <= set(asked_of):
                begun.set()
            await may_go_on.wait()
        return f"{who} says."

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber", "Pema")
    denizen = world.denizen
    async with denizen.living():
        asked = await denizen.panels.ask(panel, noor, "Well?")
        await begun.wait()
        buber = asked.spoken[1].voice
        await denizen.rounds.cancel(asked, buber)
        now = await until(denizen.rounds.get, asked, lambda now: now.spoken[0].is_over)
        assert [each.state for each in now.spoken] == ["done", "cancelled", "running"]
        assert not now.all_completed
        now = await denizen.rounds.cancel(asked)
        assert (now.state, [each.state for each in now.spoken]) == ("complete", ["done", "cancelled", "cancelled"])
        may_go_on.set()
        now = await denizen.rounds.retry(asked, buber)
        assert (now.state, now.all_completed) == ("open", False)
        await until(denizen.rounds.get, asked, lambda now: now.state == "complete")
        await denizen.rounds.retry(asked)
        await until(denizen.rounds.get, asked, lambda now: now.state == "complete")
    assert await answered(world, asked) == {"Seth": "Seth says.", "Buber": "Buber says.", "Pema": "Pema says."}
    assert (sorted(asked_of[:3]), asked_of[3:]) == (["Buber", "Pema", "Seth"], ["Buber", "Pema"])
    with pytest.raises(NotFound):
        await denizen.rounds.cancel(asked, "nobody")


async def test_advisors_whose_names_make_the_same_handle_are_numbered(small_world: World) -> None:
    _, panel = await a_panel(small_world, voices(lambda *_: "Yes."), "Seth", "Seth!", "Seth?")
    advisors = await small_world.denizen.advisors.list(panel)
    assert [each.handle for each in advisors] == ["seth", "seth-2", "seth-3"]


async def test_who_has_answered_answers_anew_when_asked_by_name(small_world: World) -> None:
    """What it said is replaced, and checked anew; what was asked of nobody by name stays."""
    times: Counter[str] = Counter()

    def decide(who: str, _messages: list[ModelMessage], info: Info) -> Turn:
        times[who] += 1
        if info.tools:
            return call("report", verdicts=[{"passed": True, "why": f"Said {info.number}."}])
        return f"{who} {times[who]}."

    advisor = {"name": "Seth", "assertions": ["answers"]}
    noor, panel = await a_panel(small_world, voices(decide), advisor, "Buber")
    denizen = small_world.denizen
    asked = await denizen.panels.ask(panel, noor, "Well?")
    await denizen.run_until_idle()
    with pytest.raises(InvalidInput, match="nothing to try again"):
        await denizen.rounds.retry(asked)
    seth = asked.spoken[0].voice
    before = (await denizen.rounds.get(asked)).part("check", seth)
    now = await denizen.rounds.retry(asked, seth)
    assert [(each.state, each.text) for each in now.spoken] == [("waiting", None), ("done", "Buber 1.")]
    # The old check was about what was said before: it does not stand beside the new answer.
    voided = now.part("check", seth)
    assert voided is not None
    assert (voided.state, voided.result) == ("cancelled", None)
    await denizen.run_until_idle()
    now = await denizen.rounds.get(asked)
    assert [each.text for each in now.spoken] == ["Seth 2.", "Buber 1."]
    assert now.state == "complete"
    after = now.part("check", seth)
    assert before is not None
    assert after is not None
    assert after.epoch > before.epoch


async def test_cross_talk_synthesis_votes_and_checks(world: World) -> None:
    """All that may follow a round, and what it is worth afterwards."""

    def decide(who: str, messages: list[ModelMessage], info: Info) -> Turn:
        if info.tools == ("vote",):
            return call("vote", position="go" if who == "Seth" else "stay", confidence=0.5, reason=f"{who} knows.")
        if info.tools == ("report",):
            return call("report", verdicts=[{"passed": "Seth" in as_text(messages[1]), "why": "Read it."}])
        if "## Agreements" in as_text(messages[0]):
            return "## Agreements\nNone."
        return [think(f"{who} wonders."), f"{who} {len(messages)}"]

    model = voices(decide)
    seth = {"name": "Seth", "assertions": ["Says who it is."], "reasoning": True}
    noor, panel = await a_panel(world, model, seth, "Buber", crosstalk=2, synthesis="always")
    denizen = world.denizen
    asked = await denizen.panels.ask(panel, noor, "Well?")
    await world.run()
    vote = await denizen.rounds.vote(asked, "Go?", by=noor)
    await world.run()
    assert await in_words(world, panel) == [
        "1.0 ask complete: Seth reply done, Buber reply done, Seth check done",
        "1.1 crosstalk complete: Seth crosstalk done, Buber crosstalk done",
        "1.2 crosstalk complete: Seth crosstalk done, Buber crosstalk done, Synthesis synthesis done",
        "1.3 vote complete: Seth vote done, Buber vote done",
    ]
    now = await denizen.rounds.get(asked)
    assert [(each.text, each.thinking) for each in now.spoken] == [
        ("Seth 2", "Seth wonders."),
        ("Buber 2", "Buber wonders."),
    ]
    check = now.part("check", now.spoken[0].voice)
    assert check is not None
    assert check.result == {
        "verdicts": [{"expected": "Says who it is.", "passed": True, "why": "Read it."}],
        "passed": True,
    }
    ballots = [each.result for each in (await denizen.rounds.get(vote)).spoken]
    assert ballots == [
        {"position": "go", "confidence": 0.5, "reason": "Seth knows."},
        {"position": "stay", "confidence": 0.5, "reason": "Buber knows."},
    ]
    # Thinking is never fed back, nor are votes and checks; the second turn is the second, whatever came between.
    last = await denizen.panels.ask(panel, noor, "@seth And?")
    await world.run()
    everything = "\n".join(as_text(each) for request in model.requests for each in request)
    assert "wonders" not in everything
    assert "knows." not in everything
    assert ((await denizen.rounds.get(last)).spoken[0].recipe or {})["phase"]["turn"] == 2
    assert {info.settings["thinking"] for info in model.infos if info.settings and "thinking" in info.settings} == {
        True,
        False,
    }


async def test_cross_talk_on_demand_is_for_the_last_turn(small_world: World) -> None:
    world = small_world
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    denizen = world.denizen
    first = await denizen.panels.ask(panel, noor, "One")
    with pytest.raises(InvalidInput, match="after everyone has answered"):
        await denizen.rounds.crosstalk(first, by=noor)
    await world.run()
    await denizen.rounds.crosstalk(first, by=noor, times=2)
    await world.run()
    await denizen.rounds.synthesize(first)
    await world.run()
    await denizen.rounds.synthesize(first)
    await world.run()
    second = await denizen.panels.ask(panel, noor, "@seth Two")
    await world.run()
    for asked in (first, second):
        with pytest.raises(InvalidInput):
            await denizen.rounds.crosstalk(asked, by=noor)
    assert await in_words(world, panel) == [
        "1.0 ask complete: Seth reply done, Buber reply done, Synthesis synthesis done",
        "1.1 crosstalk complete: Seth crosstalk done, Buber crosstalk done",
        "1.2 crosstalk complete: Seth crosstalk done, Buber crosstalk done",
        "2.0 ask complete: Seth reply done",
    ]

    def places(found: Sequence[Round]) -> list[tuple[int, int]]:
        return [(each.turn, each.step) for each in found]

    def read(tx: Tx) -> None:
        """What there is before a turn, after one, and for the round of a step."""
        assert places(rounds.before(tx, panel.id)) == [(1, 0), (1, 1), (1, 2), (2, 0)]
        assert places(rounds.before(tx, panel.id, 2, limit=2)) == [(1, 1), (1, 2)]
        assert places(rounds.before(tx, panel.id, 1)) == []
        turn, missed = rounds.current(tx, panel.id, 1)
        assert (turn, places(missed)) == (2, [(2, 0)])
        turn, missed = rounds.current(tx, panel.id, 2, [first.id])
        assert (turn, places(missed)) == (2, [(1, 0)])
        assert rounds.under_way(tx, panel.id) == []
        seen = [len(history.present(tx, panel.id, 1, step).exchanges) for step in range(4)]
        assert seen == [0, 1, 2, 3]

    await denizen.db.read(read)


async def test_an_answer_anew_begins_nothing_that_has_followed_already(small_world: World) -> None:
    """Cross-talk and synthesis follow a turn once: what was answered anew before them begins neither again."""
    world, denizen = small_world, small_world.denizen
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber", crosstalk=1, synthesis="always")
    asked = await denizen.panels.ask(panel, noor, "One")
    await world.run()
    expected = [
        "1.0 ask complete: Seth reply done, Buber reply done",
        "1.1 crosstalk complete: Seth crosstalk done, Buber crosstalk done, Synthesis synthesis done",
    ]
    assert await in_words(world, panel) == expected
    await denizen.rounds.retry(asked, asked.spoken[0].voice)
    await world.run()
    assert await in_words(world, panel) == expected


async def test_a_panel_answers_with_the_demo_model(small_world: World) -> None:
    """All of it can be tried without a key."""
    world = small_world
    noor = await world.person("Noor")
    denizen = world.denizen
    from denizen.models.demo.model import demo

    denizen.models.register("quick", demo(0))
    panel = await denizen.panels.create("Board", [noor], model="quick", synthesis="always")
    suggested = await denizen.advisors.suggest(panel, "A bakery")
    assert len(suggested) == 8
    assert {each.kind for each in suggested} == {"figure", "character", "role", "challenger"}
    drafts = [each.draft() for each in suggested[:3]]
    await denizen.advisors.add(panel, *[each.model_copy(update={"assertions": ("Asks.",)}) for each in drafts])
    for _ in range(3):
        await denizen.panels.ask(panel, noor, "Shall I?")
        await world.run()
    asked = await denizen.panels.ask(panel, noor, "Shall I open a bakery?")
    await world.run()
    vote = await denizen.rounds.vote(asked, by=noor)
    await world.run()
    for each in (await denizen.rounds.get(asked), await denizen.rounds.get(vote)):
        assert [reply.state for reply in each.replies] == ["done"] * len(each.replies)
    assert "A bakery" in suggested[0].reason
    assert "Shall I open a bakery?" in ((await denizen.rounds.get(asked)).spoken[0].text or "")
    assert "# Board\n\n## Turn 1\n\n> **Noor**" in await denizen.panels.transcript(panel)


async def test_budgets_hold_for_panels_too(world: World) -> None:
    """A panel's own, and the organization's, which it shares with the agents."""
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber", max_tokens=1_000, budget={"tokens": 5_000})
    denizen = world.denizen
    asked = await denizen.panels.ask(panel, noor, "One")
    await world.run()
    assert set((await answered(world, asked)).values()) == {"Seth: One", "Buber: One"}
    await denizen.panels.edit(panel, budget={"tokens": 100})
    asked = await denizen.panels.ask(panel, noor, "Two")
    await world.run()
    assert set((await answered(world, asked)).values()) == {"budget_spent"}
    await denizen.panels.edit(panel, budget=None)
    await denizen.budgets.set(tokens_per_day=300)
    await denizen.rounds.retry(asked)
    await world.run()
    now = await denizen.rounds.get(asked)
    assert {each.error for each in now.spoken} == {
        "The budget of the organization for today is used up. It goes on at 00:00 UTC."
    }
    await denizen.budgets.set()
    await denizen.rounds.retry(asked)
    await world.run()
    assert set((await answered(world, asked)).values()) == {"Seth: Two", "Buber: Two"}


async def test_what_a_panel_uses_counts_against_the_agents(small_world: World) -> None:
    world = small_world
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    await world.denizen.panels.ask(panel, noor, "word " * 4_000)
    await world.run()
    ada = await world.agent("Ada", "Hello.", "Hello again.", model=None)
    kitchen = await world.space("Kitchen", noor, ada)
    await world.denizen.budgets.set(tokens_per_day=4_000)
    await world.say(noor, "Hello?", kitchen)
    await world.run()
    assert await world.denizen.agents.status(ada) == "suspended"


async def test_no_more_voices_speak_at_once_than_may(small_world: World) -> None:
    world = small_world
    speaking, most, gate = 0, 0, asyncio.Event()

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        nonlocal speaking, most
        speaking += 1
        most = max(most, speaking)
        if speaking == 2:
            gate.set()
        await gate.wait()
        await asyncio.sleep(0)
        speaking -= 1
        return f"{who}."

    noor, panel = await a_panel(world, voices(decide), *[f"A{n}" for n in range(6)], at_once=2)
    asked = await world.denizen.panels.ask(panel, noor, "Well?")
    await world.run()
    assert most == 2
    assert len([text for text in (await answered(world, asked)).values() if text and text.endswith(".")]) == 6


async def test_what_is_forgotten_is_gone_from_panels(world: World) -> None:
    """The question, what was answered to it, what was quoted of it, and with the space all of it."""
    secret = "the blue heron nests behind the old mill by the river"

    def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        return [think(f"So {secret}."), f"{who} repeats: {secret}!"]

    noor, panel = await a_panel(world, voices(decide), {"name": "Seth", "description": f"You know that {secret}."})
    asked = await world.denizen.panels.ask(panel, noor, f"Listen: {secret}.")
    await world.run()
    await world.denizen.spaces.forget_message(asked.message_id, by=noor)
    told = await world.denizen.rounds.get(asked)
    assert "heron" not in json.dumps([told.spoken[0].text, told.spoken[0].thinking, told.spoken[0].recipe])
    assert "heron" not in (await world.denizen.advisors.list(panel))[0].description
    assert not (await world.denizen.rounds.context(asked, told.spoken[0].voice)).exact

    again = await world.denizen.panels.ask(panel, noor, "Short one")
    await world.run()
    await world.denizen.spaces.forget(panel.id, by=noor)
    told = await world.denizen.rounds.get(again)
    assert "repeats" not in json.dumps([told.spoken[0].text, told.spoken[0].thinking, told.spoken[0].recipe])
    assert (await world.denizen.advisors.list(panel)) == []


def _voting(who: str, _messages: list[ModelMessage], info: Info) -> Turn:
    positions = {"Seth": "Open it", "Buber": "The bakery should open.", "Pema": "Wait a year"}
    return call("vote", position=positions[who], confidence=0.5, reason="So.") if info.tools == ("vote",) else "Hm."


async def _voted(world: World, *utility: Turn, question: str = "The bakery?", **settings: Any) -> Round:
    """A vote of three, two of whom mean the same. The utility model answers so."""
    world.denizen.models.register("small", scripted(*utility))
    noor, panel = await a_panel(world, voices(_voting), "Seth", "Buber", "Pema", **settings)
    asked = await world.denizen.panels.ask(panel, noor, "What now?")
    await world.run()
    vote = await world.denizen.rounds.vote(asked, question, by=noor)
    await world.run()
    return await world.denizen.rounds.get(vote)


def _camps(told: Round) -> list[list[str]]:
    names = {each.voice: each.name for each in told.spoken}
    return [[names[each] for each in camp.voices] for camp in tally(told.votes, told.groups).camps]


async def test_positions_that_mean_the_same_are_grouped_by_the_utility_model(world: World) -> None:
    """In one call, which the panel pays for."""
    told = await _voted(world, call("group", groups=[[1, 2], [3]]), utility_model="small")
    assert _camps(told) == [["Seth", "Buber"], ["Pema"]]
    [seth, buber, _] = [each.voice for each in told.spoken]
    assert tally(told.votes, told.groups).dissent[seth][buber] == 0
    grouped = told.part("camps", CAMPS)
    assert grouped is not None
    assert grouped.input_tokens > 0
    spent = {each.model: each.input_tokens for each in await world.denizen.budgets.spending() if each.panel_id}
    assert spent["small"] == grouped.input_tokens
    [request] = world.denizen.model_catalog.resolve("small").requests  # pyright: ignore[reportAttributeAccessIssue]
    assert '1. "Open it"\n2. "The bakery should open."\n3. "Wait a year"' in as_text(request[-1])


@pytest.mark.parametrize(
    "junk", [call("group", groups=[[1, 2]]), call("group", groups=[[1], [1, 2, 3]]), call("group"), "No."]
)
async def test_positions_stay_apart_where_the_utility_model_gives_no_groups(small_world: World, junk: Turn) -> None:
    told = await _voted(small_world, junk, junk, utility_model="small")
    assert _camps(told) == [["Seth"], ["Buber"], ["Pema"]]
    assert told.state == "complete"


async def test_positions_are_not_grouped_without_a_utility_model(small_world: World) -> None:
    told = await _voted(small_world)
    assert _camps(told) == [["Seth"], ["Buber"], ["Pema"]]
    assert [each.part for each in told.replies] == ["vote"] * 3


async def test_who_votes_again_is_grouped_again(small_world: World) -> None:
    told = await _voted(
        small_world, call("group", groups=[[1, 2], [3]]), call("group", groups=[[1, 2, 3]]), utility_model="small"
    )
    assert len(_camps(told)) == 2
    await small_world.denizen.rounds.retry(told, told.spoken[0].voice)
    await small_world.run()
    assert _camps(await small_world.denizen.rounds.get(told)) == [["Seth", "Buber", "Pema"]]
