"""The codec that gives the library of MCP whole lines."""

from __future__ import annotations

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.tools import whole_lines


def decoded(*parts: bytes) -> list[str]:
    """What the decoder returns for each of these parts."""
    decoder = codecs.getincrementaldecoder(whole_lines.register())("strict")
    return [*(decoder.decode(each) for each in parts), decoder.decode(b"", final=True)]


@given(text=st.text(st.characters(codec="utf-8"), max_size=60), cuts=st.lists(st.integers(1, 20), max_size=20))
def test_however_it_is_cut_the_text_is_the_same_in_whole_lines(text: str, cuts: list[int]) -> None:
    data, parts = text.encode() + b"\n", list[bytes]()
    for size in cuts:
        parts.append(data[:size])
        data = data[size:]
    found = decoded(*parts, data)
    assert "".join(found) == f"{text}\n"
    assert all(each.endswith("\n") for each in found if each)


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "result": {"content": "%s"}}', 7),
        (b'{"result": {"id": 3, "content": "%s"}, "id": "a-7"}', "a-7"),
        (b'{"result": {"content": "%s"}, "id": 7, "jsonrpc": "2.0"}', 7),
        (b'{"result": {"content": "%s"}}', None),
    ],
)
def test_in_place_of_a_line_that_is_too_long_its_call_fails(
    line: bytes, id: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_lines, "LINE_BYTES", 5_000)
    long = line % (b"x" * 4_000 + b'\\"id\\": 9, ' + b"x" * 4_000)
    parts = [long[at : at + 700] for at in range(0, len(long), 700)]
    *_, ended, final = decoded(*parts, b'\n{"next": 1}\n')
    refused, following = ended.splitlines()
    told = json.loads(refused)
    assert told["id"] == id
    assert told["error"]["message"] == "The answer is larger than 5 kB. Ask for less."
    assert (json.loads(following), final) == ({"next": 1}, "")
