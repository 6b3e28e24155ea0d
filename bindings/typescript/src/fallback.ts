/** The grammar that takes a token tree's place where logitree's library is absent: one of the leaves' names. */

import { LogitreeError } from "./errors.js";
import type { TokenTreePayload } from "./types.js";

/** A grammar in llama.cpp's notation. Raises a "payload" error for a payload that constrains nothing. */
export function grammarOf(payload: TokenTreePayload, path: string | undefined, then: "stop" | "continue"): string {
  const descriptors = payload?.descriptors ?? [];
  const paths = descriptors.map((one) => one.path);
  const chosen = path === undefined ? (descriptors.length === 1 ? descriptors[0] : undefined) : descriptors.find((one) => one.path === path);
  if (chosen === undefined) {
    throw new LogitreeError("payload", `no descriptor is chosen of ${JSON.stringify(paths)}`, "/descriptors", "give the path of one");
  }
  const place = `/descriptors/${descriptors.indexOf(chosen)}/leaves`;
  const known = JSON.stringify(chosen.path);
  if (chosen.leaves.length === 0) throw new LogitreeError("payload", `the descriptor ${known} has no leaves`, place);
  for (const [at, { name, tokens }] of chosen.leaves.entries()) {
    const lacks = name === "" ? "name" : tokens.length === 0 ? "tokens" : null;
    if (lacks !== null) {
      throw new LogitreeError("payload", `the leaf ${JSON.stringify(name)} of ${known} has no ${lacks}`, `${place}/${at}/${lacks}`);
    }
  }
  const names = chosen.leaves.map((leaf) => leaf.name);
  return `root ::= (${names.map(quoted).join(" | ")})${then === "continue" ? " [^\\x00]*" : ""}`;
}

/** A literal; every character outside printable ASCII is written as its code point. */
function quoted(name: string): string {
  const written = [...name].map((character) => {
    if (character === '"' || character === "\\") return `\\${character}`;
    const point = character.codePointAt(0) ?? 0;
    if (point >= 0x20 && point < 0x7f) return character;
    return `\\U${point.toString(16).padStart(8, "0")}`;
  });
  return `"${written.join("")}"`;
}
