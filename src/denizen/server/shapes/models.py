"""The JSON of models, and of connecting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

from denizen.access.secrets import VALUE_CHARACTERS
from denizen.masking import masked
from denizen.models.abilities import Abilities
from denizen.models.providers import ADDRESS_CHARACTERS
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import RequestBody
from denizen.shapes.examples import body_example
from denizen.shapes.models import LocalModel, LocalServer, ModelFacts, TestOut

if TYPE_CHECKING:
    from denizen.api.model_setup import LocalModels, TestResult

ModelName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Address = Annotated[str, StringConstraints(strip_whitespace=True, max_length=ADDRESS_CHARACTERS)]
Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=VALUE_CHARACTERS)]


def model_facts_out(known: Abilities) -> ModelFacts:
    return filled(
        ModelFacts,
        known,
        input_price=None if known.input_price is None else float(known.input_price),
        output_price=None if known.output_price is None else float(known.output_price),
    )


def local_server_out(found: LocalModels) -> LocalServer:
    models = [LocalModel(name=name, facts=model_facts_out(known)) for name, known in found.models]
    return LocalServer(provider=found.prefix, title=found.title, address=found.address, models=models)


class TestModel(RequestBody):
    """A model to ask for one small call."""

    __test__ = False
    model_config = body_example(name="llamacpp:qwen2.5", address="http://127.0.0.1:8080/v1")

    name: ModelName
    address: Annotated[
        Address | None,
        Field(description="Its base URL; by default as before. Empty: the provider's own, without a gateway."),
    ] = None
    key: Annotated[Key | None, Field(description="By default the stored one. A test does not store it.")] = None


class ChooseModel(TestModel):
    """The default model of agents. The address and the key are stored; the key is never shown."""


def test_out(result: TestResult) -> TestOut:
    tested = result.tested
    if tested is None or result.abilities is None:
        code = None if result.error is None else result.error.code
        return TestOut(name=result.name, ok=False, problem=masked(str(result.error)), code=code)
    fields = {"ok": True, "seconds": round(tested.seconds, 2), "facts": model_facts_out(result.abilities)}
    return filled(TestOut, result, tested, **fields, problem=None, code=None)
