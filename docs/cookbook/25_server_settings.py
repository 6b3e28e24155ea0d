"""A server's settings from file and environment, one request's over them, and the processors that they make."""

import json
from pathlib import Path

import logitree
from logitree import rtp

Path("tree.json").write_text('{"prefix_dict": {"225": [5, 6], "225_5": [2], "225_6": [7], "225_6_7": [2]}}')
Path("rtp.json").write_text(json.dumps({"tree_decode_config": "tree.json", "num_beams": 4}))
vocabulary = logitree.Vocabulary.from_tokens([b"a"] * 300, end_tokens=[2])
config = rtp.Config.load("rtp.json", {"LOGITREE_RTP_NUM_BEAMS": "2"}, vocabulary=vocabulary)
request = config.with_request({"num_return_sequences": 3, "num_beams": 1})
processors = request.processors(vocabulary)
print(config.num_beams, request.sources["num_beams"], processors.rows, [type(one).__name__ for one in processors])
