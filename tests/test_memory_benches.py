"""The benches of compaction and of remembering score what they say they score."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart

from bench._planted import Lives, Planted, plant, small_talk
from bench._recall_data import Question, Turn
from bench.compaction import sliding
from bench.remembering import answered_share, found_share, new_parts
from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.ids import CycleId

TURNS = {
    ("c", "D1:1"): Turn("c", "D1:1", "Noor", "My cat is called Miso, and she hates rain.", 0),
    ("c", "D1:2"): Turn("c", "D1:2", "Sam", "I moved to Lyon.", 0),
}


@pytest.mark.parametrize("lives", ["dev", "held-out"])
def test_planted_things_have_words_of_their_own(lives: Lives) -> None:
    """So that neither small talk nor another planted thing can be taken for one."""
    planted = plant(lives, 1, 40)
    assert planted == plant(lives, 1, 40)
    assert planted != plant(lives, 2, 40)
    talk = [text for text, _ in zip(small_talk(lives, 1), range(400), strict=False)]
    for each in planted:
        assert all(word in each.text for word in each.needed)
        assert not any(all(word in text for word in each.needed) for text in talk)
        assert sum(all(word in other.text for word in each.needed) for other in planted) == 1


def test_held_out_lives_share_no_way_of_saying_things_with_the_tuned_ones() -> None:
    dev, held_out = ({each.text.split()[0] + each.text.split()[-1] for each in plant(x, 1, 40)} for x in _BOTH)
    assert dev.isdisjoint(held_out)


_BOTH: tuple[Lives, Lives] = ("dev", "held-out")


def test_evidence_is_found_as_it_was_said_and_not_otherwise() -> None:
    question = Question("What is Noor's cat called?", frozenset(TURNS))
    assert (
        found_share(question, TURNS, "cycle 3 noor my cat is called miso and she hates rain sam i moved to lyon") == 1
    )
    assert found_share(question, TURNS, "noor has a cat called miso i moved to lyon") == 0.5
    assert found_share(Question("?", frozenset({("c", "D9:9")})), TURNS, "anything") == 0


def test_the_words_of_an_answer_count_only_if_the_question_does_not_have_them() -> None:
    assert answered_share("What is the cat called?", "The cat is called Miso.", "my cat miso hates rain") == 1
    assert answered_share("When?", "7 May 2023", "on may the 7 she left") == pytest.approx(2 / 3)
    assert answered_share("Is it the cat?", "the cat", "nothing") is None


def test_only_what_a_question_itself_recalls_is_judged() -> None:
    earlier = ["[COMPACTED MEMORY — cycles 1–9]", "[INBOX] one", "[RECALLED] of before", "[INBOX] the question"]
    assert new_parts(earlier) == []
    assert new_parts([*earlier, "[RECALLED] now"]) == ["[RECALLED] now"]


def test_a_sliding_window_has_the_newest_entries_only() -> None:
    entries = [_said(seq, f"Entry {seq} says word{seq}.") for seq in range(1, 6)]
    planted = [Planted("", "", (f"word{seq}.",)) for seq in range(1, 6)]
    assert sliding(entries, planted, sum(each.tokens for each in entries[3:]))["kept"] == pytest.approx(2 / 5)
    assert sliding(entries, planted, 0)["kept"] == 0


def _said(seq: int, text: str) -> Entry:
    return log.entry(seq, CycleId(f"c{seq}"), "inbox", ModelRequest(parts=[UserPromptPart(text)]))
