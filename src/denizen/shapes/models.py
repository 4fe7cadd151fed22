"""Models, and how to connect them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from denizen.shapes.examples import example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import ModelSource, Thinking


class ListedModel(Value):
    """A model that agents can use."""

    name: str
    paid_by: Annotated[
        Open[Literal["nobody", "server", "organization", "you"]], Field(description="Whose key is used for it.")
    ]


class MissingKey(Value):
    """A provider of models without a key."""

    provider: str
    key: Annotated[str, Field(description="The name for its key.")]


class ModelFacts(Value):
    """Known facts about a model. Null: unknown."""

    tools: bool | None
    images: bool | None
    context_tokens: int | None
    context_source: Annotated[str, Field(description="How the size of the context was learned.")]
    thinking: Open[Thinking]
    input_price: Annotated[float | None, Field(description="Dollars per million tokens that it reads.")]
    output_price: Annotated[float | None, Field(description="Dollars per million tokens that it writes.")]


class LocalModel(Value):
    """A model of a server on this machine."""

    name: Annotated[str, Field(description="The name for definitions of agents.", examples=["ollama:qwen3:8b"])]
    facts: ModelFacts


class LocalServer(Value):
    """A model server that answers on the machine of this server."""

    provider: Annotated[str, Field(examples=["ollama"])]
    title: Annotated[str, Field(examples=["Ollama"])]
    address: str
    models: list[LocalModel]


class ProviderOut(Value):
    """A provider of models, and its requirements."""

    provider: Annotated[str, Field(description="What the names of its models begin with.", examples=["anthropic"])]
    title: str
    key: Annotated[str | None, Field(description="The name under which its key is kept.")]
    needs_key: bool
    key_kept: Annotated[
        Open[Literal["organization", "server"]] | None,
        Field(description="Whether there is a key: the organization's, or one in the environment of the server."),
    ]
    takes_address: Annotated[bool, Field(description="Whether its address can be set.")]
    needs_address: Annotated[bool, Field(description="Whether it is a server of your own, which needs an address.")]
    address: Annotated[str | None, Field(description="Where it is, if that is known.")]
    address_set_by: Annotated[
        str | None, Field(description="The environment variable that sets its address, which cannot be changed here.")
    ]
    suggestions: Annotated[list[str], Field(description="Its models, with the names for definitions of agents.")]


class ModelSetupOut(Value):
    """What operators can connect."""

    providers: list[ProviderOut]
    servers: Annotated[list[LocalServer], Field(description="Model servers that answer on this machine.")]


class AgentModels(Value):
    """Known models with a key, and those that need none. Others can be used, too."""

    model_config = example(
        default="anthropic:claude-sonnet-5-5",
        default_source="found",
        default_reason="ANTHROPIC_API_KEY is set, so agents think with anthropic:claude-sonnet-5-5.",
    )

    default: Annotated[str, Field(description="The model that `default` means in a definition.")]
    default_source: Annotated[
        Open[ModelSource],
        Field(
            description="Why: the configuration names it, an operator chose it, it was found on this machine, or "
            "only the built-in demo is there."
        ),
    ]
    default_reason: Annotated[str, Field(description="The same as a sentence.")]
    may_choose: Annotated[bool, Field(description="Whether you are an operator, who can choose another.")]
    models: list[ListedModel]
    missing_keys: Annotated[list[MissingKey], Field(description="Providers that are known, and what they need.")]
    setup: Annotated[ModelSetupOut | None, Field(description="With `setup=true`: what can be connected.")] = None


class TestOut(Value):
    """The result of the test."""

    __test__ = False
    model_config = example(name="llamacpp:qwen2.5")

    name: str
    ok: bool
    problem: Annotated[str | None, Field(description="Why it did not answer, and what to do.")] = None
    code: Annotated[str | None, Field(description="The code of that error.", examples=["model_key_rejected"])] = None
    called_tool: Annotated[bool, Field(description="Whether it called the tool, as agents need it.")] = False
    text: Annotated[str, Field(description="The text beside the call.")] = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    thought: Annotated[bool, Field(description="Whether it thought before it answered.")] = False
    facts: ModelFacts | None = None
