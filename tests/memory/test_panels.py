"""An advisor remembers what people said and its own replies, and nothing of it is lost."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from denizen.ids import EntityId, MessageId, OrganizationId, SpaceId
from denizen.memory.documents import Memory
from denizen.memory.items import Remembered
from denizen.memory.panels import reminded, windowed
from denizen.memory.rolling import Rolled
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
    upto=st.integers(0, 40),
    reader=st.sampled_from(["ada", "bee"]),
)
def test_each_message_of_an_advisors_conversation_is_summed_up_or_shown(
    authors: list[str], upto: int, reader: str
) -> None:
    """And no message of another advisor ever is."""
    said = [message(at + 1, author) for at, author in enumerate(authors)]
    found = windowed(said, reader, Rolled(SPACE, reader, "Before.", Memory(), upto))
    theirs = [each.seq for each in said if each.author_id in ("noor", reader)]
    assert [each.seq for each in found.messages] == [seq for seq in theirs if seq > upto]
    assert found.summary == ("Before." if upto else "")


def test_the_summary_of_another_reader_is_not_used() -> None:
    said = [message(1, "noor"), message(2, "bee")]
    found = windowed(said, "ada", Rolled(SPACE, "", "Everyone's.", Memory(), 1))
    assert (found.summary, [each.seq for each in found.messages]) == ("", [1])


def test_what_is_remembered_is_told_as_text_within_its_room() -> None:
    memory = Remembered(
        1, "m", OrganizationId("o"), "user", "user:noor", SPACE, EntityId("noor"), None, "item", "facts",
        "Noor plays\nthe violin.", 90, ("m1",), 0, None, None, 0, 0,
    )  # fmt: skip
    assert reminded([memory]).endswith("About the person you talk with:\n| Noor plays the violin. (facts)")
    again = replace(memory, number=2, id="n", scope="persona", text="noor plays the violin")
    assert reminded([memory, again]) == reminded([memory]), "the same fact in another scope is told once"
    assert reminded([memory], characters=20) == ""
    assert reminded([]) == ""
