/**
 * logitree's C library (include/logitree.h): its functions through koffi on Node and bun:ffi on bun, and which of them are
 * missing. Only numbers and addresses cross: handles are numbers of 52 bits, structs and results lie in typed arrays.
 */

import { createRequire } from "node:module";
import { LogitreeError } from "./errors.js";

/** The version of the interface that this package was written for. */
export const ABI_VERSION = 1;

type Kind = "i32" | "u32" | "f64" | "bool" | "handle" | "size" | "memory" | "text" | "void";

const FUNCTIONS = {
  logitree_abi_version: ["u32", []],
  logitree_version: ["text", []],
  logitree_error_message: ["text", []],
  logitree_error_place: ["text", []],
  logitree_error_help: ["text", []],
  logitree_status_name: ["text", ["i32"]],
  logitree_live_handles: ["size", []],
  logitree_vocabulary_from_gguf: ["i32", ["memory", "memory"]],
  logitree_vocabulary_size: ["i32", ["handle", "memory"]],
  logitree_vocabulary_free: ["i32", ["handle"]],
  logitree_constraint_token_tree: ["i32", ["memory", "size", "memory", "handle", "memory", "memory"]],
  logitree_constraint_from_json: ["i32", ["memory", "size", "memory"]],
  logitree_constraint_free: ["i32", ["handle"]],
  logitree_matcher_new: ["i32", ["handle", "handle", "memory"]],
  logitree_matcher_free: ["i32", ["handle"]],
  logitree_chain_new: ["i32", ["memory", "memory", "size", "memory"]],
  logitree_chain_clone: ["i32", ["handle", "memory"]],
  logitree_chain_free: ["i32", ["handle"]],
  logitree_chain_set_parity: ["i32", ["handle", "bool"]],
  logitree_chain_apply: ["i32", ["handle", "memory", "size", "handle", "memory", "memory", "memory", "size", "memory"]],
  logitree_chain_draw: ["i32", ["handle", "memory", "size", "handle", "memory"]],
  logitree_chain_sample: ["i32", ["handle", "memory", "size", "handle", "memory"]],
  logitree_chain_accept: ["i32", ["handle", "u32"]],
  logitree_chain_rollback: ["i32", ["handle", "size"]],
  logitree_chain_reset: ["i32", ["handle"]],
  logitree_chain_snapshot: ["i32", ["handle", "memory", "size", "memory"]],
  logitree_chain_restore: ["i32", ["handle", "memory", "size"]],
  logitree_chain_describe: ["i32", ["handle", "memory", "size", "memory"]],
  logitree_chain_set: ["i32", ["handle", "memory", "f64"]],
  logitree_chain_steer: ["i32", ["handle", "memory", "memory", "size"]],
  logitree_metrics_entropy: ["i32", ["memory", "size", "bool", "memory"]],
  logitree_metrics_surprisal: ["i32", ["memory", "memory", "size", "u32", "bool", "memory"]],
  logitree_metrics_top: ["i32", ["memory", "size", "memory", "memory", "size", "memory"]],
  logitree_llama_sampler: ["i32", ["memory", "handle", "handle", "handle", "memory", "memory", "memory"]],
  logitree_llama_record_check: ["i32", ["handle"]],
  logitree_llama_record_counts: ["i32", ["handle", "memory"]],
  logitree_llama_record_free: ["i32", ["handle"]],
} as const satisfies Record<string, readonly [Kind, readonly Kind[]]>;

/** The name of a function of the library. */
export type FunctionName = keyof typeof FUNCTIONS;
type Call = (...args: unknown[]) => unknown;
/** A handle of the library; 0n is no handle. */
export type Handle = bigint;

/** Finds a function in a library; null if it has none of that name. */
type Find = (name: string, result: Kind, parameters: readonly Kind[]) => Call | null;

const require = createRequire(import.meta.url);

function openWithKoffi(path: string): Find {
  const koffi = require("koffi") as typeof import("koffi");
  const library = koffi.load(path);
  const types: Record<Kind, string> = {
    i32: "int32_t",
    u32: "uint32_t",
    f64: "double",
    bool: "bool",
    handle: "uint64_t",
    size: "size_t",
    memory: "void *",
    text: "const char *",
    void: "void",
  };
  return (name, result, parameters) => {
    try {
      return library.func(name, types[result], parameters.map((kind) => types[kind]));
    } catch {
      return null;
    }
  };
}

function openWithBun(path: string): Find {
  const { dlopen } = require("bun:ffi") as {
    dlopen(path: string, symbols: object): { symbols: Record<string, Call> };
  };
  const types: Record<Kind, string> = {
    i32: "i32",
    u32: "u32",
    f64: "f64",
    bool: "bool",
    handle: "u64",
    size: "usize",
    memory: "ptr",
    text: "cstring",
    void: "void",
  };
  try {
    dlopen(path, { logitree_abi_version: { args: [], returns: "u32" } });
  } catch (error) {
    // A library without the symbol is a library: the symbol is among the missing ones then.
    if (!/^Symbol /.test(messageOf(error))) throw error;
  }
  return (name, result, parameters) => {
    try {
      const wanted = { args: parameters.map((kind) => types[kind]), returns: types[result] };
      const found = dlopen(path, { [name]: wanted }).symbols[name];
      if (found === undefined) return null;
      return result === "text" ? (...args) => String(found(...args)) : found;
    } catch {
      return null;
    }
  };
}

/** A loaded library. Its absence, and that of symbols, is a value and not an exception: `absence` says what is missing. */
export class NativeLibrary {
  readonly #calls = new Map<string, Call>();
  /** The symbols that the library lacks. */
  readonly missing: readonly string[];
  /** Why nothing can be called: the library or symbols are missing, or its interface is another. null: all is there. */
  readonly absence: LogitreeError | null;

  constructor(readonly path: string) {
    let find: Find;
    try {
      find = "bun" in process.versions ? openWithBun(path) : openWithKoffi(path);
    } catch (error) {
      this.missing = Object.keys(FUNCTIONS);
      this.absence = new LogitreeError("library", `logitree's library cannot be loaded: ${messageOf(error)}`, path, HELP);
      return;
    }
    const missing: string[] = [];
    for (const [name, [result, parameters]] of Object.entries(FUNCTIONS)) {
      const call = find(name, result, parameters);
      if (call === null) missing.push(name);
      else this.#calls.set(name, call);
    }
    this.missing = missing;
    const version = this.#calls.get("logitree_abi_version")?.();
    if (missing.length > 0) {
      this.absence = new LogitreeError("library", `the library lacks ${missing.join(", ")}`, path, HELP);
    } else if (version !== ABI_VERSION) {
      const message = `the library's interface has version ${String(version)}, not ${ABI_VERSION}`;
      this.absence = new LogitreeError("library", message, path, HELP);
    } else {
      this.absence = null;
    }
  }

  /** The version of logitree. */
  get version(): string {
    return String(this.raw("logitree_version"));
  }

  /** Handles that were made and not freed. */
  get liveHandles(): number {
    return Number(this.raw("logitree_live_handles"));
  }

  /** Calls a function that returns no status. */
  raw(name: FunctionName, ...args: unknown[]): unknown {
    const call = this.#calls.get(name);
    if (call === undefined || this.absence !== null) throw this.absence ?? new LogitreeError("library", name, this.path);
    return call(...args);
  }

  /** Calls a function that returns a status; another status than 0 is an error with the library's message. */
  call(name: FunctionName, ...args: unknown[]): void {
    const status = this.raw(name, ...args) as number;
    if (status === 0) return;
    const kind = String(this.raw("logitree_status_name", status)).replace(/^ERROR_/, "").toLowerCase();
    throw new LogitreeError(
      kind,
      String(this.raw("logitree_error_message")),
      String(this.raw("logitree_error_place")),
      String(this.raw("logitree_error_help")),
    );
  }

  /** Calls a function whose last parameter is where it writes a handle. */
  make(name: FunctionName, ...args: unknown[]): Handle {
    const out = new BigUint64Array(1);
    this.call(name, ...args, out);
    return out[0] ?? 0n;
  }
}

let chosen: NativeLibrary | null = null;

/** Makes a library the one that chains, filters and metrics call where none is given. Raises what it lacks. */
export function useLibrary(given: string | NativeLibrary): NativeLibrary {
  const opened = typeof given === "string" ? new NativeLibrary(given) : given;
  if (opened.absence !== null) throw opened.absence;
  return (chosen = opened);
}

/** The library of `useLibrary`, or the file that the variable LOGITREE_LIBRARY names. */
export function library(): NativeLibrary {
  const named = process.env["LOGITREE_LIBRARY"];
  if (chosen === null && !named) {
    throw new LogitreeError("library", "no library is chosen", "", "call useLibrary(path), or set LOGITREE_LIBRARY");
  }
  return chosen ?? useLibrary(named ?? "");
}

/** A text with a byte of 0 after it. */
export function terminated(text: string): Uint8Array {
  if (text.includes("\0")) throw new LogitreeError("argument", "a text contains a character of 0", JSON.stringify(text.slice(0, 60)));
  return Buffer.from(`${text}\0`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const HELP = "build it: make c";
