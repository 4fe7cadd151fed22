"""What can go wrong around a round: models that do not begin, writes that fail, questions that are gone."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import failpoints
from denizen.clock import SECOND
from denizen.errors import DatabaseUnavailable, ModelRejected, ModelUnreachable, OutcomeUnknown
from denizen.models.scripted import Info, Turn, call
from tests.panel.test_rounds import a_panel, answered, echoing, in_words, until, voices
from tests.world import LocalScript, World, as_text


async def test_a_model_has_fifteen_seconds_to_begin(small_unhurried_world: World) -> None:
    """Then it is tried again, as what is unreachable is; who has begun may take longer."""
    world, asked_at = small_unhurried_world, list[float]()
    hanging, writing, slow = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        if who == "Slow":
            return "Slow but sure."
        asked_at.append(world.clock.now() / SECOND)
        if len(asked_at) == 1:
            await hanging.wait()
        return "At last."

    async def hesitate() -> None:
        writing.set()
        await slow.wait()

    noor, panel = await a_panel(world, voices(decide), "Seth", {"name": "Slow", "model": "slow"})
    world.denizen.models.register("slow", voices(decide, pause=hesitate))
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        await writing.wait()
        await until(world.denizen.rounds.get, asked, lambda _: len(asked_at) == 1)
        await world.clock.sleeper(15)
        world.clock.advance(15)
        await world.clock.sleeper(1)
        world.clock.skip(1)
        now = await until(world.denizen.rounds.get, asked, lambda now: now.spoken[0].is_over)
        assert [each.state for each in now.spoken] == ["done", "running"]
        slow.set()
        await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
    assert await answered(world, asked) == {"Seth": "At last.", "Slow": "Slow but sure."}
    # Half a second, or a little more, passes before what is unreachable is tried again.
    assert 15.5 <= asked_at[1] - asked_at[0] < 16
    assert (panel.settings.first_byte_seconds, panel.settings.total_seconds) == (15, 240)


async def test_a_synthesis_has_fifteen_seconds_to_begin_too(small_unhurried_world: World) -> None:
    world, asked_at, hanging = small_unhurried_world, list[float](), asyncio.Event()

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        if who in ("Seth", "Buber"):
            return "Bread."
        asked_at.append(world.clock.now() / SECOND)
        if len(asked_at) == 1:
            await hanging.wait()
        return "All say bread."

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber", synthesis="always")
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        await until(world.denizen.rounds.get, asked, lambda _: len(asked_at) == 1)
        await world.clock.sleeper(15)
        world.clock.advance(15)
        await world.clock.sleeper(1)
        world.clock.skip(1)
        await until(world.denizen.rounds.get, asked, lambda now: now.state == "complete")
    assert 15.5 <= asked_at[1] - asked_at[0] < 16
    assert await in_words(world, panel) == [
        "1.0 ask complete: Seth reply done, Buber reply done, Synthesis synthesis done"
    ]


async def test_junk_instead_of_a_vote_is_asked_for_once_more(small_world: World) -> None:
    """And the model is told what was wrong. Junk twice is a failure; what was said before stays."""
    asked_for: list[str] = []
    answers: list[Turn] = ["I would rather not say.", call("vote", position="Go", confidence=1, reason="Why not?")]
    answers += ["Hm.", "Hm."]

    def decide(_who: str, messages: list[ModelMessage], info: Info) -> Turn:
        if info.tools != ("vote",):
            return "Go."
        asked_for.append(as_text(messages[-1]))
        return answers[len(asked_for) - 1]

    noor, panel = await a_panel(small_world, voices(decide), "Seth")
    asked = await small_world.denizen.panels.ask(panel, noor, "Well?")
    await small_world.run()
    vote = await small_world.denizen.rounds.vote(asked, by=noor)
    await small_world.run()
    now = await small_world.denizen.rounds.get(vote)
    assert [(each.state, each.result and each.result["position"]) for each in now.spoken] == [("done", "Go")]
    assert len(asked_for) == 2
    assert "vote" in asked_for[1]
    assert asked_for[1] != asked_for[0]
    again = await small_world.denizen.rounds.vote(asked, by=noor)
    await small_world.run()
    assert await answered(small_world, again) == {"Seth": "no_answer"}
    assert len(asked_for) == 4
    assert await answered(small_world, asked) == {"Seth": "Go."}


async def test_voices_choose_among_the_options_that_a_vote_names(small_world: World) -> None:
    """What is none of them is asked for once more, so that everyone is in one of the camps."""
    said = {"Seth": ["Let us open it."], "Buber": ["Sell it all", "open it"]}

    def decide(who: str, _messages: list[ModelMessage], info: Info) -> Turn:
        if info.tools != ("vote",):
            return "Hm."
        return call("vote", position=said[who].pop(0), confidence=1, reason="Why not?")

    noor, panel = await a_panel(small_world, voices(decide), "Seth", "Buber")
    asked = await small_world.denizen.panels.ask(panel, noor, "Well?")
    await small_world.run()
    vote = await small_world.denizen.rounds.vote(asked, "The bakery? Options: open it | wait", by=noor)
    await small_world.run()
    now = await small_world.denizen.rounds.get(vote)
    assert [each.result and each.result["position"] for each in now.spoken] == ["open it", "open it"]
    assert said == {"Seth": [], "Buber": []}


async def test_a_local_model_may_answer_one_voice_after_the_other(small_unhurried_world: World) -> None:
    """The last of three begins after minutes in which nothing is heard of it, and is answered all the same."""
    world, turn = small_unhurried_world, asyncio.Lock()
    at_work = 0

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        nonlocal at_work
        async with turn:
            at_work += 1
            await world.clock.sleep(190)
        return f"{who} says."

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber", "Ines")
    world.denizen.models.register("m", LocalScript(voices(decide)))
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        for number in (1, 2, 3):
            await until(world.denizen.rounds.get, asked, lambda _, number=number: at_work == number)
            await world.clock.sleeper(190)
            world.clock.advance(190)
        await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
    assert await answered(world, asked) == {"Seth": "Seth says.", "Buber": "Buber says.", "Ines": "Ines says."}


async def test_time_that_is_over_while_it_begins_again_is_over(small_unhurried_world: World) -> None:
    """It ends under the epoch of the new attempt. It was held by nobody, and began anew when its lease had run out."""
    world, loop, stopped = small_unhurried_world, asyncio.get_running_loop(), threading.Event()

    async def time_is_over() -> None:
        world.clock.advance(240)
        for _ in range(20):  # whoever waits for the write is told to stop
            await asyncio.sleep(0)
        stopped.set()

    def slowly() -> None:
        asyncio.run_coroutine_threadsafe(time_is_over(), loop)
        assert stopped.wait(60)

    noor, panel = await a_panel(world, voices(lambda *_: ModelUnreachable("cut")), "Seth")
    failpoints.arm("commit:begin_again", slowly)
    try:
        async with world.denizen.living():
            asked = await world.denizen.panels.ask(panel, noor, "Well?")
            await world.clock.sleeper(1)
            world.clock.skip(1)
            now = await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
    finally:
        failpoints.disarm()
    assert [(each.error_code, each.epoch, each.attempts) for each in now.spoken] == [("timed_out", 2, 1)]


async def test_what_could_not_be_written_is_asked_again(world: World) -> None:
    """While others speak, too: whoever holds a reply that it does not work on lets go of it."""
    broken, speaking, may_go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop, times = asyncio.get_running_loop(), list[str]()

    def fail() -> None:
        failpoints.disarm()
        loop.call_soon_threadsafe(broken.set)
        raise DatabaseUnavailable("away")

    async def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        times.append(who)
        if who == "Buber":
            speaking.set()
            await may_go_on.wait()
        else:
            await speaking.wait()
        return f"{who} says."

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber")
    failpoints.arm("commit:end_reply", fail)
    try:
        async with world.denizen.living():
            asked = await world.denizen.panels.ask(panel, noor, "Well?")
            await broken.wait()
            now = await until(world.denizen.rounds.get, asked, lambda now: now.spoken[0].is_over)
            assert [each.state for each in now.spoken] == ["done", "running"]
            may_go_on.set()
            await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
    finally:
        failpoints.disarm()
    assert await answered(world, asked) == {"Seth": "Seth says.", "Buber": "Buber says."}
    assert sorted(times) == ["Buber", "Seth", "Seth"]


@pytest.mark.parametrize(
    ("when", "write"), [("commit", "end_reply"), ("committed", "end_reply"), ("commit", "take"), ("committed", "take")]
)
async def test_what_was_not_heard_holds_up_nobody(small_unhurried_world: World, when: str, write: str) -> None:
    """Even if nobody else speaks here: a reply that nothing works on waited until its lease had expired."""
    world = small_unhurried_world
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    asked = await world.denizen.panels.ask(panel, noor, "Well?")

    def fail() -> None:
        failpoints.disarm()
        raise OutcomeUnknown("The connection broke.")

    failpoints.arm(f"{when}:{write}", fail)
    try:
        for _ in range(2):
            with suppress(OutcomeUnknown):
                await world.run()
    finally:
        failpoints.disarm()
    assert await answered(world, asked) == {"Seth": "Seth: Well?"}


async def test_a_message_that_is_deleted_before_its_turn_is_not_answered(world: World) -> None:
    """The round ends and holds up nobody; what follows is answered without it."""
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def decide(who: str, messages: list[ModelMessage], info: Info) -> Turn:
        begun.set()
        await may_go_on.wait()
        return echoing(who, messages, info)

    model = voices(decide)
    noor, panel = await a_panel(world, model, "Seth", synthesis="always", crosstalk=1)
    async with world.denizen.living():
        await world.denizen.panels.ask(panel, noor, "One")
        await begun.wait()
        second = await world.denizen.panels.ask(panel, noor, "Two")
        await world.denizen.panels.ask(panel, noor, "Three")
        await world.denizen.spaces.delete_message(second.message_id, by=noor)
        may_go_on.set()
        await world.run()
    assert await in_words(world, panel) == [
        "1.0 ask complete: Seth reply done",
        "2.0 ask complete: Seth reply failed",
        "3.0 ask complete: Seth reply done",
    ]
    assert await answered(world, second) == {"Seth": "question_gone"}
    assert len(model.requests) == 2


async def test_what_is_forgotten_while_it_is_being_answered_is_not_written(world: World) -> None:
    """Whoever was shown it loses the reply; those who answer another message are asked anew, without it."""
    secret = "the blue heron nests behind the old mill by the river"
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def decide(_who: str, messages: list[ModelMessage], info: Info) -> Turn:
        heard = "".join(map(as_text, messages))
        if info.number == 1:
            begun.set()
            await may_go_on.wait()
        return f"I know: {secret}!" if secret in heard else "I know nothing."

    noor, panel = await a_panel(world, voices(decide), "Seth")
    async with world.denizen.living():
        first = await world.denizen.panels.ask(panel, noor, f"Listen: {secret}.")
        await until(world.denizen.rounds.get, first, lambda now: now.all_completed)
        second = await world.denizen.panels.ask(panel, noor, "What do you know?")
        await begun.wait()
        await world.denizen.spaces.forget_message(first.message_id, by=noor)
        may_go_on.set()
        now = await until(world.denizen.rounds.get, second, lambda now: now.all_completed)
    assert await answered(world, second) == {"Seth": "I know nothing."}
    assert "heron" not in json.dumps([now.spoken[0].text, now.spoken[0].recipe])
    assert "heron" not in await world.denizen.panels.transcript(panel)


async def test_a_check_is_of_what_was_said_last(small_world: World) -> None:
    """Who is asked anew and fails has no verdict on what is gone."""
    world, answers, checked = small_world, ["Good.", ModelRejected("no"), "Better."], list[str]()

    def decide(_who: str, messages: list[ModelMessage], info: Info) -> Turn:
        if info.tools:
            checked.append(as_text(messages[1]).rpartition("\n\n")[2])
            return call("report", verdicts=[{"passed": True, "why": "It is."}])
        return answers.pop(0)

    noor, panel = await a_panel(world, voices(decide), {"name": "Seth", "assertions": ["is good"]})
    asked = await world.denizen.panels.ask(panel, noor, "Well?")
    seth, told = asked.spoken[0].voice, list[tuple[str, object]]()
    for _ in range(3):
        await world.run()
        now = await world.denizen.rounds.get(asked)
        check = now.part("check", seth)
        assert check is not None
        told.append((f"{now.spoken[0].state} {check.state}", check.result and check.result["passed"]))
        if answers:
            await world.denizen.rounds.retry(asked, seth)
    assert told == [("done done", True), ("failed cancelled", None), ("done done", True)]
    assert checked == ["Seth: Good.]", "Seth: Better.]"]


async def test_whoever_stops_hands_back_what_it_has_begun(world: World) -> None:
    """That is no attempt; the next to look takes it at once, and what was used is on the account."""
    begun = asyncio.Event()

    async def hesitate() -> None:
        begun.set()
        await asyncio.Event().wait()

    noor, panel = await a_panel(world, voices(echoing, pause=hesitate), "Seth")
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        await begun.wait()
        world.denizen.hurry()
    [reply] = (await world.denizen.rounds.get(asked)).spoken
    assert (reply.state, reply.attempts) == ("waiting", 0)
    assert reply.input_tokens > 0
    world.denizen.models.register("m", voices(echoing))
    await world.run()
    assert await answered(world, asked) == {"Seth": "Seth: Well?"}


async def test_a_panel_as_a_document(small_world: World) -> None:
    """All that was asked and said, in order, with what came to nothing told as such."""
    world = small_world

    def decide(who: str, messages: list[ModelMessage], info: Info) -> Turn:
        if info.tools == ("vote",):
            return call("vote", position="Go" if who == "Seth" else "stay", confidence=0.75, reason=f"{who} knows.")
        if as_text(messages[0]).startswith("Several"):
            return "## Agreements\nNone."
        return ModelRejected("no key") if who == "Pema" and info.number < 3 else echoing(who, messages, info)

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber", "Pema")
    first = await world.denizen.panels.ask(panel, noor, "Shall I?\n\n*Really?*")
    await world.run()
    await world.denizen.rounds.synthesize(first)
    await world.run()
    await world.denizen.rounds.vote(first, "Go?", by=noor)
    await world.run()
    second = await world.denizen.panels.ask(panel, noor, "@seth Gone?")
    await world.denizen.rounds.cancel(second)
    await world.denizen.spaces.delete_message(second.message_id, by=noor)
    assert await world.denizen.panels.transcript(panel) == (
        "# Board\n\n"
        "## Turn 1\n\n> **Noor**, 2026-01-05 09:00 UTC\n>\n> Shall I?\n>\n> *Really?*\n\n"
        "**Seth**\n\nSeth: Shall I?\n\n*Really?*\n\n"
        "**Buber**\n\nBuber: Shall I?\n\n*Really?*\n\n"
        "**Pema**\n\n_(failed: no key)_\n\n"
        "### Synthesis\n\n## Agreements\nNone.\n\n"
        "### A vote\n\n> Go?\n\n"
        "**Seth**\n\nGo (75 % sure): Seth knows.\n\n"
        "**Buber**\n\nstay (75 % sure): Buber knows.\n\n"
        "**Pema**\n\nstay (75 % sure): Pema knows.\n\n"
        "- stay: Buber, Pema\n- Go: Seth\n\n"
        "## Turn 2\n\n> **Noor**, 2026-01-05 09:00 UTC\n>\n> (deleted)\n\n"
        "**Seth**\n\n_(was cancelled)_\n"
    )


async def test_an_answer_that_cannot_be_used_is_a_failure_with_a_code(small_world: World) -> None:
    """Nothing was said, or a vote has no position: it can be tried again."""
    usable: list[bool] = []

    def decide(_who: str, _messages: list[ModelMessage], info: Info) -> Turn:
        if info.tools == ("vote",):
            return call("vote", position="go" if usable else "", confidence=1, reason="Why not?")
        return "Go." if usable else ""

    noor, panel = await a_panel(small_world, voices(decide), "Seth")
    denizen = small_world.denizen
    asked = await denizen.panels.ask(panel, noor, "Well?")
    await small_world.run()
    assert await answered(small_world, asked) == {"Seth": "no_answer"}
    usable.append(True)
    await denizen.rounds.retry(asked)
    await small_world.run()
    assert await answered(small_world, asked) == {"Seth": "Go."}
    usable.clear()
    vote = await denizen.rounds.vote(asked, by=noor)
    await small_world.run()
    assert await answered(small_world, vote) == {"Seth": "no_answer"}
