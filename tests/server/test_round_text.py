"""A round as one text that only grows: whatever is heard when, nothing is in it twice and all of it is there."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from denizen.panel.rounds import ASSISTANT, Reply, State
from denizen.server.round_text import RoundText, text_of

FAILED = {"state": "failed", "error_code": "timed_out", "error": "Too slow."}


def reply(voice: str, state: State = "running", text: str | None = None, epoch: int = 1) -> Reply:
    nothing = dict.fromkeys(
        ("thinking", "result", "error_code", "error", "recipe", "model", "cost_micros", "started_at", "ended_at")
    )
    return Reply(
        round_id="r", voice=voice, part="reply", name=voice.title(), state=state, epoch=epoch, attempts=1, text=text,
        input_tokens=0, output_tokens=0, **nothing,
    )  # fmt: skip


def done(voice: str, text: str) -> Reply:
    return reply(voice, "done", text)


def test_the_first_is_passed_on_as_it_writes_and_the_others_when_it_is_their_turn() -> None:
    text = RoundText()
    seth, buber, pema = reply("seth"), reply("buber"), reply("pema", "waiting")
    assert text.see([seth, buber, pema]) == "## Seth"
    assert text.hear("buber", 1, "Whom ") == ""
    assert text.hear("seth", 1, "Sell ") == "\n\nSell"
    assert text.hear("seth", 1, "it.") == " it."
    assert text.hear("buber", 1, "do you") == ""
    assert text.see([done("seth", "Sell it."), buber, pema]) == "\n\n## Buber\n\nWhom do you"
    assert text.hear("buber", 1, " meet?") == " meet?"
    pema = done("pema", "Breathe.")
    assert text.see([done("seth", "Sell it."), buber, pema]) == ""
    assert text.see([done("seth", "Sell it."), done("buber", "Whom do you meet?"), pema]) == "\n\n## Pema\n\nBreathe."
    assert text.end() == ""


def test_what_broke_off_and_is_said_otherwise_is_taken_back() -> None:
    text = RoundText()
    assert text.see([reply("seth")]) + text.hear("seth", 1, "Half of") == "## Seth\n\nHalf of"
    assert text.hear("seth", 2, "Now") == "\n\n[Taken back, not said: “Half of”]\n\nNow"
    assert text.see([done("seth", "Now whole.")]) == " whole."


def test_what_broke_off_and_is_said_again_goes_on() -> None:
    text = RoundText()
    assert text.see([reply("seth")]) + text.hear("seth", 1, "Half of") == "## Seth\n\nHalf of"
    assert [text.hear("seth", 2, each) for each in ("Half", " of", " it")] == ["", "", " it"]
    assert text.see([done("seth", "Half of it.")]) == "."


def test_an_error_is_told_as_one() -> None:
    """Also by whom nothing was heard; and a retry of one whose turn it is not is not noticed."""
    text = RoundText()
    seth, buber = reply("seth"), reply("buber")
    assert text.see([seth, buber]) + text.hear("seth", 1, "Half") == "## Seth\n\nHalf"
    assert text.hear("buber", 1, "Broken") + text.hear("buber", 2, "Good.") == ""
    failed = replace(seth, **FAILED)
    told = "\n\n[Taken back, not said: “Half”]\n\n_(could not answer)_\n\n## Buber\n\nGood."
    assert text.see([failed, buber]) == told
    assert text_of([failed, done("buber", "Good.")]) == "## Seth\n\n_(could not answer)_\n\n## Buber\n\nGood."


def test_when_nobody_waits_any_longer_who_is_done_is_told() -> None:
    text = RoundText()
    now = [reply("seth"), done("buber", "Ready."), reply("pema", "waiting")]
    assert text.see(now) + text.hear("seth", 1, "So far") == "## Seth\n\nSo far"
    assert text.end("We stop.") == "\n\n## Buber\n\nReady.\n\nWe stop."
    assert text_of(now) == "## Buber\n\nReady."


def test_the_plain_assistant_has_no_name() -> None:
    text = RoundText()
    assert text.see([reply(ASSISTANT)]) == ""
    assert text.hear(ASSISTANT, 1, " Hello") + text.see([done(ASSISTANT, "Hello there.")]) == "Hello there."


@given(st.data())
def test_whatever_the_order_the_text_is_the_same(data: st.DataObject) -> None:
    """Pieces of any length, of voices in any order, each ended at any time after its last, or with pieces lost."""
    words = st.text(st.sampled_from("ab \n"), min_size=1, max_size=12).map(lambda text: f"x{text}y")
    said = {voice: data.draw(words) for voice in data.draw(st.permutations(["seth", "buber", "pema"]))}
    now = {voice: reply(voice) for voice in said}
    left = {voice: f"\n{text} " for voice, text in said.items()}
    text = RoundText()
    told = text.see([*now.values()])
    while unfinished := [voice for voice, each in now.items() if not each.is_over]:
        voice = data.draw(st.sampled_from(unfinished))
        count = data.draw(st.integers(0, 5))
        if count and left[voice]:
            told += text.hear(voice, 1, left[voice][:count])
            left[voice] = left[voice][count:]
        else:
            now[voice] = done(voice, said[voice])
            told += text.see([*now.values()])
    told += text.end()
    assert told == text_of([*now.values()]) == "\n\n".join(f"## {each.title()}\n\n{said[each]}" for each in said)
