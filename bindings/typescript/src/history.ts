/** The last accepted tokens, and llama.cpp's penalties for them. */

import { LogitreeError } from "./errors.js";

/** What is done to the logits of tokens in the history. */
export interface Penalties {
  /** Divides a logit above 0 and multiplies the others; 1 is off. */
  repeat?: number;
  /** Subtracted once for each occurrence. */
  frequency?: number;
  /** Subtracted where there is an occurrence. */
  presence?: number;
}

/** The last tokens, at most as many as the window. */
export class TokenHistoryTracker {
  readonly #window: number[] = [];
  readonly #counts = new Map<number, number>();

  /** Raises an "argument" error for what is no window. */
  constructor(readonly penaltyLastN: number) {
    if (!Number.isInteger(penaltyLastN) || penaltyLastN < 0) {
      throw new LogitreeError("argument", `a window of ${String(penaltyLastN)} tokens`, "penaltyLastN", "give 0 or more");
    }
  }

  /** Takes a token; the oldest one leaves a full window. */
  accept(token: number): void {
    if (this.penaltyLastN === 0) return;
    this.#window.push(token);
    this.#counts.set(token, this.getCount(token) + 1);
    if (this.#window.length <= this.penaltyLastN) return;
    const oldest = this.#window.shift() ?? 0;
    const left = this.getCount(oldest) - 1;
    if (left === 0) this.#counts.delete(oldest);
    else this.#counts.set(oldest, left);
  }

  getCount(token: number): number {
    return this.#counts.get(token) ?? 0;
  }

  hasToken(token: number): boolean {
    return this.#counts.has(token);
  }

  reset(): void {
    this.#window.length = 0;
    this.#counts.clear();
  }

  /** Number of tokens in the window. */
  size(): number {
    return this.#window.length;
  }

  getUniqueTokens(): number[] {
    return [...this.#counts.keys()];
  }

  /** The tokens of the window, oldest first. */
  tokens(): readonly number[] {
    return this.#window;
  }

  /** A token's logit after its penalties, in llama.cpp's order and rounding. */
  computeAdjustment(tokenId: number, baseLogit: number, params: Penalties): number {
    const count = this.getCount(tokenId);
    if (count === 0) return baseLogit;
    const { repeat = 1, frequency = 0, presence = 0 } = params;
    const [logit, factor] = [Math.fround(baseLogit), Math.fround(repeat)];
    const repeated = Math.fround(logit <= 0 ? logit * factor : logit / factor);
    const sum = Math.fround(Math.fround(count * Math.fround(frequency)) + Math.fround(presence));
    return Math.fround(repeated - sum);
  }

  /** Whether penalties change anything. */
  static hasPenalties(params: Penalties): boolean {
    return (params.repeat ?? 1) !== 1 || (params.frequency ?? 0) !== 0 || (params.presence ?? 0) !== 0;
  }
}

/** Writes the penalised logits of the tokens in the history. */
export function applyPenalties(logits: Float32Array, tokenHistory: TokenHistoryTracker, params: Penalties): void {
  for (const token of tokenHistory.getUniqueTokens()) {
    const logit = logits[token];
    if (logit !== undefined) logits[token] = tokenHistory.computeAdjustment(token, logit, params);
  }
}

export function applyRepetitionPenalty(logits: Float32Array, tokenHistory: TokenHistoryTracker, penalty: number): void {
  applyPenalties(logits, tokenHistory, { repeat: penalty });
}

export function applyFrequencyPenalty(logits: Float32Array, tokenHistory: TokenHistoryTracker, penalty: number): void {
  applyPenalties(logits, tokenHistory, { frequency: penalty });
}

export function applyPresencePenalty(logits: Float32Array, tokenHistory: TokenHistoryTracker, penalty: number): void {
  applyPenalties(logits, tokenHistory, { presence: penalty });
}
