"""The judge of the laboratory finds each kind of fault in a history, and nothing in a good one."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest

from lab.history import Line
from lab.judge import judge

SPACE = "11111111-1111-1111-1111-111111111111"


def message(seq: int, kind: str, text: str) -> Line:
    return {"space": SPACE, "seq": seq, "id": f"m{seq}", "kind": kind, "text": text}


SAID = [
    message(1, "human", f"@ines #1 for ines in {SPACE}: note"),
    message(2, "human", f"@ines #2 for ines in {SPACE}: timer"),
    message(3, "agent", "re #1: done"),
    message(4, "agent", "re #2: done"),
    message(5, "agent", "rung #2"),
    message(6, "human", f"@board #3 for board in {SPACE}: panel"),
]
GOOD: list[Line] = [
    {"what": "asking", "number": 1, "space": SPACE, "agent": "ines", "kind": "note"},
    {"what": "acknowledged", "number": 1},
    {"what": "asking", "number": 2, "space": SPACE, "agent": "ines", "kind": "timer"},
    {"what": "acknowledged", "number": 2},
    {"what": "asking", "number": 3, "space": SPACE, "agent": "board", "kind": "panel"},
    {"what": "acknowledged", "number": 3},
    {"what": "effect", "tool": "note", "number": 1, "key": "a"},
    {"what": "rounds", "rounds": [{"number": 3, "replies": [["done", "re #3 by left"], ["done", "re #3 by right"]]}]},
    *({"what": "message", **each} for each in SAID),
    {"what": "summary", "space": SPACE, "upto": 4, "text": "(1) (2)"},
    {"what": "transcript", "space": SPACE, "messages": SAID},
]


def test_a_good_history_is_good() -> None:
    verdict = judge(GOOD)
    assert verdict.wrong == []
    assert (verdict.acknowledged, verdict.answered) == (3, 2)


def transcript(lines: list[Line]) -> list[Line]:
    return lines[-1]["messages"]


def without(*seqs: int) -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        lines[-1]["messages"] = [each for each in transcript(lines) if each["seq"] not in seqs]

    return change


def with_one_more(text: str, kind: str = "agent") -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        lines[-1]["messages"] = [*transcript(lines), message(7, kind, text)]
        lines.insert(-1, {"what": "message", **message(7, kind, text)})

    return change


def another_effect(lines: list[Line]) -> None:
    lines.append({"what": "effect", "tool": "note", "number": 1, "key": "a"})


def no_effect(lines: list[Line]) -> None:
    lines[:] = [each for each in lines if each["what"] != "effect"]


def rounds(lines: list[Line]) -> list[Line]:
    return next(each["rounds"] for each in lines if each["what"] == "rounds")


def failed_advisor(lines: list[Line]) -> None:
    rounds(lines)[0]["replies"][1][0] = "failed"


def another_round(lines: list[Line]) -> None:
    rounds(lines).append(rounds(lines)[0])


def swapped_answers(lines: list[Line]) -> None:
    said = transcript(lines)
    said[2]["text"], said[3]["text"] = said[3]["text"], said[2]["text"]


def swapped_questions(lines: list[Line]) -> None:
    said = transcript(lines)
    said[0]["text"], said[1]["text"] = said[1]["text"], said[0]["text"]


def summary_of(text: str) -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        next(each for each in lines if each["what"] == "summary")["text"] = text

    return change


def streamed(lines: list[Line]) -> list[int]:
    return [at for at, each in enumerate(lines) if each["what"] == "message"]


def gap_in_the_stream(lines: list[Line]) -> None:
    del lines[streamed(lines)[1]]


def stream_repeats(lines: list[Line]) -> None:
    at = streamed(lines)[-1]
    lines.insert(at, dict(lines[at]))


@pytest.mark.parametrize(
    ("damage", "lost", "twice", "out_of_order", "effects_twice"),
    [
        (without(1), ["#1 was acknowledged and is not there"], 1, 0, 0),
        (without(3), ["#1 was not answered"], 0, 0, 0),
        (without(5), ["the timer of #2 did not fire"], 0, 0, 0),
        (no_effect, ["note of #1 is said to be done, and was not"], 0, 0, 0),
        (with_one_more(f"@ines #1 for ines in {SPACE}: note", "human"), [], 1, 0, 0),
        (with_one_more("re #1: done"), [], 1, 0, 0),
        (with_one_more("rung #2"), [], 1, 0, 0),
        (another_effect, [], 0, 0, 1),
        (summary_of("(1)"), [f"the summary of {SPACE} leaves out #2"], 0, 0, 0),
        (summary_of("(1) (2) (2)"), [], 1, 0, 0),
        (summary_of("(1) (2) (3)"), [], 1, 0, 0),
        (
            failed_advisor,
            ["#3 was answered by a panel as [['done', 're #3 by left'], ['failed', 're #3 by right']]"],
            0,
            0,
            0,
        ),
        (another_round, [], 1, 0, 0),
        (swapped_answers, [], 0, 1, 0),
        (swapped_questions, [], 0, 2, 0),
        (gap_in_the_stream, [f"message 2 of {SPACE} never came by the stream"], 0, 1, 0),
        (stream_repeats, [], 1, 1, 0),
    ],
)
def test_each_kind_of_damage_is_found(
    damage: Callable[[list[Line]], None], lost: list[str], twice: int, out_of_order: int, effects_twice: int
) -> None:
    lines = deepcopy(GOOD)
    damage(lines)
    verdict = judge(lines)
    found = (verdict.lost, len(verdict.twice), len(verdict.out_of_order), len(verdict.effects_twice))
    assert found == (lost, twice, out_of_order, effects_twice)


ELSEWHERE = [
    message(2, "human", f"@kato #1 for kato in {SPACE}: guest"),
    message(3, "agent", "re #1: plain"),
    message(4, "agent", "re #2: plain"),
    message(5, "human", f"@kato #3 for kato in {SPACE}: mcp"),
    message(6, "agent", "re #3: done"),
]
OUTSIDE: list[Line] = [
    {"what": "bridged", "space": SPACE, "seq": 1},
    *(
        line
        for number, kind in ((1, "guest"), (2, "hook"), (3, "mcp"))
        for line in (
            {"what": "asking", "number": number, "space": SPACE, "agent": "kato", "kind": kind},
            {"what": "acknowledged", "number": number},
        )
    ),
    {"what": "effect", "tool": "tell", "number": 3, "key": ""},
    *(
        {"what": "carried", "type": "message", "key": f"k{each['seq']}", "text": each["text"]}
        for each in ELSEWHERE[1:]
        for _ in range(2)  # sent again under the same id: nobody is told twice
    ),
    *({"what": "message", **each} for each in ELSEWHERE),
    {"what": "transcript", "space": SPACE, "messages": [message(1, "human", "Pier was connected."), *ELSEWHERE]},
]


def test_what_comes_from_elsewhere_and_goes_there_is_judged() -> None:
    """A guest's message does not go back, a service's event is no message, and nobody saw what was said before."""
    assert judge(OUTSIDE).wrong == []


def sent_under_another_id(lines: list[Line]) -> None:
    next(each for each in lines if each["what"] == "carried")["key"] = "another"


def told_again(lines: list[Line]) -> None:
    lines.append({"what": "effect", "tool": "tell", "number": 3, "key": ""})


def never_sent(lines: list[Line]) -> None:
    lines[:] = [each for each in lines if each.get("key") != "k4"]


def not_answered(lines: list[Line]) -> None:
    lines[-1]["messages"] = [each for each in transcript(lines) if each["seq"] != 4]


@pytest.mark.parametrize(
    ("damage", "wrong"),
    [
        (sent_under_another_id, "'re #1: plain' was sent elsewhere under 2 ids"),
        (never_sent, "'re #2: plain' was never sent elsewhere"),
        (told_again, "tell of #3 was called 2 times under 1 keys"),
        (not_answered, "#2 was not answered"),
    ],
)
def test_damage_elsewhere_is_found(damage: Callable[[list[Line]], None], wrong: str) -> None:
    lines = deepcopy(OUTSIDE)
    damage(lines)
    assert judge(lines).wrong == [wrong]
