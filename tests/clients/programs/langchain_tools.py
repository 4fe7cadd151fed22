"""LangChain: an answer, a stream, a tool that it runs, and an answer of a schema."""

from __future__ import annotations

import json
import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Verdict(BaseModel):
    """Whether the build passed."""

    passed: bool
    tests: int


@tool
def weather(town: str) -> str:
    """The weather in a town."""
    return f"Rain in {town}"


ada = ChatOpenAI(model="ada", base_url=os.environ["DENIZEN_V1"], api_key=os.environ["DENIZEN_TOKEN"], max_retries=0)
plain = ada.invoke("Hello").content
streamed = "".join(str(chunk.content) for chunk in ada.stream("Count"))
asked = HumanMessage("Weather?")
with_tools = ada.bind_tools([weather])
called = with_tools.invoke([asked])
results = [ToolMessage(weather.invoke(each["args"]), tool_call_id=each["id"]) for each in called.tool_calls]
told = with_tools.invoke([asked, called, *results]).content
verdict = ada.with_structured_output(Verdict, method="json_schema").invoke("Did it pass?")
print(json.dumps({"plain": plain, "streamed": streamed, "told": told, "verdict": verdict.model_dump()}))
