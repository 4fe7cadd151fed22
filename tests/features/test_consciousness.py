"""Consciousness."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from denizen import call, forever, reply, scripted, skip
from denizen.consciousness import chapters
from denizen.consciousness.settings import WindowSettings
from denizen.models.scripted import Info, Turn
from denizen.models.tokens import estimate_message
from tests.consciousness.test_compaction import TOOLS, a_life, block_of, questions, told_in
from tests.consciousness.test_recollection import a_booking, comes_to_mind
from tests.memory.conftest import remembering, utility, written
from tests.world import World, as_text, in_a_hall, open_world

SMALL = TOOLS + 4_000
"""A window that a dozen cycles fill."""


async def self_of(world: World, *turns: Turn, **options: Any) -> str:
    """The system prompt of Ada, when Noor has said something."""
    ada, noor, hall = await in_a_hall(world, *turns or (reply("Hi."), "Greeted Noor."), **options)
    await world.say(noor, "Hello", hall)
    await world.run()
    return (await world.prompts(ada))[-1][0]


async def test_an_agent_remembers_what_it_did_in_another_space(world: World) -> None:
    """The messages of all cycles, in all spaces, are one history: what an agent did for Ahmad it knows with Noor.

    Docs: consciousness.md
    """
    ada, noor, hall = await in_a_hall(
        world, reply("Hi Noor!"), "Greeted Noor.", reply("Here it is."), "Sent Ahmad the report.", reply("Yes."), "Yes."
    )
    ahmad = await world.person("Ahmad")
    support = await world.space("Support", ahmad, ada)
    for who, text, where in (
        (noor, "Hello!", hall),
        (ahmad, "Need the report", support),
        (noor, "Did you talk to Ahmad?", hall),
    ):
        await world.say(who, text, where)
        await world.run()
    request = (await world.prompts(ada))[4]
    assert request[2:5] + request[6:9] == [
        'model: send_message {"text":"Hi Noor!"}',
        'tool: send_message → {"success":true,"messageId":"<Hall 2>"}',
        "model: Greeted Noor.",
        'model: send_message {"text":"Here it is."}',
        'tool: send_message → {"success":true,"messageId":"<Support 2>"}',
        "model: Sent Ahmad the report.",
    ]


async def test_a_cycle_is_an_inbox_message_calls_results_and_a_last_text(world: World) -> None:
    """A cycle adds to the history: the inbox as a user message, each call with its result, and the last text.

    Docs: consciousness.md
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.")
    await world.say(noor, "Hello", hall)
    await world.run()
    assert [entry.kind for entry in await world.denizen.minds.log(ada)] == ["inbox", "response", "results", "response"]


async def test_the_history_has_the_format_of_the_model(world: World) -> None:
    """The history is stored as the messages that the model was sent and wrote, and needs no conversion.

    Docs: consciousness.md
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.")
    await world.say(noor, "Hello", hall)
    await world.run()
    messages = [entry.message for entry in await world.denizen.minds.log(ada)]
    assert [type(each) for each in messages] == [ModelRequest, ModelResponse, ModelRequest, ModelResponse]
    assert [as_text(each) for each in messages[:3]] == [as_text(each) for each in world.model(ada).requests[-1][1:]]


async def test_an_agent_sees_why_it_did_something(world: World) -> None:
    """An agent sees its own calls, with their arguments and results, and its own notes in every later request.

    Docs: consciousness.md
    """
    turns = [call("set_memories", memories={"charts": "Sarah likes charts."}), reply("Noted.")], "Noted it for Sarah."
    ada, noor, hall = await in_a_hall(world, *turns, reply("Yes."), "Said yes.")
    for text in ("Sarah likes charts", "Did you note it?"):
        await world.say(noor, text, hall)
        await world.run()
    shown = "\n".join((await world.prompts(ada))[-1])
    assert 'set_memories {"memories":{"charts":"Sarah likes charts."}}' in shown
    assert 'set_memories → {"success":true,"keys":["charts"]}' in shown
    assert "model: Noted it for Sarah." in shown


async def test_the_system_prompt_comes_first(world: World) -> None:
    """The first message of every request is the system prompt; a new agent has nothing else before its first inbox.

    Docs: consciousness.md
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.")
    await world.say(noor, "Hello", hall)
    await world.run()
    assert all(request[0].startswith("self: IDENTITY:") for request in await world.prompts(ada))
    assert len((await world.prompts(ada))[0]) == 2


async def test_the_system_prompt_has_the_identity_and_the_role(world: World) -> None:
    """The system prompt has the name and the handle of the agent, and the instructions of its owner.

    Docs: consciousness.md
    Differs: the handle, not the internal id, which no tool takes.
    """
    prompt = await self_of(world, instructions="You run the kitchen.")
    assert 'IDENTITY:\n  name: "Ada"\n  handle: @ada\n\nYOUR ROLE:\nYou run the kitchen.\n' in prompt


async def test_the_system_prompt_lists_the_spaces_with_their_members(world: World) -> None:
    """The system prompt lists the spaces of the agent: name, id and members with their kind.

    Docs: consciousness.md
    """
    assert 'YOUR SPACES:\n  - "Hall" (id: <Hall>) — You, Noor (human, @noor)\n' in await self_of(world)


async def test_the_system_prompt_lists_goals_memories_and_plans(world: World) -> None:
    """The system prompt lists goals with their status, memories, and plans with their schedule.

    Docs: consciousness.md
    Differs: the next time of a plan is in the inbox message. In the system prompt it would change with every run, and
    the provider's cache could not serve what follows.
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.")
    await world.denizen.goals.set(ada, "Complete the Q4 analysis", priority="high")
    await world.denizen.notes.set(ada, "Q4", "The deadline is Feb 28.")
    await world.denizen.plans.set(ada, "Daily Report", "Write it.", cron="0 9 * * *")
    await world.say(noor, "Hello", hall)
    await world.run()
    prompt, inbox, *_ = (await world.prompts(ada))[0]
    assert "GOALS:\n  - Complete the Q4 analysis (goal 1, active, high priority)\n" in prompt
    assert "MEMORIES:\n  - Q4: The deadline is Feb 28.\n" in prompt
    assert 'PLANS:\n  - "Daily Report" (recurring, cron: 0 9 * * *, UTC): Write it.\n' in prompt
    assert "Your next plans: Daily Report at 2026-01-06 09:00 UTC" in inbox


async def test_the_system_prompt_says_how_to_behave(world: World) -> None:
    """The system prompt says how to speak, when to skip, and that the messages below are the agent's own past.

    Docs: consciousness.md
    """
    prompt = await self_of(world)
    assert "- The messages below are your own past: events, your tool calls, their results, your notes." in prompt
    assert "- To speak, call send_message." in prompt
    assert "call skip before anything else if you are not addressed by name, role or context" in prompt


async def test_the_system_prompt_asks_for_a_summary(world: World) -> None:
    """The system prompt asks for a line at the end of each cycle: who, about what, key actions, what is pending.

    Docs: consciousness.md
    """
    asked = "end with one line of text: who, about what, what you did, what is pending."
    assert asked in await self_of(world)


async def test_the_time_is_current(world: World) -> None:
    """The agent knows the current time in each cycle.

    Docs: inbox.md
    Differs: it stands in the inbox message. In the system prompt it would change every request from its beginning.
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.", reply("Bye."), "Said goodbye.")
    for text in ("Hello", "Goodbye"):
        await world.say(noor, text, hall)
        await world.run_after(60)
    assert [each.splitlines()[1] for each in await world.history(ada) if each.startswith("inbox")] == [
        "Now: Monday 2026-01-05 09:01 UTC",
        "Now: Monday 2026-01-05 09:02 UTC",
    ]


async def test_changes_of_spaces_goals_and_memories_are_told(world: World) -> None:
    """A new member, goal, memory or plan is known in the next cycle.

    Docs: consciousness.md
    Differs: as a line of the next inbox message. The system prompt stays as it is, so that the provider's cache serves
    the whole past.
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.", reply("Yes."), "Said yes.")
    await world.say(noor, "Hello", hall)
    await world.run()
    await world.denizen.spaces.join(hall, await world.person("Bert"))
    await world.denizen.goals.set(ada, "Help Bert")
    await world.denizen.notes.set(ada, "Bert", "Likes tea.")
    await world.say(noor, "Do you see Bert?", hall)
    await world.run()
    first, last = (await world.prompts(ada))[0], (await world.prompts(ada))[-1]
    assert first[0] == last[0]
    changes = (await world.newest_inbox(ada)).partition("[CHANGES]\n")[2].splitlines()[:3]
    assert changes == [
        '- Members of "Hall" (id: <Hall>): You, Noor (human, @noor), Bert (human, @bert)',
        "- New goal: Help Bert (goal 1, active)",
        "- New memory: Bert: Likes tea.",
    ]


async def test_the_system_prompt_is_written_anew_after_a_pause(world: World) -> None:
    """After five minutes of sleep the system prompt is written anew with the current spaces, goals and memories.

    Docs: consciousness.md
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.", reply("Yes."), "Said yes.")
    await world.say(noor, "Hello", hall)
    await world.run()
    await world.denizen.goals.set(ada, "Help Bert")
    world.clock.advance(301)
    await world.say(noor, "Do you see Bert?", hall)
    await world.run()
    assert "GOALS:\n  - Help Bert (goal 1, active)\n" in (await world.prompts(ada))[-1][0]


async def test_the_past_is_not_changed(world: World) -> None:
    """A new cycle only adds to what was sent before: every request begins with the request before it.

    Docs: consciousness.md
    """
    turns = [turn for number in range(4) for turn in (reply(f"{number}"), f"Said {number}.")]
    ada, noor, hall = await in_a_hall(world, *turns)
    for number in range(4):
        await world.say(noor, f"Number {number}?", hall)
        await world.run()
    requests = await world.prompts(ada)
    assert [later[: len(earlier)] == earlier for earlier, later in pairwise(requests)] == [True] * 7


async def test_the_last_text_is_internal(world: World) -> None:
    """The text at the end of a cycle is the agent's own note: nobody is shown it.

    Docs: cycles.md
    Differs: if a person waits and got no message, it is sent as the answer after one reminder.
    """
    _, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.")
    await world.say(noor, "Hello", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hello", "Ada: Hi."]


def test_the_window_has_limits() -> None:
    """The window has at most 100,000 tokens and keeps the last 10 cycles whole, unless you set something else.

    Docs: consciousness.md
    """
    settings = WindowSettings()
    assert (settings.max_tokens, settings.min_recent_cycles) == (100_000, 10)


async def test_a_short_history_is_sent_whole(world: World) -> None:
    """As long as the history fits the window, all of it is sent, word for word.

    Docs: consciousness.md
    """
    life = await a_life(world, questions(15))
    assert block_of(life.requests[-1]) == ""
    assert sum(as_text(each).startswith("[INBOX") for each in life.requests[-1]) == 15


async def test_the_oldest_cycles_become_their_own_summaries(world: World) -> None:
    """If the window is full, the oldest cycles leave it first; the last text of each stays, under `[EARLIER CYCLES]`.

    Docs: consciousness.md
    """
    life = await a_life(world, questions(20), max_tokens=SMALL, layer_share=0.25, strategy="self_summary")
    prompt, block, *recent = [as_text(each) for each in life.requests[-1]]
    assert prompt.startswith("IDENTITY:")
    assert block.startswith("[EARLIER CYCLES — self-summaries]\nCycle 1 ")
    assert 'Cycle 3 (2026-01-05, "Hall", Noor): Answered Noor about w3. [send_message]' in block
    first = told_in(block)[-1] + 1
    assert [f"word w{number} " in each for number, each in enumerate(recent[::4], start=first)] == [True] * (21 - first)


async def test_compaction_needs_no_model(world: World) -> None:
    """Compaction uses the summaries that the agent has written: it makes no call to a model.

    Docs: consciousness.md
    """
    life = await a_life(world, questions(20), max_tokens=SMALL)
    assert block_of(life.requests[-1])
    assert len(life.requests) == 2 * 20


async def test_a_cycle_without_a_last_text_has_a_summary(world: World) -> None:
    """A cycle that ends without a text is remembered by what it did.

    Docs: consciousness.md
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), cycle={"max_steps": 1})
    await world.say(noor, "Hello", hall)
    await world.run()
    assert [each.summary for each in await world.cycles(ada)] == ['Sent a message to "Hall". (No summary was written.)']


async def test_compaction_reduces_the_window_at_once(world: World) -> None:
    """Compaction runs after a cycle, and reduces the window to 60 % in one go, so that it is rare.

    Docs: consciousness.md
    """
    life = await a_life(world, questions(40), max_tokens=SMALL)
    blocks = [block_of(each) for each in life.requests]
    assert 1 < len(set(blocks)) < len(blocks) / 8


async def test_recent_cycles_stay_whole(world: World) -> None:
    """The last cycles stay whole, with their calls and results, as many as `min_recent_cycles`.

    Docs: consciousness.md
    Differs: as far as half of the window holds them. Ten large cycles would otherwise exceed it.
    """
    life = await a_life(world, questions(25), max_tokens=SMALL, target_share=0.2, min_recent_cycles=5)
    kept = [sum(as_text(each).startswith("[INBOX") for each in request) for request in life.requests]
    assert 5 <= min(kept[30:]) < 10


async def test_older_cycles_are_grouped(world: World) -> None:
    """Recent cycles are whole, older ones a line each, and still older ones groups: `[COMPACTED MEMORY — cycles a–b]`.

    Docs: consciousness.md
    """
    life = await a_life(world, questions(30), max_tokens=SMALL, layer_share=0.25)
    block = block_of(life.requests[-1])
    assert block.startswith("[COMPACTED MEMORY — cycles 1–")
    assert block.index("[COMPACTED MEMORY") < block.index("[EARLIER CYCLES — self-summaries]")
    assert told_in(block) == list(range(1, told_in(block)[-1] + 1))


async def test_a_group_says_what_was_done_with_whom(world: World) -> None:
    """A group of old cycles says how many they were, what was done, with whom, and has their most telling lines.

    Docs: consciousness.md
    """
    life = await a_life(world, questions(30), max_tokens=SMALL, layer_share=0.25)
    _, counts, line, *_ = block_of(life.requests[-1]).splitlines()
    assert " cycles, 2026-01-05. Done: send_message ×" in counts
    assert "With Noor (" in counts
    assert line.startswith("Cycle ")


async def test_relevant_old_cycles_come_back_whole(world: World) -> None:
    """With semantic compaction, the old cycles most relevant to the inbox come back whole, with what the agent did.

    Docs: consciousness.md
    Differs: they come as one message behind the inbox. Put back into the past, they would change the beginning of the
    prompt, and the provider's cache could not serve it.
    """
    ada, noor, kitchen = await a_booking(world, "Please book a hotel for the puppet festival in Turin.")
    found = await comes_to_mind(world, ada, noor, kitchen, "Which puppet festival was it?")
    assert "Please book a hotel for the puppet festival" in found
    assert "You did" in found
    assert "Hotel Aurora in Turin, room 12." in found


class Topics:
    """An embedder of one's own, which knows four topics by their words."""

    name = "topics"
    _words = (("puppy", "dog"), ("violin", "music"), ("rain", "weather"), ("rent", "money"))

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [bytes(100 if any(word in text for word in words) else 1 for words in self._words) for text in texts]

    async def close(self) -> None: ...


async def test_old_cycles_are_found_by_meaning() -> None:
    """With an embedder, the past is also found by its meaning: a question about a dog finds what was said of a puppy.

    Docs: recall.md
    """
    async with open_world("sqlite://", embedder=Topics()) as world:
        said = "I play the violin", "They have a puppy now", "It will rain", "The rent is due"
        life = await a_life(world, list(said))
        await world.denizen.minds.reindex()
        found = await world.denizen.minds.recall(life.ada, "Who owns a dog?")
        assert found[0].text == "They have a puppy now"


async def test_irrelevant_old_cycles_do_not_come_back(world: World) -> None:
    """An inbox that nothing in the past is relevant to brings nothing back.

    Docs: consciousness.md
    """
    ada, noor, kitchen = await a_booking(world, "Please book a hotel for the puppet festival in Turin.")
    assert await comes_to_mind(world, ada, noor, kitchen, "Have you read anything by Borges?") == ""


async def test_a_small_model_summarizes_conversations() -> None:
    """With the strategy `rolling`, a small model summarizes conversations, and its text stands before the window.

    Docs: memory.md
    Differs: it is a choice, not the default. The agent's own summaries cost nothing and were written with full context.
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        small = utility(world, *[written("Noor learns words.", facts=[])] * 40)
        life = await a_life(world, questions(20), max_tokens=SMALL, strategy="rolling")
        block = as_text(life.requests[-1][1])
        assert block.startswith("[ROLLING MEMORY — ")
        assert "Noor learns words." in block
        assert small.requests


async def test_a_small_model_writes_the_compacted_memory_from_the_log() -> None:
    """With the strategy `written`, a small model writes the compacted memory from the log: decisions, facts, promises.

    Docs: consciousness.md
    Differs: it is a choice, not the default; and names, numbers and dates that the model leaves out are appended.
    """

    def note(messages: list[ModelMessage], _info: Info) -> str:
        first = as_text(messages[1]).split()[1]
        return f'{{"notes": [{{"cycle": {first}, "kind": "promise", "text": "Ada owes Noor a list."}}]}}'

    async with open_world("sqlite://") as world:
        world.denizen.models.register("utility", forever(note))
        said = [f"{each} The order of Lyon is {4_000 + number}." for number, each in enumerate(questions(40))]
        life = await a_life(world, said, max_tokens=SMALL, strategy="written", writer_model="utility")
        world.clock.advance(301)
        await life.hear("And now?")
        block = as_text(life.requests[-1][1])
        assert block.startswith("[COMPACTED MEMORY — cycles 1–")
        assert "Promise: Ada owes Noor a list." in block
        kept = await world.denizen.db.read(chapters.notes_of, life.ada.id, 2, 2)
        assert ("also", "Lyon; 4001") in kept[2]


async def test_old_messages_are_archived(world: World) -> None:
    """What has left the window stays in the log, complete, for search and replay.

    Docs: replay.md
    """
    life = await a_life(world, questions(20), max_tokens=SMALL)
    log = await world.denizen.minds.log(life.ada)
    assert [entry.seq for entry in log] == list(range(1, 4 * 20 + 1))
    assert "The word w1 " in as_text(log[0].message)
    first, _ = await world.denizen.minds.replay(life.ada, 1)
    assert as_text(first.messages[-1]) == as_text(log[0].message)


async def test_an_agent_searches_its_whole_past(world: World) -> None:
    """An agent finds what has left the window with `recall`, in the original words.

    Docs: recall.md
    """
    life = await a_life(world, ["My violin is in the cellar.", *questions(20)], max_tokens=SMALL)
    assert "cellar" not in "\n".join(as_text(each) for each in life.requests[-1])
    found = await world.denizen.minds.recall(life.ada, "violin")
    assert found[0].text == "My violin is in the cellar."


async def test_recall_forgives_spelling(world: World) -> None:
    """Recall finds names without their accents, words with one wrong letter, and times in several languages.

    Docs: recall.md
    """
    life = await a_life(world, ["Jürgen has my violin.", *questions(20)], max_tokens=SMALL)
    for query, when in (("Jurgen", None), ("violn", None), ("violin", "heute")):
        found = await world.denizen.minds.recall(life.ada, query, when=when)
        assert found[0].text == "Jürgen has my violin."


async def test_small_talk_recalls_nothing(world: World) -> None:
    """A question without a word that could be looked for finds nothing.

    Docs: recall.md
    """
    life = await a_life(world, ["Ok, thanks! What was it?", *questions(5)], max_tokens=SMALL)
    for text in ("ok", "Thanks!", "What was it?"):
        assert await world.denizen.minds.recall(life.ada, text) == []


async def test_memories_survive_compaction(world: World) -> None:
    """What an agent has put into its memories stays in the system prompt, whatever leaves the window.

    Docs: consciousness.md
    """

    def noting(messages: list[ModelMessage], info: Info) -> Turn:
        if info.number == 0:
            return [call("set_memories", memories={"violin": "It is in the cellar."}), reply("Noted.")]
        return reply("I see. " + "a" * 300) if as_text(messages[-1]).startswith("[INBOX") else "Listened."

    life = await a_life(world, questions(20), forever(noting), max_tokens=SMALL)
    assert "word w1 " not in "\n".join(as_text(each) for each in life.requests[-1])
    assert "MEMORIES:\n  - violin: It is in the cellar.\n" in as_text(life.requests[-1][0])


async def test_no_request_exceeds_the_window(world: World) -> None:
    """No request is larger than the window, however long the history and however large the results of a cycle.

    Docs: consciousness.md
    """
    life = await a_life(world, [*questions(15), "look 9000", "look 9000"], max_tokens=SMALL)
    sizes = [TOOLS + sum(estimate_message(each) for each in request) for request in life.requests]
    assert max(sizes) <= SMALL


async def test_the_cost_of_a_cycle_does_not_grow(world: World) -> None:
    """A cycle late in a long history costs no more than one when the window was full for the first time.

    Docs: speed.md
    """
    life = await a_life(world, questions(45), max_tokens=SMALL)
    sizes = [sum(estimate_message(each) for each in request) for request in life.requests]
    assert max(sizes[60:]) <= max(sizes[:30]) * 1.05


async def test_a_call_is_never_without_its_result(world: World) -> None:
    """Cycles leave the window as a whole: every request begins with an inbox message after the summaries.

    Docs: consciousness.md
    """
    life = await a_life(world, questions(25), max_tokens=SMALL)
    for request in life.requests:
        first = request[2] if block_of(request) else request[1]
        assert as_text(first).startswith("[INBOX - 1 new event]")


async def test_history_is_stored_after_every_cycle(world: World) -> None:
    """The history is stored after every cycle: after a restart the next request goes on from it.

    Docs: consciousness.md
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.")
    await world.say(noor, "Hello", hall)
    await world.run()
    before = await world.history(ada)
    await world.restart(ada=scripted(reply("Yes."), "Said yes."))
    assert await world.history(ada) == before
    await world.say(noor, "Still there?", hall)
    await world.run()
    assert (await world.prompts(ada))[0][4] == "model: Greeted Noor."


async def test_an_agent_is_inspected(world: World) -> None:
    """People can see how many cycles an agent has had, when the last one was, and how full its window is.

    Docs: replay.md
    """
    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.")
    await world.say(noor, "Hello", hall)
    await world.run()
    found = await world.denizen.minds.inspect(ada)
    assert (found.cycle_count, found.cycles[0].record.ended_at) == (1, world.clock.now())
    assert 0 < found.window.recent < found.window.used < found.window.limit


async def test_a_skipped_cycle_is_not_remembered(world: World) -> None:
    """A skipped cycle leaves nothing in the history: the next request does not have what was skipped.

    Docs: cycles.md
    """
    ada, noor, hall = await in_a_hall(world, skip("for Bert"), reply("Yes?"), "Answered Noor.")
    await world.denizen.spaces.join(hall, await world.person("Bert"))
    for text in ("Bert, your turn", "@ada?"):
        await world.say(noor, text, hall)
        await world.run()
    assert not any("Bert, your turn" in each for each in (await world.prompts(ada))[-1])
    assert [number for number, *_ in await world.endings(ada)] == [1]
