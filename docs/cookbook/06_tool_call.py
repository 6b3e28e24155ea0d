"""A tool call: the model picks a function and its arguments."""

import json
from typing import Literal

import logitree
from logitree.engines.llama_cpp import bundled_model


def weather(city: Literal["Paris", "Rome"], days: Literal[1, 3, 7]) -> str:
    return f"{days} days of sun in {city}"


grammar = logitree.Grammar.tools([weather], text=False, at_least_one=True, stop_after_first=True)
text = logitree.generate(bundled_model(), "How is the weather in Rome this week?", grammar, temperature=0).text
call = json.loads(text.removeprefix("<tool_call>").removesuffix("</tool_call>"))
print(call["name"], call["arguments"], weather(**call["arguments"]))
