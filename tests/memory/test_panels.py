"""An advisor remembers what people said and its own replies, and nothing of it is lost."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from denizen.ids import EntityId, MessageId, OrganizationId, SpaceId
from denizen.memory.documents import Memory
from denizen.memory.items import MemoryItem
from denizen.memory.panel_summaries import reminded, unsaid
from denizen.memory.rolling import ConversationSummary, seen_by
from denizen.spaces.posting import Message

SPACE = SpaceId("panel")


def message(seq: int, author: str) -> Message:
    kind = "human" if author == "noor" else "agent"
    fields = {
        "id": MessageId(f"m{seq}"), "space_id": SPACE, "seq": seq, "author_id": EntityId(author),
        "author_name": author, "author_kind": kind, "text": f"{author} {seq}", "plain": f"{author} {seq}",
    }  # fmt: skip
    given_ = {name: fields.get(name) for name in Message.__dataclass_fields__}
    return Message(**given_)  # pyright: ignore[reportArgumentType]


@given(
    authors=st.lists(st.sampled_from(["noor", "ada", "bee"]), max_size=40),
    reader=st.sampled_from(["ada", "bee"]),
)
def test_an_advisor_sees_what_people_said_and_its_own_replies(authors: list[str], reader: str) -> None:
    """And no message of another advisor ever."""
    said = [message(at + 1, author) for at, author in enumerate(authors)]
    theirs = [at + 1 for at, author in enumerate(authors) if author in ("noor", reader)]
    assert [each.seq for each in seen_by(said, reader)] == theirs


def test_what_is_remembered_is_told_as_text_within_its_room() -> None:
    memory = MemoryItem(
        1, "m", OrganizationId("o"), "user", "user:noor", SPACE, EntityId("noor"), None, "item", "facts",
        "Noor plays\nthe violin.", 90, ("m1",), 0, None, None, 0, 0,
    )  # fmt: skip
    assert reminded([memory]).endswith("About the person you talk with:\n| Noor plays the violin. (facts)")
    again = replace(memory, number=2, id="n", scope="persona", text="noor plays the violin")
    before = ConversationSummary(SpaceId("p"), "seth", "They met.", Memory(), 4)
    assert unsaid([memory, again], before) == [memory], "the same fact in another scope is told once"
    stated = replace(before, summary="They met. Noor plays the violin.")
    assert unsaid([memory, again], stated) == [], "a fact in the summary above is not told again"
    assert unsaid([memory], before, characters=20) == []
    assert reminded([]) == ""
