"""A program over the whole public surface, for mypy --strict: `test_typing.py` checks it. It is never run.

Each `assert_type` is what a user's editor shows; a public name that does not occur here fails the test.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import logitree as lt
from logitree import rtp
from logitree.engines import BeamEngine, Engine
from logitree.engines.llama_cpp import LlamaCpp

Mask = npt.NDArray[np.int32]


def vocabularies() -> lt.Vocabulary:
    vocabulary = lt.Vocabulary.from_tokens([b"a", b"b"], eog_ids=[1])
    assert_type(vocabulary[0], bytes)
    assert_type(list(vocabulary), list[bytes])
    assert_type(vocabulary.bos_id, int | None)
    assert_type(vocabulary.replace(bos_id=0), lt.Vocabulary)
    trie: lt.TokenTrie = vocabulary.trie
    assert_type(trie.longest_match(b"ab"), tuple[int, int] | None)
    assert_type(trie.allowed(np.zeros((1, 256), np.uint16)), Mask)
    return vocabulary


def tokenizers(matcher: lt.Matcher) -> lt.Tokenizer:
    tokenizer = lt.Tokenizer.from_gguf("model.gguf")
    assert_type(lt.Tokenizer.from_tokenizer_json(b"{}"), lt.Tokenizer)
    assert_type(tokenizer.encode("text"), list[int])
    assert_type(tokenizer.is_canonical([1, 2]), bool)
    assert_type(tokenizer.canonical(matcher, before=[1]), lt.Matcher)
    assert_type(tokenizer.vocabulary, lt.Vocabulary)
    return tokenizer


def constraints(vocabulary: lt.Vocabulary) -> lt.Matcher:
    choices = lt.OneOf(["a", b"b"])
    assert_type(choices.texts, tuple[str | bytes, ...])
    constraint: lt.Constraint = choices
    constraint.matcher(vocabulary)
    descriptor = lt.elizaos.descriptor("action", ["a", None], lambda name: [0], model_id="m")
    payload = lt.elizaos.payload("m", [descriptor])
    assert_type(payload, dict[str, Any] | None)
    tree: lt.elizaos.TokenTree = lt.elizaos.token_tree(payload or {}, vocabulary, on_mismatch="warn")
    assert_type(tree.leaves(), list[tuple[str | None, list[int]]])
    cache: lt.elizaos.TokenTreeCache = lt.elizaos.token_tree_cache
    assert_type(cache.info(), dict[str, int])
    names: lt.elizaos.TokenizerCache = lt.elizaos.tokenizer_cache
    assert_type(names.tokens("m", "a", lambda name: [0]), tuple[int, ...])
    assert_type(lt.elizaos.prefill_plan({"spans": []}), dict[str, Any] | None)
    assert_type(lt.elizaos.span_sampler_plan({"spans": []}), dict[str, Any])
    budget = lt.ReasoningBudget("a", "b", budget=8, soft_budget=4) + choices
    assert_type(budget, lt.ReasoningBudget)
    assert_type(budget.matcher(vocabulary, prompt=[0]).bias(), tuple[int, float] | None)
    assert_type(budget.split([1], vocabulary, at="inside"), tuple[list[int], list[int]])
    assert_type(budget.state([1], vocabulary), Literal["no", "in", "closing", "after"])
    own: lt.Constraint = lt.Recogniser(object)
    assert_type(own.matcher(vocabulary), lt.Matcher)
    matcher = choices.matcher(vocabulary)
    allowed: lt.AllowedTokens = matcher.allowed()
    assert_type(allowed.is_all, bool)
    assert_type(matcher.shortest_ending(), list[int])
    assert_type(matcher.certain_bytes(), tuple[bytes, bool])
    assert_type(matcher.allowed().ids, npt.NDArray[np.uint32])
    mask = matcher.mask()
    assert_type(mask, Mask)
    matcher.fill_mask(mask)
    assert_type(lt.masks.from_ids(2, [0]), Mask)
    assert_type(lt.masks.first(mask), int | None)
    return tree.at("action", following="!").matcher(vocabulary)


def grammars(vocabulary: lt.Vocabulary) -> lt.Grammar:
    schema: lt.Grammar = lt.Grammar.json_schema({"type": "string"}, order="any", whitespace="compact", draft="7")
    assert_type("x" + schema | "y" + lt.Grammar.json(ascii=True), lt.Grammar)
    assert_type(lt.Grammar.recursive(lambda me: "(" + me + ")" | lt.Grammar.regex("[0-9]")), lt.Grammar)
    assert_type(lt.Grammar.of(int | None, closed=False), lt.Grammar)
    assert_type(lt.Grammar.lark('start: "a" @b', grammars={"b": "c"}), lt.Grammar)
    tags = lt.Grammar.tags([("<a>", schema, ["</a>", lt.Grammar.token(3)])], triggers=["<"], excludes=["!"])
    assert_type(lt.Grammar.of(int) | lt.Grammar.structural_tag({}) | tags, lt.Grammar)
    assert_type(lt.Grammar.lazy(tags, words=["<a>"], tokens=[3, "<a>"], patterns=iter(["a"])), lt.Grammar)
    assert_type(schema.matches(b'"x"'), bool)
    assert_type(schema.warnings, list[str])
    assert_type(schema.memory(vocabulary), int)
    matcher = (lt.Grammar.token(3).optional() + lt.Grammar.text().repeat(1, 2)).matcher(vocabulary, end_tokens=[1])
    rows = lt.masks.new(len(vocabulary), 3)
    lt.masks.fill_batch([matcher, matcher.fork()], rows[:2], threads=2)
    assert_type(matcher.draft_masks(([-1, 0], [3, 4]), rows), npt.NDArray[np.bool_])
    assert_type(matcher.draft_masks([3, 4], rows), npt.NDArray[np.bool_])
    matcher.accept_many([3])
    vocabulary.prepare()
    with lt.Deadline(0.5) as deadline:
        assert_type(deadline.left, float | None)
    assert_type(matcher.validate(iter([4])), int)
    told: lt.Explanation = matcher.explain(4, vocabulary=vocabulary)
    assert_type(told.expected, list[str])
    assert_type(told.first, list[tuple[int, bytes]])
    assert_type(told.taken, int | None)
    warning: type[UserWarning] = lt.SchemaWarning
    assert_type(warning("x").args, tuple[Any, ...])
    lt.Decoder(vocabulary, lt.Chain.greedy(), schema).activate(
        lt.Grammar.choice(["a"]) | lt.Grammar.gbnf("root ::= [0-9]")
    )
    return lt.Grammar.literal("a")


def chains(vocabulary: lt.Vocabulary) -> lt.Chain:
    samplers: list[lt.Sampler] = [
        lt.samplers.logit_bias({0: -1.0}),
        lt.samplers.penalties(64, repeat=1.1),
        lt.samplers.top_n_sigma(1.0),
        lt.samplers.top_k(40),
        lt.samplers.typ_p(0.9),
        lt.samplers.top_p(0.9),
        lt.samplers.min_p(0.1),
        lt.samplers.xtc(0.5, 0.1, seed=0),
        lt.samplers.temp(0.7),
        lt.samplers.no_repeat_ngram(3),
        lt.samplers.epsilon_cutoff(3e-4, min_keep=1),
        lt.samplers.eta_cutoff(3e-4),
        lt.samplers.top_h(0.4),
        lt.samplers.p_less(norm=True),
        lt.samplers.min_k(3.0),
        lt.samplers.edt(1.0, 0.5, n=0.8),
        lt.samplers.hf_top_h(1.0),
        lt.samplers.hf_top_k(50),
        lt.samplers.hf_top_p(0.9, min_keep=2),
        lt.samplers.hf_typ_p(0.9),
        lt.samplers.temp_ext(0.7, delta=0.2),
        lt.samplers.dry(0.8, breakers=[[1]]),
        lt.samplers.dry(0.8, vocabulary=vocabulary, breakers=["\n", b"::"], tokenize=lambda text: [0]),
        lt.samplers.infill(vocabulary, eot=1),
        lt.samplers.custom(lambda ids, logits: None, name="mine"),
    ]
    assert_type(lt.samplers.dry_breakers(vocabulary), list[list[int]])
    selecting: list[lt.Sampler] = [
        lt.samplers.mirostat(seed=0),
        lt.samplers.mirostat_v2(tau=4.0),
        lt.samplers.adaptive_p(0.5),
    ]
    assert_type([lt.Chain([s]).seed for s in selecting], list[int | None])
    params: lt.ChainParams = {"seed": 0, "mirostat": 2, "logit_bias": {1: 0.5}}
    assert_type(lt.Chain.llama_cpp(**params), lt.Chain)
    assert_type(lt.Chain.transformers(top_k=5, no_repeat_ngram=3, seed=0), lt.Chain)
    chain = lt.Chain([*samplers, lt.samplers.dist(seed=0)])
    assert_type(lt.Chain([lt.samplers.greedy()]).seed, int | None)
    effects: list[lt.steering.Effect] = chain.explain(np.zeros(2, np.float32), allowed=[0])
    measures: lt.metrics.Measures | None = chain.measures
    assert_type(measures.bits().surprisal if measures else 0.0, float)
    assert_type(effects[0].mass_cut, float)
    ids, _, probabilities = chain.apply(np.zeros(2, np.float32))
    assert_type(ids, npt.NDArray[np.uint32])
    assert_type(probabilities, npt.NDArray[np.float32])
    rows = np.zeros((2, 2), np.float32)
    assert_type(chain.sequences(2), list[lt.Chain])
    assert_type(chain.sample_batch(rows, threads=1, accept=False), npt.NDArray[np.uint32])
    _, before, _ = chain.sample_batch(rows, states=chain.sequences(2), log_probabilities=True, accept=False)
    assert_type(before, npt.NDArray[np.float64])
    _, _, scores = lt.beams.beam_top(rows, [0.0, -1.0], 2)
    assert_type(scores, npt.NDArray[np.float64])
    return lt.Chain.parse("top_k;temperature", seed=0)


def alignment(chain: lt.Chain, decoder: lt.Decoder) -> None:
    steering: lt.steering.Steering = lt.steering.Steering().veto([3]).boost(range(4, 6), 1.5).add({7: -1.0})
    chain.steer(steering)
    decoder.steer({3: 1.0})
    decoder.steer(None)
    assert_type(chain.steering.edits, dict[int, float])
    chain.adapt(lt.steering.EntropyRule([(2.0, {"temp": 1.5}), (None, {})]))
    decoder.adapt(lt.steering.Burst({"temp": 1.5, "top_k": 256}, top_p_below=0.15, tokens=3))
    decoder.adapt(lambda entropy, top_p: {"temp": 0.5} if entropy > 5.0 and top_p < 0.5 else None)
    decoder.set(temp=0.5, top_k=3)
    gate: lt.steering.PerplexityGate = lt.steering.PerplexityGate(50.0, window=16)
    assert_type(gate.add(2.0), bool)
    history: lt.metrics.TokenHistory = lt.metrics.TokenHistory(64)
    assert_type(history.compute_adjustment(3, 1.0, repeat=1.1), float)
    random: lt.samplers.Random = lt.samplers.Random(42)
    assert_type(random.uniform(), float)


def metrics(logits: npt.NDArray[np.float32]) -> float:
    rolling = lt.metrics.RollingPerplexity()
    rolling.add(lt.metrics.surprisal(logits, 0))
    assert_type(lt.metrics.log_softmax(logits, [0]), npt.NDArray[np.float64])
    assert_type(lt.samplers.top_candidates(logits), list[tuple[int, float]])
    return lt.metrics.entropy(logits, "bits") + lt.metrics.log_sum_exp(logits) + rolling.value


def decode(logits: npt.NDArray[np.float32]) -> lt.Decoder:
    vocabulary = vocabularies()
    decoder = lt.Decoder(vocabulary, chains(vocabulary), constraints(vocabulary), trace=True, stop=["x", b"y"])
    assert_type(decoder.step(logits), int)
    step: lt.Step | None = decoder.last
    if step is not None:
        assert_type(step.origin, Literal["sampled", "forced", "external"])
        assert_type(step.p, float | None)
        assert_type(step.alternatives, list[tuple[int, float, float | None, str | None]])
    decoder.activate(constraints(vocabulary), then="stop")
    assert_type(decoder.matcher, lt.Matcher | None)
    return decoder.fork()


def together(decoder: lt.Decoder, logits: npt.NDArray[np.float32]) -> list[lt.Decoder]:
    batch = lt.Batch(decoder.vocabulary, decoder.sequences(3), end=2)
    assert_type(batch.step(logits, threads=1), npt.NDArray[np.uint32])
    tokens, failed = batch.try_step([logits[0], logits[1], logits[2]])
    assert_type(failed, dict[int, Exception])
    batch.accept(tokens)
    assert_type(batch.masks(), npt.NDArray[np.int32])
    batch.reorder([0, 0, 1])
    batch.join(batch[0].fork())
    assert_type(batch.finished, npt.NDArray[np.bool_])
    assert_type(batch.take_forced(), list[list[int]])
    return batch.leave_finished() + list(batch)


def steer(decoder: lt.Decoder, logits: npt.NDArray[np.float32]) -> None:
    decoder.steer({0: float(logits[0])})


def generations(engine: LlamaCpp) -> str | None:
    as_engine: Engine = engine
    generation = lt.generate(as_engine, "Hello", ["a", "b"], temperature=0.0, trace=True, on_step=steer)
    assert_type(generation, lt.Generation[str])
    assert_type(generation.value, str)
    assert_type(lt.generate(engine, "Hello", int).value, int)
    assert_type(lt.generate(engine, "Hello").value, str)
    options: lt.GenerateOptions = {"max_tokens": None, "stop": "x", "top_k": 5, "seed": -1}
    assert_type(lt.generate(engine, "Hello", n=2, **options), lt.Generations[Any])
    sampling: lt.SamplingParams = {"temperature": 0.5}
    lt.generate(engine, "Hello", **sampling)
    lt.generate(engine, "Hello", temprature=0.2)  # type: ignore[call-overload]
    lt.generate(engine, "Hello", ["a"], max_tokens=3.5)  # type: ignore[call-overload]
    lt.choose(engine, "Hello", ["a"], temprature=0.2)  # type: ignore[call-overload]
    several: lt.Generations[Any] = lt.generate(engine, ["Hello", "Hi"], [int, lt.Grammar.regex("a")], seed=[0, 1])
    assert_type(several.texts, list[str])
    trace: lt.Trace = generation.trace
    assert_type(trace[0], lt.Step)
    assert_type(trace.with_spans([(0, 1, "a"), lt.TraceSpan(0, 1, "b")]).html(), str)
    event: lt.Event
    for event in generation:
        if isinstance(event, lt.Progress):
            assert_type(event.fraction, float)
        elif isinstance(event, lt.Token):
            assert_type(event.step, lt.Step | None)
        elif isinstance(event, lt.Finish):
            stats: lt.Stats = event.stats
            assert_type(stats.seed, int | None)
            return event.text
    chosen: lt.Choice = lt.choose(engine, [{"role": "user", "content": "Hello"}], ["a", "b"], seed=0)
    many: list[lt.Choice] = lt.choose(engine, ["Hello", "Bye"], ["a", "b"], method="exact", calibrate=True)
    assert_type(many[0].probabilities, tuple[float, ...] | None)
    for event in lt.generate(engine, "Hello", logprobs=2):
        if isinstance(event, lt.Token):
            assert_type(event.logprobs, lt.LogProbs | None)
    return chosen.text


async def events(engine: LlamaCpp) -> str:
    generation = lt.generate(engine, "Hello")
    async for event in generation:
        assert_type(event, lt.Event)
    return (await generation).text


def tables(titles: list[str]) -> lt.Catalogue:
    tree = lt.Catalogue.from_table("t.csv", ["a", "b"], item="id", weights=["u", "v"], path="i", memory=1 << 20)
    for rows in lt.catalogue.table_items("t.jsonl", on_progress=print):
        assert_type(rows, lt.catalogue.ItemRows)
        assert_type(rows.items, npt.NDArray[np.uint64] | None)
        tree.add(rows.tokens, items=rows.items, weights=rows.weights)
    return lt.Catalogue.from_texts(titles, lambda text: [len(text)], path="i")


def beams(engine: LlamaCpp, paths: lt.beams.TokenWalk) -> tuple[int, ...] | tuple[str, ...]:
    as_engine: BeamEngine = engine
    seen: list[lt.beams.BeamStep] = []
    found = lt.beam_search(as_engine, [[1, 2], [3]], paths, width=[3, 5, 2], on_step=seen.append)
    assert_type(found, list[list[lt.beams.Hypothesis]])
    candidates: lt.beams.Candidates = paths.gather([paths.start], np.zeros((1, paths.vocabulary_size), np.float32))
    assert_type(candidates.scores, npt.NDArray[np.float64])
    assert_type(seen[0].tokens, npt.NDArray[np.int64])
    best = found[0][0]
    assert_type(best.log_probability, float)
    return best.items


def catalogue() -> lt.Matcher:
    tree = lt.Catalogue.from_codes(np.array([[1, 2], [1, 3]]), items=[7, 8], weights=[[0.0, 0.5], [0.0, 0.25]])
    assert_type(tree.add([[4, 5]], items=[9]), int)
    builder = lt.catalogue.CatalogueBuilder(weighted=False)
    builder.add([[1], [2, 3]])
    built: lt.Catalogue = builder.finish(lambda done: None)
    native: lt.catalogue.ItemWalk = built.walk(end=0, allowed=[1], intersect=[tree.matcher(), built.matcher()])
    paths: lt.beams.TokenWalk = native
    assert_type(native.find([2]), int | None)
    assert_type(native.matcher(intersect=tree.matcher()), lt.Matcher)
    return built.matcher(end=paths.end, intersect=tree.matcher(), fuel=1000)


def recommended(tree_file: str, vocabulary: lt.Vocabulary) -> rtp.Processors:
    tree = rtp.load_tree(tree_file, vocabulary_size=100)
    assert_type(tree, rtp.RtpTree)
    assert_type(tree.item_walk, lt.catalogue.ItemWalk)
    assert_type(tree.report.findings, tuple[rtp.Finding, ...])
    decode = rtp.TreeProcessor(tree, 2)
    assert_type(decode.status, list[str])
    others: list[rtp.Processor] = [
        rtp.MultiSequenceProcessor(tree.end, 2),
        rtp.ThinkProcessor(lt.ReasoningBudget(), vocabulary, 2),
    ]
    recommendation = rtp.RecommendationProcessor(3, 2, banned_combo_token_ids=[(1, 2, 3)])
    assert_type(recommendation.banned, list[set[tuple[int, ...]]])
    return rtp.Processors([decode, recommendation, *others])


def slates(engine: LlamaCpp, tree: lt.Catalogue) -> list[lt.beams.Hypothesis]:
    return rtp.slate(engine, [1], tree, 3, width=8)


def skeletons(engine: LlamaCpp, tree: lt.elizaos.TokenTree) -> list[object]:
    sk = lt.skeleton
    value: sk.Value = sk.by("a", {"x": sk.object({"n": sk.number(minimum=0)})}, default=sk.json())
    parts = [sk.boolean(), sk.string(max_length=3).named("s"), sk.array(int, max_items=2), sk.constant(None)]
    assert_type(lt.Skeleton(sk.literal("a"), *parts), lt.Skeleton)
    plan = lt.Skeleton.object({"a": sk.enum(["x"]), "b": value}, id="p")
    assert_type(plan.attach(tree).prefill().sampled({"a": {"temperature": 0.5}}), lt.Skeleton)
    assert_type(plan.value("{}"), dict[str, Any])
    assert_type(plan.parse("{}"), tuple[sk.SpanValue, ...])
    assert_type(plan.spans, tuple[sk.SpanInfo, ...])
    assert_type(plan.to_json(), dict[str, Any])
    constraint: lt.Constraint = plan
    seen: list[object] = []
    for event in lt.generate(engine, "a", constraint):
        if isinstance(event, lt.SpanStart):
            assert_type(event.kind, str)
        elif isinstance(event, lt.SpanText):
            assert_type(event.text, str)
        elif isinstance(event, lt.SpanEnd):
            seen.append(event.value)
    return seen


def errors() -> str:
    try:
        decode(np.zeros(2, np.float32))
    except (lt.VocabularyError, lt.PayloadError, lt.ConstraintError, lt.MaskError, lt.LogitsError) as error:
        assert_type(error.place, str)
    except (lt.SamplingError, lt.TokenError, lt.StateError, lt.LimitError, lt.FileError, lt.EngineError) as error:
        assert_type(error.help, str)
    except lt.LogitreeError as error:
        return error.help
    except lt.ValueMismatchError as error:
        return error.text + error.type + error.reason
    except lt.IncompleteError as error:
        return error.place
    return lt.__version__
