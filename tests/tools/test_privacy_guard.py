"""The guard at the send: what was said in a private space is not repeated to people who are not in it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import combinations, cycle
from typing import Any, cast

import pytest

from denizen import call, reply, scripted, tool
from denizen.access import audit
from denizen.agents.registry import Agent
from denizen.consciousness.recall import passages, settling
from denizen.cycles.catching_up import catch_up
from denizen.ids import CycleId, new_id
from denizen.models.scripted import Turn
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from denizen.spaces.posting import draft
from denizen.storage.database import Params, Row, Statement, Tx, select_where, values
from denizen.storage.schema import fingerprints
from denizen.tools import privacy_guard, private_word_search, quotation_index
from denizen.tools.settings import ClientTool
from tests.disguises import DISGUISES, ORDINARY, TEXT
from tests.world import World, listening

SECRET = "The spare key lies under the blue pot behind the old greenhouse door."
QUIET = {"silent_reply": "ignore"}
"""Who ends a cycle without a word is not reminded."""


async def told_in_private(
    world: World, *turns: Turn, said: str = SECRET, **options: object
) -> tuple[Agent, Entity, Entity, Space, Space]:
    """Ada, who hears from Noor in private, and then answers Bert in a hall where all three are."""
    ada = await world.agent("Ada", "Noted.", *turns, **{"cycle": QUIET, **options})  # pyright: ignore[reportArgumentType]
    noor, bert = await world.person("Noor"), await world.person("Bert")
    den = await world.space("Den", noor, ada, private=True)
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, said, den)
    await world.run()
    return ada, noor, bert, den, hall


async def refused(world: World, agent: Agent) -> list[tuple[str, str]]:
    """Tool and rule of what the audit log says that the agent was refused."""
    wanted = audit.AuditFilter(kind="approvals")
    home = agent.entity.organization_id
    found = await world.denizen.db.read(audit.entries, home, agent.entity.id, wanted, limit=50)
    return [(each.detail["tool"], each.detail["rule"]) for each in found if each.action == "deny_effect"]  # pyright: ignore[reportReturnType]


async def ask(world: World, bert: Entity, hall: Space) -> list[str]:
    """What Ada says in the hall when Bert asks."""
    await world.say(bert, "Where is the key?", hall)
    await world.run()
    return [line.removeprefix("Ada: ") for line in await world.transcript(hall) if line.startswith("Ada: ")]


@pytest.mark.parametrize(
    "quoted",
    [
        SECRET,
        "Noor says: the spare key lies under the blue pot behind the old greenhouse door!",
        "the SPARE key -- lies under... the Blue Pot, behind the **old** greenhouse _door_",
        "The spare\nkey lies\n\n> under the blue pot behind",
        "The spare key lies [under the blue pot](https://example.com) behind the old shed",
    ],
)
async def test_private_words_are_stopped_and_the_agent_is_told_why(world: World, quoted: str):
    ada, _, bert, den, hall = await told_in_private(world, reply(quoted), "Kept quiet.")

    assert await ask(world, bert, hall) == []
    refusal = (await world.history(ada))[-2]
    assert refusal.startswith("results: send_message → ")
    assert "consecutive words with something said in the private space" in refusal
    assert "Den" in refusal
    assert "greenhouse" not in refusal
    assert "blue pot" not in refusal
    (crossing,) = await world.denizen.minds.crossings(ada)
    assert (crossing.from_space, crossing.from_space_id, crossing.to_space_id) == ("Den", den.id, hall.id)
    assert crossing.words >= 8
    assert await refused(world, ada) == [("send_message", "private_words")]


@pytest.mark.parametrize("how", DISGUISES)
async def test_private_words_in_disguise_are_stopped(small_world: World, how: str):
    """Also when they were said some time ago, and other things since."""
    world = small_world
    ada, noor, bert, den, hall = await told_in_private(world, "Noted.", reply(DISGUISES[how]), "Kept quiet.", said=TEXT)
    await world.say(noor, "The gardener comes on Thursday, by the way.", den)
    await world.run()
    assert await ask(world, bert, hall) == []
    assert [each.from_space_id for each in await world.denizen.minds.crossings(ada)] == [den.id]


@pytest.mark.parametrize("at", range(0, len(ORDINARY), 2))
async def test_ordinary_words_about_the_same_things_pass(small_world: World, at: int):
    world = small_world
    said, answer = ORDINARY[at], ORDINARY[at + 1]
    _, _, bert, _, hall = await told_in_private(world, reply(answer), "Answered.", said=said)
    assert await ask(world, bert, hall) == [answer]


async def test_the_agent_hears_how_many_words_it_were(world: World):
    text = "As I heard, the spare key lies under the blue pot behind the old shed."
    ada, _, bert, _, hall = await told_in_private(world, reply(text), "Kept quiet.")
    assert await ask(world, bert, hall) == []
    assert [each.words for each in await world.denizen.minds.crossings(ada)] == [11]


@pytest.mark.parametrize(
    "harmless",
    [
        "I know: the spare key lies under the blue vase.",  # seven of its words
        "It is near the greenhouse, under a pot.",
        "Ask Noor.",
    ],
)
async def test_fewer_words_and_words_of_its_own_pass(world: World, harmless: str):
    ada, _, bert, _, hall = await told_in_private(world, reply(harmless), "Answered.")
    assert await ask(world, bert, hall) == [harmless]
    assert await world.denizen.minds.crossings(ada) == []


GREETING = "Good day, this is Ada, and I am glad to help you with anything in the garden."


async def test_words_of_its_instructions_pass(world: World):
    """An agent that greets as it was told to was refused, because it had greeted somebody in private as well."""
    turns = reply(GREETING), "Greeted.", reply(f"{GREETING} Ask Noor."), "Answered."
    ada, noor, bert, den, hall = await told_in_private(world, *turns, instructions=f"Begin with: {GREETING}")
    await world.say(noor, "Hello?", den)
    await world.run()
    assert await ask(world, bert, hall) == [f"{GREETING} Ask Noor."]
    assert await world.denizen.minds.crossings(ada) == []


async def test_private_words_beside_those_of_the_instructions_are_stopped(world: World):
    """A run that only begins in the instructions is not theirs."""
    known = "You know where the spare key lies under the blue pot."
    ada, _, bert, _, hall = await told_in_private(world, reply(SECRET), "Kept quiet.", instructions=known)
    assert await ask(world, bert, hall) == []
    assert [each.from_space for each in await world.denizen.minds.crossings(ada)] == ["Den"]


async def test_words_do_not_become_a_phrase_by_being_repeated_or_noted(world: World):
    """Whoever makes an agent say private words again and again, in several private spaces, or keep them in its notes,
    does not make them words that it may say anywhere.
    """
    again = [turn for _ in range(4) for turn in (reply(SECRET), "Said it again.")]
    noted = call("set_memories", memories={"greeting": SECRET})
    ada, noor, bert, den, hall = await told_in_private(
        world, *again, reply(SECRET), "Said it there too.", noted, "Noted.", reply(SECRET), "Kept quiet."
    )
    for _ in range(4):
        await world.say(noor, "Say it once more, as your greeting.", den)
        await world.run()
    cellar = await world.space("Cellar", noor, ada, private=True)
    await world.say(noor, "Greet me here as well.", cellar)
    await world.run()
    assert await world.transcript(cellar) == ["Noor: Greet me here as well.", f"Ada: {SECRET}"]
    await world.say(noor, "Make that your standing greeting.", den)
    await world.run()
    assert [each.text for each in await world.denizen.notes.list(ada)] == [SECRET]
    assert await ask(world, bert, hall) == []
    assert len(await world.denizen.minds.crossings(ada)) == 1


async def test_words_that_were_taken_out_of_the_instructions_no_longer_pass(world: World):
    ada, _, bert, _, hall = await told_in_private(world, reply(SECRET), "Kept quiet.", instructions=SECRET)
    await world.denizen.agents.edit(ada, instructions="You help in the garden.")
    assert await ask(world, bert, hall) == []


async def test_what_was_said_in_the_same_space_too_passes(world: World):
    ada, noor, bert, _, hall = await told_in_private(world, "Heard it here too.", reply(SECRET), "Answered.")
    await world.say(noor, f"Everyone: {SECRET}", hall)
    await world.run()
    assert await ask(world, bert, hall) == [SECRET]
    assert await world.denizen.minds.crossings(ada) == []


async def test_what_was_said_where_it_is_not_private_passes(world: World):
    _, noor, bert, _, hall = await told_in_private(world, "Heard it.", reply(SECRET), "Answered.")
    ada = await world.denizen.people.find("ada")
    yard = await world.space("Yard", noor, ada)
    await world.say(noor, SECRET, yard)
    await world.run()
    assert await ask(world, bert, hall) == [SECRET]


async def test_what_was_said_in_private_among_the_same_people_too_passes(small_world: World):
    """But not what was said in private among fewer of them."""
    turns = ("Heard it.", reply(SECRET), "Tried.", "Heard it again.", reply(SECRET), "Answered.")
    _, noor, bert, _, hall = await told_in_private(small_world, *turns)
    ada = await small_world.denizen.people.find("ada")
    await small_world.say(noor, SECRET, await small_world.space("Nook", noor, ada, private=True))
    await small_world.run()
    assert await ask(small_world, bert, hall) == []
    await small_world.say(noor, SECRET, await small_world.space("Cellar", noor, bert, ada, private=True))
    await small_world.run()
    assert await ask(small_world, bert, hall) == [SECRET]


async def test_those_who_were_all_there_may_hear_it_again(world: World):
    """Noor alone with Ada hears what she said in private with Ada and Bert: nobody learns anything."""
    ada = await world.agent("Ada", "Noted.", reply(SECRET), "Answered.", cycle=QUIET)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    den = await world.space("Den", noor, bert, ada, private=True)
    pair = await world.space("Pair", noor, ada, private=True)
    await world.say(noor, SECRET, den)
    await world.run()
    await world.say(noor, "Where was it?", pair)
    await world.run()
    assert await world.transcript(pair) == ["Noor: Where was it?", f"Ada: {SECRET}"]


async def test_in_the_private_space_itself_everything_may_be_said(world: World):
    ada = await world.agent("Ada", reply(SECRET), "Said it.", reply(SECRET), "Said it again.")
    noor = await world.person("Noor")
    den = await world.space("Den", noor, ada, private=True)
    for _ in range(2):
        await world.say(noor, f"Say: {SECRET}", den)
        await world.run()
    assert (await world.transcript(den)).count(f"Ada: {SECRET}") == 2


async def test_one_cycle_that_hears_both_spaces_does_not_carry_words_across(world: World):
    """What it was told in this very cycle is in no index yet."""
    noor, bert = await world.person("Noor"), await world.person("Bert")
    ada = await world.agent("Ada", cycle=QUIET)
    den = await world.space("Den", noor, ada, private=True)
    hall = await world.space("Hall", noor, bert, ada)
    await world.restart(ada=scripted([call("send_message", space_id=hall.id, text=SECRET)], "Kept quiet."))
    await world.say(noor, SECRET, den)
    await world.say(bert, "Where is the key?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Bert: Where is the key?"]
    assert [each.from_space for each in await world.denizen.minds.crossings(ada)] == ["Den"]


@pytest.mark.parametrize("answer", ['{"mail": {"messageId": "1"}}', '[{"messageId": 1}]', 'no JSON, "messageId"'])
async def test_what_other_tools_call_a_message_is_none_of_ours(small_world: World, answer: str):
    """It was taken for one of our own results, and failed whatever the agent said after it."""

    @tool
    def send_mail() -> str:
        """Send a mail."""
        return answer

    said = "I have asked them all by mail, and shall tell you what they answer."
    turns = call("send_mail"), reply(said), "Told Bert."
    _, _, bert, _, hall = await told_in_private(small_world, *turns, tools=[send_mail])
    assert await ask(small_world, bert, hall) == [said]


async def test_what_the_agent_has_only_read_is_guarded_too(world: World):
    """It was not there when it was said, and reads it up."""
    noor, bert = await world.person("Noor"), await world.person("Bert")
    den = await world.space("Den", noor, private=True)
    await world.say(noor, SECRET, den)
    ada = await world.agent("Ada", cycle=QUIET)
    await world.denizen.spaces.join(den, ada)
    hall = await world.space("Hall", noor, bert, ada)
    model = scripted(call("read_messages", space_id=den.id), reply(SECRET), "Kept quiet.")
    await world.restart(ada=model)
    assert await ask(world, bert, hall) == []


async def test_an_agent_that_has_left_the_private_space_still_keeps_quiet(world: World):
    ada, _, bert, den, hall = await told_in_private(world, reply(SECRET), "Kept quiet.")
    await world.denizen.spaces.leave(den, ada)
    assert await ask(world, bert, hall) == []


async def test_several_private_spaces_are_told_apart(world: World):
    other = "Grandmother keeps the winter coats in the cedar chest upstairs near the window."
    ada, _, bert, _, hall = await told_in_private(world, "Noted.", reply(other), reply("I cannot say."), "Ended.")
    cleo = await world.person("Cleo")
    attic = await world.space("Attic", cleo, ada, private=True)
    await world.say(cleo, other, attic)
    await world.run()
    assert await ask(world, bert, hall) == ["I cannot say."]
    assert [each.from_space for each in await world.denizen.minds.crossings(ada)] == ["Attic"]


async def test_a_long_life_is_guarded_to_its_beginning(small_world: World):
    """Words from long ago, when hundreds of other things have been said since, and over the end of a passage."""
    world = small_world
    filler = " ".join(f"word{number}" for number in range(240))  # the secret goes over the end of the first passage
    head = filler[: passages.PASSAGE_CHARACTERS - 40].rpartition(" ")[0]
    ada, noor, bert, den, hall = await told_in_private(
        world, *["Noted."] * 150, reply(SECRET), "Kept quiet.", said=f"{head} {SECRET} And so on."
    )
    for number in range(150):
        await world.say(noor, f"The pot number {number} stands under the greenhouse roof with key {number}.", den)
        await world.run()
    assert await ask(world, bert, hall) == []
    assert len(await world.denizen.minds.crossings(ada)) == 1


async def test_a_quotation_of_common_words_is_found_among_many_passages(small_world: World):
    """Each word, and each pair of them, has been said hundreds of times since; all eight together only once."""
    world, secret = small_world, "copper kettle window garden basket ladder hammer candle"
    ada, _, bert, _, hall = await told_in_private(world, reply(secret), "Kept quiet.", said=secret)

    def say_much(tx: Tx) -> None:
        chosen = cycle(combinations(secret.split(), 4))
        texts = [f"{' '.join(next(chosen))} number{number}" for number in range(2_000)]
        pieces = [passages.Piece("heard", text, tx.now, hall.id, bert.id, "Bert") for text in texts]
        passages.remember(tx, ada.id, 2, pieces)

    await world.denizen.db.write(say_much)
    await catch_up(world.denizen.db, ada.id)
    assert await ask(world, bert, hall) == []
    assert len(await world.denizen.minds.crossings(ada)) == 1


@pytest.mark.parametrize(
    ("settings", "passes"), [({"enabled": False}, True), ({"words": 14}, True), ({"words": 5}, False)]
)
async def test_the_guard_can_be_set(small_world: World, settings: dict[str, object], passes: bool):
    """Off, or with another length: the quotation has thirteen words."""
    world = small_world
    _, _, bert, _, hall = await told_in_private(world, reply(SECRET), "Ended.", private_guard=settings)
    assert await ask(world, bert, hall) == ([SECRET] if passes else [])


async def test_scripts_without_spaces_are_guarded_by_their_letters(small_world: World):
    world = small_world
    said = "备用钥匙放在旧温室门后面的蓝色花盆下面"
    _, _, bert, _, hall = await told_in_private(world, reply(f"听说{said}。"), "Kept quiet.", said=said)
    assert await ask(world, bert, hall) == []


async def test_text_is_looked_at_only_where_something_of_it_could_be_stopped(world: World):
    ada, _, _, den, hall = await told_in_private(world)
    bee = await world.agent("Bee")
    yard = await world.space("Yard", bee)

    async def free(agent: Agent) -> frozenset[str] | None:
        spaces = [den.id, hall.id, yard.id]
        caution = await world.denizen.db.read(privacy_guard.caution, agent.id, spaces)
        return None if caution is None else caution.free

    assert await free(ada) == {den.id}
    assert await free(bee) is None
    await world.denizen.spaces.leave(den, ada)
    assert await free(ada) == {den.id}, "it still knows what it heard there"
    await world.denizen.agents.edit(ada, private_guard={"enabled": False})
    assert await free(ada) is None


async def test_what_was_said_publicly_long_ago_too_passes(small_world: World):
    world = small_world
    ada, noor, bert, _, hall = await told_in_private(world, reply(SECRET), "Answered.")

    def say_much(tx: Tx) -> None:
        texts = [SECRET, *(f"The pot number {number} is not under the door." for number in range(300))]
        passages.remember(tx, ada.id, 2, [passages.Piece("heard", text, tx.now, hall.id, noor.id) for text in texts])

    await world.denizen.db.write(say_much)
    await catch_up(world.denizen.db, ada.id)
    assert await ask(world, bert, hall) == [SECRET]


class Counting:
    """A transaction that counts what it is asked."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += name in ("one", "all")
        return getattr(self._tx, name)


class NoIndex:
    """A transaction that fails when an index is searched."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    def __getattr__(self, name: str) -> object:
        return getattr(self._tx, name)

    def all(self, statement: Statement, /, **params: Params) -> list[Row]:
        assert "FROM fingerprints" not in statement.sqlite
        return self._tx.all(statement, **params)


OLD = "copper kettle window garden basket ladder hammer candle"
NEW = "silver spoons under seven loose boards upstairs here"


async def test_a_message_is_compared_before_the_transaction_that_sends(small_world: World):
    """In the transaction only what is newer is compared; words that were said since then are found as well."""
    world, db = small_world, small_world.denizen.db
    ada, noor, bert, den, hall = await told_in_private(world, said=OLD)
    cleo = await world.person("Cleo")

    def remember_privately(tx: Tx, texts: list[str]) -> None:
        pieces = [passages.Piece("heard", text, tx.now, den.id, noor.id, "Noor") for text in texts]
        passages.remember(tx, ada.id, 2, pieces)

    def checked(tx: Tx, text: str) -> privacy_guard.CheckedAhead | None:
        forms = private_word_search.forms_of_message(draft(text))
        return privacy_guard.check_ahead(tx, ada.id, CycleId(""), hall.id, forms, ())

    def is_stopped(tx: Tx, text: str, ahead: privacy_guard.CheckedAhead | None) -> bool:
        forms = private_word_search.forms_of_message(draft(text))
        inside = cast("Tx", NoIndex(tx))
        found = privacy_guard.private_words(inside, ada.id, CycleId(""), hall.id, forms, (), (), ahead)
        return found is not None

    await db.write(remember_privately, [f"Nothing of note, number {number}." for number in range(200)])
    await catch_up(db, ada.id)
    ahead = {text: await db.read(checked, text) for text in (OLD, NEW)}
    await db.write(remember_privately, [NEW, *(f"Still nothing, number {number}." for number in range(200))])
    await catch_up(db, ada.id)

    assert await db.read(is_stopped, OLD, ahead[OLD])
    assert await db.read(is_stopped, NEW, ahead[NEW])
    with pytest.raises(AssertionError):  # what was found for another text is of no use
        await db.read(is_stopped, NEW, ahead[OLD])
    await world.denizen.spaces.join(hall, cleo)
    with pytest.raises(AssertionError):  # nor what was found for other readers
        await db.read(is_stopped, OLD, ahead[OLD])
    await world.denizen.spaces.leave(hall, cleo)
    await world.denizen.spaces.leave(hall, bert)
    assert not await db.read(is_stopped, OLD, ahead[OLD]), "only Noor is left to read it"


@pytest.mark.parametrize("how", ["send_message", "delivered", "visible"])
async def test_long_texts_are_not_compared_while_the_writer_waits(
    small_world: World, monkeypatch: pytest.MonkeyPatch, how: str
):
    """They were, word for word: nobody could write meanwhile."""
    world, text = small_world, f"{'so on ' * 16_000} {OLD}"
    turn = {"send_message": reply(text), "delivered": text, "visible": call("print_label", what=text)}[how]
    options = {"tools": [printing([])], "cycle": {"silent_reply": "deliver" if how == "delivered" else "ignore"}}
    ada, _, bert, _, hall = await told_in_private(world, turn, "Kept quiet.", said=OLD, **options)
    prepared: list[bool] = []

    def written_text(forms: Sequence[str], length: int) -> private_word_search.WrittenText:
        prepared.append(threading.current_thread().name != "sqlite writer")
        return private_word_search.written_text(forms, length)

    monkeypatch.setattr(privacy_guard, "written_text", written_text)
    await world.say(bert, "@ada where is it?", hall)
    await world.run()
    assert prepared
    assert all(prepared), "never by the thread that writes"
    assert len(await world.denizen.minds.crossings(ada)) == 1


async def test_private_words_of_a_long_life_are_found_after_an_upgrade_and_another_length(small_world: World):
    """What is not indexed yet is indexed before the first message is checked, and again if the length changes."""
    world, db = small_world, small_world.denizen.db
    short = "copper kettle window garden"
    turns = reply(OLD), "Kept quiet.", reply(short), "Kept quiet.", reply("Ask Noor."), "Answered."
    ada, noor, bert, den, hall = await told_in_private(world, *turns, said=OLD)

    def say_much(tx: Tx) -> None:
        texts = [f"Nothing of note, number {number}." for number in range(3_000)]
        passages.remember(tx, ada.id, 2, [passages.Piece("heard", text, tx.now, den.id, noor.id) for text in texts])

    await db.write(say_much)
    await settling.settle(db, ada.id)
    assert await ask(world, bert, hall) == []
    await world.denizen.agents.edit(ada, private_guard={"words": 4})
    assert await ask(world, bert, hall) == []
    assert [each.words for each in await world.denizen.minds.crossings(ada)] == [8, 4]
    assert await ask(world, bert, hall) == ["Ask Noor."]


async def test_only_what_was_said_in_private_spaces_is_indexed(small_world: World):
    """Also what was said before the space became private."""
    world, db = small_world, small_world.denizen.db
    ada, noor = await world.agent("Ada"), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)

    def say_much(tx: Tx) -> None:
        passages.remember(tx, ada.id, 1, [passages.Piece("heard", OLD, tx.now, hall.id, noor.id)] * 50)

    await db.write(say_much)
    await world.space("Den", noor, ada, private=True)
    await catch_up(db, ada.id)
    assert await fingerprints_of(world, ada) == 0
    await db.write(directory.change_space, hall.id, private=True)
    await catch_up(db, ada.id)
    assert await fingerprints_of(world, ada) > 0


async def test_what_is_forgotten_leaves_no_fingerprint(small_world: World):
    """Also not of the words that cross the end of a passage that is forgotten, into one that stays."""
    world, db = small_world, small_world.denizen.db
    ada, noor, _, den, _ = await told_in_private(world)
    text = "".join(f"word{number} " for number in range(700))

    def remember(tx: Tx) -> None:
        passages.remember(tx, ada.id, 2, [passages.Piece("heard", text, tx.now, den.id, noor.id)])

    await db.write(remember)
    await settling.settle(db, ada.id, fewest=1)
    await privacy_guard.index_words(db, ada.id)
    newest = (await db.read(settling.extent, ada.id)).passages
    before = await fingerprints_of(world, ada)
    await db.write(passages.forget, ada.id, [newest - 1])
    await privacy_guard.index_words(db, ada.id)
    left = await db.read(lambda tx: {number for (number,) in tx.all(_NUMBERS, agent_id=ada.id)})
    assert newest - 1 not in left
    assert newest in left
    words = " ".join(f"word{number}" for number in range(700)).split()
    lost = quotation_index.hashes_of(words, 8) & await hashes_of(world, ada)
    assert 0 < len(lost) < before
    await db.write(passages.forget, ada.id, range(1, newest + 1))
    assert await fingerprints_of(world, ada) == 0


def test_each_run_of_words_has_one_hash_and_fewer_words_have_none():
    words = ["the", "copper", "kettle", "stands", "by", "the", "kitchen", "window"]
    assert len(quotation_index.hashes_of(words, 8)) == 1
    assert quotation_index.hashes_of(words[1:], 8) == set()


_NUMBERS = select_where(fingerprints, "number", "agent_id")
_HASHES = select_where(fingerprints, "hash", "agent_id")


async def hashes_of(world: World, agent: Agent) -> set[int]:
    return set(await world.denizen.db.read(lambda tx: values(tx, _HASHES, agent_id=agent.id)))


async def fingerprints_of(world: World, agent: Agent) -> int:
    return len(await hashes_of(world, agent))


async def test_looking_costs_no_more_where_the_agent_has_many_private_spaces(small_world: World):
    """Whoever serves many has one with each of them: each was looked through, for its members and for its words."""
    world = small_world
    ada, _, _, _, hall = await told_in_private(world)

    def look(tx: Tx) -> int:
        counting = Counting(tx)
        caution = privacy_guard.caution(cast("Tx", counting), ada.id, [hall.id])
        passes = privacy_guard.passes(cast("Tx", counting), ada.id, CycleId(new_id()), hall.id, SECRET, ())
        assert (caution is not None and caution.free, passes) == (frozenset(), False)
        return counting.asked

    asked = await world.denizen.db.read(look)
    cleo = await world.person("Cleo")
    for number in range(30):
        await world.space(f"With {number}", ada, cleo, private=True)
    assert await world.denizen.db.read(look) == asked


@pytest.mark.parametrize("many", [0, 25])
async def test_only_where_everyone_was_in_each_private_space_is_the_agent_free(small_world: World, many: int):
    """However many spaces those have who read there."""
    world = small_world
    ada = await world.agent("Ada")
    noor, bert, cleo = [await world.person(name) for name in ("Noor", "Bert", "Cleo")]
    both = await world.space("Both", ada, noor, bert)
    alone, three, empty = (
        await world.space("Alone", ada, noor),
        await world.space("Three", ada, noor, bert, cleo),
        await world.space("Empty", ada),
    )
    for number in range(many):
        await world.space(f"Other {number}", noor, bert, cleo)
    for name in ("Den", "Attic"):
        await world.space(name, ada, noor, bert, private=True)
    every = [each.id for each in (both, alone, three, empty)]
    caution = await world.denizen.db.read(privacy_guard.caution, ada.id, every)
    assert caution is not None
    assert caution.free == {both.id, alone.id, empty.id}
    await world.space("Nook", ada, noor, private=True)
    caution = await world.denizen.db.read(privacy_guard.caution, ada.id, every)
    assert caution is not None
    assert caution.free == {alone.id, empty.id}


OWN_WORDS = "Nobody has told me where it might be, but I am sure that we will find it if we all look for it together. "


async def streamed_in_the_hall(world: World, text: str) -> tuple[str, list[str]]:
    """What a reader in the hall sees of a message while it is written, and what is then said there."""
    model = scripted("Noted.", reply(text), "Done.", chunk=3)
    _, _, bert, _, hall = await told_in_private(world, model=model)
    async with listening(world, hall) as heard:
        said = await ask(world, bert, hall)
        frames = await heard()
    return "".join(frame["text"] for frame in frames if frame["type"] == "stream.delta"), said


async def test_what_is_not_private_streams_a_few_words_late(world: World):
    shown, said = await streamed_in_the_hall(world, OWN_WORDS * 4)
    assert said == [(OWN_WORDS * 4).strip()] or said == [OWN_WORDS * 4]
    assert (OWN_WORDS * 4).startswith(shown)
    assert len(shown) > len(OWN_WORDS) * 3


@pytest.mark.parametrize("before", ["", OWN_WORDS, OWN_WORDS * 3])
async def test_private_words_are_never_shown_wherever_they_stand(world: World, before: str):
    """Not even the first seven of them: what was shown before ends where they begin, and is taken back."""
    shown, said = await streamed_in_the_hall(world, f"{before}{SECRET} {OWN_WORDS * 2}")
    assert said == []
    assert "spare key" not in shown.lower()
    assert before.startswith(shown)


async def test_a_stopped_message_was_never_shown(world: World):
    _, _, bert, _, hall = await told_in_private(world, reply(SECRET), "Kept quiet.")
    async with listening(world, hall) as heard:
        assert await ask(world, bert, hall) == []
        assert not [frame for frame in await heard() if frame["type"].startswith("stream.")]


async def test_text_that_is_delivered_for_a_silent_agent_is_guarded_too(world: World):
    deliver = {"silent_reply": "deliver"}
    _, _, bert, _, hall = await told_in_private(world, f"@bert heard: {SECRET}", cycle=deliver)
    await world.say(bert, "@ada where is the key?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Bert: @ada where is the key?"]


# Calls that people see

ON_A_LABEL = {
    "what": "The spare key\nlies under",
    "more": [{"line": "the blue pot behind"}, "the old greenhouse door."],
}


def printing(printed: list[str]) -> Any:
    @tool(name="print_label", visible=True)
    def print_label(what: str, more: list[Any] | None = None) -> str:
        """Print a label."""
        printed.append(what)
        return "Printed."

    return print_label


def asking(**options: Any) -> ClientTool:
    schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    return ClientTool(name="confirm", description="Ask whether you may.", parameters=schema, **options)


@pytest.mark.parametrize("arguments", [{"what": f"Key: {SECRET}"}, ON_A_LABEL], ids=["whole", "in pieces"])
async def test_a_call_that_people_see_is_stopped_like_a_message(world: World, arguments: dict[str, Any]):
    """It is not made, and nobody has seen anything of it, not even while it was written."""
    printed: list[str] = []
    model = scripted("Noted.", call("print_label", **arguments), "Kept quiet.", chunk=5)
    ada, _, bert, den, hall = await told_in_private(world, model=model, tools=[printing(printed)])
    async with listening(world, hall) as heard:
        await ask(world, bert, hall)
        assert not [frame for frame in await heard() if frame["type"].startswith("call.")]
    assert printed == []
    assert await world.denizen.calls.list(hall) == []
    refusal = (await world.history(ada))[-2]
    assert refusal.startswith('results: print_label → {"success": false, "error": "private_words"')
    assert "Not called: what you wrote for it shares 13 consecutive words" in refusal
    assert "greenhouse" not in refusal
    (crossing,) = await world.denizen.minds.crossings(ada)
    assert (crossing.from_space_id, crossing.to_space_id, crossing.words) == (den.id, hall.id, 13)
    assert await refused(world, ada) == [("print_label", "private_words")]


async def test_a_call_with_words_of_its_own_is_made_and_shown(world: World):
    printed: list[str] = []
    turns = (call("print_label", what="Key: ask Noor."), "Printed it.")
    ada, _, bert, _, hall = await told_in_private(world, *turns, tools=[printing(printed)])
    await ask(world, bert, hall)
    assert printed == ["Key: ask Noor."]
    assert [each.parsed_arguments for each in await world.denizen.calls.list(hall)] == [{"what": "Key: ask Noor."}]
    assert await world.denizen.minds.crossings(ada) == []


async def test_a_call_in_the_private_space_itself_is_made_and_streams(world: World):
    printed: list[str] = []
    model = scripted(call("print_label", what=SECRET), "Printed it.", chunk=5)
    ada = await world.agent("Ada", model=model, tools=[printing(printed)], cycle=QUIET)
    noor = await world.person("Noor")
    den = await world.space("Den", noor, ada, private=True)
    async with listening(world, den) as heard:
        await world.say(noor, SECRET, den)
        await world.run()
        assert [frame["type"] for frame in await heard()].count("call.delta") > 1
    assert printed == [SECRET]


async def test_a_call_that_nobody_sees_is_not_guarded(world: World):
    """What an agent tells a service is between the two, and their owner's affair."""
    told: list[str] = []

    @tool
    def file_away(what: str) -> str:
        """File it."""
        told.append(what)
        return "Filed."

    ada, _, bert, _, hall = await told_in_private(world, call("file_away", what=SECRET), "Filed it.", tools=[file_away])
    await ask(world, bert, hall)
    assert told == [SECRET]
    assert await world.denizen.minds.crossings(ada) == []


async def test_an_effect_that_would_ask_people_is_refused_if_they_may_not_know_its_words(world: World):
    filed: list[str] = []

    @tool
    def file_away(what: str) -> str:
        """File it."""
        filed.append(what)
        return "Filed."

    turns = (call("file_away", what=SECRET), "Did not file it.")
    rules = {"rules": [{"tool": "file_away", "do": "ask"}]}
    ada, noor, bert, _, hall = await told_in_private(world, *turns, tools=[file_away], effects=rules)
    await ask(world, bert, hall)
    assert filed == []
    assert [await world.denizen.calls.waiting(each) for each in (noor, bert)] == [[], []]
    assert await refused(world, ada) == [("file_away", "private_words")]


@pytest.mark.parametrize("options", [{}, {"mode": "async"}, {"visible": False}], ids=["pause", "async", "not shown"])
async def test_a_question_to_people_is_stopped_like_a_message(world: World, options: dict[str, Any]):
    """Whoever is in the space may answer it, and so read it, also where it is not shown."""
    turns = (call("confirm", what=SECRET), "Did not ask.")
    ada, noor, bert, _, hall = await told_in_private(world, *turns, tools=[asking(**options)])
    await ask(world, bert, hall)
    assert [await world.denizen.calls.waiting(each) for each in (noor, bert)] == [[], []]
    assert [each.stop_reason for each in await world.cycles(ada)] == ["answered", "answered"]
    assert [each.to_space_id for each in await world.denizen.minds.crossings(ada)] == [hall.id]
    assert await refused(world, ada) == [("confirm", "private_words")]


@pytest.mark.parametrize("others", [True, False])
async def test_a_question_in_no_space_is_for_everyone_around_the_agent(world: World, others: bool):
    """Who shares any space with it may answer: it is asked only if all of them may know."""
    ada = await world.agent("Ada", "Noted.", call("confirm", what=SECRET), "Ended.", tools=[asking()], cycle=QUIET)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    den = await world.space("Den", noor, ada, private=True)
    await world.space("Hall", noor, *([bert] if others else []), ada)
    await world.say(noor, SECRET, den)
    await world.run()
    await world.denizen.agents.trigger(ada, "bell")
    await world.run()
    assert len(await world.denizen.calls.waiting(noor)) == (0 if others else 1)
    assert [each.to_space_id for each in await world.denizen.minds.crossings(ada)] == ([""] if others else [])


@pytest.mark.parametrize("how", ["its text", "a page", "its name", "a message by its pointer"])
async def test_files_and_single_messages_of_a_private_space_are_private_too(small_world: World, how: str) -> None:
    """The words are not repeated where others read, however the agent came to read them; in the space they are."""
    world = small_world
    noor, bert = await world.person("Noor"), await world.person("Bert")
    file = await world.denizen.files.upload(
        noor,
        (SECRET if how in ("its text", "a page") else "Nothing").encode(),
        name=f"{SECRET}txt" if how == "its name" else "a.txt",
    )
    den = await world.space("Den", noor, private=True)
    hall = await world.space("Hall", noor, bert)
    pointer = f"file:{file.id}:1" if how == "a page" else f"file:{file.id}"
    if how == "a message by its pointer":
        # Said before the agent came: it was never told of it.
        pointer = f"message:{(await world.say(noor, SECRET, den)).id}"
    turns = call("read_entry", entry=pointer), "Noted.", reply(SECRET), "Kept quiet.", reply(SECRET), "Said it again."
    ada = await world.agent("Ada", *turns, cycle=QUIET)
    for space in (den, hall):
        await world.denizen.spaces.join(space, ada)
    await world.denizen.spaces.post(den, noor, "Look at this.", files=[file])
    await world.run()
    assert await ask(world, bert, hall) == []
    assert [each.from_space_id for each in await world.denizen.minds.crossings(ada)] == [den.id]
    await world.say(noor, "Where is it?", den)
    await world.run()
    assert (await world.transcript(den))[-1] == f"Ada: {SECRET}"
