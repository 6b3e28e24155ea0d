/** Chains, filters, candidates and metrics; tests/native compares the draws with Python's. */

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import {
  Chain,
  LogitreeError,
  NativeLibrary,
  RollingPerplexity,
  SamplerWorkspace,
  TokenHistoryTracker,
  Xoroshiro128Plus,
  applyMinP,
  applyPenalties,
  applyTemperature,
  applyTopK,
  applyTopNSigma,
  applyTopP,
  applyTypicalP,
  candidateSetFromFullLogits,
  computeModelEntropy,
  computeModelSurprisal,
  computeSamplingEntropy,
  computeSamplingSurprisal,
  dist,
  getTopCandidates,
  greedy,
  greedySampler,
  initializePRNG,
  minP,
  penalties,
  random,
  requiredKcap,
  resetPRNG,
  sampleFromSet,
  sampleWithStrategy,
  sampler,
  temperature,
  topK,
  topNSigma,
  topP,
  typicalP,
  useLibrary,
} from "../src/index.js";
import { LOGITREE, absent } from "./places.js";

const P = Float32Array.of(Math.log(0.1), Math.log(0.2), Math.log(0.3), Math.log(0.4));

function close(found: ArrayLike<number>, expected: number[]): void {
  assert.equal(found.length, expected.length);
  for (const [at, value] of expected.entries()) assert.ok(Math.abs((found[at] ?? NaN) - value) < 1e-5, `${found[at]} ${value}`);
}

test("the generator is xoroshiro128+ from splitmix64", () => {
  const first = Number((0xe220a8397b1dcdafn + 0x6e789e6aa1b965f4n) % 2n ** 64n >> 11n) * 2 ** -53;
  const prng = new Xoroshiro128Plus(0);
  assert.equal(prng.next(), first);
  const again = [prng.next(), prng.next()];
  prng.reset();
  assert.deepEqual([prng.next(), prng.next(), prng.next()], [first, ...again]);
  assert.ok(new Xoroshiro128Plus(Date.now()).next() < 1);
  assert.equal(new Xoroshiro128Plus(2n ** 64n - 1n).seed, 2n ** 64n - 1n);
  for (const seed of [-1, 0.5, NaN, 2 ** 60, 2n ** 64n]) assert.throws(() => new Xoroshiro128Plus(seed), LogitreeError);
  initializePRNG(0);
  assert.equal(random(), first);
  random();
  resetPRNG();
  assert.equal(random(), first);
});

test("a history is a window of tokens with their numbers", () => {
  const history = new TokenHistoryTracker(3);
  for (const token of [5, 7, 5, 9]) history.accept(token);
  assert.deepEqual([history.size(), history.getCount(5), history.hasToken(7), history.tokens()], [3, 1, true, [7, 5, 9]]);
  history.accept(1);
  assert.deepEqual([history.hasToken(7), history.getUniqueTokens()], [false, [5, 9, 1]]);
  assert.equal(history.computeAdjustment(5, 2, { repeat: 2, frequency: 0.5, presence: 0.25 }), 0.25);
  assert.equal(history.computeAdjustment(5, -2, { repeat: 2 }), -4);
  assert.equal(history.computeAdjustment(7, 2, { repeat: 2 }), 2);
  assert.deepEqual([{ repeat: 1 }, { presence: 0.1 }].map(TokenHistoryTracker.hasPenalties), [false, true]);
  const logits = new Float32Array(6).fill(1);
  applyPenalties(logits, history, { frequency: 1 });
  assert.deepEqual([...logits], [1, 0, 1, 1, 1, 0]);
  history.reset();
  assert.deepEqual([history.size(), history.getUniqueTokens()], [0, []]);
  const none = new TokenHistoryTracker(0);
  none.accept(1);
  assert.equal(none.size(), 0);
  assert.throws(() => new TokenHistoryTracker(-1), LogitreeError);
});

test("perplexity counts what is finite, and a workspace grows to powers of two", () => {
  const ppl = new RollingPerplexity();
  assert.equal(ppl.ppl(), Infinity);
  for (const surprisal of [1, Infinity, NaN, 1]) ppl.addSurprisal(surprisal);
  assert.deepEqual([ppl.count(), ppl.ppl()], [2, Math.E]);
  ppl.reset();
  assert.equal(ppl.count(), 0);
  const room = new SamplerWorkspace(40);
  assert.equal(room.capacity, 64);
  room.ensureCapacity(320);
  room.ensureCapacity(10);
  assert.equal(room.capacity, 512);
  assert.deepEqual([requiredKcap(40, 1, 1e5), requiredKcap(320, undefined, 1e5), requiredKcap(0, 0.9, 400)], [256, 320, 400]);
});

describe("with the library", { skip: absent("LOGITREE") }, () => {
  let native: NativeLibrary;
  before(() => {
    native = useLibrary(LOGITREE ?? "");
  });

  test("filters by hand give llama.cpp's golden values", () => {
    const all = candidateSetFromFullLogits(P);
    assert.deepEqual([all.count, [...all.indices]], [4, [0, 1, 2, 3]]);
    close(applyTopK(P, 3).probs, [0.44444, 0.33333, 0.22222]);
    close(applyTopP(all, 0.7).probs, [0.571429, 0.428571]);
    close(applyTopP(all, 0).probs, [1]);
    close(applyMinP(all, 0.26).probs, [2 / 9, 3 / 9, 4 / 9]);
    assert.deepEqual([...applyTopNSigma(all, 1).indices], [2, 3]);
    assert.deepEqual([...applyTopNSigma(all, 0).indices], [0, 1, 2, 3]);
    close(applyTemperature(all, 0).probs.filter((p) => p > 0), [1]);
    assert.equal(applyTypicalP(candidateSetFromFullLogits(Float32Array.of(3, 0, 0, 0)), 0.5).indices[0], 0);
    const narrow = applyMinP(applyTopP(applyTopK(P, 40), 0.95), 0.4);
    assert.deepEqual([...narrow.indices], [3, 2, 1]);
    const doubled = applyTopK(P, 2, new SamplerWorkspace(2), (id, logit) => (id === 0 ? 5 : logit));
    assert.deepEqual([...doubled.indices], [0, 3]);
    assert.equal(sampleFromSet(applyTopK(P, 1)), 3);
    assert.deepEqual([...P].map((x) => Math.round(Math.exp(x) * 10)), [1, 2, 3, 4]);
  });

  test("what tsampler says of the whole vocabulary and of equal logits", () => {
    const logits = Float32Array.of(1, 3, 2, 5, 4);
    assert.deepEqual([...applyTopK(logits, 5).indices], [0, 1, 2, 3, 4]);
    assert.deepEqual([...applyTopK(logits, 4).indices], [3, 4, 1, 2]);
    const equal = applyTopNSigma(candidateSetFromFullLogits(new Float32Array(300).fill(0.1)), 1);
    assert.deepEqual([equal.count, equal.indices[0]], [1, 0]);
  });

  test("metrics have the values of the definition", () => {
    const uniform = new Float32Array(100).fill(7);
    close([computeModelEntropy(uniform), computeModelEntropy(uniform.subarray(0, 8), "bits")], [Math.log(100), 3]);
    close([computeModelSurprisal(P, 1), computeModelSurprisal(P, 3, "bits")], [-Math.log(0.2), -Math.log2(0.4)]);
    const masked = Float32Array.of(-Infinity, 2, 3);
    for (const token of [0, 3, -1, 0.5]) assert.equal(computeModelSurprisal(masked, token), Infinity);
    assert.ok(Number.isFinite(computeModelEntropy(Float32Array.of(500, 510))));
    assert.equal(computeModelEntropy(new Float32Array(0)), Infinity);
    const set = applyTopK(P, 2);
    close([computeSamplingEntropy(set.logits)], [-(4 / 7) * Math.log(4 / 7) - (3 / 7) * Math.log(3 / 7)]);
    close([computeSamplingSurprisal(set.logits, set.indices, 2)], [-Math.log(3 / 7)]);
    assert.equal(computeSamplingSurprisal(set.logits, set.indices, 0), Infinity);
    const best = getTopCandidates(P, 2);
    assert.deepEqual(best.map((one) => one.tokenId), [3, 2]);
    close(best.map((one) => one.probability), [0.4, 0.3]);
    assert.equal(getTopCandidates(P).length, 4);
  });

  test("a chain draws, goes back, forks and keeps its state", () => {
    const samplers = [penalties(64, 1.1), topK(3), typicalP(1), topP(0.99), minP(0.01), topNSigma(-1), temperature(0.9)];
    const chain = new Chain([...samplers, dist({ seed: Date.now(), rng: "xoroshiro128plus" })]);
    assert.match(chain.describe(), /^penalties\(.*\) -> top_k\(3\) -> .* -> dist\(seed=\d{13}/);
    const draw = (one: Chain, n: number): number[] => Array.from({ length: n }, () => one.sample(P));
    const first = draw(chain, 20);
    const state = chain.snapshot();
    const copy = chain.clone();
    const next = draw(chain, 20);
    assert.deepEqual(draw(copy, 20), next);
    chain.rollback(20);
    assert.deepEqual(draw(chain, 20), next);
    chain.reset();
    assert.deepEqual(draw(chain, 20), first);
    copy.restore(state);
    assert.deepEqual(draw(copy, 20), next);
    copy.steer({ 3: -Infinity, 2: -Infinity });
    assert.ok(copy.apply(P).indices.every((id) => id < 2));
    copy.steer(new Map([[0, 50]]));
    assert.equal(copy.draw(P), 0);
    copy.steer(null);
    copy.set({ top_k: 1 });
    assert.equal(copy.draw(P), 3);
    assert.deepEqual([...new Chain([sampler("top_k", { k: 2 })]).parity().apply(P).indices], [3, 2]);
    for (const one of [chain, copy]) one.close();
    assert.throws(() => chain.draw(P), LogitreeError);
    const greatest = new Chain([greedySampler()]);
    greatest.accept(1);
    assert.equal(greatest.sample(P), 3);
    greatest.close();
  });

  test("presets and notations make whole chains", () => {
    const one = Chain.tsampler({ seed: 1_790_000_000_000 });
    assert.match(one.describe(), /ts_top_k\(40\).*seed=1790000000000, rng="xoroshiro128plus"/);
    assert.match(Chain.llamaCpp({ seed: 7, temp: 0.5 }).describe(), /temp\(0\.5\) -> dist\(seed=7\)$/);
    assert.match(Chain.transformers({ seed: 7 }).describe(), /hf_top_k\(50\)/);
    assert.match(Chain.parse("top_k;temperature", { top_k: 9, seed: 2n ** 32n - 1n }).describe(), /^top_k\(9\).*seed=4294967295\)$/);
    assert.throws(() => Chain.tsampler({ rng: "mt19937", seed: 2 ** 32 }), /32 bits/);
  });

  test("what is wrong is an error with its place", () => {
    const place = (make: () => unknown, kind: string, at: RegExp): void =>
      assert.throws(make, (error) => error instanceof LogitreeError && error.kind === kind && at.test(error.place + error.message));
    place(() => new Chain([sampler("top_q")]), "sampling", /samplers\/0\/name/);
    place(() => new Chain([topK(1), sampler("top_p", { q: 1 })]), "sampling", /samplers\/1\/q/);
    place(() => new Chain([topK(1.5)]), "sampling", /samplers\/0\/k/);
    place(() => new Chain([topK(1)]).draw(P), "sampling", /select/);
    place(() => new Chain([greedySampler()]).draw(Float32Array.of(NaN, 1)), "logits", /NaN/);
    place(() => new Chain([]).set({ temp: 1 }), "sampling", /temp/);
    place(() => new Chain([]).set({ "te\0mp": 1 }), "argument", /character of 0/);
    place(() => useLibrary("/nowhere.so"), "library", /nowhere/);
    assert.equal(new Chain([], native).native, native);
  });

  test("one token by tsampler's strategy", () => {
    const history = new TokenHistoryTracker(64);
    const copy = P.slice();
    assert.equal(greedy(P), 3);
    for (const params of [{ temperature: 0 }, { topK: 1 }]) assert.equal(sampleWithStrategy(P, { tokenHistory: history, params }), 3);
    history.accept(3);
    assert.equal(sampleWithStrategy(P, { tokenHistory: history, params: { topK: 1, penaltyRepeat: 1, penaltyPresent: 2 } }), 2);
    const seen = new Set<number>();
    const workspace = new SamplerWorkspace(2);
    const prng = new Xoroshiro128Plus(1);
    for (const mode of ["fast", "parity"] as const) {
      for (let i = 0; i < 200; i++) {
        const params = { topK: 0, topP: 1, minP: 0, typicalP: 0.999, temperature: 2 };
        seen.add(sampleWithStrategy(P, { tokenHistory: history, params, workspace, prng, mode }));
      }
    }
    assert.deepEqual([...seen].sort(), [0, 1, 2, 3]);
    assert.deepEqual(P, copy);
  });
});
