"""OpenAI's Chat Completions API, as OpenAI and as the many servers that speak it do."""

from __future__ import annotations

from typing import ClassVar

from tests.models.conformance import ThinkingTagConformance


class TestOpenAIChat(ThinkingTagConformance):
    variable, path = "OPENAI_BASE_URL", "/v1"
    model = "openai-chat:local-model"
    plain: ClassVar = {
        "model": "local-model",
        "messages": [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Hello."}],
        "max_tokens": 500,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tool_choice": "auto",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "send_message",
                    "description": "Say it.",
                    "parameters": {
                        "type": "object",
                        "properties": {"text": {"type": "string"}},
                        "required": ["text"],
                        "additionalProperties": False,
                    },
                },
            }
        ],
    }
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
