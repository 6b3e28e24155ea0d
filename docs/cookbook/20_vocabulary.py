"""A vocabulary from a tokenizer file, here one that the tokenizers library writes."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import logitree

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator(["yes no maybe"] * 9, trainers.BpeTrainer(special_tokens=["</s>"], show_progress=False))
tokenizer.save("tokenizer.json")
vocabulary = logitree.Vocabulary.from_tokenizer_json(Path("tokenizer.json"))
print(vocabulary, vocabulary.find(b" maybe"), vocabulary.end_tokens)
