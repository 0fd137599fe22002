// The data blocks of the page: base64 of raw deflate of columns of LEB128 numbers, texts or JSON.
// Nothing here trusts a length: a damaged page ends in an error that says which column.

/** An error that the page shows as a sentence. */
export class DamagedPage extends Error {}

/** One column of unsigned LEB128 numbers. */
export class Column {
  /**
   * @param {string} name For errors.
   * @param {Uint8Array} bytes
   */
  constructor(name, bytes) {
    this.name = name;
    this.bytes = bytes;
    this.at = 0;
  }

  /**
   * Fails, and says what is wrong with this column.
   * @param {string} why
   * @returns {never}
   */
  fail(why) {
    throw new DamagedPage(`its column ${this.name} ${why}`);
  }

  /** Reads the next number, up to 2^53. */
  next() {
    const bytes = this.bytes;
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.at >= bytes.length) this.fail("ends early");
      const byte = bytes[this.at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) break;
      if (scale > 2 ** 45) this.fail("has a number too large");
    }
    return value;
  }

  /**
   * Fills an array with the next numbers.
   * @template {Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array} T
   * @param {T} out
   * @returns {T}
   */
  fill(out) {
    const bytes = this.bytes;
    for (let i = 0; i < out.length; i++) {
      const byte = bytes[this.at] ?? 255;
      if (byte < 128) {
        out[i] = byte;
        this.at += 1;
      } else {
        out[i] = this.next();
      }
    }
    return out;
  }

  /** Fails if numbers are left. */
  end() {
    if (this.at !== this.bytes.length) this.fail("is longer than it should be");
  }
}

/**
 * Returns the bytes that base64 stands for.
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function fromBase64(text) {
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (typeof native === "function") return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * Returns what raw deflate packed.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Promise<Uint8Array>}
 */
export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Returns the texts of a column that are joined by NUL.
 * @param {string} name
 * @param {Uint8Array} bytes
 * @param {number} count
 * @returns {string[]}
 */
export function textsOf(name, bytes, count) {
  const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  const texts = count === 0 ? [] : utf8.decode(bytes).split("\0");
  if (texts.length !== count) throw new DamagedPage(`its column ${name} has not ${count} texts`);
  return texts;
}

/**
 * Returns a function that reads the data blocks of this document by name.
 * @returns {(name: string) => Promise<Uint8Array | null>}
 */
export function blocksOfDocument() {
  return async (name) => {
    const block = document.getElementById("d-" + name);
    if (block === null) return null;
    const bytes = fromBase64(block.textContent ?? "");
    block.remove();
    try {
      return await inflate(bytes);
    } catch {
      throw new DamagedPage(`its column ${name} cannot be inflated`);
    }
  };
}
