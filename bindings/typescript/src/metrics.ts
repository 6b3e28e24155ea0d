/** Values about a distribution of logits, in nats or bits; they change nothing. */

import { F32, library } from "./native.js";

/** The unit of surprisal and entropy. */
export type Base = "nats" | "bits";

/** The entropy of the model's distribution; Infinity without a finite logit. */
export function computeModelEntropy(logits: Float32Array, base: Base = "nats"): number {
  const out = new Float64Array(1);
  library().call("logitree_metrics_measure", logits, F32, null, logits.length, 0, base === "bits", out, null);
  return out[0] ?? Infinity;
}

/** Minus the logarithm of a token's probability; Infinity for what is no token, and where its logit is not finite. */
export function computeModelSurprisal(logits: Float32Array, tokenId: number, base: Base = "nats"): number {
  return surprisal(logits, null, tokenId, base);
}

/** The entropy of what filters left. */
export function computeSamplingEntropy(candidateLogits: Float32Array, base: Base = "nats"): number {
  return computeModelEntropy(candidateLogits, base);
}

/** The surprisal of a token among what filters left; Infinity if it is not among them. */
export function computeSamplingSurprisal(
  candidateLogits: Float32Array,
  candidateIds: Uint32Array,
  tokenId: number,
  base: Base = "nats",
): number {
  return surprisal(candidateLogits, candidateIds, tokenId, base);
}

function surprisal(logits: Float32Array, ids: Uint32Array | null, token: number, base: Base): number {
  if (!Number.isInteger(token) || token < 0 || token >= 2 ** 32) return Infinity;
  const out = new Float64Array(1);
  library().call("logitree_metrics_measure", logits, F32, ids, logits.length, token, base === "bits", null, out);
  return out[0] ?? Infinity;
}

/** The perplexity of a sequence: exp of the mean surprisal, in nats. What is not finite is not counted. */
export class RollingPerplexity {
  #sum = 0;
  #count = 0;

  addSurprisal(surprisal: number): void {
    if (!Number.isFinite(surprisal)) return;
    this.#sum += surprisal;
    this.#count++;
  }

  /** Infinity before the first surprisal. */
  ppl(): number {
    return this.#count === 0 ? Infinity : Math.exp(this.#sum / this.#count);
  }

  count(): number {
    return this.#count;
  }

  reset(): void {
    this.#sum = this.#count = 0;
  }
}
