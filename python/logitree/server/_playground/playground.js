// The playground: settings become a request of /v1/trace, and its records a view of the output as it comes.
import { Branches } from "./branches.js";
import { rangeOf } from "./places.js";
import { called, count, emptyTrace, h, plural, statsList, statsOf, themeButton, traceView } from "./view.js";

const by = (id) => document.getElementById(id);

// -- what can be asked for

/** The kinds of constraints: their names, what the editor is for, how its text becomes fields of a request. */
const KINDS = {
  none: { name: "Anything", fields: () => ({}) },
  json_schema: { name: "JSON Schema", hint: "A JSON Schema", fields: (text) => ({ structured_outputs: { json: text } }) },
  json: { name: "Any JSON", fields: () => ({ response_format: { type: "json" } }) },
  regex: { name: "Regular expression", hint: "The whole output matches it", fields: (text) => ({ response_format: { type: "regex", pattern: text } }) },
  choices: { name: "Choices", hint: "One text a line", fields: (text) => ({ response_format: { type: "choices", texts: text.split("\n").filter((line) => line) } }) },
  gbnf: { name: "Grammar (GBNF)", hint: "llama.cpp's form, from the rule root", fields: (text) => ({ response_format: { type: "gbnf", text } }) },
  lark: { name: "Grammar (Lark)", hint: "From the rule start", fields: (text) => ({ response_format: { type: "lark", text } }) },
  skeleton: { name: "Skeleton", hint: "The JSON form of a skeleton", fields: (text) => ({ response_format: { type: "skeleton", skeleton: JSON.parse(text) } }) },
  form: { name: "Any constraint", hint: "The JSON form of any constraint or composition", fields: (text) => ({ response_format: JSON.parse(text) }) },
};

/** Samplers with a slider: field, name, range, step and default. */
const SLIDERS = [
  ["temperature", "Temperature", 0, 2, 0.05, 0.8],
  ["top_k", "Top k (0: off)", 0, 200, 1, 40],
  ["top_p", "Top p", 0, 1, 0.01, 0.95],
  ["min_p", "Min p", 0, 1, 0.01, 0.05],
  ["penalty_repeat", "Repeat penalty", 1, 2, 0.01, 1],
  ["max_tokens", "Most tokens", 1, 512, 1, 120],
];

const json = (value) => JSON.stringify(value, null, 2);
const user = (content) => [{ role: "user", content }];
const EXAMPLES = {
  "A person as JSON": [user("Invent a person."), "json_schema", json({
    type: "object",
    properties: { name: { type: "string", maxLength: 20 }, age: { type: "integer", minimum: 0, maximum: 120 }, likes: { enum: ["tea", "coffee", "neither"] } },
    required: ["name", "age", "likes"], additionalProperties: false,
  })],
  "Free text": [user("Write a sentence about the sea."), "none", ""],
  "A date": [user("When was the first moon landing?"), "regex", "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"],
  "A choice": [user("Is a tomato a fruit or a vegetable?"), "choices", "a fruit\na vegetable\nboth"],
  "Arithmetic": [user("Write a sum with three numbers."), "gbnf", 'root ::= number (" + " number){2} " = " number\nnumber ::= [1-9] [0-9]{0,2}\n'],
  "Key and value lines": [user("List two facts about Mars."), "lark", 'start: line{2}\nline: KEY ": " VALUE "\\n"\nKEY: /[a-z]{3,12}/\nVALUE: /[^\\n]{1,30}/\n'],
  "A skeleton": [user("How good is this film?"), "skeleton", json({ spans: [
    { kind: "literal", value: "Score: " }, { kind: "number", key: "score", schema: { type: "integer", minimum: 0, maximum: 10 } },
    { kind: "literal", value: " of 10, so I " }, { kind: "enum", key: "verdict", enumValues: ["like", "dislike"] }, { kind: "literal", value: " it." }] })],
  "A composition": [user("Name two colours."), "form", json({ type: "sequence", of: [
    { type: "choices", texts: ["red", "green", "blue"] }, { type: "literal", text: " and " }, { type: "choices", texts: ["red", "green", "blue"] }] })],
};

// -- the server

let apiKey = "";
/** A request. Throws an Error that has the fields of the server's error. */
const post = async (path, body, signal) => {
  const headers = { "Content-Type": "application/json", ...(apiKey ? { Authorization: `Bearer ${apiKey}` } : {}) };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (answer.ok) return answer;
  if (answer.status === 401) askForKey();
  let error;
  try { ({ error } = await answer.json()); } catch { /* something between here and the server */ }
  throw Object.assign(new Error(error?.message || `the server answers ${answer.status}`), error);
};

const askForKey = () => {
  by("key").hidden = false;
  by("key-value").focus();
};

/** The objects of a stream of server-sent events. */
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (left + value).split("\n\n");
    left = lines.pop();
    for (const line of lines) if (line.startsWith("data: {")) yield JSON.parse(line.slice(6));
  }
}

// -- records become columns

/** For each trace, the places of its names and words by token id and by text. */
const places = new WeakMap();
/** Adds a token's record to the columns of a trace. */
const push = (trace, record) => {
  if (!places.has(trace)) places.set(trace, { names: new Map(), words: new Map() });
  const known = places.get(trace);
  const place = (map, key, list, make) => {
    if (!map.has(key)) map.set(key, list.push(make()) - 1);
    return map.get(key);
  };
  const name = (one) => place(known.names, one.id, trace.names, () => [one.id, nameText(one), one.bytes, one.kind]);
  const word = (text) => (text === null ? -1 : place(known.words, text, trace.words, () => text));
  trace.token.push(name(record));
  trace.text.push(record.text);
  trace.source.push(word(record.source));
  for (const field of ["allowed", "p_model", "surprisal", "entropy", "p", "temperature", "mask_micros", "micros"]) trace[field].push(record[field]);
  trace.mass.push(record.mass_allowed);
  trace.alternatives.push(record.alternatives.map((one) => [name(one), one.p_model, one.p, word(one.cut)]));
  trace.effects.push(record.effects.map((one) => [word(one.sampler), one.before, one.after, one.changed, one.mass_cut]));
};
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) || [], (pair) => parseInt(pair, 16));
const nameText = (one) => new TextDecoder().decode(bytesOf(one.bytes));
const NO_PASS = ["forced", "canonical", "fast_forward", "external"];

/** The record of a token that the reader of the page put in place of another. */
const given = (record, id, hex, kind, alternative) => ({
  ...record, id, bytes: hex, kind, text: new TextDecoder().decode(bytesOf(hex)), source: "external",
  p_model: alternative?.p_model ?? null, surprisal: alternative?.p_model > 0 ? -Math.log(alternative.p_model) : null, p: alternative?.p ?? null,
  temperature: null,
});
const unknown = (id, hex, kind) => given(
  { record: "token", allowed: 0, mass_allowed: null, entropy: null, alternatives: [], effects: [], mask_micros: 0, micros: 0 }, id, hex, kind);

// -- one output with its settings

class Pane {
  constructor(letter) {
    const id = (name) => `${letter}-${name}`;
    this.letter = letter;
    this.kind = h("select", { id: id("constraint"), onchange: () => this.changed() }, Object.entries(KINDS).map(([value, { name }]) => h("option", { value }, name)));
    this.texts = {};
    this.editor = h("textarea", { id: id("editor"), spellcheck: "false", autocapitalize: "off", autocomplete: "off", rows: "9", "aria-describedby": id("wrong"), oninput: () => this.typed() });
    this.editor.addEventListener("scroll", () => { this.ground.scrollTop = this.editor.scrollTop; this.ground.scrollLeft = this.editor.scrollLeft; });
    this.ground = h("pre", { class: "ground", "aria-hidden": "true" });
    this.wrong = h("p", { class: "wrong", id: id("wrong"), role: "alert" });
    this.editorLabel = h("label", { class: "hidden", for: id("editor") });
    this.box = h("div", { class: "editor" }, this.editorLabel, this.ground, this.editor);
    this.sliders = {};
    const sliders = SLIDERS.map(([field, name, low, high, step, value]) => {
      const output = h("output", { for: id(field) }, String(value));
      const input = h("input", { id: id(field), type: "range", min: low, max: high, step, value, oninput: () => { output.textContent = input.value; } });
      this.sliders[field] = (to) => { if (to !== undefined) { input.value = to; output.textContent = input.value; } return Number(input.value); };
      return h("div", { class: "slider" }, h("label", { for: id(field) }, name), output, input);
    });
    this.seed = h("input", { id: id("seed"), type: "number", min: "0", max: "4294967295", step: "1", placeholder: "drawn each time" });
    this.stats = h("dl", { class: "stats" });
    this.tree = h("section", { class: "outputs", "aria-label": `Outputs tried for ${letter.toUpperCase()}` });
    this.next = h("details", { class: "next" }, h("summary", {}, "What may come next"), h("div", { class: "trie" }));
    this.next.addEventListener("toggle", () => this.showNext());
    this.save = h("button", { class: "plain", type: "button", disabled: true, onclick: () => this.download() }, "Save as a page");
    const place = h("div", {});
    this.title = h("h2", {});
    this.element = h("section", { class: "pane" },
      h("div", { class: "settings" },
        h("label", { class: "field" }, "Constraint", this.kind), this.box, this.wrong,
        h("details", { class: "sampling", open: true }, h("summary", {}, "Sampling"), sliders,
          h("label", { class: "field" }, "Seed", this.seed))),
      h("div", { class: "result" }, h("div", { class: "row" }, this.title, this.stats, h("span", { class: "gap" }), this.save), this.tree, place, this.next));
    by("output").append(this.element);
    this.view = traceView(place, {
      prefix: `${letter}-`, of: ` of output ${letter.toUpperCase()}`, empty: "The output comes here.",
      picked: () => this.showNext(), more: (i) => this.more(i),
      instead: (i, [token, , hex, kind]) => this.replace(i, (record) => given(record, token, hex, kind, record.alternatives.find((one) => one.id === token))),
    });
    this.branches = new Branches(this.tree, (branch) => this.show(branch));
    this.changed();
  }

  /** The fields of a request that this pane sets. Throws where the editor's text is no JSON. */
  fields() {
    const made = Object.fromEntries(SLIDERS.map(([field]) => [field, this.sliders[field]()]));
    if (this.seed.value !== "") made.seed = Number(this.seed.value);
    return { ...prompt(), ...made, ...KINDS[this.kind.value].fields(this.editor.value) };
  }

  state() {
    const sampling = Object.fromEntries(SLIDERS.map(([field]) => [field, this.sliders[field]()]));
    return { kind: this.kind.value, text: this.editor.value, sampling, seed: this.seed.value };
  }

  restore({ kind, text, sampling, seed }) {
    if (Object.hasOwn(KINDS, kind)) this.kind.value = kind;
    this.texts[this.kind.value] = typeof text === "string" ? text : "";
    this.shown = null;
    for (const [field] of SLIDERS) if (typeof sampling?.[field] === "number") this.sliders[field](sampling[field]);
    if (seed !== undefined) this.seed.value = String(seed);
    this.changed();
  }

  /** Another kind of constraint: each has a text of its own. */
  changed() {
    const kind = KINDS[this.kind.value];
    if (this.shown) this.texts[this.shown] = this.editor.value;
    this.shown = this.kind.value;
    this.editor.value = this.texts[this.shown] || "";
    this.box.hidden = !kind.hint;
    this.editorLabel.textContent = `${kind.name}: ${kind.hint || ""}`;
    this.editor.placeholder = kind.hint || "";
    this.typed();
  }

  typed() {
    this.mark(null);
    clearTimeout(this.timer);
    if (KINDS[this.kind.value].hint && this.editor.value) this.timer = setTimeout(() => this.check(), 350);
  }

  /** Asks the server whether the constraint is right. */
  async check() {
    const text = this.editor.value;
    try {
      await post("v1/allowed", { ...this.fields(), prompt: "x", messages: undefined });
      if (text === this.editor.value) this.mark(null);
    } catch (error) {
      if (text === this.editor.value) this.mark(error);
    }
  }

  /** Shows an error of the constraint, where it is. */
  mark(error) {
    const text = this.editor.value;
    this.wrong.textContent = error ? error.message : "";
    this.editor.toggleAttribute("aria-invalid", !!error);
    const range = error && rangeOf(error.place, text);
    this.ground.replaceChildren(...(range ? [text.slice(0, range[0]), h("mark", {}, text.slice(...range) || " "), text.slice(range[1])] : [text]), "\n");
  }

  records() { return this.branches.path(this.branches.current); }

  /** Generates an output, or continues from the branch's tokens. */
  async run(branch, signal) {
    const before = this.records();
    this.show(branch);
    let fields;
    try {
      fields = this.fields();
    } catch (error) {
      this.mark(error);
      this.branches.remove(branch);
      throw new Error(`The constraint: ${error.message}`);
    }
    fields.max_tokens = Math.max(1, fields.max_tokens - before.length);
    let isAnswered = false;
    try {
      const answer = await post("v1/trace", { ...fields, tokens: before.map((record) => record.id), stream: true }, signal);
      isAnswered = true;
      this.mark(null);
      for await (const record of events(answer)) {
        if (record.error) throw Object.assign(new Error(record.error.message), record.error);
        if (record.record === "trace") this.vocabulary = record.vocabulary, this.trace.vocabulary = record.vocabulary;
        if (record.record === "token") this.take(branch, record);
        if (record.record === "end") branch.ended = record;
      }
    } catch (error) {
      if (error.name !== "AbortError") {
        if (["response_format", "structured_outputs", "grammar"].includes(error.param)) this.mark(error);
        if (!isAnswered) this.branches.remove(branch);
        this.show(this.branches.current);
        throw error;
      }
    }
    this.branches.draw();
    if (this.branches.current === branch) this.finish(branch);
    return branch.ended;
  }

  take(branch, record) {
    branch.records.push(record);
    if (this.branches.current !== branch) return;
    push(this.trace, record);
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => { this.waits = false; this.about(branch); this.view.grow(); });
  }

  finish(branch) {
    this.about(branch);
    this.view.grow();
    if (this.view.picked() < 0) this.showNext();
  }

  /** Draws a branch's output. */
  show(branch) {
    this.trace = emptyTrace(this.vocabulary || { name: model, size: 2 }, { model });
    for (const record of this.branches.path(branch)) push(this.trace, record);
    this.about(branch);
    this.view.draw(this.trace);
    this.showNext();
  }

  about(branch) {
    const passes = this.trace.source.filter((at) => !NO_PASS.includes(this.trace.words[at])).length;
    Object.assign(this.trace.about, { forward_passes: passes });
    if (branch?.ended) {
      const { reason, stats } = branch.ended;
      Object.assign(this.trace.about, { ended: called(reason), prompt_tokens: stats.prompt_tokens, prompt_reused: stats.reused_tokens, seed: stats.seed, tokens_per_second: stats.tokens_per_second });
    }
    this.stats.replaceChildren(...statsList(this.trace.token.length ? statsOf(this.trace) : []));
    this.save.disabled = !this.trace.token.length;
  }

  /** What can be done with a token. */
  more(i) {
    const text = h("input", { type: "text", "aria-label": "Text instead of this token", placeholder: "another text", value: "" });
    const replace = async (event) => {
      event.preventDefault();
      if (!text.value) return;
      const tokens = await attempt(async () => (await (await post("tokenize", { content: text.value, with_pieces: true })).json()).tokens);
      if (!tokens) return;
      const hex = (piece) => [...(typeof piece === "string" ? new TextEncoder().encode(piece) : piece)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      this.replace(i, ...tokens.map(({ id, piece }) => () => unknown(id, hex(piece), "normal")));
    };
    return [h("form", { class: "replace", onsubmit: replace }, text, h("button", { class: "plain", type: "submit" }, "Replace"),
      h("button", { class: "plain", type: "button", title: "Keep the output up to this token, and draw the rest again", onclick: () => this.replace(i + 1) }, "Draw the rest again")), ...this.lens(i)];
  }

  /** What each layer of the model would have said in the place of token i, asked for when it is opened. */
  lens(i) {
    if (!hasLens) return [];
    const place = h("div", {}, h("p", { class: "help" }, "Asking …"));
    const load = async () => {
      if (!details.open || details.dataset.asked) return;
      details.dataset.asked = "1";
      const records = this.records();
      const body = { ...prompt(), tokens: records.slice(0, i).map((record) => record.id), top: 3 };
      const found = await attempt(async () => (await post("v1/lens", body)).json());
      place.replaceChildren(found ? layersTable(found.layers, records[i].id) : h("p", { class: "wrong" }, "The server has no answer."));
    };
    const details = h("details", { class: "lens", ontoggle: load }, h("summary", {}, "What each layer would say"), place);
    return [details];
  }

  /** A new branch from token i on, which begins with the tokens that `makes` make of token i's record. */
  replace(i, ...makes) {
    const record = this.records()[i];
    const parent = this.branches.current;
    runAll([[this, () => this.branches.add(parent, i, makes.map((make) => make(record)))]]);
  }

  /** The tree of the tokens that could come in the place of the picked one, or after the output. */
  async showNext() {
    if (!this.next.open) return;
    const picked = this.view.picked(), records = this.records();
    const tokens = records.slice(0, picked < 0 ? records.length : picked).map((record) => record.id);
    this.next.firstChild.textContent = picked < 0 ? "What may come next" : `What may come in the place of token ${picked + 1}`;
    const place = this.next.lastChild;
    const ask = async (prefix) => (await post("v1/allowed", { ...this.fields(), tokens, prefix })).json();
    const at = picked < 0 ? records.length : picked;
    const node = async (prefix) => {
      const found = await ask(prefix);
      if (found.finished) return h("p", {}, "Nothing: the output is complete.");
      const most = Math.log2(found.count + 1);
      const rows = found.children.slice(0, 100).map((child) => {
        const inner = h("div", { class: "inner" });
        const open = h("button", {
          type: "button", class: "open", "aria-expanded": "false", disabled: child.count === 1,
          onclick: async () => {
            const expanded = open.getAttribute("aria-expanded") === "true";
            open.setAttribute("aria-expanded", String(!expanded));
            inner.replaceChildren(...(expanded ? [] : [await attempt(() => node(child.bytes)) || ""]));
          },
        }, h("span", { class: "path" }, shownText(child)), h("span", { class: "tube", "aria-hidden": "true" }, h("i", { style: { width: `${(100 * Math.log2(child.count + 1)) / most}%` } })),
          h("span", { class: "count" }, plural(child.count, "token")));
        const take = child.token === null ? null : h("button", {
          type: "button", class: "plain", "aria-label": `Take ${shownText(child)}`, onclick: () => this.append(at, child.token, child.bytes),
        }, "Take");
        return h("li", {}, open, take, inner);
      });
      if (found.children.length > 100) rows.push(h("li", {}, `and ${count(found.children.length - 100)} more`));
      for (const one of found.special) rows.push(h("li", {}, h("span", { class: "path" }, one.text || `token ${one.id}`)));
      return h("div", {}, prefix ? null : h("p", { class: "help" }, `${plural(found.count, "token")} allowed`), h("ul", {}, rows));
    };
    const asked = (this.asked = {});
    let drawn;
    try { drawn = await node(""); } catch (error) { drawn = h("p", { class: "wrong" }, error.message); }
    if (this.asked === asked) place.replaceChildren(drawn);
  }

  append(at, token, hex) {
    const record = this.records()[at] || unknown(token, hex, "normal");
    this.replace(at, () => given(record, token, hex, "normal", record.alternatives.find((one) => one.id === token)));
  }

  /** The output as the page of a trace, one file. */
  async download() {
    const page = await attempt(async () => (await fetch("playground/empty-trace")).text());
    if (!page) return;
    const escaped = { "<": "\\u003c", ">": "\\u003e", "&": "\\u0026" };
    const data = JSON.stringify(this.trace).replace(/[<>&]/g, (c) => escaped[c]);
    const address = URL.createObjectURL(new Blob([page.replace("@@data@@", () => data)], { type: "text/html" }));
    h("a", { href: address, download: "trace.html" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }
}

const shownText = (child) => {
  const own = bytesOf(child.bytes);
  if (child.text.includes("\ufffd")) return [...own].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return child.text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥").replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (c) => `U+${c.codePointAt(0).toString(16).padStart(4, "0")}`);
};

/** A table of the likeliest tokens of each layer; `chosen`: the token that came. */
const layersTable = (layers, chosen) => {
  const share = (logprob) => `${(100 * Math.exp(logprob)).toFixed(logprob > Math.log(0.1) ? 0 : 1)} %`;
  const cell = (one) => h("td", { class: one.id === chosen ? "on" : null, style: { "--p": Math.exp(one.logprob).toFixed(3) } },
    h("span", { class: "path" }, shownText(one) || `token ${one.id}`), " ", h("span", { class: "count" }, share(one.logprob)));
  const nameOf = (at) => (at === 0 ? "input" : at === layers.length - 1 ? "output" : String(at));
  const rows = layers.map((layer, at) => h("tr", {}, h("th", { scope: "row" }, nameOf(at)), layer.map(cell))).reverse();
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Likeliest tokens by layer" },
    h("table", {}, h("caption", {}, "The state after each layer, read as if it were the last one (logit lens)"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Layer"), h("th", { scope: "col", colspan: layers[0].length }, "Likeliest tokens"))),
      h("tbody", {}, rows)));
};

// -- the prompt

const message = ({ role, content }) => {
  const roles = ["system", "user", "assistant"].map((name) => h("option", { value: name, selected: name === role }, name));
  const made = h("div", { class: "message" },
    h("select", { "aria-label": "Role" }, roles),
    h("textarea", { rows: "2", "aria-label": "Message" }),
    h("button", { class: "step", type: "button", "aria-label": "Remove the message", onclick: () => made.remove() }, "×"));
  made.querySelector("textarea").value = content;
  return made;
};
const isChat = () => document.querySelector("[name=prompt-kind]:checked").value === "chat";
const messages = () => [...document.querySelectorAll(".message")].map((one) => ({ role: one.querySelector("select").value, content: one.querySelector("textarea").value }));
const prompt = () => (isChat() ? { messages: messages() } : { prompt: by("text-prompt").value });

/** Shows the editors of a prompt. */
const showPrompt = (value) => {
  const chat = Array.isArray(value);
  document.querySelector(`[name=prompt-kind][value=${chat ? "chat" : "text"}]`).checked = true;
  by("add").hidden = !chat;
  const text = h("textarea", { id: "text-prompt", rows: "3", "aria-label": "The text that the output continues" });
  if (!chat) text.value = value;
  by("messages").replaceChildren(...(chat ? value.map(message) : [text]));
};

// -- running

let panes = [], model = "", controller = null, hasLens = false;
const status = (text) => { by("status").textContent = text; };

/** Does something with the server; an error becomes the status line. */
const attempt = async (act) => {
  try {
    return await act();
  } catch (error) {
    status(error.message);
    return null;
  }
};

/** Runs outputs side by side: pairs of a pane and what makes its branch. */
const runAll = async (jobs) => {
  controller?.abort();
  const mine = (controller = new AbortController());
  by("stop").disabled = false;
  by("run").textContent = "Generate again";
  status("Generating …");
  const ended = await Promise.all(jobs.map(([pane, branch]) => attempt(() => pane.run(branch(), mine.signal))));
  if (controller !== mine) return;
  by("stop").disabled = true;
  if (mine.signal.aborted) status("Stopped.");
  else if (ended.every((one) => one)) status(ended.map(sentence).join(" "));
};
const ENDS = { constraint: "complete", end_of_generation: "ended by the model", stop: "ended by a stop string", max_tokens: "cut: it has as many tokens as it may", context_full: "cut: the context is full" };
const sentence = ({ reason, stats }) => {
  const saved = Object.values(stats.passes_saved).reduce((a, b) => a + b, 0);
  return `The output is ${ENDS[reason] || reason}: ${plural(stats.output_tokens, "token")}, ${plural(stats.forward_passes, "forward pass", "forward passes")}${saved ? `, ${count(saved)} saved` : ""}.`;
};

by("run").addEventListener("click", () => {
  for (const pane of panes) pane.branches.clear();
  runAll(panes.map((pane) => [pane, () => pane.branches.add(null, 0, [])]));
});
by("stop").addEventListener("click", () => controller?.abort());
by("add").addEventListener("click", () => {
  const last = messages().at(-1);
  by("messages").append(message({ role: last?.role === "user" ? "assistant" : "user", content: "" }));
  by("messages").lastChild.querySelector("textarea").focus();
});
for (const one of document.querySelectorAll("[name=prompt-kind]")) {
  one.addEventListener("change", () => showPrompt(isChat() ? [{ role: "user", content: by("text-prompt")?.value || "" }] : messages().map((each) => each.content).join("\n")));
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) by("run").click();
});
by("key").addEventListener("submit", (event) => {
  event.preventDefault();
  apiKey = by("key-value").value;
  by("key").hidden = true;
  start();
});

// -- one or two panes

const setPanes = (n) => {
  while (panes.length > n) panes.pop().element.remove();
  while (panes.length < n) {
    const made = new Pane("ab"[panes.length]);
    if (panes.length) made.restore(panes[0].state());
    panes.push(made);
  }
  for (const pane of panes) {
    pane.title.textContent = n > 1 ? `Output ${pane.letter.toUpperCase()}` : "Output";
    pane.element.setAttribute("aria-label", pane.title.textContent);
  }
  by("output").classList.toggle("two", n > 1);
  by("compare").setAttribute("aria-pressed", String(n > 1));
};
by("compare").addEventListener("click", () => setPanes(panes.length > 1 ? 1 : 2));

// -- sharing

const encode = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value)))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const decode = (text) => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0))));
by("share").addEventListener("click", async () => {
  const state = { prompt: isChat() ? messages() : by("text-prompt").value, panes: panes.map((pane) => pane.state()) };
  history.replaceState(null, "", `#s=${encode(state)}`);
  try {
    await navigator.clipboard.writeText(location.href);
    status("The link is copied. It holds the prompt and the settings, not the output.");
  } catch {
    status("The address of this page is the link. It holds the prompt and the settings, not the output.");
  }
});
const shared = () => {
  const found = /^#s=([\w-]+)$/.exec(location.hash);
  if (!found) return false;
  try {
    const state = decode(found[1]);
    const ok = typeof state.prompt === "string" || (Array.isArray(state.prompt) && state.prompt.every((one) => typeof one?.content === "string"));
    if (!ok || !Array.isArray(state.panes) || !state.panes.length) throw new Error();
    showPrompt(state.prompt);
    setPanes(Math.min(2, state.panes.length));
    panes.forEach((pane, at) => pane.restore(state.panes[at]));
    return true;
  } catch {
    status("This link cannot be read.");
    return false;
  }
};

const example = (name) => {
  const [messages, kind, text] = EXAMPLES[name];
  showPrompt(messages);
  for (const pane of panes) pane.restore({ kind, text });
};
by("preset").append(...Object.keys(EXAMPLES).map((name) => h("option", {}, name)));
by("preset").addEventListener("change", (event) => example(event.target.value));
themeButton(by("theme"));

const start = async () => {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  const answer = await fetch("v1/models", { headers });
  if (answer.status === 401) return askForKey();
  model = (await answer.json()).data[0].id;
  by("model").textContent = by("model").title = model;
  hasLens = (await (await fetch("props", { headers })).json()).has_lens === true;
};

setPanes(1);
if (!shared()) example(Object.keys(EXAMPLES)[0]);
await attempt(start);
document.documentElement.dataset.ready = "1";
