"""LangChain's embeddings with its own settings: it sends tokens; and with the one that has it send texts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import litellm

# tiktoken loads its vocabulary from a network. LiteLLM brings the same file, under the name that tiktoken looks for.
os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(litellm.__file__).parent / "litellm_core_utils" / "tokenizers")

from langchain_openai import OpenAIEmbeddings

WORDS = ["To the north", "elsewhere"]
given = {"base_url": os.environ["DENIZEN_V1"], "api_key": os.environ["DENIZEN_TOKEN"], "max_retries": 0}
by_tokens = OpenAIEmbeddings(model="text-embedding-3-small", **given)
by_texts = OpenAIEmbeddings(model="any", check_embedding_ctx_length=False, **given)
print(json.dumps({"tokens": by_tokens.embed_documents(WORDS), "texts": by_texts.embed_documents(WORDS)}))
