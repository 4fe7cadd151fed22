"""OpenAI's Chat Completions API, as OpenAI and as the many servers that speak it do."""

from __future__ import annotations

from typing import ClassVar

from tests.models.conformance import ThinkingTagConformance, chat_body


class TestOpenAIChat(ThinkingTagConformance):
    variable, path = "OPENAI_BASE_URL", "/v1"
    model = "openai-chat:local-model"
    plain: ClassVar = chat_body("local-model", additionalProperties=False)
    thinking_model = "openai-chat:gpt-5"
    thinks: ClassVar = {"max_tokens": 14_000, "reasoning_effort": "medium"}
    brief: ClassVar = {"max_tokens": 900 + 225 + 64 + 2_048, "reasoning_effort": "minimal"}
    overflow: ClassVar = {
        "error": {
            "code": "context_length_exceeded",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5200 tokens.",
            "type": "invalid_request_error",
        }
    }
