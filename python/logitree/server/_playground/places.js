// Where an error is in the text that it is about.

/** The range [start, end) of a place in a text: "line:column", or "#/a/0", a pointer into JSON. Null where it has none. */
export const rangeOf = (place, text) => {
  const at = /^(\d+):(\d+)$/.exec(place || "");
  if (at) return ofLine(text, Number(at[1]), Number(at[2]));
  return /^#(\/|$)/.test(place || "") ? ofPointer(text, place.slice(1)) : null;
};

const ofLine = (text, line, column) => {
  let start = 0;
  for (let n = 1; n < line; n++) {
    const end = text.indexOf("\n", start);
    if (end < 0) return [Math.max(0, text.length - 1), text.length];
    start = end + 1;
  }
  // Columns count characters, not UTF-16 units.
  const before = [...text.slice(start)].slice(0, column - 1).join("").length;
  const from = Math.min(start + before, Math.max(0, text.length - 1));
  return [from, Math.min(text.length, from + 1)];
};

const ofPointer = (text, pointer) => {
  const path = pointer.split("/").slice(1).map((part) => decode(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  let at = 0;
  const blank = () => { while (at < text.length && " \t\r\n".includes(text[at])) at++; };
  const string = () => {
    const from = at++;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    return text.slice(from, ++at);
  };
  // Reads a value; gives its range where the rest of the path leads to it, else null.
  const value = (depth) => {
    blank();
    const from = at;
    let found = null;
    if (text[at] === "{" || text[at] === "[") {
      const isObject = text[at++] === "{";
      for (let index = 0; at < text.length; index++) {
        blank();
        if (text[at] === "}" || text[at] === "]") { at++; break; }
        if (text[at] === ",") { at++; index--; continue; }
        let name = String(index);
        if (isObject) {
          if (text[at] !== '"') throw new SyntaxError("a key is expected");
          name = JSON.parse(string());
          blank();
          at++;
        }
        const inner = value(depth !== null && depth < path.length && name === path[depth] ? depth + 1 : null);
        found = inner || found;
      }
    } else if (text[at] === '"') string();
    else {
      while (at < text.length && !",}] \t\r\n".includes(text[at])) at++;
      if (at === from) throw new SyntaxError("a value is expected");
    }
    return depth === path.length ? [from, at] : found;
  };
  try {
    return value(0);
  } catch {
    return null;
  }
};

const decode = (part) => {
  try { return decodeURIComponent(part); } catch { return part; }
};
