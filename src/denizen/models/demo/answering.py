"""The demo model's answers: a table of phrases, each with its answer. Pure.

It does not pretend: if it does not understand, it says so, and how to connect a real model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from denizen.models.demo.arithmetic import result_of, sum_in
from denizen.models.demo.passing import Relay, relay_in
from denizen.models.demo.reading import DemoSpace, Member
from denizen.models.demo.recalling import (
    Moment,
    count_messages,
    fact_in,
    hides_words,
    may_hear,
    recall_answer,
    recall_deeds,
    recall_facts,
    recall_own_words,
    recall_words,
    said_before,
)
from denizen.models.demo.wording import counted, listed, one_of, quoted

HOW_TO_HAVE_A_REAL_ONE = (
    "For a real model, connect one under Administration › Models. Or set DENIZEN_MODEL, ANTHROPIC_API_KEY or "
    "OPENAI_API_KEY, or run Ollama, and start again."
)
_WHAT_IS = re.compile(
    r"\A(?:what(?:['’]?s| is| are)|how much is|calculate|compute|what)\s+(.*?)(?:\s+is\b)?(?=[\s?.!]*\Z)",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = re.compile(r"\A(?:what|which|who|whose|where|when|why|how)\b|\?", re.IGNORECASE)
_HIGHEST = 100
_FILES_NAMED = 3
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


_ASK_ALONE = "Ask me that in a direct message."
SAID_IN_PRIVATE = "That was said in private. Ask there."


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply in the space of the question."""

    text: str
    about: str
    """Its subject, for the summary."""
    in_short: str = SAID_IN_PRIVATE
    """What to say if the reply is refused because it was given in private before. It has fewer than eight words, so
    that it is not refused for the same reason.
    """


@dataclass(frozen=True, slots=True)
class Remember:
    """A fact to keep."""

    fact: str


@dataclass(frozen=True, slots=True)
class Remind:
    """A reminder to give later."""

    seconds: int
    span: str
    what: str


Answer = Reply | Relay | Remember | Remind
_Handler = Callable[[Moment, "re.Match[str]"], Answer | None]


def answer(moment: Moment) -> Answer | None:
    """Returns the answer to a message; to another agent only if it asks something, otherwise None."""
    asked = moment.asked
    if not moment.from_agent:
        if (relay := relay_in(moment)) is not None:
            return relay
        if fact := fact_in(asked):
            return Remember(fact)
    for phrase in _TABLE:
        if moment.from_agent and not phrase.agents_too:
            continue
        found = phrase.pattern.fullmatch(asked)
        if found is not None and (made := phrase.handler(moment, found)) is not None:
            return made
    if (signs := sum_in(_WHAT_IS.sub(r"\1", asked))) is not None:
        return Reply(f"{signs} = {result_of(signs)}".replace("*", "×"), "a sum")
    if moment.from_agent and "?" not in asked:
        return None
    if not asked and moment.event.files:
        return Reply(_cannot_read(moment.event.files), "files that I cannot read")
    if _QUESTION.search(asked) and (told := recall_answer(moment)):
        return Reply(told, "what I remember")
    return Reply(_not_understood(asked), "something I did not understand", "That is more than this demo understands.")


def _cannot_read(files: Sequence[str]) -> str:
    named = [quoted(each, 60) for each in files[:_FILES_NAMED]]
    if len(files) > _FILES_NAMED:
        named.append(f"{len(files) - _FILES_NAMED} more")
    return f"I have {listed(named)}. I am the built-in demo model and cannot read files. {HOW_TO_HAVE_A_REAL_ONE}"


def _not_understood(asked: str) -> str:
    ways = (
        "I am the built-in demo model, and {} is more than I understand.",
        "I read {}, but I am only the built-in demo model and do not understand it.",
        "That is beyond me: {}. I am the built-in demo model and know a few phrases only.",
    )
    said = one_of(ways, asked).format(quoted(asked, 60) if asked else "an empty message")
    return f'{said} Say "help" to see what I can do. {HOW_TO_HAVE_A_REAL_ONE}'


def _help(_moment: Moment, _found: re.Match[str]) -> Reply:
    return Reply(
        "I am the built-in demo model: no network, no key, a few phrases. You can say:\n"
        "- hello · who are you? · where are you? · who is here? · what time is it?\n"
        "- repeat … · count to 5 · count the words in … · what is 2 + 2?\n"
        "- remember that … · what do you remember? · what did I tell you about …?\n"
        "- tell @someone that … · ask @someone … · say … in a space we share\n"
        "- what have you done? · how many messages have I sent you?\n"
        "- remind me in 5 minutes to … (where timers are at hand)\n\n"
        f"{HOW_TO_HAVE_A_REAL_ONE}",
        "what I can do",
        _ASK_ALONE,
    )


def _abilities(moment: Moment, _found: re.Match[str]) -> Reply:
    """Three things to try, and how to get a real model."""
    name = moment.scene.name
    return Reply(
        f"I am {name}, and I think with the built-in demo model: I know a few phrases; everything around me is real. "
        "Three things to try:\n"
        "1. **Memory:** write `remember that the kettle is broken`, and later `what do you remember?`\n"
        "2. **Timers:** write `remind me in 1 minute to stretch`, and go on with something else.\n"
        f"3. **Looking inside:** open Agents › {name} to see this answer as I made it, step by step.\n\n"
        f'Write "help" for everything that I understand. {HOW_TO_HAVE_A_REAL_ONE}',
        "what I can do",
        _ASK_ALONE,
    )


def _greeting(moment: Moment, _found: re.Match[str]) -> Reply:
    name = moment.event.sender
    if moment.from_agent:
        return Reply(f"Hello, {name}!", "a greeting")
    if said_before(moment, f"Hello, {name}") or said_before(moment, f"Hello again, {name}"):
        return Reply(f"Hello again, {name}.", "a greeting")
    return Reply(f'Hello, {name}. I am {moment.scene.name}. Say "help" to see what I can do.', "a greeting")


def _identity(moment: Moment, _found: re.Match[str]) -> Reply:
    scene = moment.scene
    handle = f" (@{scene.handle})" if scene.handle and not moment.from_agent else ""
    role = f" My role, as it was given to me: {quoted(scene.role, 200)}." if scene.role else " I have no role yet."
    return Reply(f"I am {scene.name}{handle}.{role} I think with the built-in demo model.", "who I am")


def _who_am_i(moment: Moment, _found: re.Match[str]) -> Reply:
    kind = f", {_a(moment.event.kind)}" if moment.event.kind else ""
    return Reply(f"You are {moment.event.sender}{kind}, and we are in {quoted(moment.place.name)}.", "who they are")


def _where(moment: Moment, _found: re.Match[str]) -> Reply:
    here, scene = moment.place, moment.scene
    known = [place for place in scene.places.values() if place.id != here.id]
    told = [f"{quoted(place.name)} with {_names(place)}" for place in known if may_hear(scene, here, place.id)]
    hidden = len(known) - len(told)
    text = f"We are in {quoted(here.name)}, with {_names(here)}."
    if told:
        text += f" I am also in {listed(told)}."
    if hidden:
        text += f" I am in {counted(hidden, 'other space')} besides, which not everyone here is in."
    return Reply(text, "where I am")


def _who_is_here(moment: Moment, _found: re.Match[str]) -> Reply:
    others = [_described(each) for each in moment.place.others]
    return Reply(f"In {quoted(moment.place.name)} there are {listed([*others, 'I'])}.", "who is here")


def _described(member: Member) -> str:
    return f"{member.name} ({member.kind})"


def _names(place: DemoSpace) -> str:
    return listed([each.name for each in place.others]) or "nobody else"


def _a(kind: str | None) -> str:
    return {"human": "a person", "agent": "an agent", "service": "a service"}[kind or "human"]


def _time(moment: Moment, _found: re.Match[str]) -> Reply:
    now = moment.scene.present.inbox.now
    if now is None:
        return Reply("I have no clock at hand.", "the time")
    return Reply(f"It is {now:%H:%M} UTC on {now:%A}, {now.day} {now:%B %Y}.", "the time")


def _repeat(_moment: Moment, found: re.Match[str]) -> Reply | None:
    text = found["text"].strip()
    if len(text) > 1 and text[0] in "\"'“«" and text[-1] in "\"'”»":
        text = text[1:-1].strip()
    return Reply(text, "what I was to repeat") if text else None


def _count_to(_moment: Moment, found: re.Match[str]) -> Reply:
    first, last = int(found["first"] or 1), int(found["last"])
    if abs(last - first) > _HIGHEST:
        return Reply(f"That is far: I count {_HIGHEST} numbers at most.", "counting")
    numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
    return Reply(", ".join(map(str, numbers)) + ".", "counting")


def _count_words(_moment: Moment, found: re.Match[str]) -> Reply:
    text = found["text"].strip().strip("\"'“”")
    what = (found["what"] or "word").lower()
    number = len(text.split()) if what == "word" else sum(1 for char in text if what == "character" or char.isalpha())
    return Reply(f"I count {counted(number, what)}.", "counting")


def _count_messages(moment: Moment, _found: re.Match[str]) -> Reply:
    return Reply(count_messages(moment), "how often they wrote")


def _facts(moment: Moment, found: re.Match[str]) -> Reply:
    about = (found["about"] or found["more"] or "").strip(" ?.!")
    told = recall_facts(moment, about) or (recall_words(moment, moment.event.sender, about) if about else "")
    return Reply(
        told or f"I remember nothing{f' about {quoted(about)}' if about else ' that I was told to keep'}.",
        "what I remember",
    )


def _words(moment: Moment, found: re.Match[str]) -> Reply:
    about = (found["about"] or "").strip(" ?.!")
    who = found["who"].strip()
    if who.lower() == "you":
        return Reply(recall_own_words(moment), "what I said")
    of = moment.event.sender if who.lower() == "i" else who.lstrip("@")
    told = (recall_facts(moment, about) if about and who.lower() == "i" else "") or recall_words(moment, of, about)
    whom = "you" if who.lower() == "i" else quoted(of, 40)
    nothing = f"I remember nothing{f' about {quoted(about)}' if about else ''} from {whom}"
    nothing += " that everyone here could hear." if hides_words(moment, of) else "."
    return Reply(told or nothing, "what was said")


def _deeds(moment: Moment, _found: re.Match[str]) -> Reply:
    return Reply(recall_deeds(moment), "what I have done")


def _remind(_moment: Moment, found: re.Match[str]) -> Remind | None:
    amount, unit = found["amount"].lower(), found["unit"].lower()
    number = int(amount) if amount.isdecimal() else 1
    what = (found["what"] or "").strip(" .!?,:")
    return (
        Remind(number * _UNITS[unit], counted(number, unit), what or "You asked me to remind you") if number else None
    )


def _thanks(moment: Moment, _found: re.Match[str]) -> Reply:
    return Reply(one_of(("You are welcome", "Gladly"), moment.asked) + f", {moment.event.sender}.", "thanks")


def _farewell(moment: Moment, _found: re.Match[str]) -> Reply:
    return Reply(f"Goodbye, {moment.event.sender}. I will be here.", "a farewell")


def _well(_moment: Moment, _found: re.Match[str]) -> Reply:
    return Reply("I am a demo model, so I feel nothing; but everything works. Thank you for asking.", "how I am")


def _model(_moment: Moment, _found: re.Match[str]) -> Reply:
    return Reply(
        "I am an agent that thinks with the built-in demo model: fixed rules, no language model behind me. "
        f"{HOW_TO_HAVE_A_REAL_ONE}",
        "which model I am",
    )


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase, and its answer."""

    pattern: re.Pattern[str]
    handler: _Handler
    agents_too: bool
    """Whether another agent gets an answer as well."""


def _asking(handler: _Handler, *phrases: str, agents_too: bool = True) -> _Phrase:
    return _Phrase(re.compile(rf"(?:{'|'.join(phrases)})[\s.!?]*", re.IGNORECASE | re.DOTALL), handler, agents_too)


_HELLO = (
    r"hello|hi|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)"
    r"|hallo|guten (?:tag|morgen|abend)|moin|servus|grüezi|bonjour|bonsoir|salut|hola|buen[oa]s (?:días|tardes|noches)"
    r"|ciao|buongiorno|olá|bom dia|hej|hoi|merhaba|salam|as-?salamu? alaikum|namaste|konnichiwa|ni ?hao"
    r"|привет|здравствуйте|こんにちは|你好|안녕하세요|नमस्ते|مرحبا|שלום"
)
_IS = r"(?:['’]?s| is)"
_SPAN = r"in (?P<amount>\d{1,4}|an?|one) (?P<unit>second|minute|hour|day)s?"

_TABLE = (
    _asking(
        _abilities, r"what can you (?:do|help (?:me )?with)(?: here| for me)?", r"what (?:should|can) i try(?: first)?"
    ),
    _asking(
        _help, r"help(?: me)?", r"what can (?:you|i) (?:do|say)(?: here)?", r"commands", r"how does (?:this|it) work"
    ),
    _asking(
        _greeting,
        rf"(?:{_HELLO})(?:[\s,!]+(?:there|all|everyone|everybody|again|you|friend|\(from [^)]*\)))*",
    ),
    _asking(
        _identity,
        r"who are you",
        rf"what{_IS} your (?:name|role|job)",
        r"what are you(?: called)?",
        r"introduce yourself",
        r"who you are",
        r"your (?:name|role)",
        r"what do you do",
    ),
    _asking(_who_am_i, r"who am i", rf"what{_IS} my name", r"do you know me", r"who i am"),
    _asking(
        _where,
        r"where are (?:you|we)",
        r"where am i",
        r"where you are",
        r"(?:what|which) spaces? (?:are you|are we|is this|do you know).*",
        r"what (?:space|place|room) is this",
    ),
    _asking(
        _who_is_here,
        rf"who(?:{_IS}| are| else is| all is) (?:here|there|in (?:here|this space)|with (?:us|you))(?: else)?",
    ),
    _asking(
        _time,
        rf"what{_IS} the (?:time|date)(?: now)?",
        r"what time is it(?: now)?",
        r"what (?:day|date) is (?:it|today)(?: today)?",
        r"(?:the )?time",
    ),
    _asking(_repeat, r"(?:repeat|say|echo)(?: after me| this| exactly)*[\s:,]+(?P<text>.*\S)", agents_too=False),
    _asking(_count_to, r"count(?: from (?P<first>-?\d{1,6}))? (?:up |down )?to (?P<last>-?\d{1,6})"),
    _asking(
        _count_words,
        r"(?:count (?:the )?|how many )(?P<what>word|letter|character)s?(?: are)?(?: there)?(?: in| of)?[\s:,]+"
        r"(?P<text>.*\S)",
    ),
    _asking(
        _count_messages,
        r"(?:how many (?:messages|times)|how often) (?:have|did) (?:i|you)\b.*",
        r"count (?:my|the) messages.*",
    ),
    _asking(
        _facts,
        r"what do you (?:still )?(?:remember|know)(?: (?:about|of) (?P<about>.+))?",
        r"what (?:should|did) you remember",
        r"what have i told you(?: to remember)?",
        r"do you (?:still )?remember(?: anything)?(?: about)?(?: (?P<more>.+))?",
    ),
    _asking(
        _words,
        r"what (?:did|has|have) (?P<who>i|@?\w[\w .'’-]{0,60}?) (?:just )?"
        r"(?:say|said|tell|told|wr[io]te|written|ask|asked)(?: to)?(?: you| me)?(?: (?:about|of) (?P<about>.+))?",
        agents_too=False,
    ),
    _asking(
        _deeds,
        r"what (?:have|did) you (?:done|do)(?: .*)?",
        r"what (?:has )?happened(?: .*)?",
        r"what have you been (?:doing|up to)",
        rf"what{_IS} your (?:history|past)",
        r"summari[sz]e(?: .*)?",
    ),
    _asking(_remind, rf"remind me {_SPAN}(?:[\s,:]+(?:(?:to|that|about|of)\s+)?(?P<what>.+))?", agents_too=False),
    _asking(_remind, rf"remind me (?:to|that|about|of) (?P<what>.+) {_SPAN}", agents_too=False),
    _asking(_well, r"how are you(?: .*)?", rf"how{_IS} it going", r"are you (?:ok|okay|well|fine)"),
    _asking(
        _thanks, r"thanks?(?: you)?(?: .*)?", r"thx", r"cheers", r"(?:danke|merci|gracias)(?: .*)?", agents_too=False
    ),
    _asking(_farewell, r"(?:good ?)?bye(?: .*)?", r"good night(?: .*)?", r"see you(?: .*)?", agents_too=False),
    _asking(
        _model,
        r"(?:what|which)(?: \w+)? model (?:are you|do you use|is this).*",
        r"are you (?:an? )?(?:ai|llm|human|person|bot|robot|real|chatgpt|claude|language model|demo)\b.*",
    ),
)
