/** tsampler's main function: one token by its chain, with the history and the generator of the caller. */

import { DEFAULT_KCAP, TYPICAL_P_KCAP, type SamplerWorkspace } from "./candidates.js";
import { Chain } from "./chain.js";
import { sampleFromSet } from "./filters.js";
import { TokenHistoryTracker } from "./history.js";
import type { Xoroshiro128Plus } from "./random.js";
import { greedySampler, minP, penalties, temperature, topP, typicalP, type SamplerForm } from "./samplers.js";

/** tsampler's parameters; what is left out has the default of `DEFAULTS`. */
export interface SamplingParams {
  topK?: number;
  topP?: number;
  minP?: number;
  typicalP?: number;
  topNSigma?: number;
  temperature?: number;
  penaltyRepeat?: number;
  penaltyFreq?: number;
  penaltyPresent?: number;
}

export const DEFAULTS: Readonly<Required<SamplingParams>> = {
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  typicalP: 1,
  topNSigma: -1,
  temperature: 0.8,
  penaltyRepeat: 1.1,
  penaltyFreq: 0,
  penaltyPresent: 0,
};

/** "fast": a topK of 0 keeps the best 256, or 512 before typicalP. "parity": all, and llama.cpp's rounding. */
export type SamplerMode = "fast" | "parity";

export interface SampleOptions {
  tokenHistory: TokenHistoryTracker;
  params?: SamplingParams;
  workspace?: SamplerWorkspace;
  mode?: SamplerMode;
  /** The shared generator if left out. */
  prng?: Xoroshiro128Plus;
}

/** The token with the highest logit, the first of equal ones. */
export function greedy(logits: Float32Array): number {
  return picked(logits, [greedySampler()]);
}

function picked(logits: Float32Array, samplers: readonly SamplerForm[], history: readonly number[] = []): number {
  const chain = new Chain(samplers);
  try {
    chain.accept(...history);
    return chain.draw(logits);
  } finally {
    chain.close();
  }
}

/**
 * One token: penalties, top k, typical p, top p, min p, top n sigma, temperature, draw. Logits are not written, and the token is
 * not accepted into the history. A temperature below 0.001 or a topK of 1 takes the best token after the penalties, and draws
 * nothing.
 */
export function sampleWithStrategy(logits: Float32Array, opts: SampleOptions): number {
  const params = { ...DEFAULTS, ...opts.params };
  const { tokenHistory: history, mode = "fast" } = opts;
  const given = { repeat: params.penaltyRepeat, frequency: params.penaltyFreq, presence: params.penaltyPresent };
  const filters: SamplerForm[] = [];
  if (TokenHistoryTracker.hasPenalties(given) && history.size() > 0) {
    filters.push(penalties(history.size(), given.repeat, given.frequency, given.presence));
  }
  if (params.temperature < 1e-3 || params.topK === 1) return picked(logits, [...filters, greedySampler()], history.tokens());
  const whole = mode === "parity" ? 0 : params.typicalP < 1 ? TYPICAL_P_KCAP : DEFAULT_KCAP;
  filters.push(
    { name: "ts_top_k", k: params.topK > 0 ? params.topK : whole },
    typicalP(params.typicalP),
    topP(params.topP),
    minP(params.minP),
    { name: "ts_top_n_sigma", n: params.topNSigma },
    temperature(params.temperature),
  );
  const chain = new Chain(filters, undefined, opts.workspace);
  try {
    if (mode === "parity") chain.parity();
    chain.accept(...history.tokens());
    return sampleFromSet(chain.apply(logits), opts.prng);
  } finally {
    chain.close();
  }
}
