/**
 * logitree's C library (include/logitree.h): its functions through koffi on Node and bun:ffi on bun, and which of them are
 * missing. Only numbers and addresses cross: handles are numbers of 52 bits, structs and results lie in typed arrays.
 */

import { createRequire } from "node:module";
import { LogitreeError } from "./errors.js";
import { ABI_VERSION, FUNCTIONS } from "./functions.js";

type Kind = "i32" | "u32" | "i64" | "f64" | "bool" | "handle" | "size" | "memory" | "text" | "void";

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
    i64: "int64_t",
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
    i64: "i64",
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
    const text = (name: FunctionName): string => String(this.raw(name));
    throw new LogitreeError(
      text("logitree_error_kind"),
      text("logitree_error_message"),
      text("logitree_error_place"),
      text("logitree_error_help"),
    );
  }

  /** Calls a function whose last parameter is where it writes a handle. */
  make(name: FunctionName, ...args: unknown[]): Handle {
    const out = new BigUint64Array(1);
    this.call(name, ...args, out);
    return out[0] ?? 0n;
  }

  /** Calls a function whose last parameters are a buffer of bytes, its capacity and their number. */
  bytes(name: FunctionName, ...args: unknown[]): Uint8Array {
    const size = new BigUint64Array(1);
    for (let room = new Uint8Array(4096); ; room = new Uint8Array(Number(size[0]))) {
      const status = this.raw(name, ...args, room, room.length, size) as number;
      // What does not fit says how much room is needed.
      if (status !== 0 && Number(size[0]) > room.length) continue;
      if (status !== 0) this.call(name, ...args, room, room.length, size);
      return room.slice(0, Number(size[0]));
    }
  }

  /** What logitree_describe says of a handle. */
  describe(handle: Handle): Record<string, any> {
    return JSON.parse(Buffer.from(this.bytes("logitree_describe", handle)).toString());
  }
}

/** The library's number of Float32Array's elements as a type of logits. */
export const F32 = 0;

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
