"""A chat client that sends its last message again: what it means."""

from __future__ import annotations

import pytest

from denizen.agents.resending import REPEATED_SECONDS, Decision, ResentRequest, decide

LATER = REPEATED_SECONDS + 1.0


@pytest.mark.parametrize(
    ("resent", "is_open", "answers", "age", "decision"),
    [
        (ResentRequest(), True, [], LATER, "same"),
        (ResentRequest(), True, ["Half of an ans"], 1.0, "same"),
        (ResentRequest(has_history=True), True, [], 1.0, "same"),
        (ResentRequest(is_retry=True), False, ["Hello."], 1.0, "same"),
        (ResentRequest(is_retry=True), False, [], 1.0, "same"),
        (ResentRequest(is_retry=True), False, ["Hello."], LATER, "new"),
        (ResentRequest(has_history=True), False, ["Hello."], LATER, "another"),
        (ResentRequest(has_history=True, previous_answer="Hello,  you."), False, ["Hello,\n\nyou."], 1.0, "new"),
        (ResentRequest(has_history=True, previous_answer="The first answer."), False, ["The second."], 1.0, "another"),
        (ResentRequest(), False, ["Hello."], REPEATED_SECONDS - 1.0, "another"),
        (ResentRequest(), False, ["Hello."], REPEATED_SECONDS + 0.0, "new"),
        (ResentRequest(has_history=True), False, [], 1.0, "new"),
    ],
)
def test_a_message_that_is_sent_again(
    resent: ResentRequest, is_open: bool, answers: list[str], age: float, decision: Decision
) -> None:
    assert decide(resent, is_open=is_open, answers=answers, age_seconds=age) == decision
