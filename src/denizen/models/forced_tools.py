"""Forces a model to call a certain tool, without changing the list of tools, so that the prompt cache still matches.

Not every model can be forced: some refuse a forced tool, some refuse it while they think.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from denizen.models.location import is_local, is_openai

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.models import Model

ToolChoice = Literal["auto", "required", "none"]


def settings(model: Model, tool: str) -> dict[str, Any]:
    """Returns the settings that force the model to call `tool`; none if that is not possible.

    Thinking is turned off for that request if the provider forbids both.
    """
    profile = model.profile
    if not profile.get("supports_forced_tool_choice", True):
        return {}
    given = cast("dict[str, Any]", model.settings or {})
    if not _forbids_both(model, given):
        return {"tool_choice": [tool]}
    if profile.get("thinking_always_enabled", False):
        return {}
    disabled = {"anthropic_thinking": {"type": "disabled"}} if "anthropic_thinking" in given else {}
    return {"tool_choice": [tool], "thinking": False, **disabled}


def among(model: Model, tools: Sequence[str], choice: ToolChoice) -> dict[str, Any]:
    """Returns the settings that allow only these tools, without changing the list of tools.

    None if the provider does not support it: only OpenAI takes a list of allowed tools.
    """
    takes_list = model.profile.get("openai_chat_supports_allowed_tools", False)
    if choice == "none" or model.system != "openai" or not is_openai(model.base_url) or not takes_list:
        return {}
    if choice == "required":
        return {"tool_choice": list(tools)}
    from pydantic_ai.settings import ToolOrOutput

    return {"tool_choice": ToolOrOutput(list(tools))}


def any_tool(model: Model) -> dict[str, Any]:
    """Returns the settings that force the model to call some tool; none if that is not possible."""
    given = cast("dict[str, Any]", model.settings or {})
    if not model.profile.get("supports_forced_tool_choice", True) or _forbids_both(model, given):
        return {}
    # The grammar of llama.cpp lets a model continue with empty lines after its call, up to the limit. A call is JSON,
    # which has none.
    stop = {"stop_sequences": ["\n\n\n"]} if is_local(model) else {}
    return {"tool_choice": "required", **stop}


def _forbids_both(model: Model, given: dict[str, Any]) -> bool:
    """Whether the model thinks with these settings, and its provider then accepts no forced tool."""
    profile = model.profile
    thinks = given.get("thinking", profile.get("thinking_enabled_by_default", False))
    if model.system == "anthropic":
        # With adaptive thinking, the default of the newer models, a tool can be forced.
        own = cast("dict[str, Any]", given.get("anthropic_thinking") or {})
        return own.get("type") == "enabled" or bool(given.get("thinking"))
    return bool(thinks) and not profile.get("supports_forced_tool_choice_with_thinking", True)
