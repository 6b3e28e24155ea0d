/** A chain of samplers with its random numbers and its history, in the C library. */

import { CandidateSet, SamplerWorkspace } from "./candidates.js";
import { F32, library, terminated, type FunctionName, type Handle, type NativeLibrary } from "./native.js";
import type { SamplerForm, SeedOptions } from "./samplers.js";

/** Keywords of a whole chain, as docs/samplers.md lists them: `{temp: 0.8, top_k: 40, seed: 42}`. */
export type ChainParams = SeedOptions & Record<string, unknown>;

/** Additions to logits by token; -Infinity vetoes one. */
export type Edits = ReadonlyMap<number, number> | Readonly<Record<number, number>>;

/** JSON in which bigints are numbers. */
function written(value: unknown): Uint8Array {
  const marked = JSON.stringify(value, (_, one: unknown) => (typeof one === "bigint" ? `\u0001${one}\u0001` : one));
  return Buffer.from(marked.replaceAll(/"\\u0001(-?\d+)\\u0001"/g, "$1"));
}

function made(native: NativeLibrary, notation: string | null, parameters: Record<string, unknown>): Handle {
  const json = written(parameters);
  return native.make("logitree_chain_new", notation === null ? null : terminated(notation), json, json.length);
}

/** Frees the handles of chains that were dropped without `close`. */
const dropped = new FinalizationRegistry<[NativeLibrary, Handle]>(([native, handle]) => native.raw("logitree_free", handle));

/** Samplers in order. Logits are read and never written; a chain is for one sequence. */
export class Chain {
  readonly native: NativeLibrary;
  #handle: Handle;
  #filters: readonly SamplerForm[];
  #workspace: SamplerWorkspace;

  /**
   * The chain of these samplers. One that does not select can be applied and not drawn from. A handle of the library becomes
   * the chain's own.
   *
   * Raises a "sampling" error with the place of a parameter that no sampler takes.
   */
  constructor(
    samplers: readonly SamplerForm[] | Handle,
    native: NativeLibrary = library(),
    workspace: SamplerWorkspace = new SamplerWorkspace(1),
  ) {
    const isHandle = typeof samplers === "bigint";
    this.native = native;
    this.#filters = isHandle ? [] : samplers;
    this.#workspace = workspace;
    this.#handle = isHandle ? samplers : made(native, null, { samplers });
    dropped.register(this, [native, this.#handle], this);
  }

  /** llama.cpp's chain with its defaults. */
  static llamaCpp(params: ChainParams = {}, native: NativeLibrary = library()): Chain {
    return new Chain(made(native, null, { preset: "llama_cpp", ...params }), native);
  }

  /** tsampler's chain with its defaults and its generator. */
  static tsampler(params: ChainParams = {}, native: NativeLibrary = library()): Chain {
    return new Chain(made(native, null, { preset: "tsampler", ...params }), native);
  }

  /** transformers' chain with its defaults. */
  static transformers(params: ChainParams = {}, native: NativeLibrary = library()): Chain {
    return new Chain(made(native, null, { preset: "transformers", ...params }), native);
  }

  /** The chain of llama.cpp's notation: "penalties;top_k;temperature", or its letters, "ekt". */
  static parse(notation: string, params: ChainParams = {}, native: NativeLibrary = library()): Chain {
    return new Chain(made(native, notation, params), native);
  }

  /** The candidates that are left, in the chain's order; a sampler that draws has drawn. Nothing is accepted. */
  apply(logits: Float32Array): CandidateSet {
    const room = this.#workspace;
    room.ensureCapacity(logits.length);
    const count = new BigUint64Array(1);
    const { indices, logits: left, probs, capacity } = room;
    this.#call("logitree_chain_apply", logits, F32, logits.length, 0n, indices, left, probs, capacity, count);
    const n = Number(count[0]);
    return new CandidateSet(indices.slice(0, n), left.slice(0, n), probs.slice(0, n), logits, this.#filters);
  }

  /** The next token, which is not accepted. Raises a "logits" error if none is left, "sampling" if nothing selects. */
  draw(logits: Float32Array): number {
    const token = new Uint32Array(1);
    this.#call("logitree_chain_draw", logits, F32, logits.length, 0n, token);
    return token[0] ?? 0;
  }

  /** The next token, accepted. */
  sample(logits: Float32Array): number {
    const token = this.draw(logits);
    this.accept(token);
    return token;
  }

  /** Records accepted tokens, of the output or of the prompt. */
  accept(...tokens: readonly number[]): void {
    this.#call("logitree_accept", Uint32Array.from(tokens), tokens.length);
  }

  /** Forgets the last accepted tokens and all that was drawn for them. */
  rollback(count: number): void {
    this.#call("logitree_rollback", count);
  }

  /** Back to the seed: nothing accepted, no steering. */
  reset(): void {
    this.#call("logitree_reset");
  }

  /** An independent copy in the same state. */
  clone(): Chain {
    const copy = new Chain(this.native.make("logitree_chain_clone", this.#handle), this.native);
    copy.#filters = this.#filters;
    return copy;
  }

  /** Computes as llama.cpp does from the next step on, rounding and ties included; false: as fast as possible. */
  parity(on = true): this {
    this.set({ parity: Number(on) });
    return this;
  }

  /** Changes numeric parameters from the next step on: `{temp: 0.5}`. */
  set(parameters: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(parameters)) this.#call("logitree_chain_set", terminated(name), value);
  }

  /** Adds to logits at every step, before the first sampler, in place of former additions; null: none. */
  steer(edits: Edits | null): void {
    const pairs = edits instanceof Map ? [...edits] : Object.entries(edits ?? {}).map(([id, by]) => [Number(id), by as number]);
    const ids = Uint32Array.from(pairs, ([id]) => id ?? 0);
    const additions = Float32Array.from(pairs, ([, by]) => by ?? 0);
    this.#call("logitree_chain_steer", ids, additions, ids.length);
  }

  /** The state without samplers and parameters: generators, histories, running means. */
  snapshot(): Uint8Array {
    return this.native.bytes("logitree_chain_snapshot", this.#handle);
  }

  /** Takes the state that a chain of the same samplers gave. */
  restore(snapshot: Uint8Array): void {
    this.#call("logitree_chain_restore", snapshot, snapshot.length);
  }

  /** The samplers with their parameters. */
  describe(): string {
    return this.native.describe(this.#handle)["samplers"].join(" -> ");
  }

  /** Frees it. A chain that is dropped without it is freed some time later. */
  close(): void {
    if (this.#handle === 0n) return;
    dropped.unregister(this);
    this.#call("logitree_free");
    this.#handle = 0n;
  }

  #call(name: FunctionName, ...args: unknown[]): void {
    this.native.call(name, this.#handle, ...args);
  }
}
