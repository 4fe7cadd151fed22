"""LiteLLM: an answer, and a stream."""

from __future__ import annotations

import json
import os

import litellm

common = {"model": "openai/ada", "api_base": os.environ["DENIZEN_V1"], "api_key": os.environ["DENIZEN_TOKEN"]}
whole = litellm.completion(**common, messages=[{"role": "user", "content": "Hello"}], num_retries=0)
pieces = litellm.completion(**common, messages=[{"role": "user", "content": "Count"}], stream=True, num_retries=0)
streamed = "".join(each.choices[0].delta.content or "" for each in pieces)
print(json.dumps({"plain": whole.choices[0].message.content, "streamed": streamed}))
