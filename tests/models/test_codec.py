"""A message that was stored is, when read, the message that was seen."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from denizen.clock import moment
from denizen.models import codec, tokens

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\x00\u2028\u202e😀\ufeff"\\'))
NAME = st.text(min_size=1, max_size=8, alphabet=st.characters(exclude_categories=["Cs"]))
WHEN = st.integers(0, 4 * 10**15).map(moment)
METADATA = st.none() | st.dictionaries(
    NAME, st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT | st.lists(TEXT), max_size=3
)
USAGE = st.builds(
    RequestUsage,
    input_tokens=st.integers(0, 10**7),
    output_tokens=st.integers(0, 10**6),
    cache_read_tokens=st.integers(0, 10**6),
    cache_write_tokens=st.integers(0, 10**6),
    details=st.dictionaries(NAME, st.integers(0, 10**6), max_size=2),
)
REQUESTS = st.builds(
    ModelRequest,
    st.lists(
        st.builds(SystemPromptPart, TEXT, timestamp=WHEN)
        | st.builds(UserPromptPart, TEXT, timestamp=WHEN)
        | st.builds(ToolReturnPart, NAME, TEXT, NAME, timestamp=WHEN, outcome=st.sampled_from(["success", "failed"])),
        max_size=3,
    ),
    metadata=METADATA,
    timestamp=st.none() | WHEN,
)
RESPONSES = st.builds(
    ModelResponse,
    st.lists(
        st.builds(TextPart, TEXT)
        | st.builds(ThinkingPart, TEXT, signature=st.none() | TEXT, id=st.none() | NAME, provider_name=NAME)
        | st.builds(ToolCallPart, NAME, st.none() | TEXT | st.dictionaries(NAME, TEXT, max_size=2), NAME),
        max_size=3,
    ),
    usage=USAGE,
    model_name=st.none() | NAME,
    timestamp=WHEN,
    metadata=METADATA,
    provider_details=METADATA,
    finish_reason=st.sampled_from([None, "stop", "tool_call", "length"]),
    state=st.sampled_from(["complete", "interrupted", "incomplete"]),
)


@given(REQUESTS | RESPONSES)
def test_what_is_loaded_equals_what_was_dumped(message: ModelMessage):
    text = codec.dump(message)
    assert codec.load(text) == message
    assert codec.dump(codec.load(text)) == text


def test_half_a_surrogate_pair_does_not_stop_a_message_from_being_stored():
    message = ModelRequest([ToolReturnPart("look", "a\ud83d\ude00 b\ud83d", "call_0")])
    [part] = codec.load(codec.dump(message)).parts
    assert isinstance(part, ToolReturnPart)
    assert part.content == "a\ufffd\ufffd b\ufffd"


@given(TEXT)
def test_a_text_is_a_quarter_of_its_characters_and_at_least_one(text: str):
    assert tokens.estimate(text) == -(-len(text) // 4)
    assert bool(tokens.estimate(text)) == bool(text)


@given(REQUESTS | RESPONSES, TEXT)
def test_a_message_is_never_estimated_smaller_when_more_is_said(message: ModelMessage, text: str):
    longer = replace(message, parts=[*message.parts, UserPromptPart(text)])
    assert tokens.estimate_message(longer) == tokens.estimate_message(message) + tokens.estimate(text)


def test_names_and_arguments_are_counted():
    call = ModelResponse([ToolCallPart("send_message", '{"text": "hi"}', "call_0")])
    assert tokens.estimate_message(call) == tokens.PER_MESSAGE + 3 + 4
    assert tokens.estimate_message(ModelResponse([])) == tokens.PER_MESSAGE
