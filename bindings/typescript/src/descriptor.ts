/** Payloads from names: the same names in any order give the same payload, byte for byte. */

import { LogitreeError } from "./errors.js";
import type { TokenTreeDescriptor, TokenTreePayload, Tokenize } from "./types.js";

/** Names whose tokens are kept per model; the next one drops them all. */
export const CAPACITY = 8192;

/** The tokens of names, per model. */
export class TokenizerCache {
  readonly #models = new Map<string, Map<string, readonly number[]>>();

  constructor(readonly capacity: number = CAPACITY) {}

  /** The tokens of a name; `tokenize` is called only if they are not known. */
  tokens(modelId: string, name: string, tokenize: Tokenize): readonly number[] {
    let names = this.#models.get(modelId);
    if (names === undefined) this.#models.set(modelId, (names = new Map()));
    let known = names.get(name);
    if (known === undefined) {
      known = [...tokenize(name)];
      if (names.size >= this.capacity) names.clear();
      names.set(name, known);
    }
    return known;
  }

  /** How many names of a model are known. */
  size(modelId: string): number {
    return this.#models.get(modelId)?.size ?? 0;
  }

  /** Drops one model's names. */
  forget(modelId: string): void {
    this.#models.delete(modelId);
  }
}

/**
 * The descriptor of the span at `path` whose values are `names`; null if no name is left. Missing and empty names are
 * dropped, of equal names the first counts, and the rest is sorted by code point. Raises a "payload" error for a name of
 * which `tokenize` gives no tokens: it could not be generated.
 */
export function descriptor(
  path: string,
  names: Iterable<string | null | undefined>,
  tokenize: Tokenize,
): TokenTreeDescriptor | null {
  const kept = distinct(names);
  if (kept.length === 0) return null;
  const leaves = kept.map((name) => ({ name, tokens: [...tokenize(name)] }));
  const lacking = leaves.find((leaf) => leaf.tokens.length === 0);
  if (lacking !== undefined) {
    throw new LogitreeError("payload", `the name ${JSON.stringify(lacking.name)} has no tokens`, path, "tokenize gave an empty list");
  }
  return { path, leaves };
}

/** The payload of the descriptors that are there; null without any: nothing is constrained then. */
export function payload(
  modelId: string,
  descriptors: Iterable<TokenTreeDescriptor | null>,
): TokenTreePayload | null {
  const kept = [...descriptors].filter((one) => one !== null);
  return kept.length === 0 ? null : { modelId, descriptors: kept };
}

/** Names without repetition, missing and empty ones, sorted by code point. */
export function distinct(names: Iterable<string | null | undefined>): string[] {
  const kept = new Set<string>();
  for (const name of names) if (name) kept.add(name);
  return [...kept].sort(byCodePoint);
}

/** The order of code points. JavaScript's own order of strings puts U+10000 and above before U+E000. */
export function byCodePoint(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at++) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates after every other code unit. */
function rank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
