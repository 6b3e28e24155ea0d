/** What a chain leaves of the vocabulary: tokens, logits and probabilities in the chain's order. */

import { F32, library, type NativeLibrary } from "./native.js";
import type { SamplerForm } from "./samplers.js";

/** Candidates that are looked at where no top_k says how many, and before typical_p. */
export const DEFAULT_KCAP = 256;
export const TYPICAL_P_KCAP = 512;

/** How many candidates the filters of these parameters look at in tsampler. */
export function requiredKcap(topK: number | undefined, typicalP: number | undefined, vocabularySize: number): number {
  const least = (typicalP ?? 1) < 1 ? TYPICAL_P_KCAP : DEFAULT_KCAP;
  return Math.min(Math.max(topK ?? 0, least), vocabularySize);
}

/** Memory for candidates, which grows to powers of two and never shrinks. */
export class SamplerWorkspace {
  indices = new Uint32Array(0);
  logits = new Float32Array(0);
  probs = new Float32Array(0);

  constructor(capacity = DEFAULT_KCAP) {
    this.ensureCapacity(capacity);
  }

  /** Number of candidates that it holds. */
  get capacity(): number {
    return this.indices.length;
  }

  /** Makes room for so many candidates. What a set has of the former memory stays as it is. */
  ensureCapacity(count: number): void {
    if (count <= this.capacity) return;
    const size = 2 ** Math.ceil(Math.log2(count));
    this.indices = new Uint32Array(size);
    this.logits = new Float32Array(size);
    this.probs = new Float32Array(size);
  }
}

/** The candidates that are left. The arrays are the set's own. */
export class CandidateSet {
  /** Number of candidates. */
  readonly count: number;

  /**
   * `source` and `filters` say how the set came about, so that a further filter can be applied to it.
   */
  constructor(
    /** Token ids. */
    readonly indices: Uint32Array,
    readonly logits: Float32Array,
    readonly probs: Float32Array,
    readonly source: Float32Array,
    readonly filters: readonly SamplerForm[],
  ) {
    this.count = indices.length;
  }
}

/** The n best tokens, descending, with their probabilities under all logits. */
export function getTopCandidates(
  logits: Float32Array,
  n = 10,
  native: NativeLibrary = library(),
): { tokenId: number; probability: number }[] {
  const most = Math.min(n, logits.length);
  const [ids, shares, written] = [new Uint32Array(most), new Float64Array(most), new BigUint64Array(1)];
  native.call("logitree_metrics_top", logits, F32, logits.length, ids, shares, most, written);
  return Array.from({ length: Number(written[0]) }, (_, at) => ({ tokenId: ids[at] ?? 0, probability: shares[at] ?? 0 }));
}
