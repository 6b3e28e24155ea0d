"""An enum: the model picks one of its members."""

import enum

import logitree
from logitree.engines.llama_cpp import bundled_model


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


print(logitree.generate(bundled_model(), "What colour is grass?", Colour, temperature=0).value)
