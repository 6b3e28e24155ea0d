/** Token trees through the C library and libllama, on a real model: both modes, the cache, absent symbols, errors. */

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  CACHED_TREES,
  LlamaLibrary,
  LlamaModel,
  LogitreeError,
  NativeLibrary,
  TokenTrie,
  TrieFactory,
  descriptor,
  grammarOf,
  type Finish,
  type GenerateOptions,
  type TokenTreePayload,
} from "../src/index.js";
import { LLAMA, LOGITREE, MODEL, absent } from "./places.js";

const ACTIONS = ["REPLY", "REPLY_THREAD", "SEND_MESSAGE", "SEND_FILE", "IGNORE", "FOLLOW_ROOM", "MUTE_ROOM"];
const PROMPT = "Request: Send Anna the picture of the cat.\nAction:\n";

async function run(
  model: LlamaModel,
  trie: TokenTrie | null,
  options: GenerateOptions = {},
): Promise<{ text: string; tokens: number[]; finish: Finish }> {
  const pieces = model.generate(PROMPT, options, trie);
  const tokens: number[] = [];
  let text = "";
  for (;;) {
    const next = await pieces.next();
    if (next.done) return { text, tokens, finish: next.value };
    text += next.value.text;
    tokens.push(next.value.token);
  }
}

describe("with a model", { skip: absent("LOGITREE", "LLAMA", "MODEL") }, () => {
  let model: LlamaModel;
  let trie: TokenTrie;
  let factory: TrieFactory;
  const payload = (names: string[] = ACTIONS): TokenTreePayload => {
    const made = factory.prepare({ action: names });
    assert.ok(made);
    return made.payload;
  };

  before(async () => {
    model = await LlamaModel.load({ library: LLAMA ?? "", model: MODEL ?? "", contextSize: 256 });
    trie = new TokenTrie({ library: LOGITREE ?? "", model: MODEL ?? "" });
    factory = new TrieFactory("smollm2", (name) => model.tokenize(name));
  });
  after(() => {
    trie.close();
    assert.equal(trie.native.liveHandles, 0);
    model.close();
  });

  test("mode 0 writes one of the names and then ends", async () => {
    const state = trie.setTokenTrie(payload(), 0);
    assert.deepEqual(state, { native: true, fallback: false, warning: null, cached: false });
    const { text, tokens, finish } = await run(model, trie);
    assert.ok(ACTIONS.includes(text), text);
    assert.equal(finish.reason, "stop");
    // The end after the leaf is no step of the tree.
    assert.equal(finish.counts?.steps, tokens.length);
    assert.ok((finish.counts?.skipRatioMean ?? 0) > 0.99);
    trie.clearTokenTrie();
    assert.ok(!ACTIONS.includes((await run(model, trie, { maxTokens: 8 })).text));
  });

  test("mode 0 takes at each step what it takes of that step's valid tokens alone", async () => {
    const names = payload();
    trie.setTokenTrie(names, 0);
    const { tokens } = await run(model, trie);
    let valid = names.descriptors[0]?.leaves.map((leaf) => leaf.tokens) ?? [];
    assert.ok(valid.some((leaf) => leaf.join() === tokens.join()));
    for (const [at, token] of tokens.entries()) {
      const next = [...new Set(valid.map((leaf) => leaf[at]).filter((one) => one !== undefined))];
      const leaves = next.map((id) => ({ name: Buffer.from(model.bytes(id)).toString(), tokens: [id] }));
      const alone = { modelId: "m", descriptors: [{ path: "p", leaves }] };
      const other = new TokenTrie({ library: LOGITREE ?? "", model: MODEL ?? "" });
      try {
        other.setTokenTrie(alone, 0, { then: "continue" });
        const prompt = [...model.tokenize(PROMPT, { begin: true, special: true }), ...tokens.slice(0, at)];
        for await (const piece of model.generate(prompt, { maxTokens: 1 }, other)) assert.equal(piece.token, token);
      } finally {
        other.close();
      }
      valid = valid.filter((leaf) => leaf[at] === token);
    }
  });

  test("mode 1 draws among the names, the same with the same seed", async () => {
    trie.setTokenTrie(payload(), 1);
    const seen = new Set<string>();
    for (let seed = 0; seed < 6; seed++) {
      const { text } = await run(model, trie, { temperature: 3, seed });
      assert.ok(ACTIONS.includes(text), text);
      assert.equal((await run(model, trie, { temperature: 3, seed })).text, text);
      seen.add(text);
    }
    assert.ok(seen.size > 2);
  });

  test("a tree is cached by content, and the oldest of many is dropped", () => {
    const handles = trie.native.liveHandles;
    const first = payload(["A", "B"]);
    assert.equal(trie.setTokenTrie(first, 0).cached, false);
    assert.equal(trie.setTokenTrie(structuredClone(first), 1).cached, true);
    assert.equal(trie.setTokenTrie(first, 0, { path: "action" }).cached, false);
    for (let i = 0; i < 2 * CACHED_TREES; i++) trie.setTokenTrie(payload([`N${i}`]), 0);
    assert.equal(trie.cachedTrees, CACHED_TREES);
    assert.equal(trie.setTokenTrie(first, 0).cached, false);
    assert.ok(trie.native.liveHandles <= handles + CACHED_TREES);
  });

  test("what is wrong with a payload is an error with its place, and nothing stays set", () => {
    const broken = (change: (payload: any) => unknown): unknown => change(structuredClone(payload()));
    const cases: [unknown, string][] = [
      [{ modelId: "m", descriptors: [] }, "payload"],
      [undefined, "payload"],
      [broken((p) => ({ ...p, descriptors: 5 })), "payload"],
      [broken((p) => ((p.descriptors[0].leaves[1].tokens[0] = 49152), p)), "payload"],
      [broken((p) => ((p.descriptors[0].leaves[1].tokens[0] = 1.5), p)), "payload"],
      [broken((p) => ((p.descriptors[0].leaves[1].tokens[0] = NaN), p)), "payload"],
      [broken((p) => ((p.descriptors[0].leaves[0].tokens = []), p)), "payload"],
      [broken((p) => ((p.descriptors[0].leaves.length = 0), p)), "payload"],
    ];
    for (const [given, kind] of cases) {
      trie.setTokenTrie(payload(), 0);
      assert.throws(
        () => trie.setTokenTrie(given as TokenTreePayload, 0),
        (error) => error instanceof LogitreeError && [kind, "constraint"].includes(error.kind),
        JSON.stringify(given)?.slice(0, 200),
      );
      assert.equal(trie.isSet, false);
    }
    const two = factory.prepare({ action: ["A"], "parameters.x": ["B"] });
    assert.ok(two);
    assert.throws(() => trie.setTokenTrie(two.payload, 0), LogitreeError);
    assert.throws(() => trie.setTokenTrie(two.payload, 0, { path: "other" }), LogitreeError);
    assert.throws(() => trie.setTokenTrie(two.payload, 0, { path: "a\0b" }), LogitreeError);
    assert.throws(() => trie.setTokenTrie(two.payload, 2 as 0), /mode 2/);
    trie.setTokenTrie(two.payload, 0, { path: "parameters.x" });
    const circular: any = { modelId: "m" };
    circular.descriptors = circular;
    assert.throws(() => trie.setTokenTrie(circular, 0), /cannot be written as JSON/);
  });

  test("any constraint can take a tree's place", async () => {
    trie.setConstraint({ type: "regex", pattern: "(REPLY|IGNORE)_[0-9]{3}" }, 0);
    assert.match((await run(model, trie)).text, /^(REPLY|IGNORE)_[0-9]{3}$/);
    const schema = { type: "object", properties: { to: { enum: ["Anna", "Bob"] } }, required: ["to"], additionalProperties: false };
    trie.setConstraint({ type: "json_schema", schema }, 1);
    assert.ok(["Anna", "Bob"].includes(JSON.parse((await run(model, trie, { temperature: 2, seed: 4 })).text).to));
    const place = (error: unknown): boolean => error instanceof LogitreeError && error.kind === "constraint";
    assert.throws(() => trie.setConstraint({ type: "regexp", pattern: "a" }, 0), place);
    assert.throws(() => trie.setConstraint({ type: "regex", pattern: "(a" }, 0), place);
    assert.throws(() => trie.setConstraint({ type: "regex", pattern: "a", more: 1 }, 0), place);
    assert.equal(trie.isSet, false);
  });

  test("clearing a tree goes back to the constraint, and never to a former tree", async () => {
    trie.setConstraint({ type: "choices", texts: ["yes", "no"] }, 0);
    trie.setTokenTrie(payload(["REPLY"]), 0);
    trie.setTokenTrie(payload(["IGNORE"]), 0);
    assert.equal((await run(model, trie)).text, "IGNORE");
    // More trees than the cache holds: the constraint stays.
    for (let i = 0; i <= CACHED_TREES; i++) trie.setTokenTrie(payload([`M${i}`]), 0);
    trie.clearTokenTrie();
    assert.ok(["yes", "no"].includes((await run(model, trie)).text));
    assert.equal(trie.isSet, true);
    trie.clearConstraint();
    assert.equal(trie.isSet, false);
    assert.equal((await run(model, trie, { maxTokens: 3 })).finish.counts, null);
  });

  test("a tree of one call ends with it, however it ends", async () => {
    trie.setConstraint({ type: "choices", texts: ["yes", "no"] }, 0);
    const tree = { tokenTreePayload: payload(), tokenTreeMode: 0 } as const;
    assert.ok(ACTIONS.includes((await run(model, trie, tree)).text));
    assert.ok(["yes", "no"].includes((await run(model, trie)).text));
    const two = factory.prepare({ action: ["A"], "parameters.x": ["IGNORE"] });
    assert.ok(two);
    const span = { tokenTreePayload: two.payload, tokenTreeSpan: { path: "parameters.x" } };
    assert.equal((await run(model, trie, span)).text, "IGNORE");
    trie.clearConstraint();
    // Left early, aborted, an error of the payload, an error of an option: nothing stays set, and the model goes on.
    for await (const piece of model.generate(PROMPT, tree, trie)) {
      assert.ok(piece.token >= 0);
      assert.equal(trie.isSet, true);
      break;
    }
    assert.equal(trie.isSet, false);
    const controller = new AbortController();
    const pieces = model.generate(PROMPT, { ...tree, signal: controller.signal }, trie);
    await pieces.next();
    controller.abort(new Error("enough"));
    await assert.rejects(async () => {
      while (!(await pieces.next()).done);
    }, /enough/);
    assert.equal(trie.isSet, false);
    const broken = { tokenTreePayload: { modelId: "m", descriptors: [] } };
    await assert.rejects(run(model, trie, broken), LogitreeError);
    trie.setTokenTrie(payload(), 0);
    await assert.rejects(run(model, trie, { ...tree, topK: "x", temperature: 1 } as unknown as GenerateOptions));
    assert.equal(trie.isSet, false);
    await assert.rejects(run(model, null, tree), /without a TokenTrie/);
    assert.equal((await run(model, trie, { maxTokens: 2 })).finish.reason, "length");
  });

  test("without the library a grammar takes the tree's place, with one warning", async () => {
    const warnings: string[] = [];
    const options = { library: LLAMA ?? "", model: MODEL ?? "", onWarning: (message: string) => warnings.push(message) };
    assert.throws(() => new TokenTrie(options), /lacks logitree_abi_version/);
    const other = new TokenTrie({ ...options, absent: "fallback" });
    const state = other.setTokenTrie(payload(), 0);
    assert.deepEqual([state.native, state.fallback], [false, true]);
    assert.match(state.warning ?? "", /lacks logitree_abi_version, .*logitree_llama_sampler.*libllama/);
    const { text, finish } = await run(model, other);
    assert.ok(ACTIONS.includes(text), text);
    assert.equal(finish.reason, "stop");
    other.setTokenTrie(payload(["IGNORE", 'say "é"\\n']), 1);
    assert.equal(warnings.length, 1);
    assert.ok(["IGNORE", 'say "é"\\n'].includes((await run(model, other, { temperature: 2, seed: 3 })).text));
    assert.throws(() => other.setTokenTrie({ modelId: "m", descriptors: [] }, 0), LogitreeError);
    assert.throws(() => other.setConstraint({ type: "regex", pattern: "a" }, 0), /logitree_abi_version/);
    assert.equal(other.isSet, false);
    other.close();
  });

  test("a generation that is left early frees its chain, and a second at once is refused", async () => {
    trie.setTokenTrie(payload(), 0);
    const handles = trie.native.liveHandles;
    for await (const piece of model.generate(PROMPT, {}, trie)) {
      assert.ok(piece.token >= 0);
      await assert.rejects(async () => model.generate(PROMPT).next(), /a generation is running/);
      assert.throws(() => model.close(), /a generation is running/);
      break;
    }
    assert.equal(trie.native.liveHandles, handles);
    assert.equal((await run(model, trie)).finish.reason, "stop");
    assert.equal((await run(model, null, { maxTokens: 2 })).finish.reason, "length");
  });

  test("options that are no numbers and ids of no token are errors that leave nothing", async () => {
    trie.setTokenTrie(payload(), 0);
    const handles = trie.native.liveHandles;
    for (const option of ["repeatPenalty", "temperature", "topK", "seed"]) {
      const options = { temperature: 1, [option]: "x" } as GenerateOptions;
      await assert.rejects(run(model, trie, options), option);
    }
    assert.equal(trie.native.liveHandles, handles);
    for (const token of [-1, 49152, 0.5]) assert.throws(() => model.bytes(token), /not in the vocabulary/);
    await assert.rejects(model.generate([49152]).next(), /llama_decode/);
    assert.ok(ACTIONS.includes((await run(model, trie)).text));
  });

  test("a prompt that does not fit, and a full context", async () => {
    await assert.rejects(model.generate([]).next(), /prompt of 0 tokens/);
    await assert.rejects(model.generate(new Array(256).fill(1)).next(), /prompt of 256 tokens/);
    const pieces = model.generate(new Array(254).fill(260), { temperature: 1, seed: 1 });
    let made = 0;
    let finish: Finish | undefined;
    while (finish === undefined) {
      const next = await pieces.next();
      if (next.done) finish = next.value;
      else made++;
    }
    assert.ok(finish.reason === "stop" || (finish.reason === "context" && made === 3), `${finish.reason} ${made}`);
  });
});

test("a library that is absent, or is another, is named with what it lacks", () => {
  const folder = mkdtempSync(join(tmpdir(), "logitree-"));
  const file = join(folder, "no.so");
  writeFileSync(file, "no library");
  for (const path of [join(folder, "gone.so"), file]) {
    const native = new NativeLibrary(path);
    assert.equal(native.absence?.place, path);
    assert.ok(native.missing.includes("logitree_llama_sampler"));
    assert.throws(() => native.version, /cannot be loaded/);
    assert.throws(() => new TokenTrie({ library: path, model: "m" }), LogitreeError);
    assert.throws(() => new LlamaLibrary(path), /cannot be loaded/);
  }
});

test("what has no tokens is an error that names it", () => {
  const of = (leaves: { name: string; tokens: number[] }[]): TokenTreePayload => ({ modelId: "m", descriptors: [{ path: "p", leaves }] });
  assert.throws(() => grammarOf(of([]), undefined, "stop"), /the descriptor "p" has no leaves \(at \/descriptors\/0\/leaves\)/);
  const empty = of([{ name: "A", tokens: [1] }, { name: "B", tokens: [] }]);
  assert.throws(() => grammarOf(empty, undefined, "stop"), /the leaf "B" of "p" has no tokens \(at \/descriptors\/0\/leaves\/1/);
  assert.throws(() => descriptor("action", ["A"], () => []), /the name "A" has no tokens/);
});

test("the grammar of a payload quotes every character", () => {
  const leaves = ['a"b\\', "é\n", "x"].map((name, i) => ({ name, tokens: [i] }));
  const made = grammarOf({ modelId: "m", descriptors: [{ path: "p", leaves }] }, undefined, "stop");
  assert.equal(made, 'root ::= ("a\\"b\\\\" | "\\U000000e9\\U0000000a" | "x")');
});
