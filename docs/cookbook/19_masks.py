"""Masks in a loop of your own: bits of the allowed tokens, applied to logits."""

import numpy as np

import logitree

vocabulary = logitree.Vocabulary.from_tokens([b"yes", b"no", b" sir", b"!", b"</s>"], end_tokens=[4])
matcher = logitree.Grammar.regex("(yes|no)( sir)?!").matcher(vocabulary)
mask = logitree.masks.new(len(vocabulary))  # int32 words, the layout of XGrammar and vLLM
while not matcher.is_finished:
    logits = np.array([1.0, 2.0, 4.0, 3.0, 5.0], np.float32)  # from a model
    logitree.masks.fill_batch(matcher, mask)
    logitree.masks.apply(logits, mask)
    token = int(logits.argmax())
    print(matcher.allowed(), vocabulary[token])
    matcher.accept(token)
