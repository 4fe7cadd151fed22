"""Models that agents can think with, and how operators connect them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from denizen.access.secrets import VALUE_CHARACTERS
from denizen.api.model_setup import LocalModels, TestResult
from denizen.cycles.server_models import Source
from denizen.masking import masked
from denizen.models.abilities import Abilities, Thinking
from denizen.models.providers import ADDRESS_CHARACTERS
from denizen.server.shapes.examples import asked, given
from denizen.server.shapes.given import Given

ModelName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Address = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=ADDRESS_CHARACTERS)]
Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=VALUE_CHARACTERS)]


class ListedModel(BaseModel):
    """A model that agents here can think with."""

    name: str
    paid_by: Annotated[
        Literal["nobody", "server", "organization", "you"], Field(description="Whose key is used for it.")
    ]


class MissingKey(BaseModel):
    """A provider of models that cannot be asked before a key is kept."""

    model_config = given(provider="openai", key="OPENAI_API_KEY")

    provider: str
    key: Annotated[str, Field(description="Under which name its key is to be kept.")]


class ModelFacts(BaseModel):
    """What is known of a model. Null: unknown."""

    tools: bool | None
    images: bool | None
    context_tokens: int | None
    context_source: Annotated[str, Field(description="How the size of the context was learned.")]
    thinking: Thinking
    input_price: Annotated[float | None, Field(description="Dollars per million tokens that it reads.")]
    output_price: Annotated[float | None, Field(description="Dollars per million tokens that it writes.")]

    @classmethod
    def of(cls, known: Abilities) -> ModelFacts:
        return cls(
            tools=known.tools,
            images=known.images,
            context_tokens=known.context_tokens,
            context_source=known.context_source,
            thinking=known.thinking,
            input_price=None if known.input_price is None else float(known.input_price),
            output_price=None if known.output_price is None else float(known.output_price),
        )


class LocalModel(BaseModel):
    """A model of a server on this machine."""

    name: Annotated[str, Field(description="As agents name it.", examples=["ollama:qwen3:8b"])]
    facts: ModelFacts


class LocalServer(BaseModel):
    """A model server that answers on the machine of this server."""

    provider: Annotated[str, Field(examples=["ollama"])]
    title: Annotated[str, Field(examples=["Ollama"])]
    address: str
    models: list[LocalModel]

    @classmethod
    def of(cls, found: LocalModels) -> LocalServer:
        models = [LocalModel(name=name, facts=ModelFacts.of(known)) for name, known in found.models]
        return cls(provider=found.prefix, title=found.title, address=found.address, models=models)


class ProviderOut(BaseModel):
    """A provider of models, and what it needs."""

    provider: Annotated[str, Field(description="What the names of its models begin with.", examples=["anthropic"])]
    title: str
    key: Annotated[str | None, Field(description="The name under which its key is kept.")]
    needs_key: bool
    key_kept: Annotated[
        Literal["organization", "server"] | None,
        Field(description="Whether there is a key: the organization's, or one in the environment of the server."),
    ]
    takes_address: Annotated[bool, Field(description="Whether it is a server at an address of its own.")]
    address: Annotated[str | None, Field(description="Where it is, if that is known.")]
    address_set_by: Annotated[
        str | None, Field(description="The environment variable that sets its address, which cannot be changed here.")
    ]
    suggestions: Annotated[list[str], Field(description="Models of it, as agents name them.")]


class ModelSetupOut(BaseModel):
    """What operators can connect."""

    providers: list[ProviderOut]
    servers: Annotated[list[LocalServer], Field(description="Model servers that answer on this machine.")]


class AgentModels(BaseModel):
    """Known models for which there is a key, and those that need none. Others can be named too."""

    model_config = given(
        default="anthropic:claude-sonnet-5-5",
        default_source="found",
        default_reason="ANTHROPIC_API_KEY is set, so agents think with anthropic:claude-sonnet-5-5.",
        may_choose=True,
        models=[
            {"name": "anthropic:claude-sonnet-5-5", "paid_by": "server"},
            {"name": "demo", "paid_by": "nobody"},
        ],
        missing_keys=[{"provider": "openai", "key": "OPENAI_API_KEY"}],
        setup=None,
    )

    default: Annotated[str, Field(description="What `default` in a definition stands for.")]
    default_source: Annotated[
        Source,
        Field(
            description="Why: the configuration names it, an operator chose it, it was found on this machine, or "
            "nothing was found but the built-in demo."
        ),
    ]
    default_reason: Annotated[str, Field(description="The same as a sentence.")]
    may_choose: Annotated[bool, Field(description="Whether you are an operator, who can choose another.")]
    models: list[ListedModel]
    missing_keys: Annotated[list[MissingKey], Field(description="Providers that are known, and what they need.")]
    setup: Annotated[ModelSetupOut | None, Field(description="With `setup=true`: what can be connected.")] = None


class TestModel(Given):
    """A model to ask for one small call."""

    __test__ = False
    model_config = asked(name="llamacpp:qwen2.5", address="http://127.0.0.1:8080/v1")

    name: ModelName
    address: Annotated[Address | None, Field(description="Where its server is; by default where it was before.")] = None
    key: Annotated[Key | None, Field(description="By default the one that is kept. It is not kept by a test.")] = None


class ChooseModel(TestModel):
    """The model of agents that name none. The address and the key are kept; the key is never shown again."""


class TestOut(BaseModel):
    """How the model answered."""

    __test__ = False
    model_config = given(
        name="llamacpp:qwen2.5",
        ok=True,
        problem=None,
        code=None,
        called_tool=True,
        text="",
        seconds=1.4,
        input_tokens=112,
        output_tokens=9,
        thought=False,
        facts={
            "tools": None,
            "images": None,
            "context_tokens": 8192,
            "context_source": "/v1/models of its server",
            "thinking": "unknown",
            "input_price": None,
            "output_price": None,
        },
    )

    name: str
    ok: bool
    problem: Annotated[str | None, Field(description="Why it did not answer, and what to do.")] = None
    code: Annotated[str | None, Field(description="The code of that error.", examples=["model_key_rejected"])] = None
    called_tool: Annotated[bool, Field(description="Whether it called the tool, as agents need it.")] = False
    text: Annotated[str, Field(description="What it wrote beside the call.")] = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    thought: Annotated[bool, Field(description="Whether it thought before it answered.")] = False
    facts: ModelFacts | None = None

    @classmethod
    def of(cls, result: TestResult) -> TestOut:
        tested = result.tested
        if tested is None or result.abilities is None:
            code = None if result.error is None else result.error.code
            return cls(name=result.name, ok=False, problem=masked(str(result.error)), code=code)
        return cls(
            name=result.name,
            ok=True,
            called_tool=tested.called_tool,
            text=tested.text,
            seconds=round(tested.seconds, 2),
            input_tokens=tested.input_tokens,
            output_tokens=tested.output_tokens,
            thought=tested.thought,
            facts=ModelFacts.of(result.abilities),
        )
