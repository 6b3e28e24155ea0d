"""Tool calls: free text until a call begins, then one of the tools with arguments of its own."""

import tiny

import logitree as lt
from logitree.protocols import Protocol

TOOLS = [
    {"name": "look", "parameters": {"type": "object", "properties": {"at": {"enum": ["fox", "boat", "river"]}}}},
    {"name": "count", "parameters": {"type": "object", "properties": {"what": {"enum": ["boats", "boys"]}}}},
]
for tool in TOOLS:
    tool["parameters"] |= {"required": list(tool["parameters"]["properties"]), "additionalProperties": False}

CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "fox"}}\n</tool_call>'
engine = tiny.engine(tiny.STORY + f"I look. {CALL} I saw the fox.\n" * 3)

constraint = Protocol.named("hermes").constraint(tools=TOOLS, parallel=False, whitespace="compact")
calls = []
for seed in range(3):
    generation = lt.generate(engine, "What is there?\n", constraint, seed=seed, max_tokens=300)
    for call in generation.value.tool_calls:
        assert [tool for tool in TOOLS if tool["name"] == call.name]
        calls.append(call)
        print(call.name, call.arguments)
assert calls

# Any structure of tags: here a note in brackets, in free text without exclamation marks.
notes = lt.Grammar.tags([("[note ", lt.Grammar.regex("[0-9]+: [a-z ]+"), "]")], excludes=["!"])
assert notes.matches("The fox ran [note 1: the old one] to the river.")
assert not notes.matches("The fox ran [note one] to the river.")
assert not notes.matches("The fox ran!")
print(notes)
