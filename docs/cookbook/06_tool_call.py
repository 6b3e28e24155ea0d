"""A tool call: the model picks a function and its arguments."""

from typing import Literal

import logitree
from logitree.engines.llama_cpp import bundled_model
from logitree.protocols import Protocol


def weather(city: Literal["Paris", "Rome"], days: Literal[1, 3, 7]) -> str:
    return f"{days} days of sun in {city}"


constraint = Protocol.named("hermes").constraint(tools=[weather], tool_choice="required", parallel=False)
response = logitree.generate(bundled_model(), "How is the weather in Rome this week?", constraint, temperature=0).value
(call,) = response.tool_calls
print(call.name, call.arguments, weather(**call.arguments))
