"""RTP-LLM's tree-decode files and processors: the corpus, hostile files, random trees against a walk of the dict."""

from __future__ import annotations

import io
import json
import random
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import data_files
import logitree as lt
from logitree import rtp
from slow_beams import HashModel

HOSTILE = sorted((data_files.REPOSITORY / "testdata" / "hostile" / "rtp").iterdir())
DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16]


def corpus(name: str, table: str = "case") -> pytest.MarkDecorator:
    """The cases of a file, as a parameter."""
    cases = data_files.corpus("rtp", f"{name}.toml")[table]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["name"])


def allowed(processor: rtp.Processor, size: int) -> list[list[int]]:
    """What processing leaves of zeros, for each row."""
    logits = np.zeros((processor.rows, size), np.float32)
    processor.process(logits)
    return [np.flatnonzero(row > -np.inf).tolist() for row in logits]


# -- the corpus


@corpus("tree")
def test_tree(case: dict[str, Any]) -> None:
    tree = rtp.load_tree(case["document"], vocabulary_size=case["vocabulary"])
    processor = rtp.TreeProcessor(tree, case["rows"])
    for step in case["steps"]:
        if "feed" in step:
            processor.update_status(step["feed"])
        if "force" in step:
            processor.force_status(0, step["force"])
        if step.get("refused"):
            with pytest.raises(lt.StateError, match="the parent of row"):
                processor.update_multi_seq_status(step["parents"])
        elif "parents" in step:
            processor.update_multi_seq_status(np.array(step["parents"], np.int64))
        if "status" in step:
            assert processor.status == step["status"]
        if "allowed" in step:
            assert allowed(processor, case["vocabulary"]) == step["allowed"]
        for name in ("finished", "failed"):
            if name in step:
                assert getattr(processor, name).tolist() == step[name]


@corpus("loader")
def test_loader(case: dict[str, Any]) -> None:
    document = case["document"].encode()
    if "refused" in case:
        with pytest.raises(lt.PayloadError) as refused:
            rtp.load_tree(document)
        assert case["refused"] in refused.value.place
        return
    tree = rtp.load_tree(document, vocabulary_size=case.get("vocabulary", 100_000))
    processor = rtp.TreeProcessor(tree)
    for key, tokens in case["keys"].items():
        processor.force_status(0, key)
        assert allowed(processor, 100_000) == [tokens]
    for kind, count in case.get("found", {}).items():
        assert tree.report.count(kind) == count, str(tree.report)
    assert tree.report.first_key == case.get("first", tree.report.first_key)
    assert tree.report.items == case.get("items", tree.report.items)
    assert tree.end == case.get("end", 2)


@pytest.mark.parametrize("dtype", DTYPES)
@corpus("mask")
def test_what_processing_writes(case: dict[str, Any], dtype: Any) -> None:
    tree = rtp.load_tree(case["document"], vocabulary_size=case["vocabulary"])
    processor = rtp.TreeProcessor(tree)
    for token in case.get("feed", []):
        processor.update_status([token])
    logits = np.zeros((1, case["vocabulary"]), dtype)
    for token, value in case["set"].items():
        logits[0, int(token)] = value
    before = logits.copy()
    processor.process(logits)
    expected = np.full(case["vocabulary"], -np.inf, dtype)
    for token, value in case["values"].items():
        weight = np.float32(value - float(case["set"].get(token, 0.0)))
        expected[int(token)] = float(before[0, int(token)]) + float(weight)
    np.testing.assert_array_equal(logits[0].astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@corpus("mask", "kernel")
def test_masks_leave_allowed_cells_to_the_bit(case: dict[str, Any], dtype: Any) -> None:
    size = case["vocabulary"]
    logits = np.random.default_rng(5).normal(size=(len(case["sets"]), size)).astype(dtype)
    logits[-1, case["sets"][-1][0]] = np.nan
    before = logits.view(np.uint8).copy().reshape(len(logits), size, -1)
    lt.masks.apply(logits, np.stack([lt.masks.from_ids(size, ids) for ids in case["sets"]]))
    after = logits.view(np.uint8).reshape(len(logits), size, -1)
    for row, ids in enumerate(case["sets"]):
        np.testing.assert_array_equal(after[row, ids], before[row, ids])
        banned = np.setdiff1d(np.arange(size), ids)
        assert (logits[row, banned].astype(np.float32) == -np.inf).all()


@corpus("recommendation")
def test_recommendation(case: dict[str, Any]) -> None:
    processor = rtp.RecommendationProcessor(
        case["k"],
        case["rows"],
        banned_combo_token_ids=case.get("banned", ()),
        enable_cross_sequence_ban=case.get("cross", False),
        diverge_from=case.get("from", 0),
    )
    for step in case["steps"]:
        if "feed" in step:
            processor.update_status(step["feed"])
        if step.get("refused"):
            with pytest.raises(lt.StateError):
                processor.update_multi_seq_status(step["parents"])
        elif "parents" in step:
            processor.update_multi_seq_status(step["parents"])
        if "logits" in step:
            values = step["logits"]
            row = np.zeros(values, np.float32) if isinstance(values, int) else np.array(values, np.float32)
            logits = np.stack([row] * processor.rows)
            processor.process(logits)
            masked = [np.flatnonzero(own == -np.inf).tolist() for own in logits]
            assert masked == step.get("masked", masked)
            assert [len(own) for own in masked] == step.get("count", [len(own) for own in masked])
            assert ((logits == row) | (logits == -np.inf)).all()
        if "prefixes" in step:
            assert [list(prefix) for prefix in processor.prefixes] == step["prefixes"]
        if "bans" in step:
            assert [len(bans) for bans in processor.banned] == step["bans"]
        if "completed" in step:
            assert processor.completed == step["completed"]


@corpus("think")
def test_think(case: dict[str, Any]) -> None:
    vocabulary = lt.Vocabulary.from_tokens([f"<{i}>".encode() for i in range(16)])
    budget = lt.ReasoningBudget(case["begin"], case["end"], budget=case["budget"])
    processor = rtp.ThinkProcessor(budget, vocabulary, case["rows"], at=case["at"])
    for step in case["steps"]:
        if "feed" in step:
            processor.update_status(step["feed"])
        if "parents" in step:
            processor.update_multi_seq_status(step["parents"])
        if "draft" in step:
            masks, taken = processor.draft_masks(0, step["draft"])
            assert (masks.shape[0], taken) == (len(step["draft"]) + 1, step["taken"])
        got = allowed(processor, 16)
        for row in range(processor.rows):
            only = step.get("allowed", [[]] * processor.rows)[row]
            banned = step.get("banned", [[]] * processor.rows)[row]
            if only or "banned" in step:
                assert got[row] == (only or [i for i in range(16) if i not in banned])


# -- the slow semantics


class Walk:
    """RTP-LLM's tree walk over the plain dict, one row: what `TreeProcessor` must equal."""

    def __init__(self, keys: dict[str, list[int]], start: int, end: int, sep: str, size: int) -> None:
        self.keys, self.end, self.sep, self.size = keys, end, sep, size
        self.status = str(start)
        self.failed = self.finished = False

    def next(self, token: int) -> None:
        if self.finished:
            return
        if self.failed:
            return
        new = f"{self.status}{self.sep}{token}"
        # A token beyond the vocabulary can never be generated, whatever keys there are.
        if token == self.end or (new in self.keys and token < self.size and token in self.keys[self.status]):
            self.status, self.finished = new, token == self.end
        else:
            self.failed = True

    def allowed(self) -> list[int]:
        if self.finished or self.failed:
            return [self.end]
        return sorted({t for t in self.keys.get(self.status, []) if 0 <= t < self.size}) or [self.end]


def drawn(rng: random.Random, sep: str) -> dict[str, list[int]]:
    """Random keys: complete items, candidates without a key, empty arrays, ids out of range, unreachable keys."""
    keys: dict[str, list[int]] = {}
    level = ["9"]
    for _ in range(rng.randrange(1, 5)):
        below = []
        for key in level:
            keys[key] = [rng.randrange(-1, 44) for _ in range(rng.randrange(0, 5))]
            below += [f"{key}{sep}{t}" for t in keys[key] if t not in (-1, 2) and rng.random() < 0.8]
        level = sorted(set(below))
    for _ in range(rng.randrange(3)):
        keys[f"9{sep}{rng.randrange(50)}{sep}{rng.randrange(50)}{sep}1"] = [3]
    return keys


@pytest.mark.parametrize("seed", range(60))
def test_random_trees_walk_as_the_dict_does(seed: int) -> None:
    rng = random.Random(seed)
    sep = rng.choice(["_", "-", "::", "/ü"])
    keys = drawn(rng, sep)
    fields = [("start_token_id", 9), ("end_token_id", 2), ("sep", sep), ("prefix_dict", keys), ("other", [keys])]
    rng.shuffle(fields)
    text = json.dumps(dict(fields), ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 2]))
    try:
        tree = rtp.load_tree(io.BytesIO(text.encode()), vocabulary_size=40)
    except lt.ConstraintError:
        assert all(token >= 40 or f"9{sep}{token}" in keys for token in keys["9"] if token >= 0)
        return
    rows = 5
    processor = rtp.TreeProcessor(tree, rows)
    walks = [Walk(keys, 9, 2, sep, 40) for _ in range(rows)]
    for _ in range(12):
        assert allowed(processor, 40) == [walk.allowed() for walk in walks]
        tokens = [rng.choice(w.allowed()) if rng.random() < 0.9 else rng.randrange(44) for w in walks]
        processor.update_status(tokens)
        for walk, token in zip(walks, tokens, strict=True):
            walk.next(token)
        assert processor.status == [walk.status for walk in walks]
        assert processor.finished.tolist() == [walk.finished for walk in walks]
        assert processor.failed.tolist() == [walk.failed for walk in walks]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_random_weights_are_added(seed: int, named: bool) -> None:
    rng = random.Random(seed)
    keys = {key: sorted({t for t in tokens if t >= 0}) for key, tokens in drawn(rng, "_").items()}
    weights = {f"{key}_{t}": rng.randrange(-8, 9) / 4 for key in keys for t in keys[key]}
    if named:
        weights = {child: weight for child, weight in weights.items() if rng.random() < 0.7}
        document: dict[str, Any] = {"weight_dict": weights, "prefix_dict": keys}
    else:
        document = {"prefix_weight_dict": {k: [f"{t}:{weights[f'{k}_{t}']}" for t in keys[k]] for k in keys}}
    tree = rtp.load_tree(json.dumps({"start_token_id": 9, **document}), vocabulary_size=64)
    processor, walk = rtp.TreeProcessor(tree), Walk(keys, 9, 2, "_", 64)
    for _ in range(6):
        before = np.array([[rng.randrange(-40, 40) / 4 for _ in range(64)]], np.float32)
        logits = before.copy()
        processor.process(logits)
        expected = np.full((1, 64), -np.inf, np.float32)
        for token in walk.allowed():
            own = 0.0 if walk.failed or walk.finished else weights.get(f"{walk.status}_{token}", 0.0)
            expected[0, token] = before[0, token] + own
        np.testing.assert_array_equal(logits, expected)
        token = rng.choice(walk.allowed())
        processor.update_status([token])
        walk.next(token)


@pytest.mark.parametrize("seed", range(10))
def test_reading_in_pieces_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    keys = drawn(rng, "_")
    text = json.dumps({"x": ['a"\\\u00fc', {"y": [1, {}, []]}], "prefix_dict": keys}, indent=rng.choice([None, 1]))

    class Pieces(io.StringIO):
        def read(self, size: int | None = -1) -> str:
            return super().read(rng.randrange(1, 9))

    whole = rtp.load_tree(text.encode(), vocabulary_size=40)
    pieces = rtp.load_tree(Pieces(text), vocabulary_size=40)
    assert whole.report == pieces.report
    assert whole.prefix.to_bytes() == pieces.prefix.to_bytes()


# -- files


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.name)
def test_hostile_files_are_errors_that_name_a_place(path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(lt.PayloadError) as refused:
        rtp.load_tree(path)
    assert refused.value.place
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("open", "close"), [("[", "]"), ('{"a":', "}")])
def test_unknown_fields_are_skipped_however_deep(open: str, close: str) -> None:
    deep = open * 20_000 + "0" + close * 20_000
    tree = rtp.load_tree(f'{{"x": {deep}, "prefix_dict": {{"225": [5], "225_5": [2]}}}}')
    assert (tree.report.items, tree.report.count("unknown field")) == (1, 1)


def test_what_a_source_raises_is_raised() -> None:
    class Broken(io.StringIO):
        def read(self, size: int | None = -1) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rtp.load_tree(Broken())
    with pytest.raises(lt.PayloadError, match="surrogate"):
        rtp.load_tree('{"prefix_dict": {"225\ud800": [1]}}')


def test_sources(tmp_path: Path) -> None:
    text = '{"prefix_dict": {"225": [5], "225_5": [2]}}'
    path = tmp_path / "tree.json"
    path.write_text(text)
    with path.open() as characters:
        trees = [rtp.load_tree(source) for source in (path, str(path), text, text.encode(), characters)]
    assert {tree.report for tree in trees} == {trees[0].report}
    assert repr(trees[0]) == "RtpTree(1 items, start 225, end 2)"
    kept = rtp.load_tree(path, index=tmp_path / "tree.index")
    assert lt.Catalogue.open(tmp_path / "tree.index").items([5]).tolist() == kept.prefix.items([5]).tolist() == [0]
    with pytest.raises(FileNotFoundError, match="cannot be opened"):
        rtp.load_tree(tmp_path / "none.json")
    with pytest.raises(lt.ConstraintError):
        rtp.load_tree(text, vocabulary_size=2)
    with pytest.raises(TypeError, match="a path"):
        rtp.load_tree(5)  # type: ignore[arg-type]


def test_long_paths_of_many_candidates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"_".join(["225", *["7"] * n]): [7] for n in range(50)}
    keys["_".join(["225", *["7"] * 49])] = list(range(10, 60))
    text = json.dumps({"prefix_dict": keys})
    tree = rtp.load_tree(text)
    monkeypatch.setattr("logitree.rtp._expand.PART", 100)
    assert rtp.load_tree(text).prefix.to_bytes() == tree.prefix.to_bytes()
    assert tree.report.errors == 50
    monkeypatch.setattr("logitree.rtp._expand.MAX_ERROR_TOKENS", 50 * 50 - 1)
    with pytest.raises(lt.LimitError, match="without keys"):
        rtp.load_tree(text)


# -- searching


def test_a_search_never_ends_in_the_error_state() -> None:
    keys = {"225": [5, 6, 7, 4], "225_5": [8, 9], "225_6": [2], "225_5_8": [2], "225_4": [50]}
    tree = rtp.load_tree(json.dumps({"prefix_dict": keys}), vocabulary_size=12)
    assert (tree.report.items, tree.report.errors) == (2, 2)
    found = lt.beam_search(HashModel(12), [[1]], tree.item_walk, width=8)[0]
    assert {hypothesis.tokens for hypothesis in found} == {(5, 8, 2), (6, 2)}
    assert tree.walk.allowed(tree.walk.start).tolist() == [4, 5, 6, 7]
    assert tree.is_error(tree.walk.find([7]) or -1)


@pytest.mark.parametrize("end", [None, 2])
def test_a_slate_has_no_item_twice(end: int | None) -> None:
    model = HashModel(12)
    items = [[3, 4], [3, 5], [3, 6], [7, 4], [8, 9]]
    tree = lt.Catalogue.from_codes(items)
    chosen = rtp.slate(model, [1], tree, 10, end=end, width=4, banned=[[8, 9]])
    found = [h.tokens[:2] for h in chosen]
    assert sorted(found) == sorted(tuple(item) for item in items[:4])
    assert len(tree) == 5
    # Each is the best of what is left after the prompt and the items before it.
    read, left = [1], [tuple(item) for item in items[:4]]
    for hypothesis in chosen:
        best = lt.beam_search(model, [read], lt.Catalogue.from_codes(left).walk(end_token=end), width=8, returned=1)[0][
            0
        ]
        assert best.tokens == hypothesis.tokens
        read += list(hypothesis.tokens)
        left.remove(hypothesis.tokens[:2])
    tree.add([[8, 8]])
    with pytest.raises(lt.ConstraintError, match="merge"):
        rtp.slate(model, [1], tree, 2, width=4)


def test_a_slate_of_a_tree_decode_file() -> None:
    keys = {"225": [5, 6, 7], "225_5": [8, 9], "225_6": [2], "225_5_8": [2]}
    tree = rtp.load_tree(json.dumps({"prefix_dict": keys}), vocabulary_size=12)
    chosen = rtp.slate(HashModel(12), [1], tree, 5, width=3)
    assert {h.tokens for h in chosen} == {(5, 8, 2), (6, 2)}


# -- processors


def test_processors_run_in_order_and_change_together() -> None:
    tree = rtp.load_tree('{"prefix_dict": {"225": [5, 6], "225_5": [7, 8], "225_6": [7]}}', vocabulary_size=12)
    vocabulary = lt.Vocabulary.from_tokens([f"<{i}>".encode() for i in range(12)], end_tokens=[2])
    grammar = rtp.GrammarProcessor(lt.Grammar.regex("<5>(<8>|<7>)|<6><7>").matcher(vocabulary), 2)
    own = [
        rtp.MultiSequenceProcessor(2, 2),
        rtp.RecommendationProcessor(2, 2, banned_combo_token_ids=[[5, 7]]),
        rtp.TreeProcessor(tree, 2),
        grammar,
    ]
    together = rtp.Processors(own)
    assert [type(processor).rank for processor in together] == [1, 2, 3, 4]
    assert allowed(together, 12) == [[5, 6], [5, 6]]
    with pytest.raises(lt.TokenError, match="row 1"):
        together.update_status([5, 9])
    assert own[2].status == ["225", "225"]  # type: ignore[attr-defined]
    together.update_status([5, 6])
    assert allowed(together, 12) == [[8], [7]]
    with pytest.raises(lt.StateError):
        together.update_multi_seq_status([0, 2])
    assert together.rows == 2
    together.update_multi_seq_status([1, 0, 0])
    assert allowed(together, 12) == [[7], [8], [8]]
    together.add_rows()
    assert allowed(together, 12) == [[7], [8], [8], [5, 6]]
    together.drop_rows([0, 2])
    assert allowed(together, 12) == [[8], [5, 6]]
    with pytest.raises(lt.StateError):
        together.drop_rows([2])
    together.update_status([8, 5])
    together.update_status([2, 7])
    assert allowed(together, 12) == [[2], [2]]
    assert {processor.rows for processor in together} == {2}


def test_finished_rows_read_only_the_end() -> None:
    processor = rtp.MultiSequenceProcessor([2, 3], 3)
    assert allowed(processor, 6) == [list(range(6))] * 3
    processor.update_status([1, 2, 5])
    assert allowed(processor, 6) == [list(range(6)), [2, 3], list(range(6))]
    processor.update_multi_seq_status([1, 1, 0, 2])
    assert processor.finished.tolist() == [True, True, False, False]
    processor.finished[2] = True
    processor.update_status([[1, 1], [1, 1], [1, 1], [3, 1]])
    assert processor.finished.all()
    with pytest.raises(lt.LogitsError, match="beyond 3"):
        processor.process(np.zeros((4, 3), np.float32))


@pytest.mark.parametrize(
    "logits",
    [
        np.zeros((1, 12), np.float32),
        np.zeros((2, 12), np.float64),
        np.zeros(12, np.float32),
        np.zeros((2, 5), np.float32),
        np.broadcast_to(np.float32(0), (2, 12)),
        [[0.0] * 12] * 2,
    ],
)
def test_wrong_logits_are_errors(logits: Any) -> None:
    tree = rtp.load_tree('{"prefix_dict": {"225": [5, 6]}}', vocabulary_size=12)
    with pytest.raises(lt.LogitsError):
        rtp.TreeProcessor(tree, 2).process(logits)


@pytest.mark.parametrize("tokens", [[1], [1, -1], [1, 2**31], [1.5, 2], [[[1]], [[2]]]])
def test_wrong_tokens_are_errors_and_change_nothing(tokens: Any) -> None:
    tree = rtp.load_tree('{"prefix_dict": {"225": [5, 6]}}')
    processor = rtp.TreeProcessor(tree, 2)
    with pytest.raises(lt.TokenError):
        processor.update_status(tokens)
    assert processor.status == ["225", "225"]


def test_mistakes_are_told() -> None:
    tree = rtp.load_tree('{"prefix_dict": {"225": [5, 6], "225_5": [2]}}')
    processor = rtp.TreeProcessor(tree)
    for status in ("225_6", "225_9", "225_05", "5", "", "225_5_2", "225_x"):
        with pytest.raises(lt.ConstraintError, match="no path"):
            processor.force_status(0, status)
    with pytest.raises(lt.StateError):
        processor.force_status(1, "225")
    with pytest.raises(lt.StateError):
        processor.add_rows(-1)
    with pytest.raises(lt.StateError):
        rtp.TreeProcessor(tree, -1)
    with pytest.raises(lt.ConstraintError, match="combos of 1"):
        rtp.RecommendationProcessor(1, enable_cross_sequence_ban=True)
    with pytest.raises(lt.ConstraintError, match="banned combo"):
        rtp.RecommendationProcessor(3, banned_combo_token_ids=[[1, 2]])
    with pytest.raises(lt.ConstraintError, match="end tokens"):
        rtp.MultiSequenceProcessor([])
    with pytest.raises(lt.ConstraintError, match="rows differ"):
        rtp.Processors([processor, rtp.MultiSequenceProcessor(2, 2)])


def test_a_tree_of_another_vocabulary_is_an_error() -> None:
    document = (
        '{"prefix_dict": {"225": [64000, 64001], "225_64000": [2], "225_64001": [64002], "225_64001_64002": [2]}}'
    )
    assert rtp.load_tree(document).report.items == rtp.load_tree(document, vocabulary_size=70_000).report.items == 2
    with pytest.raises(lt.ConstraintError, match="no item is left: 2 candidates lie outside the vocabulary of 50000"):
        rtp.load_tree(document, vocabulary_size=50_000)
    with pytest.raises(lt.ConstraintError, match="1 candidates lie outside"):
        rtp.load_tree('{"prefix_dict": {"225": [5], "225_5": [700]}}', vocabulary_size=600)
    assert rtp.load_tree(document, vocabulary_size=64_001).report.items == 1
    assert rtp.load_tree('{"prefix_dict": {"225": []}}', vocabulary_size=10).report.items == 1


def test_a_prompt_may_be_checked_for_the_root() -> None:
    tree = rtp.load_tree('{"start_token_id": 9, "prefix_dict": {"9": [5], "9_5": [2]}}')
    tree.check_prompt([1, 2, 9])
    tree.check_prompt(np.array([9]))
    for prompt, message in (([9, 1], "ends with token 1, and the tree begins after token 9"), ([], "is empty")):
        with pytest.raises(lt.ConstraintError, match=message):
            tree.check_prompt(prompt)


def test_a_failed_row_stays_failed_when_it_reads_the_end() -> None:
    tree = rtp.load_tree('{"prefix_dict": {"225": [5, 6], "225_5": [2]}}', vocabulary_size=12)
    processor = rtp.TreeProcessor(tree, 3)
    processor.update_status([[7, 2, 2], [5, 2, 2], [6, 2, 5]])
    assert (processor.failed.tolist(), processor.finished.tolist()) == ([True, False, True], [False, True, False])
    assert allowed(processor, 12) == [[2]] * 3
    processor.update_multi_seq_status([1, 0])
    assert (processor.failed.tolist(), processor.finished.tolist()) == ([False, True], [True, False])


def test_a_grammar_may_end_without_a_stop_token() -> None:
    vocabulary = lt.Vocabulary.from_tokens(
        [b"a", b"b", b"</s>", b"<t>", b"</t>"], special_ids=[2, 3, 4], end_tokens=[2]
    )
    matcher = lt.Grammar.regex("ab?").matcher(vocabulary)
    until_end = rtp.GrammarProcessor(matcher, 2)
    until_end.update_status([0, 0])
    assert until_end.finished.tolist() == [False, False]
    early = rtp.GrammarProcessor(matcher, 2, terminate_without_stop_token=True)
    assert allowed(early, 5) == [[0], [0]] and early.finished.tolist() == [False, False]
    early.update_status([[0, 1], [0, 0]])
    assert early.finished.tolist() == [True, True]
    assert [one.is_accepting for one in early.matchers] == [True, True]
    with pytest.raises(lt.TokenError, match="token 1 is not allowed"):
        rtp.GrammarProcessor(matcher, 1, terminate_without_stop_token=True).update_status([1])
    budget = lt.ReasoningBudget([3], [4], budget=3)
    free = rtp.ThinkProcessor(budget, vocabulary, at="inside", terminate_without_stop_token=True)
    assert free.finished.tolist() == [False]
    then = rtp.ThinkProcessor(
        lt.ReasoningBudget([3], [4], budget=3, then=lt.Grammar.regex("ab?")),
        vocabulary,
        at="inside",
        terminate_without_stop_token=True,
    )
    then.update_status([[0, 4]])
    assert then.finished.tolist() == [False]
    then.update_status([0])
    assert then.finished.tolist() == [True]
