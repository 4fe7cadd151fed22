"""OpenAI's Responses API."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from denizen.errors import ModelUnreachable
from denizen.models import thinking
from tests.models.conformance import WireConformance
from tests.models.loopback import Failure, Loopback


class TestOpenAIResponses(WireConformance):
    variable, path = "OPENAI_BASE_URL", "/v1"
    model = "openai-responses:gpt-4.1"
    plain: ClassVar = {
        "model": "gpt-4.1",
        "input": [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Hello."}],
        "max_output_tokens": 500,
        "stream": True,
        "tool_choice": "auto",
        "tools": [
            {
                "type": "function",
                "name": "send_message",
                "description": "Say it.",
                "strict": False,
                "parameters": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                    "additionalProperties": False,
                },
            }
        ],
    }
    thinking_model = "openai-responses:gpt-5"
    thinks: ClassVar = {"max_output_tokens": 14_000, "reasoning": {"effort": "medium", "summary": "auto"}}
    brief: ClassVar = {"max_output_tokens": 900 + 225 + 64 + 2_048, "reasoning": {"effort": "minimal"}}
    overflow: ClassVar = {
        "error": {
            "code": "context_length_exceeded",
            "message": "Your input exceeds the context window. The maximum context length is 4096 tokens.",
            "type": "invalid_request_error",
        }
    }

    async def test_an_organization_that_may_not_see_thinking_is_answered_without(self, server: Loopback) -> None:
        def judge(body: dict[str, Any]) -> Failure | None:
            said = "Your organization must be verified to generate reasoning summaries."
            summary = body.get("reasoning", {}).get("summary")
            error = {"message": said, "type": "invalid_request_error", "param": "reasoning.summary", "code": None}
            return Failure(400, body={"error": error}) if summary else None

        server.judge = judge
        async with self.resolved(self.thinking_model) as model:
            asked = thinking.settings(model, 4_000, thinking=True)
            with pytest.raises(ModelUnreachable, match="asked again without"):
                await self.ask(model, **asked)
            assert (await self.ask(model, **asked)).text == "Good morning."
