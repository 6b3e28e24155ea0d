"""Why was this token refused: what a matcher expects, and where a text fails."""

import logitree

vocabulary = logitree.Vocabulary.from_tokens([*(bytes([b]) for b in range(256)), b"</s>"], end_tokens=[256])
schema = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 130}}}
matcher = logitree.Grammar.json_schema(schema).matcher(vocabulary)
matcher.accept_many(b'{"age": ')
print(matcher.explain(text='"old"'))
matcher.accept_many(b"13")
print(matcher.explain(token=ord("1")))
