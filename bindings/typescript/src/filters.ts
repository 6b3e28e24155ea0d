/** tsampler's filters by hand: each gives the candidates that it leaves of a set. A set is filtered again from its logits. */

import { CandidateSet, type SamplerWorkspace } from "./candidates.js";
import { Chain } from "./chain.js";
import { random, type Xoroshiro128Plus } from "./random.js";
import { minP, temperature, topP, typicalP, type SamplerForm } from "./samplers.js";

/** A token's logit after penalties. */
export type PenaltyAccessor = (tokenId: number, baseLogit: number) => number;

function filtered(source: Float32Array, filters: readonly SamplerForm[], workspace?: SamplerWorkspace): CandidateSet {
  const chain = new Chain(filters, undefined, workspace);
  try {
    return chain.apply(source);
  } finally {
    chain.close();
  }
}

function narrowed(set: CandidateSet, filter: SamplerForm, workspace?: SamplerWorkspace): CandidateSet {
  return filtered(set.source, [...set.filters, filter], workspace);
}

function penalised(logits: Float32Array, accessor: PenaltyAccessor | undefined): Float32Array {
  return accessor === undefined ? logits : logits.map((logit, id) => accessor(id, logit));
}

/** All tokens in the order of their ids. */
export function candidateSetFromFullLogits(logits: Float32Array, ws?: SamplerWorkspace, penalty?: PenaltyAccessor): CandidateSet {
  return filtered(penalised(logits, penalty), [], ws);
}

/** The k best, sorted; all in the order of their ids where k is the whole vocabulary. */
export function applyTopK(logits: Float32Array, k: number, ws?: SamplerWorkspace, penalty?: PenaltyAccessor): CandidateSet {
  return filtered(penalised(logits, penalty), [{ name: "ts_top_k", k }], ws);
}

/** Candidates of locally typical surprisal, up to the probability p. */
export function applyTypicalP(set: CandidateSet, p: number, minKeep = 1): CandidateSet {
  return narrowed(set, typicalP(p, minKeep));
}

/** The smallest set of best candidates that has the probability p; the best one for 0 or less. */
export function applyTopP(set: CandidateSet, p: number, workspace?: SamplerWorkspace): CandidateSet {
  return narrowed(set, topP(p), workspace);
}

/** Candidates whose probability is at least `threshold` times the best one's. */
export function applyMinP(set: CandidateSet, threshold: number): CandidateSet {
  return narrowed(set, minP(threshold));
}

/** Candidates within n standard deviations of the best logit; one of equal logits. 0 or less: all. */
export function applyTopNSigma(set: CandidateSet, n: number): CandidateSet {
  const left = narrowed(set, { name: "ts_top_n_sigma", n });
  const kept = [...left.indices.keys()].filter((at) => left.logits[at] !== -Infinity);
  const pick = <T extends Uint32Array | Float32Array>(of: T): T => of.filter((_, at) => kept.includes(at)) as T;
  if (kept.length === left.count) return left;
  return new CandidateSet(pick(left.indices), pick(left.logits), pick(left.probs), left.source, left.filters);
}

/** Divides the logits. It belongs after the filters. */
export function applyTemperature(set: CandidateSet, temp: number): CandidateSet {
  return narrowed(set, temperature(temp));
}

/** Draws one of the set by its probabilities, with a number of `prng` or of the shared generator. */
export function sampleFromSet(set: CandidateSet, prng?: Xoroshiro128Plus): number {
  const total = set.probs.reduce((sum, p) => sum + p, 0);
  const target = (prng?.next() ?? random()) * total;
  let running = 0;
  for (const [at, p] of set.probs.entries()) {
    running += p;
    if (running >= target && p > 0) return set.indices[at] ?? 0;
  }
  return set.indices[set.count - 1] ?? 0;
}
