"""Tool calls: free text until a call begins, then one of the tools with arguments of its own, then free text again."""

import json
import re

import tiny

import logitree as lt

TOOLS = [
    {"name": "look", "parameters": {"type": "object", "properties": {"at": {"enum": ["fox", "boat", "river"]}}}},
    {"name": "count", "parameters": {"type": "object", "properties": {"what": {"enum": ["boats", "boys"]}}}},
]
for tool in TOOLS:
    tool["parameters"] |= {"required": list(tool["parameters"]["properties"]), "additionalProperties": False}

CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "fox"}}\n</tool_call>'
engine = tiny.engine(tiny.STORY + f"I look. {CALL} I saw the fox.\n" * 3)

# With `at_least_one` the text is not complete before a call.
grammar = lt.Grammar.tools(TOOLS, at_least_one=True, stop_after_first=True, whitespace="compact")
calls = []
for seed in range(3):
    finish = list(lt.generate(engine, "What is there?\n", constraint=grammar, seed=seed, max_tokens=300))[-1]
    assert isinstance(finish, lt.Finish)
    found = re.findall(r"<tool_call>\n(.*)\n</tool_call>", finish.text)
    if finish.reason == "max_tokens":  # free text has no end of its own
        continue
    call = json.loads(found[0])
    assert [tool for tool in TOOLS if tool["name"] == call["name"]]
    calls.append(call)
    print(call["name"], call["arguments"])
assert calls

# Any structure of tags: here a note in brackets, in free text without exclamation marks.
notes = lt.Grammar.tags([("[note ", lt.Grammar.regex("[0-9]+: [a-z ]+"), "]")], excludes=["!"])
assert notes.matches("The fox ran [note 1: the old one] to the river.")
assert not notes.matches("The fox ran [note one] to the river.")
assert not notes.matches("The fox ran!")
print(notes)
