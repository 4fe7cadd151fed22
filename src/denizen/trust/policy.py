"""Decides whether a tool call or message is allowed, needs a person's approval, or is refused. Pure.

What was said in a private space is not shown to people who are not in it: that rule comes first, and no setting of an
agent's effects changes it. It is the only rule for messages and questions to people.

Text from outside (a web page, a service, a guest) may hold instructions, and no model can be relied on not to follow
them. So once the request held such text, an effect happens by itself only if its important values stand in the words of
a person whom the agent serves: the recipient, the account, the amount, the day.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, Field

from denizen.inbox.format import quoted_name
from denizen.trust.values import Kind, TextValues, folded, values_of

Action = Literal["allow", "ask", "deny"]
Mode = Literal["words", "ask", "allow"]
"""What happens to an effect once the request held text from outside: `words`, it runs if its values stand in a person's
words; `ask`, a person approves every one; `allow`, it runs."""


class EffectRule(BaseModel, frozen=True, extra="forbid"):
    """Which calls are allowed, asked about or refused, whatever the request held."""

    tool: str = Field(default="*", min_length=1)
    """The name of a tool; `*` stands for any letters."""
    arguments: dict[str, str] = Field(default_factory=dict[str, str])
    """Patterns by argument, all of which must match: `{"to": "*@example.com"}`. Of a list, every value."""
    spaces: tuple[str, ...] = ()
    """Names or ids of the spaces that it is for; empty for all."""
    speakers: tuple[str, ...] = ()
    """Roles (`owner`, `admin`, `member`, `guest`) or handles of whom it is for: everyone whose words the request
    answers must be among them. Empty for all."""
    do: Literal["allow", "ask", "deny"]


class EffectSettings(BaseModel, frozen=True, extra="forbid"):
    """What an agent may do outside the server."""

    after_outside_text: Mode = "words"
    """What happens to an effect once the request held text from outside."""
    rules: tuple[EffectRule, ...] = ()
    """The first that matches a call decides."""
    approval_seconds: float = Field(default=86_400.0, gt=0, le=30 * 86_400)
    """How long an approval is waited for; then the call is refused."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """A person whose words the request answers."""

    handle: str
    role: str


@dataclass(frozen=True, slots=True)
class PrivateWords:
    """Words from a private space in a message or call that not everyone who would see it may know."""

    space: str
    """The name of the private space."""
    words: int
    """The number of words in a row."""
    remembered: bool = False
    """Whether they come from a memory."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that is about to be made, or a message to be sent, and what the request held."""

    tool: str
    arguments: Mapping[str, Any]
    effect: bool = False
    """Whether the tool does more than harmless reading."""
    outside: Sequence[str] = ()
    """The sources of text from outside in the request, for people: `get_page`, `the guest Eve`."""
    trusted: TextValues = TextValues()  # noqa: RUF009
    """The values in the words of people whom the agent serves."""
    declared: Collection[str] | None = None
    """The tools that the agent has declared in this cycle; None: it has declared none."""
    declared_before_reading: bool = False
    """Whether it declared them before any request held text from outside."""
    needs_trusted: bool = False
    written_as_text: bool = False
    """Whether the model wrote the call as text, which it may have copied from what it read."""
    kinds: Mapping[str, Kind] | None = None
    """The kinds of arguments from the tool's definition."""
    made: Collection[tuple[str, str]] = ()
    """Ids that effects of this cycle have created, with the arguments that they may be used for."""
    space: Collection[str] = ()
    """Id and name of the space."""
    speakers: Sequence[Speaker] = ()
    tells: Literal["", "message", "question"] = ""
    """Whether it is a message or a question to people, which has no effect outside: only private words stop it."""
    private: PrivateWords | None = None
    """Words that people who would see it may not know; None also if nobody would see it."""


@dataclass(frozen=True, slots=True)
class Decision:
    action: Action
    rule: str
    """The stable name of the rule that decided."""
    why: str = ""
    """For the model and for the person who is asked; for a refusal, with what to do instead."""

    @property
    def told(self) -> str:
        """The message to the model about a refusal, as the result of its call."""
        error = self.rule if self.rule == PRIVATE_WORDS else "effect_refused"
        return json.dumps({"success": False, "error": error, "message": self.why}, ensure_ascii=False)


PRIVATE_WORDS: Final = "private_words"
"""The rule that keeps what was said in a private space from people who are not in it."""
MOST_CHARACTERS: Final = 20_000
"""How many characters of a value are checked; a longer one needs approval."""
_EXACT: Final = ("email", "link", "account", "id")
"""Kinds that a person is shown in ASCII, so that look-alike letters are visible."""
_ALLOWED: Final = Decision("allow", "no_text_from_outside")


def decide(attempt: PlannedCall, settings: EffectSettings) -> Decision:
    """Decide about the call or message."""
    if attempt.private is not None:
        return Decision("deny", PRIVATE_WORDS, _told_of_private_words(attempt, attempt.private))
    if attempt.tells:
        return Decision("allow", "message_to_people")
    if rule := next((each for each in settings.rules if _matches(each, attempt)), None):
        return _by_rule(rule, attempt)
    if attempt.written_as_text and attempt.effect:
        why = f"The model wrote this call of {attempt.tool} as text, which it may have copied from what it read."
        return Decision("ask", "written_as_text", why)
    if not attempt.outside:
        return _ALLOWED
    if attempt.needs_trusted:
        return Decision("ask", "needs_trusted", f"{attempt.tool} needs a person's approval after {_read(attempt)}.")
    if not attempt.effect:
        return Decision("allow", "only_reads")
    if settings.after_outside_text == "allow":
        return Decision("allow", "allowed_by_settings")
    if settings.after_outside_text == "ask":
        return Decision("ask", "every_effect", f"Every effect needs a person's approval after {_read(attempt)}.")
    return _by_words(attempt)


def _by_rule(rule: EffectRule, attempt: PlannedCall) -> Decision:
    match rule.do:
        case "allow":
            return Decision("allow", "allowed_by_rule")
        case "ask":
            return Decision("ask", "asked_by_rule", f"A rule of this agent asks a person before {attempt.tool}.")
        case "deny":
            why = (
                f"A rule of this agent refuses this call of {attempt.tool}. It was not called. "
                "Tell the person; do not try it another way."
            )
            return Decision("deny", "denied_by_rule", why)


def _told_of_private_words(attempt: PlannedCall, found: PrivateWords) -> str:
    """The explanation, without the private words."""
    what, seen = (
        ("Not sent: your message shares", "read it")
        if attempt.tells == "message"
        else ("Not called: what you wrote for it shares", "see the call")
    )
    source = (
        f"something that you remember, and not everyone who would {seen} may know it. "
        if found.remembered
        else f"something said in the private space {quoted_name(found.space)}, and not everyone who would {seen} is in "
        "that space. "
    )
    return (
        f"{what} {found.words} consecutive words with {source}"
        "Say only what may be known here, in words of your own, or leave it out."
    )


def _by_words(attempt: PlannedCall) -> Decision:
    if attempt.declared is not None and attempt.tool not in attempt.declared:
        why = f"{attempt.tool} is not among the tools that the agent named for this task, after {_read(attempt)}."
        return Decision("ask", "not_declared", why)
    matched = False
    for value in values_of(attempt.arguments):
        kind = (attempt.kinds or {}).get(value.argument, value.kind)
        if len(value.text) > MOST_CHARACTERS:
            why = f"{value.argument} is too long to be checked, after {_read(attempt)}."
            return Decision("ask", "too_long", why)
        if kind == "id" and (value.argument, value.text) in attempt.made:
            matched = True
        elif kind == "text":
            if strange := attempt.trusted.strange_in(value.text):
                why = f"{strange[0]!a} in {value.argument} does not stand in a person's words, and {_may_be(attempt)}."
                return Decision("ask", "strange_address", why)
        elif not attempt.trusted.has(kind, value.text):
            shown = ascii(value.text) if kind in _EXACT else repr(value.text)
            why = f"{value.argument} {shown} does not stand in a person's words, and {_may_be(attempt)}."
            return Decision("ask", "not_in_words", why)
        else:
            matched = matched or kind != "flag"
    if not matched and not attempt.declared_before_reading:
        why = f"Nothing in the arguments of {attempt.tool} stands in a person's words, after {_read(attempt)}."
        return Decision("ask", "nothing_in_words", why)
    return Decision("allow", "in_persons_words")


def _read(attempt: PlannedCall) -> str:
    return f"reading text from outside ({', '.join(list(dict.fromkeys(attempt.outside))[:3])})"


def _may_be(attempt: PlannedCall) -> str:
    return f"may come from text from outside ({', '.join(list(dict.fromkeys(attempt.outside))[:3])})"


def _matches(rule: EffectRule, attempt: PlannedCall) -> bool:
    return (
        fnmatchcase(attempt.tool, rule.tool)
        and all(_argument_matches(attempt.arguments.get(name), pattern) for name, pattern in rule.arguments.items())
        and (not rule.spaces or not set(rule.spaces).isdisjoint(attempt.space))
        and (not rule.speakers or _all_are_among(attempt.speakers, rule.speakers))
    )


def _argument_matches(value: Any, pattern: str) -> bool:
    if isinstance(value, list | tuple):
        values = cast("Sequence[Any]", value)
        return len(values) > 0 and all(_argument_matches(each, pattern) for each in values)
    return isinstance(value, str | int | float) and fnmatchcase(folded(str(value)), folded(pattern))


def _all_are_among(speakers: Sequence[Speaker], named: Sequence[str]) -> bool:
    wanted = {each.removeprefix("@") for each in named}
    return bool(speakers) and all(each.role in wanted or each.handle in wanted for each in speakers)
