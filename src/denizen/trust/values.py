"""Values in a text, by type: e-mail addresses, links, accounts, dates, amounts, names. Pure.

They decide whether an argument of a tool stands in somebody's words. Texts are compared after NFKC and case folding,
and by whole values only: `13` is not in `2024-05-13`, nor `ann@b.com` in `joann@b.com`. Letters that merely look alike
stay different, since a domain that looks like the one a person named is another domain.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

Kind = Literal["email", "link", "account", "date", "amount", "id", "name", "text", "flag"]

# Each pattern starts where it could not have started earlier, so that every text takes linear time at most.
_EMAIL: Final = re.compile(r"(?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_FILE_ENDINGS: Final = "docx?|xlsx?|pptx?|pdf|txt|csv|png|jpe?g|gif|json|ya?ml|html?|odt|ods|log"
"""File extensions that are not domains."""
_LINK: Final = re.compile(
    rf"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>\"'`]+|(?:data|javascript|mailto|tel|sms):[^\s<>\"'`]+"
    rf"|(?<![\w@.-])(?:[\w-]+\.)+(?!(?:{_FILE_ENDINGS})\b)[^\W\d_]{{2,24}}\b(?::\d+)?(?:[/?#][^\s<>\"'`]*)?"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:[/?#][^\s<>\"'`]*)?"
)
_FILE: Final = re.compile(rf"(?<![\w@.-])[\w-]+(?:\.[\w-]+)*\.(?:{_FILE_ENDINGS})\b")
_ACCOUNT: Final = re.compile(
    # An IBAN, in one piece or in groups of four, or at least eight digits.
    r"(?<!\w)(?:[a-z]{2}\d{2}(?:[a-z0-9]{10,30}|(?:[ -][a-z0-9]{4}){2,7}(?:[ -][a-z0-9]{1,3})?)"
    r"|\d(?:[ -]?\d){7,})(?!\w)"
)
_CODE: Final = re.compile(r"(?<!\w)[a-z0-9]{6,}(?!\w)")
_SWITCH: Final = re.compile(r"(?<=[a-z])(?=[0-9])|(?<=[0-9])(?=[a-z])")
_SECRET: Final = re.compile(
    # What is named a secret, if it has a digit; what stands after "password:" in any case. The text has single spaces.
    r"(?<![^\W_])(?:(?:password|passphrase|passcode|secret|token|key|pin|code)(?: is | was | ?[:=] ?)(?=\S{0,63}\d)"
    r"|(?:password|passphrase|passcode) ?[:=] ?)[\"'`(]*([^\s\"'`()]{3,64})"
)

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DATES: Final = (
    re.compile(r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})(?!\d)"),
    re.compile(rf"\b(?P<name>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<y>\d{{4}})\b)?"),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<name>{_MONTH})\b\.?(?:,?\s+(?P<y>\d{{4}})\b)?"),
)
_TIME: Final = re.compile(r"(?<!\d)\d{1,2}:\d{2}(?::\d{2})?(?!\d)")
_ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:[t ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?)?")
_NUMBER: Final = re.compile(r"(?<![\w.,-])-?\d+(?:[.,]\d+)*(?![\w]|[.,]\d)")
_NAMED_ID: Final = re.compile(r"(?:\b(?:id|number|no|nr|issue|ticket|order)\b[.:=]?\s*|#)(?:is\s+)?['\"(]?([\w-]+)")

_PART_BEFORE: Final = re.compile(r"[\w@.+/-]")
_PART_AFTER: Final = re.compile(r"\w|[@.+/-]\w")
_MOST_PLACES: Final = 1_000
"""How many occurrences as a part of something longer are checked before giving up."""

_TEXT_NAMES: Final = re.compile(
    "(?:.*_)?(?:text|body|contents?|subject|title|description|message|summary|notes?|comments?|caption|reason|location"
    "|headline|details|explanation)"
)
"""Names of arguments that are text for people to read."""


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@dataclass(frozen=True, slots=True)
class Value:
    """One value among the arguments of a call."""

    argument: str
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class TextValues:
    """A text of somebody, and the values in it."""

    emails: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    dates: frozenset[tuple[int | None, int, int]] = frozenset()
    amounts: frozenset[Decimal] = frozenset()
    ids: frozenset[str] = frozenset()
    text: str = field(default="", repr=False)
    """The whole text, without its dates and times."""

    def has(self, kind: Kind, value: str) -> bool:
        """Whether a value of this kind is in the words."""
        value = folded(value).strip()
        match kind:
            case "flag":
                return True
            case "email":
                return value in self.emails
            case "link":
                return _plain_link(value) in self.links
            case "account":
                return _plain_account(value) in self.accounts
            case "date":
                return self._has_dates(value)
            case "amount":
                return not _amounts(value).isdisjoint(self.amounts)
            case "id":
                return value in self.ids
            case "name":
                return self._says(value)
            case "text":
                return not self.strange_in(value)

    def strange_in(self, text: str) -> list[str]:
        """The addresses, links, accounts, codes and passwords in a text that are not in the words."""
        text = folded(text)
        rest, found = _cut(text)
        strange = [
            *(each for each in found.emails if each not in self.emails),
            *(each for each in found.links if each not in self.links),
            *(each for each in found.accounts if each not in self.accounts),
        ]
        codes = [match[0] for match in _CODE.finditer(rest) if _is_code(match[0])]
        codes += [match[1].rstrip(".,;:!?]}") for match in _SECRET.finditer(" ".join(text.split()))]
        return [*strange, *(each for each in dict.fromkeys(codes) if not self._says(each))]

    def _says(self, value: str) -> bool:
        """Whether exactly this is in the text, not as a part of something longer."""
        value = " ".join(value.split())
        if not value:
            return True
        # A pattern would compare again at each word, and a long value with a long text would block the whole process.
        at = -1
        for _ in range(_MOST_PLACES):
            at = self.text.find(value, at + 1)
            if at < 0:
                return False
            end = at + len(value)
            if not _PART_BEFORE.match(self.text[at - 1 : at]) and not _PART_AFTER.match(self.text[end : end + 2]):
                return True
        return False

    def _has_dates(self, value: str) -> bool:
        asked = _dates(value)[0]
        return bool(asked) and all(
            any((year is None or year == y) and (m, d) == (month, day) for year, month, day in self.dates)
            for y, m, d in asked
        )


def read_values(*texts: str) -> TextValues:
    """The values in these texts."""
    all_of_it = folded("\n".join(texts))
    rest, found = _cut(all_of_it)
    undated = _TIME.sub(" ", _dates(all_of_it)[1])
    return TextValues(
        found.emails,
        found.links,
        found.accounts,
        found.dates,
        amounts=frozenset(amount for match in _NUMBER.finditer(rest) for amount in _amounts(match[0])),
        ids=frozenset(match[1] for match in _NAMED_ID.finditer(rest)),
        text=" ".join(undated.split()),
    )


def _cut(text: str) -> tuple[str, TextValues]:
    """The text without its dates, times, addresses, links and accounts; and those."""
    emails = frozenset(match[0].rstrip(".") for match in _EMAIL.finditer(text))
    text = _EMAIL.sub(" ", text)
    links = frozenset(_plain_link(match[0]) for match in _LINK.finditer(text))
    text = _FILE.sub(" ", _LINK.sub(" ", text))
    dates, text = _dates(text)
    text = _TIME.sub(" ", text)
    accounts = frozenset(_plain_account(match[0]) for match in _ACCOUNT.finditer(text))
    return _ACCOUNT.sub(" ", text), TextValues(emails, links, accounts, dates)


def _dates(text: str) -> tuple[frozenset[tuple[int | None, int, int]], str]:
    """The dates in a text (the year is None if it is missing), and the text without them."""
    found: set[tuple[int | None, int, int]] = set()
    for pattern in _DATES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month = _month(parts["name"]) if parts.get("name") else int(parts["m"])
            year = int(parts["y"]) if parts["y"] else None
            if 1 <= month <= 12 and 1 <= int(parts["d"]) <= 31:
                found.add((year, month, int(parts["d"])))
        text = pattern.sub(" ", text)
    return frozenset(found), text


def _month(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


def _amounts(text: str) -> frozenset[Decimal]:
    """The possible meanings of a written number: a comma separates thousands, or the fraction."""
    readings = {text.replace(",", ""), text.replace(".", "").replace(",", ".")} if "," in text else {text}
    found: set[Decimal] = set()
    for reading in readings:
        try:
            found.add(Decimal(reading))
        except InvalidOperation:
            continue
    return frozenset(found)


def _is_code(word: str) -> bool:
    """Whether it looks like the number of a passport or a key: letters and digits, many digits or well mixed."""
    digits = sum(letter.isdigit() for letter in word)
    if digits == len(word):
        return False
    return (len(word) >= 8 and digits >= 4) or (digits >= 3 and len(_SWITCH.findall(word)) >= 3)


def _plain_link(text: str) -> str:
    return re.sub(r"^https?://", "", text.rstrip(".,;:!?)]}'\"")).rstrip("/")


def _plain_account(text: str) -> str:
    return re.sub(r"[ -]", "", text)


# Arguments


def values_of(arguments: Any, name: str = "") -> list[Value]:
    """Every value among the arguments of a call, with its kind by its form and by the name of its argument."""
    match arguments:
        case dict():
            return [each for key, value in arguments.items() for each in values_of(value, str(key))]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list() | tuple():
            return [each for value in arguments for each in values_of(value, name)]  # pyright: ignore[reportUnknownVariableType]
        case None | bool():
            return [Value(name, "flag", str(arguments))]
        case int() | float():
            return [Value(name, "id" if _names_an_id(name) else "amount", str(arguments))]
        case _:
            return [Value(name, kind_of(str(arguments), name), str(arguments))]


def has_link(arguments: Any) -> bool:
    """Whether one of the arguments of a call is an address, or holds one that begins with a scheme."""
    return any(each.kind == "link" or "://" in folded(each.text) for each in values_of(arguments))


def kind_of(text: str, name: str = "") -> Kind:
    """The kind of a written value: by its form, otherwise by the name of its argument."""
    value = folded(text).strip()
    for kind, pattern in (("email", _EMAIL), ("date", _ISO_DATE), ("account", _ACCOUNT), ("link", _LINK)):
        if pattern.fullmatch(value):
            return kind  # pyright: ignore[reportReturnType]
    if _TEXT_NAMES.fullmatch(name.lower()):
        return "text"
    if value.isdecimal() or _names_an_id(name):
        return "id"
    return "amount" if _NUMBER.fullmatch(value) else "name"


def _names_an_id(name: str) -> bool:
    return bool(re.search(r"(?:^|_)ids?$|[a-z]Ids?$", name))
