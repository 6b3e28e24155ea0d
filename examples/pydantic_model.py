"""Python types as grammars: pydantic models, enums, and the parameters of functions that the model calls."""

import enum
import importlib.util

import tiny

import logitree as lt

engine = tiny.engine(tiny.STORY + '{"name": "fox", "size": "small", "age": 7}')


class Size(enum.Enum):
    """What may be said of an animal."""

    SMALL = "small"
    LARGE = "large"


def generate(source: object, seed: int) -> str:
    """What the model writes of this type."""
    grammar = lt.Grammar.of(source, whitespace="compact")
    finish = list(lt.generate(engine, "The fox: ", constraint=grammar, seed=seed))[-1]
    assert isinstance(finish, lt.Finish)
    assert grammar.matches(finish.text)
    return finish.text


# Enums, literals, numbers, lists and dicts of them need nothing but the standard library.
print("enum:", generate(Size, 0))
assert generate(Size, 1) in ('"small"', '"large"')

if importlib.util.find_spec("pydantic"):
    from typing import Annotated, Literal

    from pydantic import BaseModel, Field

    class Animal(BaseModel):
        """What the model fills in, in this order."""

        name: Annotated[str, Field(pattern="^[a-z]+$", max_length=8)]
        size: Size
        age: Literal[1, 7]

    for seed in range(3):
        animal = Animal.model_validate_json(generate(Animal, seed))
        print("model:", repr(animal))
        assert animal.age in (1, 7)

    def feed(animal: Literal["fox", "boy"], times: Literal[1, 2, 3] = 1) -> str:
        """A tool that the model may call."""
        return f"{animal} fed {times} times"

    import json

    arguments = json.loads(generate(feed, 0))
    print("call:", feed(**arguments))
    assert arguments["animal"] in ("fox", "boy")
else:
    print('pip install "logitree[schemas]" for models, dataclasses and functions')
