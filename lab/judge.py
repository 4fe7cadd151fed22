"""What was lost, done twice, out of order or left without a word. Pure: a history in, a verdict out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lab.history import Line

_QUESTION = re.compile(r"#(\d+) for ")
_ANSWER = re.compile(r"^re #(\d+): (\w+)")
_RUNG = re.compile(r"^rung #(\d+)$")
_COVERED = re.compile(r"\((\d+)\)")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Numbers are those of questions; what is not about one stands in words."""

    acknowledged: int
    answered: int
    lost: list[str] = field(default_factory=list[str])
    twice: list[str] = field(default_factory=list[str])
    out_of_order: list[str] = field(default_factory=list[str])
    effects_twice: list[str] = field(default_factory=list[str])

    @property
    def wrong(self) -> list[str]:
        return [*self.lost, *self.twice, *self.out_of_order, *self.effects_twice]


def judge(lines: Sequence[Line]) -> Verdict:
    """Of a world that has come to rest, and whose transcripts were read.

    What happened between a backup and its restore does not count: nobody promised to keep it.
    """
    restored = max((at for at, line in enumerate(lines) if line["what"] == "restored"), default=None)
    began = None if restored is None else next(at for at, line in enumerate(lines) if line["what"] == "backup")
    void = set() if restored is None else set(lines[restored]["void"])
    asked = {line["number"]: line for line in lines if line["what"] == "asking"}
    acknowledged = [line["number"] for line in lines if line["what"] == "acknowledged" and line["number"] not in void]
    transcript = [message for line in lines if line["what"] == "transcript" for message in line["messages"]]
    questions, answers, rung = (
        Counter(_numbers(transcript, *of)) for of in (("human", _QUESTION), ("agent", _ANSWER), ("agent", _RUNG))
    )
    timers = {number for number in answers if asked[number]["kind"] == "timer" and number not in void}
    streamed = [line for line in lines[restored:] if line["what"] == "message"]
    effects = {(line["tool"], line["number"]) for line in lines if line["what"] == "effect"}
    kept = lines if began is None or restored is None else [*lines[:began], *lines[restored:]]
    return Verdict(
        acknowledged=len(acknowledged),
        answered=len(answers),
        lost=[
            *(
                f"#{n} was acknowledged and is not there"
                for n in acknowledged
                if not questions[n] and asked[n]["kind"] != "hook"  # what a service tells is no message
            ),
            *(f"#{n} was not answered" for n in acknowledged if not answers[n] and asked[n]["kind"] != "panel"),
            *_unanswered_by_panel(lines, [n for n in acknowledged if asked[n]["kind"] == "panel"]),
            *(f"the timer of #{n} did not fire" for n in sorted(timers) if not rung[n]),
            *_missing_effects(transcript, asked, effects),
            *(_not_carried(transcript, lines) if restored is None else ()),
            *(f"the summary of {space} leaves out #{n}" for space, n in _summarized(transcript, lines, missing=True)),
            *_not_streamed(said_since(transcript, lines), streamed, all_of_them=restored is None),
        ],
        twice=[
            *(f"#{n} is there {times} times" for n, times in questions.items() if times > 1),
            *(f"#{n} was answered {times} times" for n, times in answers.items() if times > 1),
            *(f"the timer of #{n} fired {times} times" for n, times in rung.items() if times > 1),
            *_streamed_twice(streamed),
            *(f"the summary of {space} has #{n} too often" for space, n in _summarized(transcript, lines)),
            *_carried_twice(kept),
            *(f"a panel answered #{n} in {times} rounds" for n, times in _rounds(lines).items() if times > 1),
        ],
        out_of_order=[*_out_of_order(transcript, acknowledged, asked), *_stream_out_of_order(streamed)],
        effects_twice=_done_twice(kept),
    )


def _numbers(messages: Sequence[Line], kind: str, pattern: re.Pattern[str]) -> list[int]:
    """Which questions these messages are about, in their order."""
    found = (pattern.search(each["text"]) for each in messages if each["kind"] == kind)
    return [int(each[1]) for each in found if each is not None]


def _rounds(lines: Sequence[Line]) -> Counter[int]:
    return Counter(each["number"] for line in lines if line["what"] == "rounds" for each in line["rounds"])


def _unanswered_by_panel(lines: Sequence[Line], numbers: Sequence[int]) -> list[str]:
    """Every advisor has answered every question, and that question."""
    replies = {each["number"]: each["replies"] for line in lines if line["what"] == "rounds" for each in line["rounds"]}
    return [
        f"#{number} was answered by a panel as {replies.get(number)}"
        for number in numbers
        if not replies.get(number)
        or any(state != "done" or not text.startswith(f"re #{number} by ") for state, text in replies[number])
    ]


def to_carry(messages: Sequence[Line], lines: Sequence[Line]) -> list[Line]:
    """Those of these messages of the bridged space that go elsewhere: all but what came from there."""
    from_there = {line["number"] for line in lines if line["what"] == "asking" and line["kind"] == "guest"}
    return [
        each
        for each in messages
        if (found := _QUESTION.search(each["text"]) or _ANSWER.match(each["text"]) or _RUNG.match(each["text"]))
        and not (each["kind"] == "human" and int(found[1]) in from_there)
    ]


def _not_carried(transcript: Sequence[Line], lines: Sequence[Line]) -> list[str]:
    """What is said in the bridged space is told elsewhere."""
    bridged = {line["space"] for line in lines if line["what"] == "bridged"}
    carried = {line["text"] for line in lines if line["what"] == "carried"}
    there = to_carry([each for each in transcript if each["space"] in bridged], lines)
    return [f"{each['text']!r} was never sent elsewhere" for each in there if each["text"] not in carried]


def _summarized(
    transcript: Sequence[Line], lines: Sequence[Line], *, missing: bool = False
) -> Iterator[tuple[str, int]]:
    """The questions that a summary has too often, or at all after its cursor; or those that are `missing` in it."""
    for line in lines:
        if line["what"] == "summary" and line["upto"]:
            there = [each for each in transcript if each["space"] == line["space"] and each["seq"] <= line["upto"]]
            expected = Counter(_numbers(there, "human", _QUESTION))
            covered = Counter(int(number) for number in _COVERED.findall(line["text"]))
            for number in expected - covered if missing else covered - expected:
                yield line["space"], number


def _carried_twice(lines: Sequence[Line]) -> list[str]:
    """A message goes elsewhere under one transaction id, however often it is sent."""
    keys: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        if line["what"] == "carried" and line["type"] == "message":
            keys[line["text"]].add(line["key"])
    return [f"{text!r} was sent elsewhere under {len(those)} ids" for text, those in keys.items() if len(those) > 1]


def _done_twice(lines: Sequence[Line]) -> list[str]:
    """A tool that reports runs at most once; one that retries runs under one key."""
    calls: dict[tuple[str, int], list[str]] = defaultdict(list)
    for line in lines:
        if line["what"] == "effect":
            calls[line["tool"], line["number"]].append(line["key"])
    return [
        f"{tool} of #{number} was called {len(keys)} times under {len(set(keys))} keys"
        for (tool, number), keys in calls.items()
        if (len(set(keys)) if tool == "mark" else len(keys)) > 1
    ]


def _missing_effects(transcript: Sequence[Line], asked: dict[int, Line], effects: set[tuple[str, int]]) -> list[str]:
    """What an agent says it did, the world has seen."""
    wanted = {"note": ("note",), "mark": ("mark",), "mcp": ("tell",)}
    return [
        f"{tool} of #{number} is said to be done, and was not"
        for each in transcript
        if each["kind"] == "agent" and (found := _ANSWER.match(each["text"])) and found[2] == "done"
        for number in [int(found[1])]
        for tool in wanted.get(asked[number]["kind"], ())
        if (tool, number) not in effects
    ]


def said_since(messages: Sequence[Line], lines: Sequence[Line]) -> list[Line]:
    """Those of these messages that came after somebody began to read along."""
    before = {line["space"]: line["seq"] for line in lines if line["what"] == "bridged"}
    return [each for each in messages if each["seq"] > before.get(each["space"], 0)]


def _not_streamed(transcript: Sequence[Line], streamed: Sequence[Line], *, all_of_them: bool) -> list[str]:
    """A reader who began in the middle is to be sent all that came later."""
    seen = {line["id"] for line in streamed}
    first: dict[str, int] = {}
    for line in streamed:
        first.setdefault(line["space"], line["seq"])
    return [
        f"message {each['seq']} of {each['space']} never came by the stream"
        for each in transcript
        if each["id"] not in seen and (all_of_them or each["seq"] > first.get(each["space"], each["seq"]))
    ]


def _streamed_twice(streamed: Sequence[Line]) -> list[str]:
    times = Counter(line["id"] for line in streamed)
    return [f"message {message} came {count} times by one stream" for message, count in times.items() if count > 1]


def _stream_out_of_order(streamed: Sequence[Line]) -> list[str]:
    last: dict[str, int] = {}
    wrong: list[str] = []
    for line in streamed:
        before = last.get(line["space"])
        if before is not None and line["seq"] != before + 1:
            wrong.append(f"in {line['space']}, message {line['seq']} came by the stream after {before}")
        last[line["space"]] = line["seq"]
    return wrong


def _out_of_order(transcript: Sequence[Line], acknowledged: Sequence[int], asked: dict[int, Line]) -> list[str]:
    """In a space, questions stand as they were acknowledged, and an agent answers in that order."""
    wrong: list[str] = []
    spaces = sorted({each["space"] for each in transcript})
    for space in spaces:
        here = [each for each in transcript if each["space"] == space]
        stood = list(dict.fromkeys(_numbers(here, "human", _QUESTION)))
        expected = [n for n in acknowledged if asked[n]["space"] == space and n in stood]
        if [n for n in stood if n in expected] != expected:
            wrong.append(f"in {space}, the questions stand as {stood} and were acknowledged as {expected}")
        for agent in {asked[n]["agent"] for n in expected}:
            answered = [n for n in dict.fromkeys(_numbers(here, "agent", _ANSWER)) if asked[n]["agent"] == agent]
            wanted = [n for n in stood if n in answered]
            if [n for n in answered if n in stood] != wanted:
                wrong.append(f"in {space}, {agent} answered {answered}, not {wanted}")
    return wrong
