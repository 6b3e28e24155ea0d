// The view of a trace: the output's tokens, a strip of numbers along them, and what is known of the token that is picked.
// The trace page and the playground show it. Text of tokens only ever becomes text nodes.

const BITS = Math.LOG2E;
const root = document.documentElement;

// -- small parts

export const h = (tag, props, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "style") for (const [key, one] of Object.entries(value)) made.style.setProperty(key, one);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
};
export const count = (n) => Number(n).toLocaleString("en-US");
export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + "s"}`;
const percent = (p) => {
  if (p === null || p === undefined) return "–";
  const x = p * 100;
  if (x >= 99.995) return "100 %";
  if (x >= 10) return `${x.toFixed(1)} %`;
  if (x >= 0.01) return `${x.toFixed(2)} %`;
  return x > 0 ? `${x.toExponential(0).replace("e-", " × 10⁻").replace(/\d+$/, raised)} %` : "0 %";
};
const raised = (digits) => [...digits].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("");
const bits = (nats) => (nats === null || nats === undefined ? "–" : `${(nats * BITS).toFixed(2)} bits`);
const micros = (t) => {
  if (t === null || t === undefined) return "–";
  if (t >= 1e6) return `${(t / 1e6).toFixed(2)} s`;
  if (t >= 1e3) return `${(t / 1e3).toFixed(t >= 1e4 ? 1 : 2)} ms`;
  return `${t.toFixed(t >= 100 ? 0 : 1)} µs`;
};

// What is invisible, or would change the direction of what follows, is shown by name.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\u{e0000}|[\u{e0001}-\u{e007f}]/u;
const NAMES = { "\n": "↵", "\t": "⇥", "\r": "␍" };
const visible = (text, spaces) => {
  const parts = [];
  let plain = "";
  const flush = () => { if (plain) parts.push(document.createTextNode(plain)); plain = ""; };
  for (const c of text) {
    if (c === "\n" || c === "\t" || c === "\r") {
      flush();
      parts.push(h("i", { "aria-hidden": "true" }, NAMES[c]));
      if (!spaces) plain += c === "\r" ? "" : c;
    } else if (c === " " && spaces) {
      flush();
      parts.push(h("i", {}, "·"));
    } else if (CONTROL.test(c)) {
      flush();
      parts.push(h("i", { class: "box" }, `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    } else plain += c;
  }
  flush();
  return parts;
};
const WORDS = { "\n": "line break", "\t": "tab", " ": "space", "\r": "return" };
const spoken = (text) =>
  text.trim() === "" ? [...text].map((c) => WORDS[c] || `U+${c.codePointAt(0).toString(16)}`).join(" ") || "no text" : text.trim();

const isText = (name) => name[3] === "normal" || name[3] === "byte" || name[3] === "user_defined";
const hexOf = (name) => name[2].replace(/../g, "$& ").trim();
// A token's own text; a token that is part of a character shows its bytes.
const broken = (name) => isText(name) && name[1].includes("\ufffd");
const glyph = (name, spaces) => {
  if (!isText(name)) return [h("i", { class: "box" }, name[1] || `token ${name[0]}`)];
  if (broken(name)) return [h("i", { class: "box" }, hexOf(name))];
  return name[1] ? visible(name[1], spaces) : [h("i", { class: "box" }, "empty")];
};
const SOURCES = {
  sampled: ["Sampled", "The model was asked, and the chain picked it."],
  forced: ["Forced", "The constraint allowed nothing else, so the model was not asked."],
  canonical: ["Canonical", "The text was certain, and this is the model's own spelling of it: the model was not asked."],
  fast_forward: ["Fast-forward", "The text was certain and was taken in one batch: the model was not asked."],
  drafted: ["Drafted", "A drafter proposed it and the model agreed: it cost no pass of its own."],
  external: ["Given", "The caller handed it in."],
};
export const called = (source) => (SOURCES[source] || [source.replaceAll("_", " "), ""])[0];
const classOf = (source) => (source === "sampled" || !/^[a-z_]+$/.test(source) ? "" : source);

/** The columns of a trace without tokens; `Trace._columns` gives the same of one that has some. */
export const emptyTrace = (vocabulary, about = {}) => ({
  vocabulary, about, spans: [], token: [], text: [], source: [], allowed: [], mass: [], p_model: [], surprisal: [], entropy: [], p: [],
  temperature: [], mask_micros: [], micros: [], alternatives: [], effects: [], words: [], names: [],
});

/** What is said of a whole trace: pairs of a value and its name. */
export const statsOf = (D) => {
  const N = D.token.length, about = D.about, stats = [[count(N), N === 1 ? "token" : "tokens"]];
  if (typeof about.forward_passes === "number") {
    stats.push([count(about.forward_passes), about.forward_passes === 1 ? "forward pass" : "forward passes"]);
    const saved = N - about.forward_passes;
    if (saved > 0) stats.push([percent(saved / N).replace(/\.\d+/, ""), "passes saved"]);
  }
  if (about.tokens_per_second) stats.push([Number(about.tokens_per_second).toFixed(1), "tokens/s"]);
  const known = D.surprisal.filter((x) => x !== null);
  if (known.length) stats.push([(known.reduce((a, b) => a + b, 0) / known.length * BITS).toFixed(2), "bits of surprise a token"]);
  return stats;
};
export const statsList = (stats) => stats.map(([value, name]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));

/** A button that goes through the themes. */
export const themeButton = (button) => {
  const THEMES = ["auto", "light", "dark"];
  button.addEventListener("click", () => {
    const now = THEMES[(THEMES.indexOf(root.dataset.theme || "auto") + 1) % 3];
    if (now === "auto") delete root.dataset.theme;
    else root.dataset.theme = now;
    button.textContent = `Theme: ${now}`;
  });
};

/**
 * Draws a trace in `place`, and gives the functions that change what is drawn.
 *
 * prefix, of: of the ids and of the names of its elements, where a page has several views.
 * empty: what is said where there are no tokens.
 * picked(i): called when token i is picked.
 * more(i): nodes for the details of token i.
 * instead(i, id): what a click on an alternative does; null where it does nothing.
 */
export const traceView = (place, { prefix = "", of = "", empty = "The output has no tokens.", picked: onPick, more, instead } = {}) => {
  let D = emptyTrace({ name: "", size: 2 }), N = 0;
  const by = (id) => document.getElementById(prefix + id);
  const id = (name) => prefix + name;
  place.classList.add("view");
  place.replaceChildren(
    h("section", { class: "lanes", "aria-label": `The output at a glance${of}` },
      h("div", { class: "names", id: id("lane-names") }),
      h("div", { class: "plot", id: id("plot") }, h("canvas", { id: id("canvas"), role: "img" }))),
    h("div", { class: "body" },
      h("div", { class: "reading" },
        h("div", { class: "tools" },
          h("fieldset", { class: "modes", id: id("modes") }),
          h("div", { class: "legend", id: id("legend"), "aria-hidden": "true" }),
          h("div", { class: "sources", id: id("sources") })),
        h("div", { class: "text", id: id("text") }),
        h("p", { class: "readout", id: id("readout"), "aria-hidden": "true" })),
      h("section", { class: "details", id: id("details"), "aria-label": `Details${of}`, tabindex: "-1" })),
    h("p", { class: "hidden", id: id("keys") },
      "Arrow keys move between tokens, Home and End to the first and last, N to the next surprising token, Enter to the details, Escape back."));
  const sourceOf = (i) => D.words[D.source[i]];
  const nameOf = (i) => D.names[D.token[i]];

  // -- spans, innermost last

  const HUES = 6;
  let spans = [], spansAt = [], opens = new Map();
  const hueOf = (label) => {
    let sum = 7;
    for (const c of label) sum = (sum * 31 + c.codePointAt(0)) >>> 0;
    return sum % HUES;
  };
  const readSpans = () => {
    spans = D.spans.map(([start, end, label, value], at) => ({ at, start, end, label, value, hue: hueOf(label) }));
    spansAt = [];
    opens = new Map();
    [...spans].sort((a, b) => a.start - b.start || b.end - a.end).forEach((span) => {
      opens.set(span.start, [...(opens.get(span.start) || []), span]);
      for (let i = span.start; i < span.end; i++) (spansAt[i] = spansAt[i] || []).push(span);
    });
  };

  // -- colours of the text

  const level = (value, steps) => {
    if (value === null || value === undefined) return 0;
    let at = 0;
    while (at < steps.length && value >= steps[at]) at++;
    return at;
  };
  const vocabulary = () => Math.max(2, D.vocabulary.size);
  const MODES = [
    { id: "surprisal", name: "Surprisal", ramp: "heat", steps: [0.3, 1, 2, 3.5, 5, 7, 10],
      of: (i) => (D.surprisal[i] === null ? null : D.surprisal[i] * BITS), low: "0", high: "10 bits" },
    { id: "p", name: "Probability", ramp: "heat", steps: [0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99],
      of: (i) => (D.p[i] === null ? null : 1 - D.p[i]), low: "100 %", high: "1 %" },
    { id: "entropy", name: "Entropy", ramp: "heat", steps: [0.25, 0.7, 1.3, 2, 3, 4.5, 6.5],
      of: (i) => (D.entropy[i] === null ? null : D.entropy[i] * BITS), low: "0", high: "6.5 bits" },
    { id: "allowed", name: "Allowed tokens", ramp: "cool", steps: [2, 4, 12, 60, 400, 3000, Infinity],
      of: (i) => D.allowed[i], low: "1", high: "all" },
    { id: "time", name: "Time", ramp: "heat", steps: [3, 10, 30, 100, 300, 1000, 3000],
      of: (i) => D.micros[i], low: "3 µs", high: "3 ms" },
    { id: "source", name: "Source", ramp: "kinds", steps: [], of: () => null, low: "", high: "" },
  ];
  let mode = MODES[0];

  // -- the tokens

  const text = by("text");
  let tokens = [], chunks = [];
  const label = (i) => {
    const p = D.p_model[i] === null ? "" : `, ${percent(D.p_model[i])} by the model`;
    const spans = (opens.get(i) || []).map((span) => `, begins ${span.label}`).join("");
    const own = nameOf(i);
    return `${isText(own) ? spoken(D.text[i] || own[1]) : own[1]}, ${called(sourceOf(i)).toLowerCase()}${p}${spans}`;
  };
  // Lines below a token, the outermost span's highest, so that it is level.
  const MAX_LINES = 3;
  const lines = (i) => {
    const shadow = (spansAt[i] || []).slice(0, MAX_LINES).reverse().map((span, at) =>
      `${at ? `inset 0 -${at * 4}px 0 var(--panel), ` : ""}inset 0 -${at * 4 + 2}px 0 var(--s${span.hue})`);
    return shadow.join(", ");
  };
  const tag = (span) =>
    h("span", { class: "tag", "aria-hidden": "true", "data-span": span.at, style: { background: `var(--s${span.hue})` } }, span.label || "span");
  const MIN_CHUNK = 96, MAX_CHUNK = 320;
  const ends = (i, size) => {
    if (size >= MAX_CHUNK) return true;
    if (size < MIN_CHUNK) return false;
    const next = i + 1 < N ? D.text[i + 1] : "";
    return D.text[i].endsWith("\n") || (size > MAX_CHUNK * 0.75 && /^\s/.test(next));
  };
  const option = (i) => {
    const own = nameOf(i);
    const parts = !isText(own) ? glyph(own) : D.text[i] ? visible(D.text[i]) : glyph(own);
    const made = h("span", { role: "option", id: id(`t${i}`), "aria-label": label(i), "aria-selected": "false" }, parts);
    if (spansAt[i]) {
      made.style.boxShadow = lines(i);
      made.style.paddingBottom = `${1 + 4 * Math.min(MAX_LINES, spansAt[i].length)}px`;
      made.style.borderRadius = "4px 4px 0 0";
    }
    return made;
  };
  // Blocks out of view are not laid out: their height is estimated.
  const measure = (chunk, wide) => {
    let rows = 0, column = 0;
    for (let i = chunk.start; i < chunk.end; i++) {
      const shown = D.text[i];
      const cut = shown.lastIndexOf("\n");
      if (cut < 0) column += shown.length;
      else { rows += shown.split("\n").length - 1 + Math.floor(column / wide); column = shown.length - cut - 1; }
    }
    rows += Math.ceil(Math.max(1, column) / wide);
    chunk.element.style.containIntrinsicSize = `auto ${Math.round(rows * 31.2)}px`;
  };
  const LIST = { role: "listbox", tabindex: "0", "aria-label": `Tokens of the output${of}`, "aria-describedby": id("keys") };
  const build = () => {
    if (!tokens.length) {
      text.replaceChildren(N ? "" : h("p", { class: "empty" }, empty));
      for (const [name, value] of Object.entries(LIST)) N ? text.setAttribute(name, value) : text.removeAttribute(name);
    }
    const fresh = document.createDocumentFragment();
    const from = Math.max(0, chunks.length - 1);
    for (let i = tokens.length; i < N; i++) {
      let chunk = chunks[chunks.length - 1];
      if (!chunk || chunk.full) {
        chunk = { start: i, end: i, full: false, element: h("div", { class: "chunk", role: "presentation", "data-at": count(i + 1) }) };
        chunks.push(chunk);
        fresh.append(chunk.element);
      }
      const made = option(i);
      for (const span of opens.get(i) || []) chunk.element.append(tag(span));
      tokens[i] = made;
      chunk.element.append(made);
      chunk.end = i + 1;
      if (ends(i, chunk.end - chunk.start)) {
        // The block itself ends the line.
        const last = made.lastChild;
        if (last && last.nodeType === 3 && last.data.endsWith("\n")) last.data = last.data.slice(0, -1);
        chunk.full = true;
      }
    }
    const wide = Math.max(20, (text.clientWidth - 90) / 8.8);
    for (const chunk of chunks.slice(from)) measure(chunk, wide);
    text.append(fresh);
  };
  let only = null;
  const paint = (from = 0) => {
    text.classList.remove("heat", "cool", "kinds");
    text.classList.add(mode.ramp);
    text.classList.toggle("only", only !== null);
    for (let i = from; i < N; i++) {
      const source = sourceOf(i);
      const at = level(mode.of(i), mode.steps);
      const kind = classOf(source);
      tokens[i].className = `t${at ? ` h${at}` : ""}${kind ? ` ${kind}` : ""}${i === picked ? " on" : ""}${only === source ? " hit" : ""}`;
    }
    const legend = by("legend");
    legend.replaceChildren();
    if (mode.steps.length) {
      const ramp = mode.ramp === "cool" ? "c" : "h";
      const cells = Array.from({ length: 8 }, (_, at) => h("i", { style: { background: `var(--${ramp}${at})` } }));
      legend.append(h("span", {}, mode.low), h("span", { class: "ramp" }, cells), h("span", {}, mode.high));
    }
  };

  // -- lanes: surprisal, allowed tokens, times

  const canvas = by("canvas"), plot = by("plot");
  const largest = (values) => {
    const known = values.filter((x) => x !== null);
    return known.length ? known.reduce((a, b) => Math.max(a, b), 0) : 0;
  };
  const sum = (values) => values.reduce((a, b) => a + (b || 0), 0);
  let most, total;
  const summarize = () => {
    most = { surprisal: Math.max(4, largest(D.surprisal) * BITS), allowed: Math.max(2, largest(D.allowed)), time: largest(D.micros) };
    total = { mask: sum(D.mask_micros), time: sum(D.micros) };
  };
  const lane = (color, name, note, second) =>
    h("div", {}, h("b", {}, h("i", { style: { background: `var(${color})` } }), second ? h("i", { style: { background: `var(${second})` } }) : null, name), note);
  // The bars are drawn once for a size and a theme; what moves is drawn over a copy of them.
  let bars = null;
  const drawBars = (width, height, scale, color) => {
    const made = document.createElement("canvas");
    made.width = width * scale;
    made.height = height * scale;
    const pen = made.getContext("2d");
    pen.scale(scale, scale);
    const row = height / 3, deep = row - 8;
    pen.fillStyle = color("--line");
    for (let at = 0; at < 3; at++) pen.fillRect(0, Math.round((at + 1) * row) - 3, width, 1);
    if (!N) return made;
    const step = width / N;
    const columns = Math.min(width, N);
    const gap = step >= 5 ? 1 : 0;
    const allowedMost = Math.log2(most.allowed + 1);
    const timeMost = Math.log2(1 + most.time);
    for (let at = 0; at < columns; at++) {
      const from = Math.floor((at * N) / columns), to = Math.max(from + 1, Math.floor(((at + 1) * N) / columns));
      let surprisal = 0, allowed = 0, time = 0, mask = 0;
      for (let i = from; i < to; i++) {
        if (D.surprisal[i] > surprisal) surprisal = D.surprisal[i];
        if (D.allowed[i] > allowed) allowed = D.allowed[i];
        if (D.micros[i] > time) time = D.micros[i], mask = D.mask_micros[i] || 0;
      }
      const x = Math.round((at * width) / columns), w = Math.max(1, Math.round(((at + 1) * width) / columns) - x - gap);
      const bar = (line, share, name) => {
        const tall = Math.min(deep, Math.max(share > 0 ? 1 : 0, share * deep));
        pen.fillStyle = color(name);
        pen.fillRect(x, (line + 1) * row - 3 - tall, w, tall);
      };
      bar(0, (surprisal * BITS) / most.surprisal, "--lane-a");
      bar(1, Math.log2(allowed + 1) / allowedMost, "--lane-b");
      const whole = timeMost ? Math.log2(1 + time) / timeMost : 0;
      bar(2, whole, "--lane-d");
      if (time) bar(2, (whole * mask) / time, "--lane-c");
    }
    return made;
  };
  const drawLanes = () => {
    const box = plot.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.floor(box.width)), height = Math.max(1, Math.floor(box.height));
    const css = getComputedStyle(root);
    const color = (name) => css.getPropertyValue(name).trim();
    const key = [width, height, scale, color("--bg"), N].join();
    if (!bars || bars.key !== key) {
      bars = { key, image: drawBars(width, height, scale, color) };
      canvas.width = width * scale;
      canvas.height = height * scale;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(bars.image, 0, 0);
    pen.scale(scale, scale);
    if (!N) return;
    const seen = shown();
    if (seen && seen[1] - seen[0] < N) {
      pen.fillStyle = color("--ink");
      pen.globalAlpha = 0.07;
      pen.fillRect((seen[0] / N) * width, 0, Math.max(3, ((seen[1] - seen[0]) / N) * width), height);
      pen.globalAlpha = 1;
    }
    if (picked >= 0) {
      pen.fillStyle = color("--select");
      pen.fillRect(Math.min(width - 2, ((picked + 0.5) / N) * width - 0.75), 0, 1.5, height);
    }
  };
  let drawing = false;
  const redraw = () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; drawLanes(); });
  };
  // The tokens in view, to about a line.
  const shown = () => {
    if (!N || !chunks.length) return null;
    const view = text.getBoundingClientRect();
    const from = Math.max(0, view.top), to = Math.min(window.innerHeight, view.bottom);
    const at = (y) => {
      let low = 0, high = chunks.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (chunks[middle].element.getBoundingClientRect().top <= y) low = middle;
        else high = middle - 1;
      }
      const chunk = chunks[low], box = chunk.element.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (y - box.top) / Math.max(1, box.height)));
      return chunk.start + share * (chunk.end - chunk.start);
    };
    return [at(from), at(to)];
  };

  // -- details

  const details = by("details");
  let picked = -1, isPlainOpen = false;
  const crumb = (span) =>
    h("button", { class: "crumb", type: "button", onclick: () => pick(Math.min(span.start, N - 1), true) },
      h("i", { style: { background: `var(--s${span.hue})` } }), span.label || "span");
  const tube = (share, second) =>
    h("span", { class: "tube" }, h("i", { style: { width: `${100 * share}%` } }), second === undefined ? null : h("i", { style: { width: `${100 * second}%` } }));
  const wide = (p) => `${Math.max(0, Math.min(100, (p || 0) * 100))}%`;

  const sentence = (i) => {
    const source = sourceOf(i);
    const said = h("p", { class: "said" });
    const p = D.p_model[i], after = D.p[i];
    if (p !== null) {
      const rank = D.alternatives[i].findIndex((one) => D.token[i] === one[0]);
      const place = rank === 0 ? ", its likeliest token" : rank > 0 && rank < 8 ? `, its number ${rank + 1}` : "";
      said.append("The model gave it ", h("b", {}, percent(p)), ` (${bits(D.surprisal[i])} of surprise${place})`);
      if (after !== null) said.append("; after constraint and chain it had ", h("b", {}, percent(after)));
      said.append(". ");
    }
    if (source !== "sampled" || p === null) said.append((SOURCES[source] || ["", ""])[1]);
    return said.childNodes.length ? said : null;
  };
  const alternatives = (i) => {
    const rows = D.alternatives[i];
    if (!rows.length) return [];
    const body = rows.map(([token, before, after, cut]) => {
      const own = D.names[token];
      const chosen = token === D.token[i];
      const fate = chosen ? "chosen" : cut >= 0 ? `cut: ${D.words[cut]}` : after !== null ? "possible" : "not allowed";
      const gone = !chosen && (cut >= 0 || after === null);
      const isLegal = !chosen && D.words[cut] !== "constraint" && !(cut < 0 && after === null);
      const act = isLegal && instead ? () => instead(i, own) : null;
      return h("tr", { class: chosen ? "picked" : gone ? "cut" : "" },
        h("td", { class: "alt", title: `token ${own[0]}` }, act ? h("button", { type: "button", onclick: act, title: "Continue from here with this token" }, glyph(own, true)) : glyph(own, true)),
        h("td", { class: "bars", "aria-hidden": "true" },
          h("span", { class: "bar model", style: { width: wide(before) } }),
          after === null ? null : h("span", { class: "bar after", style: { width: wide(after) } })),
        h("td", { class: "n" }, percent(before)),
        h("td", { class: "n" }, after === null ? "" : percent(after)),
        h("td", { class: "fate", title: fate }, fate));
    });
    const column = (name, props) => h("th", { scope: "col", ...props }, name);
    return [
      h("h3", {}, "What could have come",
        h("small", { "aria-hidden": "true" },
          h("span", { class: "key" }, h("i", { style: { background: "var(--lane-a)" } }), "model"),
          h("span", { class: "key" }, h("i", { style: { background: "var(--accent)" } }), "after"))),
      h("table", { id: id("alternatives") }, h("caption", {}, "Alternatives of the token"),
        h("thead", {}, h("tr", {}, column("Token"), h("td", { "aria-hidden": "true" }), column("Model", { class: "n" }), column("After", { class: "n" }), column("Fate", { class: "fate" }))),
        h("tbody", {}, body)),
    ];
  };
  const funnel = (i) => {
    const size = Math.log2(vocabulary() + 1);
    const share = (n) => Math.log2(n + 1) / size;
    const rows = [];
    const put = (name, before, after, note, idle) =>
      rows.push(h("li", { class: idle ? "idle" : "" },
        h("span", { class: "name", title: name }, name), tube(share(before), share(after)), h("span", { class: "count" }, count(after)),
        note ? h("span", { class: "note" }, note) : null));
    const free = D.allowed[i] >= D.vocabulary.size;
    const cut = D.mass[i] === null || free ? "" : `cut ${percent(Math.max(0, 1 - D.mass[i]))} of the model's probability`;
    put("constraint", D.vocabulary.size, D.allowed[i], cut, free);
    for (const [name, before, after, changed, mass] of D.effects[i]) {
      const notes = [];
      if (after < before) notes.push(`cut ${percent(mass)} of the probability`);
      if (changed) notes.push(`changed ${plural(changed, "logit")}`);
      put(D.words[name], before, after, notes.join(", "), !notes.length);
    }
    return [h("h3", {}, "Who cut what", h("small", {}, "candidates left")), h("ol", { class: "funnel", id: id("funnel") }, rows)];
  };
  const times = (i) => {
    const whole = D.micros[i] || 0, mask = D.mask_micros[i] || 0, rest = Math.max(0, whole - mask);
    const row = (name, value) => [
      h("dt", {}, name),
      h("dd", { class: "tube", "aria-hidden": "true" }, h("i", { style: { width: wide(whole ? value / whole : 0) } })),
      h("dd", {}, micros(value)),
    ];
    return [h("h3", {}, "Time of the decision", h("small", {}, micros(whole))),
      h("dl", { class: "times" }, row("mask", mask), row("sampling", rest))];
  };

  const panel = (i) => {
    const own = nameOf(i), source = sourceOf(i);
    const step = (to, sign, name) =>
      h("button", { class: "step", type: "button", "aria-label": name, disabled: to < 0 || to >= N, onclick: () => pick(to, true) }, sign);
    const facts = h("div", { class: "facts" }, h("span", { class: `badge ${classOf(source)}` }, called(source)), h("span", {}, `id ${own[0]}`));
    if (own[2]) facts.append(h("code", {}, hexOf(own).length > 60 ? `${hexOf(own).slice(0, 60)}…` : hexOf(own)));
    if (own[3] !== "normal") facts.append(h("span", {}, own[3].replace("_", " ")));
    if (D.entropy[i] !== null) facts.append(h("span", {}, `entropy ${bits(D.entropy[i])}`));
    if (D.temperature[i] !== null) facts.append(h("span", {}, `temperature ${D.temperature[i]} by the grammar`));
    for (const span of spansAt[i] || []) facts.append(crumb(span));
    return [
      h("div", { class: "head" },
        h("h2", { id: id("details-title"), class: "hidden" }, `Token ${i + 1}: ${label(i)}`),
        h("span", { class: "where" }, `${count(i + 1)} of ${count(N)}`),
        step(i - 1, "‹", "Previous token"), step(i + 1, "›", "Next token"),
        h("button", { class: "step", type: "button", "aria-label": "Close the details", onclick: () => drop(true) }, "×")),
      h("span", { class: "token" }, glyph(own, true)),
      facts, sentence(i), ...(more ? more(i) : []), ...alternatives(i), ...funnel(i), ...times(i),
    ];
  };

  const around = (i) => {
    const side = (from, to) => { let made = ""; for (let j = Math.max(0, from); j < Math.min(N, to); j++) made += D.text[j]; return made.replace(/\s+/g, " "); };
    const before = side(i - 4, i), after = side(i + 1, i + 5);
    return h("span", { class: "ctx" }, visible(before), h("mark", {}, glyph(nameOf(i), true)), visible(after));
  };
  const overview = () => {
    const made = [h("h2", { id: id("details-title") }, "Pick a token"),
      h("p", { class: "help" }, "Click one, or move with ", h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " ", h("kbd", {}, "↑"), " ", h("kbd", {}, "↓"),
        ". ", h("kbd", {}, "N"), " is the next surprising token.")];
    const surprising = D.surprisal.map((x, i) => [x, i]).filter(([x]) => x !== null && x * BITS >= 1).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 8);
    if (surprising.length) {
      made.push(h("h3", {}, "Where the model was surprised"),
        h("ul", { class: "list" }, surprising.map(([x, i]) => h("li", {}, h("button", { type: "button", onclick: () => pick(i, true) }, around(i), h("span", { class: "val" }, bits(x)))))));
    }
    if (spans.length) {
      const value = (span) => (span.value === null || span.value === undefined ? plural(span.end - span.start, "token") : JSON.stringify(span.value));
      made.push(h("h3", {}, "Spans", h("small", {}, count(spans.length))),
        h("ul", { class: "list" }, spans.slice(0, 200).map((span) => h("li", {},
          h("button", { type: "button", onclick: () => N && pick(Math.min(span.start, N - 1), true) },
            h("span", { class: "ctx" }, h("i", { class: "dot", style: { background: `var(--s${span.hue})` } }), span.label || "span"),
            h("span", { class: "val" }, value(span).slice(0, 40)))))));
    }
    const about = Object.entries(D.about).filter(([, value]) => value !== null && value !== "");
    if (about.length) {
      const shown = (value) => (typeof value === "number" ? value.toLocaleString("en-US", { maximumFractionDigits: 3 }) : typeof value === "string" ? value : typeof value === "boolean" ? (value ? "yes" : "no") : JSON.stringify(value));
      made.push(h("h3", {}, "About this output"),
        h("dl", { class: "about" }, about.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, shown(value))]).flat()));
    }
    const plain = h("details", { open: isPlainOpen }, h("summary", {}, "The output as plain text"));
    const fill = () => { if (plain.open && plain.children.length < 2) plain.append(h("div", { class: "copy", tabindex: "0" }, D.text.join(""))); };
    plain.addEventListener("toggle", () => { isPlainOpen = plain.open; fill(); });
    fill();
    made.push(plain);
    return made;
  };

  const show = () => {
    details.replaceChildren(...(picked < 0 ? overview() : panel(picked)).filter(Boolean));
    details.scrollTop = 0;
    details.setAttribute("aria-describedby", id("details-title"));
    place.classList.toggle("picked-one", picked >= 0);
  };
  const mark = (i, on) => {
    tokens[i].classList.toggle("on", on);
    tokens[i].setAttribute("aria-selected", on ? "true" : "false");
  };
  const pick = (i, scroll) => {
    if (!(i >= 0 && i < N)) return;
    if (picked >= 0) mark(picked, false);
    picked = i;
    mark(i, true);
    text.setAttribute("aria-activedescendant", id(`t${i}`));
    show();
    if (scroll) reveal(i);
    redraw();
    if (onPick) onPick(i);
  };
  // Blocks out of view have an estimated height: the one of the token is laid out first, and the place checked again.
  const reveal = (i) => {
    const { element } = chunkOf(i);
    element.style.contentVisibility = "visible";
    tokens[i].scrollIntoView({ block: "nearest" });
    requestAnimationFrame(() => {
      if (picked === i) tokens[i].scrollIntoView({ block: "nearest" });
      element.style.contentVisibility = "";
    });
  };
  const chunkOf = (i) => {
    let low = 0, high = chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (chunks[middle].start <= i) low = middle;
      else high = middle - 1;
    }
    return chunks[low];
  };
  const drop = (focus) => {
    if (picked < 0) return;
    mark(picked, false);
    picked = -1;
    text.removeAttribute("aria-activedescendant");
    show();
    redraw();
    if (focus) text.focus({ preventScroll: true });
  };

  // -- moving

  const line = (i, way) => {
    const here = tokens[i].getClientRects()[0] || tokens[i].getBoundingClientRect();
    const middle = here.left + here.width / 2;
    let best = -1, far = Infinity, top = null;
    for (let j = i + way, seen = 0; j >= 0 && j < N && seen < 600; j += way, seen++) {
      const box = tokens[j].getClientRects()[0];
      if (!box || Math.abs(box.top - here.top) < 6) continue;
      if (top === null) top = box.top;
      if (Math.abs(box.top - top) >= 6) break;
      const away = Math.abs(box.left + box.width / 2 - middle);
      if (away < far) far = away, best = j;
    }
    return best >= 0 ? best : way < 0 ? 0 : N - 1;
  };
  const surprising = (from, way) => {
    for (let i = from + way; i >= 0 && i < N; i += way) if (D.surprisal[i] !== null && D.surprisal[i] * BITS >= 3) return i;
    return from;
  };
  const moves = {
    ArrowRight: (i) => Math.min(N - 1, i + 1), ArrowLeft: (i) => Math.max(0, i - 1),
    ArrowDown: (i) => line(i, 1), ArrowUp: (i) => line(i, -1),
    Home: () => 0, End: () => N - 1,
    PageDown: (i) => Math.min(N - 1, i + 100), PageUp: (i) => Math.max(0, i - 100),
    n: (i) => surprising(i, 1), N: (i) => surprising(i, -1),
  };
  text.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !N) return;
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      if (picked >= 0) pick(move(picked), true);
      else if (event.key === "n" || event.key === "N") pick(surprising(-1, 1) < 0 ? 0 : surprising(-1, 1), true);
      else pick(event.key === "End" ? N - 1 : 0, true);
    } else if (event.key === "Enter" && picked >= 0) {
      event.preventDefault();
      details.focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || picked < 0) return;
    if (details.contains(document.activeElement)) text.focus({ preventScroll: true });
    else drop(true);
  });
  const tokenAt = (node) => {
    const found = node instanceof Element ? node.closest("[role=option]") : null;
    return found ? Number(found.id.slice(prefix.length + 1)) : -1;
  };
  text.addEventListener("click", (event) => {
    const badge = event.target instanceof Element ? event.target.closest(".tag") : null;
    if (badge) pick(Math.min(spans[badge.dataset.span].start, N - 1), false);
    else pick(tokenAt(event.target), true);
  });
  const readout = by("readout");
  text.addEventListener("pointerover", (event) => {
    const i = event.pointerType === "mouse" ? tokenAt(event.target) : -1;
    readout.classList.toggle("show", i >= 0);
    if (i < 0) return;
    const parts = [`${count(i + 1)}`, called(sourceOf(i)).toLowerCase()];
    if (D.p_model[i] !== null) parts.push(`${percent(D.p_model[i])} by the model`, bits(D.surprisal[i]));
    if (D.p[i] !== null) parts.push(`${percent(D.p[i])} after the chain`);
    parts.push(plural(D.allowed[i], "token") + " allowed");
    readout.textContent = parts.join("  ·  ");
  });
  text.addEventListener("pointerleave", () => readout.classList.remove("show"));
  const jump = (event) => {
    const box = plot.getBoundingClientRect();
    pick(Math.min(N - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * N))), true);
  };
  plot.addEventListener("pointerdown", (event) => { plot.setPointerCapture(event.pointerId); jump(event); });
  plot.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  text.addEventListener("scroll", redraw, { passive: true });
  window.addEventListener("scroll", redraw, { passive: true });
  new ResizeObserver(redraw).observe(plot);

  // -- the head

  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new MutationObserver(redraw).observe(root, { attributeFilter: ["data-theme"] });

  const lanes = () => {
    by("lane-names").replaceChildren(
      lane("--lane-a", "Surprisal", `up to ${most.surprisal.toFixed(1)} bits`),
      lane("--lane-b", "Allowed tokens", `up to ${count(most.allowed)}, log`),
      lane("--lane-c", "Mask, sampling", `${micros(total.mask)} of ${micros(total.time)}`, "--lane-d"));
    by("canvas").setAttribute("aria-label",
      `Along ${plural(N, "token")}: surprisal up to ${most.surprisal.toFixed(1)} bits, up to ${count(most.allowed)} allowed tokens, masks took ${micros(total.mask)} of ${micros(total.time)}`);
  };
  const modes = () => {
    by("modes").replaceChildren(h("legend", {}, "Colour by"), ...MODES.map((one) => h("label", {},
      h("input", { type: "radio", name: id("mode"), value: one.id, checked: one === mode, onchange: () => { mode = one; paint(); } }), one.name)));
  };
  const sources = () => {
    const counts = new Map();
    for (let i = 0; i < N; i++) counts.set(sourceOf(i), (counts.get(sourceOf(i)) || 0) + 1);
    by("sources").replaceChildren(...[...counts].map(([source, n]) => {
      const button = h("button", { type: "button", "aria-pressed": String(only === source), title: (SOURCES[source] || ["", ""])[1] },
        h("b", { class: classOf(source) }, called(source)), count(n));
      button.addEventListener("click", () => {
        only = only === source ? null : source;
        for (const other of by("sources").children) other.setAttribute("aria-pressed", String(other === button && only !== null));
        paint();
      });
      return button;
    }));
  };

  /** Draws the tokens that the trace has got since it was shown. */
  const grow = () => {
    const before = N;
    N = D.token.length;
    summarize();
    lanes();
    sources();
    build();
    paint(before);
    if (picked < 0) show();
    redraw();
  };
  /** Draws another trace. */
  const draw = (trace) => {
    D = trace;
    N = 0;
    tokens = [];
    chunks = [];
    picked = -1;
    only = null;
    text.replaceChildren();
    text.removeAttribute("aria-activedescendant");
    readSpans();
    if (D.token.length && !D.surprisal.some((x) => x !== null)) mode = MODES[5];
    modes();
    grow();
  };
  draw(D);
  return { draw, grow, pick, drop, picked: () => picked };
};
