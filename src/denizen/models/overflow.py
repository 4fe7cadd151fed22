"""Reads the size of a model's context from the error of a server that refuses a request as too large. Pure."""

from __future__ import annotations

import re
from typing import Final

SOURCE: Final = "an overflow error"
_SMALLEST: Final = 256
_LARGEST: Final = 20_000_000

_NUMBER: Final = r"[^0-9]{0,30}?([0-9][0-9,_]{2,})"
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # OpenAI and vLLM: "maximum context length is 4096 tokens. However, you requested 5000".
        rf"maximum context length(?: is)?{_NUMBER}",
        # llama.cpp: {"n_prompt_tokens": 5012, "n_ctx": 4096}.
        rf"n_ctx['\"]?\s*[:=]?{_NUMBER}",
        rf"max_model_len['\"]?\s*[:=]?{_NUMBER}",
        # llama.cpp, older: "exceeds the available context size (4096 tokens)"; LM Studio: "context length of 4096".
        rf"context (?:size|length|window)(?: of)?(?: (?:only|is))?{_NUMBER}",
        # Anthropic: "prompt is too long: 213462 tokens > 200000 maximum".
        r"[0-9,]+ tokens > ([0-9][0-9,]{2,})",
        # Google: "exceeds the maximum number of tokens allowed (1048576)".
        rf"maximum number of tokens allowed{_NUMBER}",
        rf"limit of{_NUMBER} tokens",
    )
)


def context_named_in(said: str) -> int | None:
    """Returns the context's size in tokens if the error's text names it."""
    for pattern in _PATTERNS:
        if (found := pattern.search(said)) is not None:
            tokens = int(found[1].replace(",", "").replace("_", ""))
            if _SMALLEST <= tokens <= _LARGEST:
                return tokens
    return None
