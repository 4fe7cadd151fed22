"""Panel."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from denizen import Entity, ModelKeyRejected, ModelOverloaded, ModelRejected, Panel, Round, call, think
from tests.models.loopback import loopback
from tests.panel import test_misfortunes as misfortunes
from tests.panel.test_rounds import REFERENCE, a_panel, answered, echoing, in_words, until, voices
from tests.world import UNHURRIED, World, as_text, listening, open_world


async def ask(world: World, panel: Panel, noor: Entity, *texts: str) -> Round:
    """Noor asks, each time when everybody has answered: the last round, with its answers."""
    asked = None
    for text in texts:
        asked = await world.denizen.panels.ask(panel, noor, text)
        await world.run()
    assert asked is not None
    return await world.denizen.rounds.get(asked)


async def lines(world: World, asked: Round, at: int = 0) -> list[tuple[str, str]]:
    """The request that an advisor was sent in this round: the role and the text of each message."""
    shown = await world.denizen.rounds.context(asked, asked.spoken[at].voice)
    assert shown.exact
    return [(line.role, line.text) for line in shown.lines]


async def system_prompt(world: World, turn: int, **advisor: Any) -> str:
    """The system prompt of an advisor in its turn of this number."""
    noor, panel = await a_panel(world, voices(echoing), {"name": "Seth", **advisor})
    asked = await ask(world, panel, noor, *[f"Message {number}" for number in range(1, turn + 1)])
    return (await lines(world, asked))[0][1]


# Asking and answering


async def test_all_advisors_answer_at_the_same_time(world: World) -> None:
    """All advisors of a panel are asked at the same time.

    Docs: panel.md#rounds
    """
    begun, everyone = list[str](), asyncio.Event()

    async def wait_for_the_others(who: str, *_: Any) -> str:
        begun.append(who)
        if len(begun) == 3:
            everyone.set()
        await everyone.wait()
        return "Here."

    noor, panel = await a_panel(world, voices(wait_for_the_others), "Seth", "Buber", "Pema")
    asked = await ask(world, panel, noor, "Who is here?")
    assert [each.text for each in asked.spoken] == ["Here."] * 3


async def test_the_message_is_stored_before_anybody_answers(world: World) -> None:
    """A message is in the panel at once, with its author and time, before any advisor has answered.

    Docs: panel.md#rounds
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    await world.denizen.panels.ask(panel, noor, "Well?")
    [message] = await world.denizen.spaces.messages(panel.id)
    assert (message.text, message.author_id, message.created_at) == ("Well?", noor.id, world.clock.now())


async def test_a_round_begins_with_an_empty_reply_of_each_advisor(world: World) -> None:
    """A round has an empty reply of each advisor from the beginning, and is complete when all of them have ended.

    Docs: panel.md#rounds
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    asked = await world.denizen.panels.ask(panel, noor, "Well?")
    assert [(each.name, each.text, each.is_over) for each in asked.spoken] == [
        ("Seth", None, False), ("Buber", None, False),
    ]  # fmt: skip
    assert not asked.all_completed
    await world.run()
    assert (await world.denizen.rounds.get(asked)).all_completed


async def test_only_advisors_that_are_switched_on_are_asked(world: World) -> None:
    """Only advisors that are switched on answer; a message that mentions one by its handle is for that one alone.

    Docs: panel.md#advisors
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", {"name": "Buber", "active": False}, "Pema")
    assert list(await answered(world, await ask(world, panel, noor, "Well?"))) == ["Seth", "Pema"]
    assert list(await answered(world, await ask(world, panel, noor, "And you, @buber?"))) == ["Buber"]


async def test_replies_stream_while_they_are_written(world: World) -> None:
    """The text of each advisor is sent to readers piece by piece while its model writes.

    Docs: streams.md
    """
    noor, panel = await a_panel(world, voices(echoing, chunk=4), "Seth", "Buber")
    async with listening(world, panel.space) as heard:
        asked = await ask(world, panel, noor, "A long question?")
        deltas = [each for each in await heard() if each["type"] == "panel.delta"]
    for reply in asked.spoken:
        pieces = [each["text"] for each in deltas if each["voice"] == reply.voice]
        assert len(pieces) > 1
        assert "".join(pieces) == reply.text


async def test_thinking_is_stored_apart_from_the_reply(world: World) -> None:
    """An advisor can have reasoning switched on. What its model thinks is stored apart, and no advisor ever reads it.

    Docs: panel.md#synthesis-cross-talk-and-votes
    """
    model = voices(lambda who, *_: [think("Hm, a bakery."), f"{who} says yes."])
    noor, panel = await a_panel(world, model, {"name": "Seth", "reasoning": True}, "Buber")
    asked = await ask(world, panel, noor, "Well?")
    assert (asked.spoken[0].thinking, asked.spoken[0].text) == ("Hm, a bakery.", "Seth says yes.")
    assert [(info.settings or {}).get("thinking") for info in model.infos].count(True) == 1
    await ask(world, panel, noor, "And now?")
    assert "Hm, a bakery." not in str([as_text(line) for request in model.requests for line in request])


async def test_a_panel_without_advisors_is_a_plain_assistant(world: World) -> None:
    """Without advisors a panel is a plain assistant.

    Docs: panel.md
    """
    noor, panel = await a_panel(world, voices(echoing))
    assert await answered(world, await ask(world, panel, noor, "Hello")) == {"Assistant": "a helpful assistant: Hello"}


async def test_an_advisor_has_its_own_model_and_length(world: World) -> None:
    """An advisor may have its own model and its own limit of tokens; others use those of the panel (4,000 tokens).

    Docs: panel.md#advisors
    """
    own, shared = voices(echoing), voices(echoing)
    noor, panel = await a_panel(world, shared, {"name": "Seth", "model": "own", "max_tokens": 300}, "Buber")
    world.denizen.models.register("own", own)
    await ask(world, panel, noor, "Well?")
    assert [(info.settings or {}).get("max_tokens") for info in (*own.infos, *shared.infos)] == [300, 4_000]


async def test_a_request_to_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider gets the model, the messages with the system prompt first and the limit of tokens, and streams.

    Docs: models.md
    Differs: the key is the organization's or the server's. A browser never has it, and never calls a provider.
    """
    async with loopback() as server, open_world("sqlite://", pace=UNHURRIED) as world:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        server.tool = None
        noor = await world.person("Noor")
        await world.denizen.secrets.set("OPENAI_API_KEY", "key-of-the-organization")
        panel = await world.denizen.panels.create("Board", [noor], advisors=["Seth"], model="openai-chat:local")
        async with world.denizen.living():
            asked = await world.denizen.panels.ask(panel, noor, "Well?")
            await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
        [request] = server.received
    assert request.headers["Authorization"] == "Bearer key-of-the-organization"
    assert [each["role"] for each in request.body["messages"]] == ["system", "user"]
    assert (request.body["model"], request.body["stream"]) == ("local", True)
    assert request.body["max_tokens"] >= 4_000


async def test_an_advisor_has_a_name_a_description_and_a_colour(world: World) -> None:
    """You describe an advisor; it gets a handle and a colour of its own, and can be edited at any time.

    Docs: panel.md#advisors
    """
    noor, panel = await a_panel(world, voices(echoing), {"name": "Martin Buber", "description": "You listen."}, "Seth")
    buber, seth = await world.denizen.advisors.list(panel)
    assert (buber.handle, buber.description) == ("martin-buber", "You listen.")
    assert buber.colour != seth.colour
    await world.denizen.advisors.edit(panel, buber, description="You look for the encounter.")
    asked = await ask(world, panel, noor, "Well?")
    assert (await lines(world, asked))[0][1].startswith("You are Martin Buber. You look for the encounter.\n")


async def test_what_is_expected_of_an_advisor_is_checked(world: World) -> None:
    """Assertions say what you expect of an advisor. After each of its replies a model says which hold, and why.

    Docs: panel.md#advisors
    """

    def decide(_who: str, _messages: Any, info: Any) -> Any:
        return call("report", verdicts=[{"passed": False, "why": "It advises."}]) if info.tools else "Do it."

    noor, panel = await a_panel(world, voices(decide), {"name": "Seth", "assertions": ["Asks first."]})
    asked = await ask(world, panel, noor, "Well?")
    check = asked.part("check", asked.spoken[0].voice)
    assert check is not None
    assert check.result == {
        "verdicts": [{"expected": "Asks first.", "passed": False, "why": "It advises."}],
        "passed": False,
    }


# What an advisor sees


async def test_an_advisor_sees_every_message_of_people_with_its_time(world: World) -> None:
    """An advisor sees all messages of people, also those from before it joined, each with the time in brackets.

    Docs: panel.md#what-an-advisor-sees
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    await ask(world, panel, noor, "One")
    world.clock.advance(300)
    await world.denizen.advisors.add(panel, "Buber")
    asked = await ask(world, panel, noor, "Two")
    said = [text for role, text in await lines(world, asked, 1) if role == "user" and not text.startswith(REFERENCE)]
    assert said == ["[2026-01-05T09:00] One", "[2026-01-05T09:05] Two"]


async def test_an_advisor_sees_only_its_own_replies_as_its_own(world: World) -> None:
    """Only the advisor's own replies have the assistant role, as they were written, without a name before them.

    Docs: panel.md#what-an-advisor-sees
    """
    noor, panel = await a_panel(world, voices(lambda who, *_: f"I am {who}, {who[::-1]}."), "Seth", "Buber")
    asked = await ask(world, panel, noor, "One", "Two", "Three")
    assert [text for role, text in await lines(world, asked, 1) if role == "assistant"] == ["I am Buber, rebuB."] * 2


async def test_the_last_replies_of_the_others_come_as_one_bracketed_user_message(world: World) -> None:
    """What the others said in the last turn comes as one bracketed user message, right before the new message.

    Docs: panel.md#what-an-advisor-sees
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber", "Pema")
    asked = await ask(world, panel, noor, "One", "Two")
    assert (await lines(world, asked))[-2:] == [
        ("user", f"{REFERENCE}Buber: Buber: One\n\nPema: Pema: One]"),
        ("user", "[2026-01-05T09:00] Two"),
    ]


async def test_older_replies_of_the_others_are_not_shown(world: World) -> None:
    """Replies of the others from older turns are not shown, so that a long panel costs no more.

    Docs: panel.md#what-an-advisor-sees
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    asked = await ask(world, panel, noor, "One", "Two", "Three")
    shown = "\n".join(text for _, text in await lines(world, asked))
    assert "Buber: Two" in shown
    assert "Buber: One" not in shown


async def test_a_long_reply_of_another_advisor_is_shortened(world: World) -> None:
    """Of a long reply of another advisor, an advisor sees the beginning.

    Docs: panel.md#what-an-advisor-sees
    Differs: each is cut to 4,000 characters, unless you set another number. Twelve long replies would fill the request.
    """
    noor, panel = await a_panel(world, voices(lambda *_: "word " * 2_000), "Seth", "Buber")
    asked = await ask(world, panel, noor, "One", "Two")
    told = (await lines(world, asked))[-2][1]
    assert told.endswith("word…]")
    assert len(told) < 4_200


async def test_on_the_first_turn_there_is_nothing_to_refer_to(world: World) -> None:
    """On the first turn an advisor sees its instructions and the message, and nothing else.

    Docs: panel.md#what-an-advisor-sees
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    asked = await ask(world, panel, noor, "One")
    assert [role for role, _ in await lines(world, asked)] == ["system", "user"]


async def test_errors_and_statuses_are_not_shown_to_advisors(world: World) -> None:
    """Errors, statuses and messages of the system are never part of what an advisor sees.

    Docs: panel.md#rounds
    """
    fails = [True, True, False, False]

    def decide(who: str, messages: Any, info: Any) -> Any:
        return ModelRejected("no such thing") if fails[info.number] else echoing(who, messages, info)

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber")
    await ask(world, panel, noor, "One")
    assert await world.denizen.spaces.statuses(panel.space) != []
    asked = await ask(world, panel, noor, "Two")
    assert [text for _, text in (await lines(world, asked))[1:]] == ["[2026-01-05T09:00] One", "[2026-01-05T09:00] Two"]


async def test_only_the_present_instructions_are_sent(world: World) -> None:
    """A request has the instructions of the present turn only; those of earlier turns are not repeated.

    Docs: panel.md#phases
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    asked = await ask(world, panel, noor, *"12345")
    shown = await lines(world, asked)
    assert [role for role, _ in shown].count("system") == 1
    assert not any("What to do in this turn" in text for _, text in shown[1:])


async def test_the_whole_request_of_the_fourth_turn(world: World) -> None:
    """On its fourth turn an advisor sees three messages with its replies, the others' last replies, the new message.

    Docs: panel.md#what-an-advisor-sees
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth Godin", "Martin Buber", "Pema")
    asked = await ask(world, panel, noor, "One", "Two", "Three", "Four")
    at = "[2026-01-05T09:00] "
    assert (await lines(world, asked, 1))[1:] == [
        ("user", f"{at}One"), ("assistant", "Martin Buber: One"),
        ("user", f"{at}Two"), ("assistant", "Martin Buber: Two"),
        ("user", f"{at}Three"), ("assistant", "Martin Buber: Three"),
        ("user", f"{REFERENCE}Seth Godin: Seth Godin: Three\n\nPema: Pema: Three]"),
        ("user", f"{at}Four"),
    ]  # fmt: skip


async def test_a_long_panel_drops_its_oldest_turns_first(world: World) -> None:
    """If a request would be too long, the oldest turns are left out first: 150,000 characters, unless you set another.

    Docs: panel.md#what-an-advisor-sees
    """
    noor, panel = await a_panel(world, voices(lambda *_: "Yes."), "Seth")
    assert panel.settings.context_characters == 150_000
    asked = await ask(world, panel, noor, *[f"{number}" + "x" * 48_000 for number in range(1, 5)])
    shown = [text.partition("] ")[2][:1] for role, text in await lines(world, asked) if role == "user"]
    assert shown == ["2", "3", "4"]


async def test_the_request_of_any_reply_can_be_viewed(world: World) -> None:
    """For debugging you can view the request of any reply, message by message, with its turn, model and tokens.

    Docs: panel.md#what-an-advisor-sees
    Differs: there is no debug mode to switch on. The request of every reply can be rebuilt, also of old ones.
    """
    model = voices(echoing)
    noor, panel = await a_panel(world, model, "Seth")
    asked = await ask(world, panel, noor, "One")
    shown = await world.denizen.rounds.context(asked, asked.spoken[0].voice)
    assert [line.text for line in shown.lines] == [as_text(each) for each in model.requests[0]]
    assert (shown.exact, shown.reply.state, shown.reply.model) == (True, "done", "m")
    assert (shown.reply.recipe or {})["phase"] == {"name": "question", "turn": 1, "of": 3}


# Instructions and phases


async def test_the_instructions_begin_with_who_the_advisor_is(world: World) -> None:
    """The instructions of an advisor begin with its name and description.

    Docs: panel.md#what-an-advisor-sees
    """
    told = await system_prompt(world, 1, description="You sell ideas.")
    assert told.startswith("You are Seth. You sell ideas.\n\n")


async def test_an_advisor_knows_that_others_answer_too(world: World) -> None:
    """An advisor is told that it is one of several independent voices that test the person's thinking.

    Docs: panel.md#what-an-advisor-sees
    """
    told = await system_prompt(world, 1)
    assert "has asked several independent voices to test their thinking. You are one of them." in told
    assert "All of you answer at the same time, each on your own." in told


async def test_an_advisor_is_told_how_to_speak(world: World) -> None:
    """An advisor is told to speak plainly: no name before the answer, no JSON, no talk of being a perspective.

    Docs: panel.md#what-an-advisor-sees
    """
    told = await system_prompt(world, 5)
    assert "Do not put a name or a label before your answer, do not write JSON" in told
    assert "do not mention that you are a voice, a perspective or an advisor" in told
    assert "You may be shown what the others said last: use it where it helps, otherwise ignore it." in told


async def test_in_its_first_three_turns_an_advisor_asks_one_question_each(world: World) -> None:
    """In each of its first three turns an advisor only asks one question, and is told which of the three it is.

    Docs: panel.md#phases
    """
    told = await system_prompt(world, 3)
    assert "(question 3 of 3)" in told
    assert "Ask one question, and nothing else. You do not know enough yet to advise, judge or disagree." in told
    assert "Do not hide advice in the question" in told


async def test_the_first_phase_does_not_speak_of_the_next(world: World) -> None:
    """While an advisor asks questions, it is not told that it will give advice later.

    Docs: panel.md#phases
    """
    told = (await system_prompt(world, 1)).lower()
    assert not any(word in told for word in ("later", "turn 4", "full engagement", "afterwards", "take a position"))


async def test_from_its_fourth_turn_on_an_advisor_engages_fully(world: World) -> None:
    """From its fourth turn on an advisor answers fully: with a position, in two to four paragraphs, and with examples.

    Docs: panel.md#phases
    """
    told = await system_prompt(world, 4)
    assert "(turn 4)" in told
    assert "You know enough to answer fully." in told
    assert "Say where you disagree and why" in told
    assert "two to four paragraphs" in told
    assert "Use a story or an example" in told
    assert "Ask a question back if you need to." in told


async def test_full_engagement_does_not_speak_of_the_first_phase(world: World) -> None:
    """When an advisor engages fully, nothing tells it that there was a phase of questions.

    Docs: panel.md#phases
    """
    told = await system_prompt(world, 4)
    assert "of 3" not in told
    assert "nothing else" not in told


async def test_phases_go_by_the_turns_of_each_advisor(world: World) -> None:
    """Each advisor has its own number of turns: those that it answered. A failed reply is not a turn.

    Docs: panel.md#phases
    """

    def decide(who: str, messages: Any, _info: Any) -> Any:
        text = as_text(messages[-1])
        return ModelRejected("no") if who == "Buber" and text.endswith("Two") else f"{who}: {text}"

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber")
    await ask(world, panel, noor, "One", "Two")
    await world.denizen.advisors.add(panel, "Pema")
    asked = await ask(world, panel, noor, "Three")
    turns = {each.name: (each.recipe or {})["phase"]["turn"] for each in asked.spoken}
    assert turns == {"Seth": 3, "Buber": 2, "Pema": 1}


async def test_phases_can_be_configured(world: World) -> None:
    """You can set which phases there are, what they ask for and when they end, for a panel or for one advisor.

    Docs: panel.md#phases
    """
    phases = [{"until_turn": 1, "instructions": "Ask ({turn} of {of})."}, {"instructions": "Answer in a line."}]
    noor, panel = await a_panel(
        world, voices(echoing), "Seth", {"name": "Buber", "phases": [{"instructions": "Sing."}]}, phases=phases
    )
    told: list[str] = []
    for text in ("One", "Two"):
        asked = await ask(world, panel, noor, text)
        told += [(await lines(world, asked, at))[0][1] for at in (0, 1)]
    for prompt, instructions in zip(told, ("Ask (1 of 1).", "Sing.", "Answer in a line.", "Sing."), strict=True):
        assert f"\n\n{instructions}\n\n" in prompt


# Failures and limits


async def test_one_advisor_that_fails_does_not_affect_the_others(world: World) -> None:
    """If one advisor fails, the others answer, and the round is complete.

    Docs: panel.md#rounds
    Differs: the error is state with a code and a sentence, not the text of the reply: no advisor would tell it from
    words.
    """
    noor, panel = await a_panel(
        world, voices(lambda who, *_: ModelRejected("no") if who == "Seth" else "Yes."), "Seth", "Buber"
    )
    asked = await ask(world, panel, noor, "Well?")
    seth, buber = asked.spoken
    assert (seth.state, seth.error_code, seth.text) == ("failed", "model_rejected", None)
    assert (buber.text, asked.all_completed) == ("Yes.", True)


async def test_a_model_has_fifteen_seconds_to_begin(small_unhurried_world: World) -> None:
    """A model that has not begun to answer after 15 seconds is given up and asked again.

    Docs: panel.md#rounds
    Differs: a model on this machine or network has 600 seconds, because it may have to be loaded first.
    """
    await misfortunes.test_a_model_has_fifteen_seconds_to_begin(small_unhurried_world)


async def test_a_rejected_key_is_told_with_what_to_do(world: World) -> None:
    """If the provider rejects the API key, the panel says so and what to do, and does not ask again.

    Docs: panel.md#rounds
    """
    model = voices(lambda *_: ModelKeyRejected("status_code: 401"))
    noor, panel = await a_panel(world, model, "Seth")
    assert await answered(world, await ask(world, panel, noor, "Well?")) == {"Seth": "model_key_rejected"}
    [status] = await world.denizen.spaces.statuses(panel.space)
    assert status.text.startswith("Seth could not answer: the provider rejected the API key. Check it under ")
    assert len(model.requests) == 1


async def test_an_overloaded_provider_is_asked_again(small_unhurried_world: World) -> None:
    """A request that the provider refuses because there are too many is sent again, when the provider says.

    Docs: panel.md#rounds
    """
    world = small_unhurried_world
    model = voices(lambda _who, _messages, info: "At last." if info.number else ModelOverloaded("429", retry_after=7))
    noor, panel = await a_panel(world, model, "Seth", first_byte_seconds=600, total_seconds=3_600)
    before = world.clock.now()
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        while not (await world.denizen.rounds.get(asked)).all_completed:
            world.clock.skip(10)
    assert await answered(world, asked) == {"Seth": "At last."}
    assert world.clock.now() - before >= 7_000_000


async def test_when_no_advisor_can_answer_the_panel_says_why(world: World) -> None:
    """If no advisor could answer, the panel shows why, and asking again is possible.

    Docs: panel.md#rounds
    """
    up: list[bool] = []
    noor, panel = await a_panel(world, voices(lambda *_: "Yes." if up else ModelRejected("no")), "Seth", "Buber")
    asked = await ask(world, panel, noor, "Well?")
    [status] = await world.denizen.spaces.statuses(panel.space)
    assert "could not answer: the provider rejected the request. Try again." in status.text
    up.append(True)
    await world.denizen.rounds.retry(asked)
    await world.run()
    assert await answered(world, asked) == {"Seth": "Yes.", "Buber": "Yes."}
    assert await world.denizen.spaces.statuses(panel.space) == []


async def test_a_reply_can_be_cancelled(world: World) -> None:
    """You can cancel one advisor, or all that have not answered yet.

    Docs: panel.md#rounds
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    asked = await world.denizen.panels.ask(panel, noor, "Well?")
    await world.denizen.rounds.cancel(asked, asked.spoken[0].voice)
    await world.run()
    assert await answered(world, asked) == {"Seth": "cancelled", "Buber": "Buber: Well?"}


async def test_the_tokens_of_each_reply_are_counted(world: World) -> None:
    """Each reply says how many tokens its request and its text had; without the provider's count, four characters each.

    Docs: panel.md#rounds
    """
    noor, panel = await a_panel(world, voices(lambda *_: "word " * 100), "Seth")
    asked = await ask(world, panel, noor, "Well?")
    [reply], characters = asked.spoken, sum(len(text) for _, text in await lines(world, asked))
    assert abs(reply.output_tokens - 125) <= 8
    assert abs(reply.input_tokens - characters / 4) <= 16
    [spent] = await world.denizen.budgets.spending()
    assert (spent.calls, spent.input_tokens, spent.output_tokens) == (1, reply.input_tokens, reply.output_tokens)


async def test_two_messages_at_once_are_answered_one_after_the_other(world: World) -> None:
    """If you ask again before everybody has answered, the second message is answered after the first.

    Docs: panel.md#rounds
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    await world.denizen.panels.ask(panel, noor, "One")
    second = await world.denizen.panels.ask(panel, noor, "Two")
    await world.run()
    assert ("user", f"{REFERENCE}Buber: Buber: One]") in await lines(world, await world.denizen.rounds.get(second))


# After a round


async def test_a_synthesis_can_be_made_of_the_answers(world: World) -> None:
    """A synthesis says where the advisors agree and disagree: when you ask for it, or after each round.

    Docs: panel.md#synthesis-cross-talk-and-votes
    """
    model = voices(lambda who, *_: "All say yes." if who == "nobody" else "Yes.")
    noor, panel = await a_panel(world, model, "Seth", "Buber")
    asked = await ask(world, panel, noor, "Well?")
    assert asked.part("synthesis", "synthesis") is None
    await world.denizen.rounds.synthesize(asked)
    await world.run()
    made = (await world.denizen.rounds.get(asked)).part("synthesis", "synthesis")
    assert made is not None
    assert made.text == "All say yes."


async def test_advisors_can_answer_each_other(world: World) -> None:
    """In cross-talk the advisors answer each other, as many times as you say.

    Docs: panel.md#synthesis-cross-talk-and-votes
    """
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber", crosstalk=1)
    await ask(world, panel, noor, "Well?")
    assert await in_words(world, panel) == [
        "1.0 ask complete: Seth reply done, Buber reply done",
        "1.1 crosstalk complete: Seth crosstalk done, Buber crosstalk done",
    ]
    _, talked = await world.denizen.rounds.list(panel)
    assert ("user", "[This is what the other voices answered:\n\nBuber: Buber: Well?]") in await lines(world, talked)


async def test_an_answer_survives_the_end_of_the_process(world: World) -> None:
    """If the process ends in the middle of a round, what was answered stays, and only the others are asked again.

    Docs: panel.md#rounds
    """
    begun, asked_of = asyncio.Event(), list[str]()

    async def decide(who: str, *_: Any) -> str:
        asked_of.append(who)
        if who == "Buber" and asked_of.count("Buber") == 1:
            begun.set()
            await asyncio.Event().wait()
        return f"{who} says."

    noor, panel = await a_panel(world, voices(decide), "Seth", "Buber")
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        await begun.wait()
        await until(world.denizen.rounds.get, asked, lambda now: now.spoken[0].is_over)
        world.denizen.hurry()
    await world.run()
    assert await answered(world, asked) == {"Seth": "Seth says.", "Buber": "Buber says."}
    assert sorted(asked_of) == ["Buber", "Buber", "Seth"]
