"""Token trees through the public API: the forms of a payload, errors, caches, descriptors and plans.

`crates/logitree/tests/it/constraint/token_tree.rs` runs the corpora of `testdata/token_tree`, but for the names.
"""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import numpy as np
import pytest

import logitree as lt
from data_files import corpus

NAMES = corpus("token_tree", "names.toml")["case"]


def payload_of(leaves: list[Any], path: str = "p") -> dict[str, Any]:
    return {"descriptors": [{"path": path, "leaves": [{"name": n, "tokens": t} for n, t in leaves]}]}


@pytest.mark.parametrize(
    "form", [dict, json.dumps, lambda p: json.dumps(p).encode(), lambda p: bytearray(json.dumps(p), "ascii")]
)
def test_a_payload_comes_in_every_form(form: Any) -> None:
    tree = lt.elizaos.token_tree(form(payload_of([["A", [10, 20, 30]], ["B", [10, 20]]])))
    assert (tree.info("p")["leaves"], tree.info("p")["nodes"]) == (2, 4)
    assert tree.leaves() == [("B", [10, 20]), ("A", [10, 20, 30])]
    assert tree.look("p", [10]) == {"children": [20], "terminal": False, "leaf_end": False, "name": None}
    assert tree.look("p", [10, 20]) == {"children": [30], "terminal": True, "leaf_end": False, "name": "B"}
    for miss in ([20], [-1], [2**32]):
        assert tree.look("p", miss) is None


@pytest.mark.parametrize("case", NAMES, ids=lambda case: case["name"])
def test_descriptor_from_names(case: dict[str, Any]) -> None:
    def codes(name: str) -> list[int]:
        return [ord(c) for c in name]

    seen = set()
    for _ in range(6):
        given: list[str | None] = [name or random.choice([None, ""]) for name in case["given"]]
        random.shuffle(given)
        made = lt.elizaos.descriptor("action", given, codes)
        if not case["expect"]:
            assert made is None
            assert lt.elizaos.payload("m", [made]) is None
            continue
        assert made is not None
        assert [leaf["name"] for leaf in made["leaves"]] == case["expect"]
        assert [leaf["tokens"] for leaf in made["leaves"]] == [codes(name) for name in case["expect"]]
        seen.add(json.dumps(made))
        payload = lt.elizaos.payload("m", [None, made])
        assert payload is not None
        assert lt.elizaos.token_tree(payload).paths == ["action"]
    assert len(seen) <= 1


def test_what_has_no_tokens_is_an_error_that_names_it() -> None:
    with pytest.raises(lt.PayloadError, match='the leaf "B" of the descriptor "p" has no tokens') as caught:
        lt.elizaos.token_tree(payload_of([["A", [1]], ["B", []]]))
    assert caught.value.place == "/descriptors/0/leaves/1/tokens"
    with pytest.raises(lt.PayloadError, match='the descriptor "p" has no leaves'):
        lt.elizaos.token_tree(payload_of([]))
    with pytest.warns(UserWarning, match="has no tokens"):
        tree = lt.elizaos.token_tree(payload_of([["A", [1]], ["B", []]]), on_mismatch="warn")
    assert tree.leaves() == [("A", [1])]
    with pytest.raises(lt.PayloadError, match="the name 'A' of 'action' has no tokens"):
        lt.elizaos.descriptor("action", ["A"], lambda name: [])


def test_tokenizer_cache() -> None:
    cache = lt.elizaos.TokenizerCache(capacity=3)
    asked: list[str] = []

    def tokenize(name: str) -> list[int]:
        asked.append(name)
        return [len(name)]

    for name in ("a", "bb", "a", "ccc"):
        assert cache.tokens("m", name, tokenize) == (len(name),)
    assert cache.tokens("other", "a", tokenize) == (1,)
    assert asked == ["a", "bb", "ccc", "a"]
    cache.tokens("m", "dddd", tokenize)  # past the cap: the model's names are dropped whole
    assert cache.info() == {"m": 1, "other": 1}
    cache.forget("m")
    assert cache.info() == {"other": 1}
    cache.clear()
    assert cache.info() == {}
    assert lt.elizaos.tokenizer_cache.capacity == 8192


def test_binary_round_trip() -> None:
    tree = lt.elizaos.token_tree(payload_of([["A", [1, 2, 3]], ["B", [1, 2, 3, 4, 5]]]))
    binary = tree.to_binary()
    assert binary.startswith(bytes.fromhex("52544b54"))
    again = lt.elizaos.TokenTree.from_binary(binary)
    assert (again.paths, again.info()["nodes"], again.to_binary("p")) == (["p"], 6, binary)
    assert again.leaves() == [(None, [1, 2, 3]), (None, [1, 2, 3, 4, 5])]
    with pytest.raises(lt.PayloadError, match="byte "):
        lt.elizaos.TokenTree.from_binary(binary[:-4])


def leaf(**fields: Any) -> dict[str, Any]:
    return {"descriptors": [{"path": "p", "leaves": [{"name": "A", "tokens": [1], **fields}]}]}


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({}, ""),
        ({"descriptors": []}, "/descriptors"),
        ({"descriptors": 5}, "/descriptors"),
        ({"descriptors": [5]}, "/descriptors/0"),
        ({"descriptors": [{"leaves": []}]}, "/descriptors/0"),
        ({"descriptors": [{"path": "p", "leaves": {}}]}, "/descriptors/0/leaves"),
        ({"modelId": 5, "descriptors": []}, "/modelId"),
        (leaf(name=5), "/descriptors/0/leaves/0/name"),
        (leaf(name="\ud800"), "/descriptors/0/leaves/0/name"),
        (leaf(tokens="1"), "/descriptors/0/leaves/0/tokens"),
        (leaf(tokens=[1, None]), "/descriptors/0/leaves/0/tokens/1"),
        (leaf(tokens=[1, -1]), "/descriptors/0/leaves/0/tokens/1"),
        (leaf(tokens=[2.0]), "/descriptors/0/leaves/0/tokens/0"),
        (leaf(tokens=[True]), "/descriptors/0/leaves/0/tokens/0"),
        (leaf(tokens=[2**31]), "/descriptors/0/leaves/0/tokens/0"),
        (leaf(tokens=[10**30]), "/descriptors/0/leaves/0/tokens/0"),
    ],
)
def test_dict_refused_as_its_json_would_be(payload: dict[str, Any], place: str) -> None:
    with pytest.raises(lt.PayloadError) as caught:
        lt.elizaos.token_tree(payload)
    assert caught.value.place == place
    with pytest.raises(lt.PayloadError) as caught:
        lt.elizaos.token_tree(json.dumps(payload))
    assert caught.value.place.startswith(place)


def test_a_dict_with_values_that_json_does_not_have() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for wrong, place, message in (
        (leaf(name=b"A"), "/name", "bytes is not a JSON value"),
        (leaf(tokens=[1, b"2"]), "/tokens/1", "bytes is not a JSON value"),
        (leaf(tokens={1}), "/tokens", "set is not a JSON value"),
        (leaf(tokens=[float("nan")]), "/tokens/0", "expected value"),
        (leaf(tokens=deep), "/tokens/0", "sequence, expected a token id"),
    ):
        with pytest.raises(lt.PayloadError, match=message) as caught:
            lt.elizaos.token_tree(wrong)
        assert caught.value.place == f"/descriptors/0/leaves/0{place}"
    ignored = {**leaf(), "made": object()}
    assert lt.elizaos.token_tree(ignored).leaves() == [("A", [1])]


def test_what_is_no_payload() -> None:
    with pytest.raises(TypeError, match="str, bytes or dict, not list"):
        lt.elizaos.token_tree([])  # type: ignore[arg-type]
    with pytest.raises(lt.PayloadError, match="surrogate"):
        lt.elizaos.token_tree("\ud800")
    with pytest.raises(lt.ConstraintError, match="on_mismatch"):
        lt.elizaos.token_tree("{}", on_mismatch="shrug")


VOCABULARY = lt.Vocabulary.from_tokens([b"RE", b"PLY", b" RE", b'"', b'Y"', b"_ALL", b"</s>"], end_tokens=[6])


def test_a_dict_is_read_once_and_kept_as_it_was_read() -> None:
    class Id:
        looks = 0

        def __index__(self) -> int:
            self.looks += 1
            return 70 + self.looks

    def payload(token: Any) -> dict[str, Any]:
        return {"descriptors": [{"path": "p", "leaves": [{"name": "A", "tokens": [token]}]}]}

    assert lt.elizaos.token_tree(payload(Id())).leaves("p") == [("A", [71])]
    assert lt.elizaos.token_tree(payload(71)).leaves("p") == [("A", [71])]
    changing = Id()
    assert [lt.elizaos.token_tree(payload(changing)).leaves("p")[0][1] for _ in range(2)] == [[71], [72]]


def test_a_payload_is_held_against_the_vocabulary() -> None:
    good = payload_of([["REPLY", [0, 1]], ["REPLY", [2, 1]], ["REPLY", [3, 0, 1, 3]]])
    assert lt.elizaos.token_tree(good, VOCABULARY).info()["leaves"] == 3
    wrong = payload_of([["REPLY", [1, 0]], ["REPLY", [0, 77]]])
    with pytest.raises(lt.PayloadError, match='spell "PLYRE"') as caught:
        lt.elizaos.token_tree(wrong, VOCABULARY)
    assert caught.value.place == "/descriptors/0/leaves/0"
    assert lt.elizaos.token_tree(wrong).info()["leaves"] == 2, (
        "without a vocabulary there is nothing to hold it against"
    )
    for _ in range(2):  # built, then from the cache
        with pytest.warns(UserWarning, match="token") as caught_warnings:
            tree = lt.elizaos.token_tree(wrong, VOCABULARY, on_mismatch="warn")
        assert len(caught_warnings) == 2
        assert caught_warnings[0].filename == __file__
        assert len(tree.warnings) == 2
        assert "id 77" in tree.warnings[1]
        assert tree.leaves() == [("REPLY", [1, 0])]
    with pytest.raises(lt.PayloadError, match="spell"):
        lt.elizaos.token_tree(wrong, VOCABULARY)


def test_the_model_id() -> None:
    payload = {"modelId": "one", **payload_of([["A", [1]]])}
    assert lt.elizaos.token_tree(payload, model_id="one").model_id == "one"
    with pytest.raises(lt.PayloadError, match='made for model "one", not "two"'):
        lt.elizaos.token_tree(payload, model_id="two")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lt.elizaos.token_tree(payload_of([["A", [1]]]), model_id="two").model_id is None


def test_ends_by_the_vocabulary_and_by_following_text() -> None:
    tree = lt.elizaos.token_tree(payload_of([["REPLY", [0, 1]], ["REPLY_ALL", [0, 1, 5]]]), VOCABULARY)
    matcher = tree.at("p").matcher()
    assert matcher.forced_tokens() == [0, 1]
    matcher.accept(0)
    matcher.accept(1)
    assert list(matcher.allowed()) == [5, 6]
    assert matcher.is_accepting
    matcher.accept(6)
    assert matcher.is_finished
    matcher = tree.at("p", following='"').matcher()
    for token in (0, 1):
        matcher.accept(token)
    assert list(matcher.allowed()) == [3, 5]
    assert not matcher.is_accepting
    matcher.accept(5)
    assert matcher.forced_tokens() == [3]
    bare = lt.elizaos.token_tree(payload_of([["REPLY", [0, 1]]]))
    with pytest.raises(lt.ConstraintError, match="vocabulary"):
        bare.at("p", following='"').matcher()
    assert bare.at("p", following='"').matcher(VOCABULARY).vocabulary_size == 7


def test_paths_and_looks() -> None:
    tree = lt.elizaos.token_tree({"descriptors": [
        {"path": "action", "leaves": [{"name": "A", "tokens": [1, 2]}]},
        {"path": "contexts[]", "leaves": [{"name": "B", "tokens": (3,)}]},
    ]})  # fmt: skip
    assert tree.paths == ["action", "contexts[]"]
    assert "action" in tree
    assert "x" not in tree
    with pytest.raises(lt.ConstraintError, match=r'"action", "contexts\[\]"'):
        tree.at("x").matcher()
    with pytest.raises(lt.ConstraintError, match="2 paths"):
        tree.info()
    assert tree.dump("action") == "action: 1 leaves, 3 nodes\n└─ 1 2 ● A\n"
    assert repr(tree) == 'TokenTree("action": 1 leaves, "contexts[]": 1 leaves)'
    assert lt.elizaos.token_tree(payload_of([["RE", [0]]]), VOCABULARY).dump().endswith('└─ "RE" ● RE\n')


def test_matcher_manners() -> None:
    matcher = lt.elizaos.token_tree(payload_of([["A", [1, 2, 40]]])).at("p").matcher()
    assert repr(matcher) == "Matcher(0 accepted, 1 of 41 tokens allowed)"
    with pytest.raises(lt.TokenError, match="allowed: 1"):
        matcher.accept(2)
    with pytest.raises(lt.TokenError):
        matcher.accept(-1)
    matcher.accept(1)
    other = matcher.fork()
    other.accept(2)
    assert (matcher.accepted, other.accepted) == (1, 2)
    other.rollback()
    assert list(other.allowed()) == list(matcher.allowed()) == [2]
    assert matcher.is_allowed(2)
    assert not matcher.is_allowed(1)
    with pytest.raises(lt.StateError, match="1 were accepted"):
        matcher.rollback(2)
    for wrong in (np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros((2, 2), np.int32), [0, 0],
                  np.zeros(4, np.int32)[::2]):  # fmt: skip
        with pytest.raises(lt.MaskError):
            lt.masks.fill_batch(matcher, wrong)  # type: ignore[arg-type]
    frozen = np.zeros(2, np.int32)
    frozen.setflags(write=False)
    with pytest.raises(lt.MaskError, match="read-only"):
        lt.masks.fill_batch(matcher, frozen)
    longer = np.full(4, 7, np.int32)
    lt.masks.fill_batch(matcher, longer)
    assert longer.tolist() == [4, 0, 0, 0]
    assert matcher.allowed().mask().dtype == np.int32
    assert matcher.allowed().mask().shape == (2,)


def test_skeletons() -> None:
    spans = [
        {"kind": "literal", "value": "a:"},
        {"kind": "enum", "enumValues": ["x", "y"]},
        {"kind": "literal", "value": ";"},
        {"kind": "free-string"},
    ]
    for skeleton in ({"spans": spans}, json.dumps({"spans": spans}), json.dumps({"spans": spans}).encode()):
        plan = lt.elizaos.prefill_plan(skeleton, lambda text: [ord(c) for c in text])
        assert plan is not None
        assert (plan["prefix"], plan["free_count"]) == ("a:", 2)
        assert plan["runs"] == [
            {"after_free_span": -1, "text": "a:", "token_ids": [97, 58]},
            {"after_free_span": 0, "text": ";", "token_ids": [59]},
        ]
        bare = lt.elizaos.prefill_plan(skeleton)
        assert bare is not None and "token_ids" not in bare["runs"][0]
        greedy = lt.elizaos.span_sampler_plan(skeleton)["overrides"]
        assert greedy == [{"span_index": 1, "temperature": 0.0, "top_k": 1}]


def test_skeletons_refused() -> None:
    assert lt.elizaos.prefill_plan({"spans": [{"kind": "free-string"}]}) is None
    with pytest.raises(lt.PayloadError, match="song"):
        lt.elizaos.prefill_plan({"spans": [{"kind": "song"}]})
    with pytest.raises(TypeError):
        lt.elizaos.prefill_plan(5)  # type: ignore[arg-type]


def test_ids_past_any_vocabulary_make_no_matcher() -> None:
    tree = lt.elizaos.token_tree(
        {"modelId": "m", "descriptors": [{"path": "a", "leaves": [{"name": "A", "tokens": [2**31 - 1]}]}]}
    )
    with pytest.raises(lt.LimitError, match="any vocabulary"):
        tree.at("a").matcher()
    small = lt.elizaos.token_tree(
        {"modelId": "m", "descriptors": [{"path": "a", "leaves": [{"name": "A", "tokens": [1]}]}]}
    )
    with pytest.raises(lt.LimitError, match="any vocabulary"):
        small.at("a", end_tokens=[2**32 - 1]).matcher()
