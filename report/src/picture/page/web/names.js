// Names made fit to show: cleaned of what would deceive or break the page, and shorter in steps.

/** Longest texts shown, in characters. What is stored is never cut. */
export const SHOWN = { box: 300, tip: 420, row: 400 };

/** Longest name that is taken apart to make it shorter. */
const LONGEST_PARSED = 2000;

/**
 * Returns whether a character would change or hide the text around it: direction marks,
 * zero-width characters, line separators, tags and lone surrogates.
 * @param {number} code
 * @returns {boolean}
 */
function isInvisible(code) {
  return (
    code === 0xad || code === 0x34f || code === 0x61c || code === 0x115f || code === 0x1160 ||
    code === 0x17b4 || code === 0x17b5 || code === 0x3164 || code === 0xffa0 || code === 0xfeff ||
    (code >= 0x80 && code <= 0x9f) || (code >= 0x180b && code <= 0x180f) ||
    (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
    (code >= 0x2060 && code <= 0x206f) || (code >= 0xd800 && code <= 0xdfff) ||
    (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xfff9 && code <= 0xfffb) ||
    (code >= 0xe0000 && code <= 0xe0fff)
  );
}

/**
 * Returns a text fit to show: controls as pictures (␛), invisible characters as ⟨202E⟩, cut with
 * "…" after `limit` characters.
 * @param {string} text
 * @param {number} [limit]
 * @returns {string}
 */
export function clean(text, limit = SHOWN.row) {
  let out = "";
  let length = 0;
  for (let at = 0; at < text.length; ) {
    if (length >= limit) return out + "…";
    const code = text.codePointAt(at) ?? 0;
    if (code < 0x20) out += String.fromCharCode(0x2400 + code);
    else if (code === 0x7f) out += "␡";
    else if (isInvisible(code)) out += `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    else out += String.fromCodePoint(code);
    at += code > 0xffff ? 2 : 1;
    length += 1;
  }
  return out;
}

/**
 * Returns a name without what stands in brackets: template arguments, call arguments. Operators
 * (`operator<`), `(anonymous namespace)` and Rust's `<T as Trait>` at the beginning keep theirs.
 * @param {string} name
 * @returns {string}
 */
function withoutArguments(name) {
  let out = "";
  let depth = 0;
  for (let i = 0; i < name.length; i++) {
    const char = name.charAt(i);
    if (char === "<" || char === "(" || char === "[" || char === "{") {
      const opensName = depth === 0 &&
        (out === "" || out.endsWith("::") || (char === "(" && out.endsWith(" ")));
      if (opensName && char !== "<") {
        const end = name.indexOf(char === "(" ? ")" : char === "[" ? "]" : "}", i);
        if (end > i) {
          out += name.slice(i, end + 1);
          i = end;
          continue;
        }
      }
      const symbol = depth === 0 && out.endsWith("operator")
        ? /^(\(\)|\[\]|[<>=-]+)/.exec(name.slice(i, i + 3))?.[0] : undefined;
      if (symbol !== undefined) {
        out += symbol;
        i += symbol.length - 1;
        continue;
      }
      depth += 1;
    } else if (char === ">" || char === ")" || char === "]" || char === "}") {
      if (char === ">" && name.charAt(i - 1) === "-") {
        if (depth === 0) out += char;
      } else if (depth > 0) depth -= 1;
      else out += char;
    } else if (depth === 0) out += char;
  }
  for (const end of [" const", " volatile", " &", " &&"]) {
    if (out.endsWith(end)) out = out.slice(0, -end.length);
  }
  return out.startsWith("::") ? out.slice(2) : out;
}

/**
 * Returns what is inside the angle brackets that a Rust name begins with: `<A as B>::f` → `A::f`.
 * @param {string} name
 * @returns {string}
 */
function withoutTrait(name) {
  if (!name.startsWith("<")) return name;
  let depth = 0;
  for (let i = 0; i < name.length; i++) {
    const char = name.charAt(i);
    if (char === "<") depth += 1;
    else if (char === ">" && name.charAt(i - 1) !== "-") depth -= 1;
    else if (depth === 1 && name.startsWith(" as ", i)) {
      let rest = i;
      for (let open = 1; rest < name.length && open > 0; rest++) {
        if (name.charAt(rest) === "<") open += 1;
        else if (name.charAt(rest) === ">" && name.charAt(rest - 1) !== "-") open -= 1;
      }
      return name.slice(1, i) + name.slice(rest);
    }
    if (depth === 0) return name.slice(1, i) + name.slice(i + 1);
  }
  return name;
}

/**
 * Returns forms of a name, longest first: whole; without arguments; last two parts; last part.
 * @param {string} name A raw name.
 * @returns {string[]} Cleaned forms, at least one.
 */
export function forms(name) {
  const whole = clean(name, SHOWN.box);
  if (name.length > LONGEST_PARSED) return [whole];
  const out = [whole];
  const bare = withoutArguments(withoutTrait(name.replace(/::h[0-9a-f]{16}$/, ""))).trim();
  const parts = bare.split("::").filter((part) => part !== "");
  // A closure alone says nothing: whose it is stays with it.
  const last = Math.max(parts.findLastIndex((part) => !part.startsWith("{")), 0);
  for (const from of [0, Math.max(last - 1, 0), last]) {
    const shown = clean(from === 0 ? bare : parts.slice(from).join("::"), SHOWN.box);
    if (shown !== "" && shown.length < out[out.length - 1].length) out.push(shown);
  }
  return out;
}

/**
 * Returns a module's name without version and hash, so that a new build keeps its colour:
 * `libLLVM.so.22.1-rust` → `libLLVM`, `librustc_driver-6108105cd.so` → `librustc_driver`.
 * @param {string} name
 * @returns {string}
 */
export function familyOf(name) {
  const file = name.slice(name.lastIndexOf("/") + 1).slice(0, 200);
  const family = file
    .replace(/\.so(\.|$).*$/, "")
    .replace(/-[0-9a-f]{8,}$/, "")
    .replace(/[-._]\d+(\.\d+)*$/, "");
  return family === "" ? file : family;
}
