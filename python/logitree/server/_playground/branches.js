// The outputs that were tried: a tree, whose branches begin where a token was replaced.
import { h } from "./view.js";

export class Branches {
  /** `place` shows the tree; `shows(branch)` is called when another branch is chosen. */
  constructor(place, shows) {
    this.place = place;
    this.shows = shows;
    this.clear();
  }

  clear() {
    this.all = [];
    this.current = null;
    this.draw();
  }

  /** A new branch: `records` of its own tokens, after the first `at` tokens of `parent`. */
  add(parent, at, records) {
    this.current = { number: this.all.length + 1, parent, at, records: [...records], ended: "" };
    this.all.push(this.current);
    this.draw();
    return this.current;
  }

  remove(branch) {
    this.all = this.all.filter((one) => one !== branch);
    if (this.current === branch) this.current = branch.parent;
    this.draw();
  }

  /** The records of all tokens of a branch's output. */
  path(branch) {
    return branch ? [...this.path(branch.parent).slice(0, branch.at), ...branch.records] : [];
  }

  choose(branch) {
    this.current = branch;
    this.draw();
    this.shows(branch);
  }

  /** A branch of one output alone needs no tree. */
  draw() {
    this.place.hidden = this.all.length < 2;
    if (this.place.hidden) return this.place.replaceChildren();
    const ends = this.all.map((one) => one.at + one.records.length);
    const most = Math.max(1, ...ends), ROW = 30, percent = (n) => `${(100 * n) / most}%`;
    const row = new Map(this.all.map((one, at) => [one, at]));
    const svg = (name, props) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(props)) made.setAttribute(key, value);
      return made;
    };
    const lines = svg("svg", { class: "twigs", "aria-hidden": "true", height: ROW * this.all.length });
    for (const one of this.all) {
      if (one.parent) {
        const x = percent(one.at);
        lines.append(svg("line", { x1: x, x2: x, y1: ROW * (row.get(one.parent) + 0.5), y2: ROW * (row.get(one) + 0.5) }));
      }
    }
    const buttons = this.all.map((one, at) => {
      const text = one.records.map((record) => record.text).join("").replace(/\s+/g, " ").trim();
      const name = `Output ${one.number}${one.parent ? `, from token ${one.at + 1} of output ${one.parent.number}` : ""}`;
      return h("button", {
        type: "button", class: "twig", "aria-pressed": String(one === this.current), title: `${name}: ${text.slice(0, 200)}`, "aria-label": `${name}: ${text.slice(0, 60)}`,
        style: { top: `${ROW * at + 3}px`, left: percent(one.at), width: `max(26px, ${percent(one.records.length)})` },
        onclick: () => this.choose(one),
      }, text || "…");
    });
    const canvas = h("div", { class: "tree", style: { height: `${ROW * this.all.length}px` } }, lines, buttons);
    this.place.replaceChildren(h("h3", {}, "Outputs tried"), canvas);
  }
}
