"""Simon Willison's `llm`, with a model of its file for models with OpenAI's API."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
os.environ["LLM_USER_PATH"] = str(folder)
model = f"- model_id: ada\n  model_name: ada\n  api_base: {os.environ['DENIZEN_V1']}\n  api_key_name: denizen\n"
(folder / "extra-openai-models.yaml").write_text(model)
(folder / "keys.json").write_text(json.dumps({"denizen": os.environ["DENIZEN_TOKEN"]}))

import llm  # noqa: E402  it reads the folder

conversation = llm.get_model("ada").conversation()
plain = conversation.prompt("Hello", stream=False).text()
streamed = "".join(conversation.prompt("Count"))
print(json.dumps({"plain": plain, "streamed": streamed}))
