"""What an advisor is shown: its own thread, the others' last turn, and never more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.clock import instant
from denizen.panel import crosstalk, synthesis, voting
from denizen.panel.context import (
    Exchange,
    Omission,
    OtherReply,
    PanelTurn,
    Persona,
    PersonMessage,
    RequestMessage,
    VoiceText,
    context,
    digest,
    omissions,
    omissions_in,
    rebuilt,
    recipe,
    system_prompt,
)
from denizen.panel.phases import DEFAULT_PHASES, Phase, stage_at

NAMES = {"godin": "Seth Godin", "buber": "Martin Buber", "pema": "Pema Chödrön"}


def at(minute: int) -> int:
    return instant(datetime(2025, 10, 30, 12, minute, tzinfo=UTC))


def asked(number: int, text: str, **replies: str) -> PanelTurn:
    """A turn five minutes after the last; the keywords are what each voice replied."""
    words = {voice: VoiceText(NAMES[voice], said) for voice, said in replies.items()}
    said = PersonMessage(f"message-{number}", text, at(5 * number - 5))
    return PanelTurn(said, (Exchange(f"round-{number}", words),) if words else ())


def shown(
    voice: str, past: list[PanelTurn], present: PanelTurn, characters: int = 150_000, cap: int = 4_000
) -> list[RequestMessage]:
    persona = Persona(voice, f"You are {NAMES[voice]}.")
    return context(persona, past, present, characters=characters, reference_characters=cap)


THREE = [
    asked(n, f"{word} user message", **{voice: f"{NAMES[voice]} turn {n} response" for voice in NAMES})
    for n, word in enumerate(("First", "Second", "Third"), start=1)
]


def test_martin_buber_turn_4() -> None:
    """The example that the panel was drawn from, message by message."""
    stage = stage_at(DEFAULT_PHASES, 4)
    prompt = system_prompt("Martin Buber", "You look for the encounter.", stage.instructions)
    lines = context(
        Persona("buber", prompt),
        THREE,
        asked(4, "Fourth user message"),
        characters=150_000,
        reference_characters=4_000,
    )
    assert lines == [
        RequestMessage("system", prompt),
        RequestMessage("user", "[2025-10-30T12:00] First user message"),
        RequestMessage("assistant", "Martin Buber turn 1 response"),
        RequestMessage("user", "[2025-10-30T12:05] Second user message"),
        RequestMessage("assistant", "Martin Buber turn 2 response"),
        RequestMessage("user", "[2025-10-30T12:10] Third user message"),
        RequestMessage("assistant", "Martin Buber turn 3 response"),
        RequestMessage(
            "user",
            "[For reference, this is what the other voices said in the last turn:\n\n"
            "Seth Godin: Seth Godin turn 3 response\n\nPema Chödrön: Pema Chödrön turn 3 response]",
        ),
        RequestMessage("user", "[2025-10-30T12:15] Fourth user message"),
    ]
    assert prompt.startswith("You are Martin Buber. You look for the encounter.\n\n## Where you are\n")
    assert "## What to do in this turn (turn 4)" in prompt
    assert "question" not in stage.name
    # What leaked elsewhere: times and names in replies, and talk of being one of many.
    for never in ("a name or a label", "that you are a voice", "never write one yourself"):
        assert never in prompt


def test_the_first_message_has_nothing_before_it() -> None:
    lines = shown("buber", [], asked(1, "First user message"))
    assert lines == [
        RequestMessage("system", "You are Martin Buber."),
        RequestMessage("user", "[2025-10-30T12:00] First user message"),
    ]


def test_who_joined_late_was_off_or_failed_has_a_thread_of_its_own() -> None:
    """All messages of people; only its own replies; of the others only the last turn, and only what they finished."""
    past = [asked(1, "One", godin="G1"), asked(2, "Two", godin="G2", buber="B2"), asked(3, "Three", pema="P3")]
    assert shown("buber", past, asked(4, "Four"))[1:] == [
        RequestMessage("user", "[2025-10-30T12:00] One"),
        RequestMessage("user", "[2025-10-30T12:05] Two"),
        RequestMessage("assistant", "B2"),
        RequestMessage("user", "[2025-10-30T12:10] Three"),
        RequestMessage(
            "user", "[For reference, this is what the other voices said in the last turn:\n\nPema Chödrön: P3]"
        ),
        RequestMessage("user", "[2025-10-30T12:15] Four"),
    ]


def test_the_same_words_twice_are_two_messages() -> None:
    past = [asked(1, "yes", buber="Sure?"), asked(2, "yes", buber="Still?")]
    texts = [line.text for line in shown("buber", past, asked(3, "yes"))[1:]]
    assert texts == [
        "[2025-10-30T12:00] yes", "Sure?", "[2025-10-30T12:05] yes", "Still?", "[2025-10-30T12:10] yes",
    ]  # fmt: skip


def test_a_deleted_message_is_not_shown() -> None:
    past = [PanelTurn(None, asked(1, "", buber="B1").exchanges)]
    assert shown("buber", past, asked(2, "Two"))[1:] == [
        RequestMessage("assistant", "B1"),
        RequestMessage("user", "[2025-10-30T12:05] Two"),
    ]


def test_the_oldest_turns_go_first_and_the_question_never() -> None:
    """Whole turns, from the oldest on; the reference and the new message stay, however long they are."""
    past = [asked(n, "m" * 100, buber="b" * 100, godin="g" * 100) for n in range(1, 6)]
    fixed = len("You are Martin Buber.")
    whole = shown("buber", past, asked(6, "Six"))
    turn = len("[2025-10-30T12:00] ") + 200
    end = sum(len(line.text) for line in whole[-2:])
    for kept in range(6):
        room = fixed + end + kept * turn
        lines = shown("buber", past, asked(6, "Six"), characters=room)
        assert lines == [whole[0], *whole[1:-2][len(whole) - 3 - 2 * kept :], *whole[-2:]]
        assert shown("buber", past, asked(6, "Six"), characters=room - 1 if kept else 1)[-2:] == whole[-2:]


def test_what_the_others_said_is_capped_one_by_one() -> None:
    lines = shown("buber", [asked(1, "One", godin="g" * 500, pema="short")], asked(2, "Two"), cap=100)
    assert lines[-2].text.count("g") == 99
    assert lines[-2].text.endswith("…\n\nPema Chödrön: short]")


def test_the_last_turn_of_the_others_can_be_hidden() -> None:
    persona = Persona("buber", "You are Martin Buber.")
    lines = context(persona, THREE, asked(4, "Now?"), characters=150_000, reference_characters=4_000, show_others=False)
    assert not any("Seth Godin" in line.text for line in lines)
    assert omissions(persona, THREE, lines, turns=3, show_others=False) == [
        Omission("others_hidden", 2, ("Seth Godin", "Pema Chödrön")),
        Omission("others_earlier", 2),
    ]


@pytest.mark.parametrize("show_others", [True, False])
def test_the_others_are_shown_in_cross_talk_as_the_panel_says(show_others: bool) -> None:
    persona, now = Persona("buber", "You are Martin Buber."), asked(4, "Now?", godin="Mine.", buber="Yours.")
    lines = context(
        persona,
        THREE,
        now,
        characters=150_000,
        reference_characters=4_000,
        show_others=show_others,
        task=crosstalk.TASK,
    )
    assert any("Seth Godin turn 3 response" in line.text for line in lines) == show_others


def test_what_is_left_out_is_listed_with_its_reason() -> None:
    persona, now = Persona("buber", "You are Martin Buber."), asked(4, "Now?")
    whole = context(persona, THREE, now, characters=150_000, reference_characters=4_000)
    assert omissions(persona, THREE[:1], whole, turns=1, show_others=True) == []
    short = context(persona, THREE, now, characters=300, reference_characters=20)
    found = omissions(persona, THREE, short, turns=10, show_others=True)
    assert found == [
        Omission("too_long", 9),
        Omission("shortened", 2, ("Seth Godin", "Pema Chödrön")),
        Omission("others_earlier", 2),
    ]
    assert found[0].sentence().startswith("9 earlier turns were left out: the request would have been too long.")
    assert found[1].sentence() == "What Seth Godin and Pema Chödrön said was shortened."
    summarized = Persona("buber", "You are Martin Buber.", upto=2)
    past = [PanelTurn(replace(turn.message, seq=n), turn.exchanges) for n, turn in enumerate(THREE, 1) if turn.message]
    lines = context(summarized, past, now, characters=150_000, reference_characters=4_000)
    assert omissions(summarized, past, lines, turns=5, show_others=True)[0] == Omission("summarized", 4)


def test_omissions_of_a_newer_version_are_ignored() -> None:
    made_of = {
        "omitted": [{"reason": "moonlight", "count": 1, "names": []}, {"reason": "too_long", "count": 2, "names": []}]
    }
    assert omissions_in(made_of) == [Omission("too_long", 2)]


def test_in_cross_talk_all_of_the_turn_is_seen() -> None:
    """The one place where more than the last turn of the others is: and still only its own words as its own."""
    present = PanelTurn(
        PersonMessage("message-2", "Two", at(5)),
        (
            Exchange("round-2", {"buber": VoiceText("Martin Buber", "B2"), "godin": VoiceText("Seth Godin", "G2")}),
            Exchange("round-3", {"buber": VoiceText("Martin Buber", "B3"), "godin": VoiceText("Seth Godin", "G3")}),
        ),
    )
    past = [asked(1, "One", buber="B1", godin="G1")]
    lines = context(
        Persona("buber", "You."), past, present, characters=150_000, reference_characters=4_000, task=crosstalk.TASK
    )
    assert lines == [
        RequestMessage("system", "You."),
        RequestMessage("user", "[2025-10-30T12:00] One"),
        RequestMessage("assistant", "B1"),
        RequestMessage(
            "user", "[For reference, this is what the other voices said in the last turn:\n\nSeth Godin: G1]"
        ),
        RequestMessage("user", "[2025-10-30T12:05] Two"),
        RequestMessage("assistant", "B2"),
        RequestMessage("user", "[This is what the other voices answered:\n\nSeth Godin: G2]"),
        RequestMessage("assistant", "B3"),
        RequestMessage("user", "[This is what the other voices answered:\n\nSeth Godin: G3]"),
        RequestMessage("user", f"[{crosstalk.TASK}]"),
    ]


def test_after_cross_talk_the_others_last_words_are_the_reference() -> None:
    exchanges = (
        Exchange("round-1", {"buber": VoiceText("Martin Buber", "B1"), "godin": VoiceText("Seth Godin", "G1")}),
        Exchange("round-2", {"buber": VoiceText("Martin Buber", "B2"), "godin": VoiceText("Seth Godin", "G2")}),
    )
    lines = shown("buber", [PanelTurn(PersonMessage("message-1", "One", at(0)), exchanges)], asked(2, "Two"))
    assert lines[1:] == [
        RequestMessage("user", "[2025-10-30T12:00] One"),
        RequestMessage("assistant", "B1"),
        RequestMessage("user", "[The voices answered one another.]"),
        RequestMessage("assistant", "B2"),
        RequestMessage(
            "user", "[For reference, this is what the other voices said in the last turn:\n\nSeth Godin: G2]"
        ),
        RequestMessage("user", "[2025-10-30T12:05] Two"),
    ]


def test_a_synthesis_is_shown_the_question_and_all_answers() -> None:
    lines = synthesis.lines(asked(1, "One", godin="G1", buber="B1"), 4_000)
    assert lines[0] == RequestMessage("system", synthesis.SYSTEM)
    assert lines[1:] == [
        RequestMessage("user", "[2025-10-30T12:00] One"),
        RequestMessage("user", "[This is what the voices said:\n\nSeth Godin: G1\n\nMartin Buber: B1]"),
        RequestMessage("user", "[Sum it up now.]"),
    ]


def test_a_vote_is_on_the_question() -> None:
    present = asked(1, "One", godin="G1", buber="B1")
    lines = context(
        Persona("buber", "You."),
        [],
        present,
        characters=150_000,
        reference_characters=4_000,
        task=voting.task("Sign it?"),
    )
    assert lines[-2] == RequestMessage("user", "[This is what the other voices answered:\n\nSeth Godin: G1]")
    assert lines[-1].text.startswith("[Vote now, on this: Sign it?\nCall the tool `vote`")


@pytest.mark.parametrize(
    ("turn", "name", "of", "says"),
    [(1, "question", 3, "(question 1 of 3)"), (3, "question", 3, "(question 3 of 3)"), (4, "", None, "(turn 4)")],
)
def test_the_default_phases(turn: int, name: str, of: int | None, says: str) -> None:
    stage = stage_at((), turn)
    assert (stage.name, stage.turn, stage.of) == (name, turn, of)
    assert says in stage.instructions


def test_a_template_is_filled_in_one_pass() -> None:
    """Nothing else in braces means anything, and what is put in is not looked at again."""
    phases = (Phase(name="{of}", until_turn=2, instructions="{turn}/{of} {of}{turn} {{turn}} {name} {0}"),)
    assert stage_at(phases, 1).instructions == "1/2 21 {1} {name} {0}"
    assert stage_at(phases, 7).instructions == "7/2 27 {7} {name} {0}"


def test_memory_and_profile_have_their_place() -> None:
    prompt = system_prompt("Ada", "", "Do.", memory="You remember.", profile="Be brief.")
    assert (
        prompt.index("You are Ada.") < prompt.index("You remember.") < prompt.index("Be brief.") < prompt.index("Do.")
    )
    assert system_prompt("Ada", "", "Do.").startswith("You are Ada.\n\n## Where")


VOICES = ("a", "b", "c", "d")


@st.composite
def histories(draw: st.DrawFn) -> list[PanelTurn]:
    """Turns in which every text is one of a kind, so that it can be found again; some voices are silent in some."""
    turns: list[PanelTurn] = []
    for number in range(draw(st.integers(1, 8))):
        exchanges = tuple(
            Exchange(
                f"r{number}.{step}",
                {
                    voice: VoiceText(voice.upper(), f"<{voice} {number}.{step}>" + "x" * draw(st.integers(0, 60)))
                    for voice in draw(st.sets(st.sampled_from(VOICES)))
                },
            )
            for step in range(draw(st.integers(1, 3)))
        )
        said = PersonMessage(f"m{number}", f"<user {number}>", at(0) + number)
        turns.append(PanelTurn(draw(st.sampled_from((said, said, said, None))), exchanges))
    return turns


@given(histories(), st.sampled_from(VOICES), st.integers(1, 2_000), st.integers(100, 200))
def test_what_an_advisor_never_sees(turns: list[PanelTurn], voice: str, characters: int, cap: int) -> None:
    """No other's words in the assistant role; none older than the last turn; none of its own in the reference."""
    *past, last = turns
    present = PanelTurn(last.message)
    lines = shown_to(voice, past, present, characters, cap)
    others = [other for other in VOICES if other != voice]
    for line in lines:
        if line.role == "assistant":
            assert line.text.startswith(f"<{voice} ")
            assert not any(f"<{other} " in line.text for other in others)
    for number, turn in enumerate(past):
        for other, words in ((v, w) for each in turn.exchanges for v, w in each.words.items() if v != voice):
            seen = [line for line in lines if words.text.split(">")[0] in line.text]
            is_last_word = number == len(past) - 1 and turn.last_words()[other].text == words.text
            assert [line.role for line in seen] == (["user"] if is_last_word else [])
    reference = [line for line in lines if "heard" in line.source]
    assert len(reference) <= 1
    assert not any(f"<{voice} " in line.text for line in reference)
    # The question is last, and what was left out are the oldest turns, whole.
    assert present.message is None or lines[-1].text.endswith(present.message.text)
    kept = [n for n in range(len(past)) if any(f"<user {n}>" in line.text for line in lines)]
    there = [n for n in range(len(past)) if past[n].message is not None]
    assert kept == [n for n in there if kept and n >= kept[0]]


@given(histories(), st.sampled_from(VOICES), st.integers(100, 200))
def test_in_cross_talk_too_everyone_speaks_for_itself(turns: list[PanelTurn], voice: str, cap: int) -> None:
    """All of this turn, of the others in brackets of the user's; of the turns before it as ever."""
    *past, present = turns
    lines = context(
        Persona(voice, "You."), past, present, characters=10_000, reference_characters=cap, task=crosstalk.TASK
    )
    assert all(line.text.startswith(f"<{voice} ") for line in lines if line.role == "assistant")
    assert all(line.text.startswith("[") for line in lines if line.role == "user")
    for exchange in present.exchanges:
        for other, words in exchange.words.items():
            [seen] = [line for line in lines if words.text.split(">")[0] in line.text]
            assert seen.role == ("assistant" if other == voice else "user")
    last = past[-1].last_words() if past else {}
    for turn in past:
        for other, words in ((v, w) for each in turn.exchanges for v, w in each.words.items() if v != voice):
            seen = [line.role for line in lines if words.text.split(">")[0] in line.text]
            assert seen == (["user"] if other in last and last[other].text == words.text else [])
    assert lines[-1] == RequestMessage("user", f"[{crosstalk.TASK}]")


def shown_to(voice: str, past: list[PanelTurn], present: PanelTurn, characters: int, cap: int) -> list[RequestMessage]:
    return context(Persona(voice, "You."), past, present, characters=characters, reference_characters=cap)


@given(histories(), st.sampled_from(VOICES), st.integers(100, 200))
def test_a_request_can_be_built_again(turns: list[PanelTurn], voice: str, cap: int) -> None:
    """From its recipe and what is kept, to the letter; what is gone meanwhile is left out, and that shows."""
    lines = shown_to(voice, turns[:-1], PanelTurn(turns[-1].message), 10_000, cap)
    made_of = recipe(lines, cap)
    messages = {turn.message.id: turn.message for turn in turns if turn.message is not None}
    words = {
        (each.round_id, voice): said.text
        for turn in turns
        for each in turn.exchanges
        for voice, said in each.words.items()
    }
    again = rebuilt(made_of, messages.get, lambda round_id, of: words.get((round_id, of)))
    assert again == lines
    assert digest(again) == made_of["digest"]
    if len(lines) > 1:
        left = rebuilt(made_of, lambda _: None, lambda *_: None)
        assert left == [lines[0]] or all(line.text == "[The voices answered one another.]" for line in left[1:])
        assert digest(left) != made_of["digest"]


def test_a_reference_holds_who_said_it() -> None:
    heard = OtherReply("round-1", "godin", "Seth Godin", "G1")
    line = shown("buber", [asked(1, "One", godin="G1")], asked(2, "Two"))[-2]
    assert line.source["heard"] == [[heard.round_id, heard.voice, heard.name]]


def test_the_digest_of_a_request_is_the_same_in_every_release() -> None:
    """It is kept with replies: another way to make it would have all of them look changed."""
    lines = [RequestMessage("system", "Be brief."), RequestMessage("user", "Größe – 2 €?")]
    assert digest(lines) == "15f278e40399e62e93ba5eaf0bbcb1f9"
