"""Anthropic's Messages API."""

from __future__ import annotations

from typing import ClassVar

from tests.models.conformance import WireConformance


class TestAnthropic(WireConformance):
    variable, path = "ANTHROPIC_BASE_URL", ""
    model = "anthropic:claude-haiku-4-5"
    plain: ClassVar = {
        "model": "claude-haiku-4-5",
        "system": "You are Ada.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}],
        "max_tokens": 500,
        "stream": True,
        "tool_choice": {"type": "auto"},
        "tools": [
            {
                "name": "send_message",
                "description": "Say it.",
                "input_schema": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                },
            }
        ],
    }
    thinking_model = "anthropic:claude-haiku-4-5"
    thinks: ClassVar = {"max_tokens": 14_000, "thinking": {"type": "enabled", "budget_tokens": 10_000}}
    brief: ClassVar = {"max_tokens": 900 + 225 + 64, "thinking": None}
    overflow: ClassVar = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 5200 tokens > 4096 maximum"},
    }
