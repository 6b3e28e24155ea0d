/** tsampler's generator: xoroshiro128+ from splitmix64, the numbers of `logitree.samplers.Random(seed, "xoroshiro128plus")`. */

import { LogitreeError } from "./errors.js";

const WORD = (1n << 64n) - 1n;

function rotated(word: bigint, by: bigint): bigint {
  return ((word << by) | (word >> (64n - by))) & WORD;
}

/** Random numbers of a seed of up to 64 bits; milliseconds will do. */
export class Xoroshiro128Plus {
  readonly seed: bigint;
  #state: [bigint, bigint];

  /** Raises an "argument" error for what is no whole number from 0 to 2^64 - 1. */
  constructor(seed: number | bigint) {
    const isWhole = typeof seed === "bigint" || Number.isSafeInteger(seed);
    if (!isWhole || BigInt(seed) < 0n || BigInt(seed) > WORD) {
      throw new LogitreeError("argument", `the seed ${String(seed)}`, "seed", "give a whole number from 0 to 2^64 - 1");
    }
    this.seed = BigInt(seed);
    this.#state = started(this.seed);
  }

  /** The next number, from 0 up to but without 1. */
  next(): number {
    const [a, b] = this.#state;
    const mixed = a ^ b;
    this.#state = [rotated(a, 24n) ^ mixed ^ ((mixed << 16n) & WORD), rotated(mixed, 37n)];
    return Number(((a + b) & WORD) >> 11n) * 2 ** -53;
  }

  /** Back to the seed. */
  reset(): void {
    this.#state = started(this.seed);
  }
}

/** The first two outputs of splitmix64. */
function started(seed: bigint): [bigint, bigint] {
  const output = (at: bigint): bigint => {
    let z = (seed + at * 0x9e3779b97f4a7c15n) & WORD;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & WORD;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & WORD;
    return z ^ (z >> 31n);
  };
  return [output(1n), output(2n)];
}

let shared: Xoroshiro128Plus | null = null;

/** Seeds the generator that `random` draws from: what samples without a generator of its own. */
export function initializePRNG(seed: number | bigint): void {
  shared = new Xoroshiro128Plus(seed);
}

/** A number of the shared generator, which is seeded with the time in milliseconds if it was not. */
export function random(): number {
  return (shared ??= new Xoroshiro128Plus(Date.now())).next();
}

/** The shared generator back to its seed. */
export function resetPRNG(): void {
  shared?.reset();
}
