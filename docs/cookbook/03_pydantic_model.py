"""JSON of a pydantic model: the value is an instance, and a type checker knows its class."""

from pydantic import BaseModel, Field

import logitree
from logitree.engines.llama_cpp import bundled_model


class Animal(BaseModel):
    name: str = Field(max_length=20)
    legs: int = Field(ge=0, le=8)


animal = logitree.generate(bundled_model(), "Describe a dog as JSON.", Animal, temperature=0).value
print(repr(animal), animal.legs + 1)
