/**
 * A loop over libllama: load a GGUF, evaluate a prompt, sample through a chain, stream the text.
 *
 * libllama is called directly. node-llama-cpp's build offers its own samplers only, and takes no foreign llama_sampler.
 * libllama's parameter structs grow with its versions, so none is spelled out: they are passed as blocks of memory that are
 * longer than any version's, first filled by libllama's own defaults. Structs of this size are passed in memory, and the
 * callee reads its own length. Only n_ctx, n_batch and n_ubatch are written, the first three fields of the context's
 * parameters in every version.
 */

import koffi from "koffi";
import { LogitreeError } from "./errors.js";
import type { SpanOptions, TokenTrie, TrieCounts, TrieSampler } from "./trie.js";
import type { TokenTreePayload, TokenTrieMode } from "./types.js";

/** An address in another library. */
export type Pointer = unknown;

const PARAMETERS = koffi.struct("LlamaParameters", { words: koffi.array("uint32_t", 256) });
const BATCH = koffi.struct("LlamaBatch", { words: koffi.array("uint64_t", 32) });
const CHAIN = koffi.struct("LlamaChainParameters", { no_perf: "bool" });
const MODEL = koffi.pointer("LlamaModel", koffi.opaque());
const CONTEXT = koffi.pointer("LlamaContext", koffi.opaque());
const VOCABULARY = koffi.pointer("LlamaVocabulary", koffi.opaque());
const MEMORY = koffi.pointer("LlamaMemory", koffi.opaque());
const SAMPLER = koffi.pointer("LlamaSampler", koffi.opaque());

type Words = { words: Uint32Array };
type Native = ReturnType<ReturnType<typeof koffi.load>["func"]>;

const FUNCTIONS = {
  llama_backend_init: ["void", []],
  llama_log_set: ["void", ["void *", "void *"]],
  llama_model_default_params: [PARAMETERS, []],
  llama_model_load_from_file: [MODEL, ["const char *", PARAMETERS]],
  llama_model_free: ["void", [MODEL]],
  llama_model_get_vocab: [VOCABULARY, [MODEL]],
  llama_context_default_params: [PARAMETERS, []],
  llama_init_from_model: [CONTEXT, [MODEL, PARAMETERS]],
  llama_free: ["void", [CONTEXT]],
  llama_n_ctx: ["uint32_t", [CONTEXT]],
  llama_get_memory: [MEMORY, [CONTEXT]],
  llama_memory_clear: ["void", [MEMORY, "bool"]],
  llama_vocab_n_tokens: ["int32_t", [VOCABULARY]],
  llama_vocab_is_eog: ["bool", [VOCABULARY, "int32_t"]],
  llama_tokenize: ["int32_t", [VOCABULARY, "const char *", "int32_t", "int32_t *", "int32_t", "bool", "bool"]],
  llama_token_to_piece: ["int32_t", [VOCABULARY, "int32_t", "uint8_t *", "int32_t", "int32_t", "bool"]],
  llama_batch_get_one: [BATCH, ["int32_t *", "int32_t"]],
  llama_decode: ["int32_t", [CONTEXT, BATCH]],
  llama_sampler_chain_default_params: [CHAIN, []],
  llama_sampler_chain_init: [SAMPLER, [CHAIN]],
  llama_sampler_chain_add: ["void", [SAMPLER, SAMPLER]],
  llama_sampler_sample: ["int32_t", [SAMPLER, CONTEXT, "int32_t"]],
  llama_sampler_free: ["void", [SAMPLER]],
  llama_sampler_init_penalties: [SAMPLER, ["int32_t", "float", "float", "float"]],
  llama_sampler_init_top_k: [SAMPLER, ["int32_t"]],
  llama_sampler_init_top_p: [SAMPLER, ["float", "size_t"]],
  llama_sampler_init_min_p: [SAMPLER, ["float", "size_t"]],
  llama_sampler_init_temp: [SAMPLER, ["float"]],
  llama_sampler_init_dist: [SAMPLER, ["uint32_t"]],
  llama_sampler_init_greedy: [SAMPLER, []],
  llama_sampler_init_grammar: [SAMPLER, [VOCABULARY, "const char *", "const char *"]],
} as const;

type Name = keyof typeof FUNCTIONS;

/** The functions of one libllama. */
export class LlamaLibrary {
  readonly #library: ReturnType<typeof koffi.load>;
  readonly call: Record<Name, Native>;

  /** Raises a "library" error that names the file and every symbol that is missing. */
  constructor(readonly path: string) {
    try {
      this.#library = koffi.load(path);
    } catch (error) {
      throw new LogitreeError("library", `libllama cannot be loaded: ${(error as Error).message}`, path, HELP);
    }
    const missing: string[] = [];
    const found: Partial<Record<Name, Native>> = {};
    for (const [name, [result, parameters]] of Object.entries(FUNCTIONS)) {
      try {
        found[name as Name] = this.#library.func(name, result, [...parameters]);
      } catch {
        missing.push(name);
      }
    }
    if (missing.length > 0) throw new LogitreeError("library", `libllama lacks ${missing.join(", ")}`, path, HELP);
    this.call = found as Record<Name, Native>;
    this.call.llama_backend_init();
  }

  /** The address of a function; null if there is none of that name. */
  address(name: string): bigint | null {
    try {
      return koffi.address(this.#library.symbol(name));
    } catch {
      return null;
    }
  }

  /** A sampler of libllama's own for a grammar. Raises a "constraint" error if it takes it not. */
  grammar(vocabulary: Pointer, source: string): Pointer {
    const made: Pointer = this.call.llama_sampler_init_grammar(vocabulary, source, "root");
    if (!made) throw new LogitreeError("constraint", "libllama refuses the grammar", source.slice(0, 200));
    return made;
  }

  /** Keeps libllama from writing to the standard error stream. */
  silence(): void {
    // Any function without effect will do as the receiver of messages: the caller removes the arguments.
    this.call.llama_log_set(this.#library.symbol("llama_time_us"), null);
  }
}

const HELP = "give the libllama of a llama.cpp build of 2025 or later";

export interface ModelOptions {
  /** The file of libllama. */
  library: string;
  /** The GGUF file. */
  model: string;
  /** Tokens of context. */
  contextSize?: number;
  /** Whether libllama may write to the standard error stream. */
  verbose?: boolean;
}

export interface GenerateOptions {
  maxTokens?: number;
  /** 0 takes the likeliest token. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  seed?: number;
  /** Whether special tokens are recognised in the prompt. */
  special?: boolean;
  /** The token tree of this call alone. It is cleared when the call ends, in any way; with it a tree that was set before. */
  tokenTreePayload?: TokenTreePayload;
  /** Its mode; 0 if left out. */
  tokenTreeMode?: TokenTrieMode;
  /** Its descriptor, and what follows the leaf. */
  tokenTreeSpan?: SpanOptions;
  /** Ends the call between two tokens: it throws the signal's reason. */
  signal?: AbortSignal;
}

/** A piece of the output. */
export interface Piece {
  token: number;
  /** The characters that are complete now; may be empty inside a character. */
  text: string;
}

/** How a generation ended. */
export interface Finish {
  /** "stop": an end-of-generation token; "length": maxTokens; "context": the context is full. */
  reason: "stop" | "length" | "context";
  /** What the token tree masked; null without one. */
  counts: TrieCounts | null;
}

/** A model and its one context. */
export class LlamaModel {
  readonly #model: Pointer;
  readonly #context: Pointer;
  readonly #vocabulary: Pointer;
  /** The tokens of a batch. libllama reads them after the call that gets their address, so they lie in memory of their own. */
  readonly #batch: Pointer;
  #running = false;
  #closed = false;

  private constructor(readonly library: LlamaLibrary, model: Pointer, context: Pointer) {
    this.#model = model;
    this.#context = context;
    this.#vocabulary = library.call.llama_model_get_vocab(model);
    this.#batch = koffi.alloc("int32_t", library.call.llama_n_ctx(context));
  }

  /** Loads a model in a worker thread. Raises an "engine" error if it cannot be loaded. */
  static async load(options: ModelOptions): Promise<LlamaModel> {
    const library = new LlamaLibrary(options.library);
    if (!options.verbose) library.silence();
    const call = library.call;
    const parameters: Words = call.llama_model_default_params();
    const model = await later(call.llama_model_load_from_file, options.model, parameters);
    if (!model) throw new LogitreeError("engine", "the model cannot be loaded", options.model, "give a GGUF file");
    const settings: Words = call.llama_context_default_params();
    const size = options.contextSize ?? 2048;
    if (!Number.isInteger(size) || size < 1 || size > 2 ** 24) {
      call.llama_model_free(model);
      throw new LogitreeError("engine", `a context of ${size} tokens`, "contextSize", "give 1 to 16777216");
    }
    settings.words.fill(size, 0, 3);
    const context = call.llama_init_from_model(model, settings);
    if (!context || call.llama_n_ctx(context) < size) {
      if (context) call.llama_free(context);
      call.llama_model_free(model);
      throw new LogitreeError("engine", `no context of ${size} tokens`, options.model, "give a smaller contextSize");
    }
    return new LlamaModel(library, model, context);
  }

  /** Number of token ids. */
  get vocabularySize(): number {
    this.#check();
    return this.library.call.llama_vocab_n_tokens(this.#vocabulary);
  }

  /** A text's tokens; without special tokens unless asked for. */
  tokenize(text: string, options: { begin?: boolean; special?: boolean } = {}): number[] {
    this.#check();
    const bytes = Buffer.from(text);
    const room = new Int32Array(bytes.length + 8);
    const count: number = this.library.call.llama_tokenize(
      this.#vocabulary,
      bytes,
      bytes.length,
      room,
      room.length,
      options.begin ?? false,
      options.special ?? false,
    );
    if (count < 0) throw new LogitreeError("engine", "the text cannot be tokenised");
    return [...room.subarray(0, count)];
  }

  /** The bytes of a token. */
  bytes(token: number): Uint8Array {
    const known = this.vocabularySize;
    if (!Number.isInteger(token) || token < 0 || token >= known) {
      throw new LogitreeError("token", `token ${token} is not in the vocabulary`, "", `its ids run from 0 to ${known - 1}`);
    }
    let room = Buffer.alloc(64);
    let size: number = this.library.call.llama_token_to_piece(this.#vocabulary, token, room, room.length, 0, true);
    if (size < 0) {
      room = Buffer.alloc(-size);
      size = this.library.call.llama_token_to_piece(this.#vocabulary, token, room, room.length, 0, true);
    }
    return room.subarray(0, size);
  }

  /**
   * Generates after a prompt, under the tree that `trie` has now, or that `options` set in it for this call. Its sampler comes after the penalties and before everything
   * that cuts candidates: what it leaves is what they choose from.
   *
   * Gives the reason of the end. Raises an "engine" error if the prompt does not fit or a pass fails, what `setTokenTrie`
   * raises for a payload of this call, and what the tree's sampler could not do.
   */
  async *generate(
    prompt: string | readonly number[],
    options: GenerateOptions = {},
    trie: TokenTrie | null = null,
  ): AsyncGenerator<Piece, Finish, void> {
    this.#check();
    if (this.#running) throw new LogitreeError("state", "a generation is running", "", "end it, or load a second model");
    const { tokenTreePayload: payload, tokenTreeMode: mode = 0, tokenTreeSpan: span = {}, signal } = options;
    if (payload !== undefined && trie === null) {
      throw new LogitreeError("argument", "a tokenTreePayload without a TokenTrie", "tokenTreePayload", "give one to generate");
    }
    this.#running = true;
    const call = this.library.call;
    let chain: Pointer = null;
    let sampler: TrieSampler | null = null;
    let reason: Finish["reason"] = "length";
    let counts: TrieCounts | null = null;
    try {
      const tokens =
        typeof prompt === "string" ? this.tokenize(prompt, { begin: true, special: options.special ?? true }) : prompt;
      const most = options.maxTokens ?? 256;
      const size: number = call.llama_n_ctx(this.#context);
      if (tokens.length === 0 || tokens.length >= size) {
        throw new LogitreeError("engine", `a prompt of ${tokens.length} tokens, and a context of ${size}`);
      }
      if (payload !== undefined) trie?.setTokenTrie(payload, mode, span);
      sampler = trie?.sampler(this.library, this.#vocabulary) ?? null;
      chain = this.#chain(options, sampler?.pointer ?? null);
      call.llama_memory_clear(call.llama_get_memory(this.#context), true);
      const decoder = new TextDecoder();
      let pending: readonly number[] = tokens;
      for (let made = 0, used = tokens.length; made < most; made++, used++) {
        if (used > size) {
          reason = "context";
          break;
        }
        signal?.throwIfAborted();
        koffi.encode(this.#batch, "int32_t", pending, pending.length);
        const batch = call.llama_batch_get_one(this.#batch, pending.length);
        const failed: number = await later(call.llama_decode, this.#context, batch);
        if (failed !== 0) throw new LogitreeError("engine", `llama_decode gave ${failed}`);
        const token: number = call.llama_sampler_sample(chain, this.#context, -1);
        if (call.llama_vocab_is_eog(this.#vocabulary, token)) {
          reason = "stop";
          break;
        }
        yield { token, text: decoder.decode(this.bytes(token), { stream: true }) };
        pending = [token];
      }
      const finish = sampler?.finish;
      sampler = null;
      if (finish !== undefined) counts = finish();
    } finally {
      if (payload !== undefined) trie?.clearTokenTrie();
      if (chain) call.llama_sampler_free(chain);
      this.#running = false;
      abandon(sampler);
    }
    return { reason, counts };
  }

  /** Frees model and context. Not while a generation runs. */
  close(): void {
    if (this.#running) throw new LogitreeError("state", "a generation is running", "", "end it first");
    if (this.#closed) return;
    this.#closed = true;
    this.library.call.llama_free(this.#context);
    this.library.call.llama_model_free(this.#model);
    koffi.free(this.#batch);
  }

  #chain(options: GenerateOptions, own: Pointer | null): Pointer {
    const call = this.library.call;
    const chain = call.llama_sampler_chain_init(call.llama_sampler_chain_default_params());
    let left = own;
    try {
      const add = (one: Pointer): void => call.llama_sampler_chain_add(chain, one);
      const penalty = options.repeatPenalty ?? 1;
      if (penalty !== 1) add(call.llama_sampler_init_penalties(64, penalty, 0, 0));
      if (left) add(left);
      left = null;
      const temperature = options.temperature ?? 0;
      if (temperature <= 0) {
        add(call.llama_sampler_init_greedy());
        return chain;
      }
      if (options.topK !== undefined) add(call.llama_sampler_init_top_k(options.topK));
      if (options.topP !== undefined) add(call.llama_sampler_init_top_p(options.topP, 1));
      if (options.minP !== undefined) add(call.llama_sampler_init_min_p(options.minP, 1));
      add(call.llama_sampler_init_temp(temperature));
      add(call.llama_sampler_init_dist(options.seed ?? Math.floor(Math.random() * 2 ** 32)));
      return chain;
    } catch (error) {
      // An option that is no number: nothing of the chain may be left.
      if (left) call.llama_sampler_free(left);
      call.llama_sampler_free(chain);
      throw error;
    }
  }

  #check(): void {
    if (this.#closed) throw new LogitreeError("state", "the model is closed", "", "load it again");
  }
}

/** Frees the record of a generation that ended early; the caller has another error, or left. */
function abandon(sampler: TrieSampler | null): void {
  try {
    sampler?.finish();
  } catch (error) {
    if (!(error instanceof LogitreeError)) throw error;
  }
}

/** A native call in a worker thread, so that the event loop is free meanwhile. */
function later(call: Native, ...args: unknown[]): Promise<any> {
  return new Promise((resolve, reject) => {
    call.async(...args, (error: unknown, result: unknown) => (error ? reject(error) : resolve(result)));
  });
}
