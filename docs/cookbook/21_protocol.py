"""A chat model's own protocol: a call in the form that the model was taught, read back as a call."""

from logitree import engines, generate
from logitree.engines.llama_cpp import bundled_model
from logitree.protocols import Protocol

model = engines.open(bundled_model())
protocol = Protocol.named("hermes")  # this model has no form of its own; Protocol.of(model) finds that of others
tools = {"weather": {"properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}}
constraint = protocol.constraint(tools=tools, tool_choice="required", parallel=False)
(call,) = generate(model, "How is the weather in Rome?", constraint, temperature=0).value.tool_calls
print(protocol, call.name, call.arguments)
