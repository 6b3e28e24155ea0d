/**
 * setTokenTrie and clearTokenTrie: which token tree the next generations follow. Trees are cached by content.
 */

import { LogitreeError } from "./errors.js";
import { grammarOf } from "./fallback.js";
import type { LlamaLibrary, Pointer } from "./llama.js";
import { NativeLibrary, terminated, type Handle } from "./native.js";
import type { TokenTreePayload, TokenTrieMode } from "./types.js";

/** Trees that are kept by content; past that the one that was not used for longest is dropped. */
export const CACHED_TREES = 128;

export interface TokenTrieOptions {
  /** The file of logitree's C library. */
  library: string;
  /** The GGUF file whose vocabulary the trees are for. */
  model: string;
  /** Where the library or one of its symbols is absent. "throw": an error. "fallback": a warning, and a grammar instead. */
  absent?: "throw" | "fallback";
  /** Receives warnings; process.emitWarning if left out. */
  onWarning?: (message: string) => void;
}

export interface SpanOptions {
  /** Which descriptor; may be left out where there is one. */
  path?: string;
  /** What follows the leaf: only the end of the generation, or anything. */
  then?: "stop" | "continue";
}

/** A constraint as JSON. */
export type ConstraintForm = { type: string; [field: string]: unknown };

/** What setTokenTrie did. */
export interface TokenTrieState {
  /** Whether the tree was set. false: a grammar takes its place. */
  native: boolean;
  /** Whether the caller gets the slower grammar; `warning` says why. */
  fallback: boolean;
  warning: string | null;
  /** Whether the tree was in the cache. */
  cached: boolean;
}

/** Sums over the steps in which the tree decided. */
export interface TrieCounts {
  steps: number;
  /** Of those, steps with one allowed candidate. */
  sole: number;
  /** Mean of (candidates - allowed candidates) / candidates. */
  skipRatioMean: number;
  skipRatioStd: number;
}

interface Active {
  matcher: Handle;
  mode: TokenTrieMode;
  then: "stop" | "continue";
  /** The grammar that takes the tree's place where the library is absent. */
  grammar: string | null;
}

/** A sampler for a chain of llama.cpp, and what became of it. */
export interface TrieSampler {
  pointer: Pointer;
  /** Raises what went wrong in the sampler, and frees the record. To be called once, after the generation. */
  finish(): TrieCounts;
}

/** The token tree of the next generations. */
export class TokenTrie {
  readonly native: NativeLibrary;
  readonly #options: TokenTrieOptions;
  readonly #cache = new Map<string, Handle>();
  #vocabulary: Handle = 0n;
  #vocabularySize = 0;
  #tree: Active | null = null;
  /** What the generations follow without a tree. */
  #constraint: Active | null = null;
  #warned = false;

  /** Raises a "library" error if the library or a symbol is absent and `absent` is "throw"; "vocabulary" errors. */
  constructor(options: TokenTrieOptions) {
    this.#options = options;
    this.native = new NativeLibrary(options.library);
    if (this.native.absence === null) {
      this.#vocabulary = this.native.make("logitree_vocabulary_from_file", terminated("gguf"), terminated(options.model));
      const size = new BigUint64Array(1);
      this.native.call("logitree_vocabulary_size", this.#vocabulary, size);
      this.#vocabularySize = Number(size[0]);
    } else if ((options.absent ?? "throw") === "throw") {
      throw this.native.absence;
    }
  }

  /**
   * Sets what the next generations may write: a leaf of one descriptor of the payload, instead of what `setConstraint` set.
   * After an error the former tree is cleared, so that nothing runs under a tree that was not meant.
   *
   * Raises a "payload" error with a JSON pointer for a payload that is malformed, does not fit the vocabulary, or has no
   * descriptors, a descriptor without leaves or a leaf without tokens.
   */
  setTokenTrie(payload: TokenTreePayload, mode: TokenTrieMode, span: SpanOptions = {}): TokenTrieState {
    this.clearTokenTrie();
    checked(mode);
    const then = span.then ?? "stop";
    if (this.native.absence !== null) return this.#fall(payload, mode, span, this.native.absence);
    const text = written(payload);
    const key = span.path === undefined ? `tree\0${text}` : `tree at ${span.path}\0${text}`;
    const [tree, cached] = this.#bound(key, mode, then, () => this.#built(text, span.path));
    this.#tree = tree;
    return { native: true, fallback: false, warning: null, cached };
  }

  /**
   * Sets any constraint, in the form that docs/c.md describes: `{type: "json_schema", schema: {...}}`. It ends a tree, and
   * comes back when a later tree is cleared. After an error the former constraint is cleared. There is no fallback: raises the "library" error where the library is absent, and "constraint" errors with a JSON pointer.
   */
  setConstraint(form: ConstraintForm, mode: TokenTrieMode, then: "stop" | "continue" = "stop"): void {
    this.clearTokenTrie();
    this.clearConstraint();
    if (this.native.absence !== null) throw this.native.absence;
    const text = written(form);
    [this.#constraint] = this.#bound(`form\0${text}`, checked(mode), then, () => this.#read(text, 0n));
  }

  /** From now on generations are under the constraint of `setConstraint`, or free without one; no former tree comes back. */
  clearTokenTrie(): void {
    this.#tree = null;
  }

  /** From now on generations without a tree are free. */
  clearConstraint(): void {
    this.#constraint = null;
  }

  /** Whether a tree, the grammar in its place or a constraint is set. */
  get isSet(): boolean {
    return (this.#tree ?? this.#constraint) !== null;
  }

  /** Number of trees in the cache. */
  get cachedTrees(): number {
    return this.#cache.size;
  }

  /**
   * A new sampler for one generation, or null if neither a tree nor a constraint is set. The chain that it is added to owns it.
   *
   * Raises a "constraint" error if this libllama does not fit, and a "vocabulary" error if the model is another.
   */
  sampler(llama: LlamaLibrary, vocabulary: Pointer): TrieSampler | null {
    const active = this.#tree ?? this.#constraint;
    if (active === null) return null;
    if (active.grammar !== null) {
      const pointer = llama.grammar(vocabulary, active.grammar);
      return { pointer, finish: () => ({ steps: 0, sole: 0, skipRatioMean: 0, skipRatioStd: 0 }) };
    }
    const theirs: number = llama.call.llama_vocab_n_tokens(vocabulary);
    if (theirs !== this.#vocabularySize) {
      const message = `the model has ${theirs} tokens, and the tree's ${this.#vocabularySize}`;
      throw new LogitreeError("vocabulary", message, this.#options.model, "make the TokenTrie with the model that generates");
    }
    const functions = new BigUint64Array(10);
    functions.set([80n, 12n, 32n]);
    for (const [at, name] of SAMPLER_FUNCTIONS.entries()) functions[3 + at] = llama.address(name) ?? 0n;
    const mode = active.mode === 0 ? "greedy" : "sample";
    const options = Buffer.from(JSON.stringify({ mode, then: active.then }));
    const [sampler, record] = [new BigUint64Array(1), new BigUint64Array(1)];
    const native = this.native;
    const given = [functions, this.#vocabulary, active.matcher, 0n, options, options.length];
    native.call("logitree_llama_sampler", ...given, sampler, record);
    const handle = record[0] ?? 0n;
    const finish = (): TrieCounts => {
      try {
        native.call("logitree_llama_record_check", handle);
        return counts(native.describe(handle));
      } finally {
        native.call("logitree_free", handle);
      }
    };
    return { pointer: sampler[0] ?? 0n, finish };
  }

  /** Frees the trees and the vocabulary. Samplers that chains own live on. */
  close(): void {
    this.clearTokenTrie();
    this.clearConstraint();
    for (const matcher of this.#cache.values()) this.native.call("logitree_free", matcher);
    this.#cache.clear();
    if (this.#vocabulary !== 0n) this.native.call("logitree_free", this.#vocabulary);
    this.#vocabulary = 0n;
  }

  /** With a matcher from the cache, or a new one. Says whether it was there. */
  #bound(key: string, mode: TokenTrieMode, then: "stop" | "continue", make: () => Handle): [Active, boolean] {
    let matcher = this.#cache.get(key);
    const cached = matcher !== undefined;
    if (matcher === undefined) matcher = this.#matcher(make());
    else this.#cache.delete(key);
    this.#cache.set(key, matcher);
    if (this.#cache.size > CACHED_TREES) this.#drop();
    return [{ matcher, mode, then, grammar: null }, cached];
  }

  /** A token tree, whose ids and names fit the vocabulary. Places of errors are those in the payload. */
  #built(payload: string, path: string | undefined): Handle {
    try {
      return this.#read(JSON.stringify({ type: "token_tree", payload, path }), this.#vocabulary);
    } catch (error) {
      if (!(error instanceof LogitreeError)) throw error;
      throw new LogitreeError(error.kind, error.reason, error.place.replace(/^\/payload(?:, )?/, ""), error.help);
    }
  }

  #read(form: string, vocabulary: Handle): Handle {
    const bytes = Buffer.from(form);
    return this.native.make("logitree_constraint_from_json", bytes, bytes.length, vocabulary);
  }

  /** A matcher of a constraint, which is freed. */
  #matcher(constraint: Handle): Handle {
    try {
      return this.native.make("logitree_matcher_new", constraint, this.#vocabulary);
    } finally {
      this.native.call("logitree_free", constraint);
    }
  }

  #drop(): void {
    const oldest = [...this.#cache].find(([, matcher]) => matcher !== this.#constraint?.matcher);
    if (oldest === undefined) return;
    this.#cache.delete(oldest[0]);
    this.native.call("logitree_free", oldest[1]);
  }

  #fall(payload: TokenTreePayload, mode: TokenTrieMode, span: SpanOptions, why: LogitreeError): TokenTrieState {
    const then = span.then ?? "stop";
    this.#tree = { matcher: 0n, mode, then, grammar: grammarOf(payload, span.path, then) };
    const warning = `${why.message}: a grammar takes the place of the token tree`;
    if (!this.#warned) (this.#options.onWarning ?? ((message) => process.emitWarning(message, "LogitreeWarning")))(warning);
    this.#warned = true;
    return { native: false, fallback: true, warning, cached: false };
  }
}

/** In the order of logitree_llama_library. */
const SAMPLER_FUNCTIONS = [
  "llama_sampler_init",
  "llama_sampler_name",
  "llama_sampler_accept",
  "llama_sampler_apply",
  "llama_sampler_reset",
  "llama_sampler_clone",
  "llama_sampler_free",
];

function counts({ steps, sole, skip_ratio: sum, skip_ratio_squared: squares }: Record<string, any>): TrieCounts {
  const mean = steps === 0 ? 0 : sum / steps;
  return { steps, sole, skipRatioMean: mean, skipRatioStd: steps === 0 ? 0 : Math.sqrt(Math.max(0, squares / steps - mean * mean)) };
}

function checked(mode: TokenTrieMode): TokenTrieMode {
  if (mode !== 0 && mode !== 1) throw new LogitreeError("argument", `mode ${String(mode)}`, "mode", "give 0 or 1");
  return mode;
}

/** The JSON of a payload or a form: its content, and what the library reads. */
function written(payload: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload);
  } catch (error) {
    throw new LogitreeError("payload", `the payload cannot be written as JSON: ${(error as Error).message}`);
  }
  if (text === undefined) throw new LogitreeError("payload", "there is no payload", "", "clearTokenTrie() lifts a constraint");
  return text;
}
