"""Ollama, by its OpenAI-compatible API and by its own."""

from __future__ import annotations

from typing import ClassVar

from tests.models.conformance import ThinkingTagConformance, chat_body


class TestOllama(ThinkingTagConformance):
    variable, path = "OLLAMA_BASE_URL", "/v1"
    model = "ollama:llama3.2:3b"
    plain: ClassVar = chat_body("llama3.2:3b")
    thinking_model = "ollama:qwen3:8b"
    thinks: ClassVar = {"max_tokens": 14_000}
    brief: ClassVar = {"max_tokens": 900 + 225 + 64 + 2_048}
    overflow: ClassVar = {
        "error": {"message": "the request exceeds the available context size (4096 tokens)", "type": "x"}
    }
