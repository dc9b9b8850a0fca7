// Share links: files in the fragment of a URL, as package runtime/snippets writes them.
import { filesError, filesOf, mainPath, maxBytes, type File } from "./files.js";

/** A link that cannot be made or read. The message is for people. */
export class LinkError extends Error {}

/** The longest fragment that is read or written, in characters. */
export const maxFragment = 64_000;

/** Links with more characters are cut by some programs. */
export const longLink = 8_000;

/** Returns the fragment for files, such as "#src=…". */
export async function encode(files: readonly File[]): Promise<string> {
  const only = files.length === 1 && files[0]?.path === mainPath ? files[0] : undefined;
  const text = new TextEncoder().encode(
    only?.source ?? JSON.stringify(files.map(({ path, source }) => ({ path, source }))),
  );
  const fragment = `#${only === undefined ? "files" : "src"}=${toBase64(await through(text, new CompressionStream("deflate-raw"), Infinity))}`;
  if (text.length > maxBytes || fragment.length > maxFragment) {
    throw new LinkError("The program is too long for a link.");
  }
  return fragment;
}

/** Returns the files of a fragment, or undefined if it has none. */
export async function decode(fragment: string): Promise<File[] | undefined> {
  const match = /^#(src|files)=(.*)$/s.exec(fragment);
  if (match === null) {
    return undefined;
  }
  const [, kind, encoded = ""] = match;
  if (encoded.length > maxFragment) {
    throw new LinkError("The link is too long.");
  }
  const text = await inflate(encoded);
  const files = kind === "src" ? [{ path: mainPath, source: text }] : parseFiles(text);
  const wrong = files === undefined ? "it holds no files" : filesError(files);
  if (files === undefined || wrong !== undefined) {
    throw new LinkError(`The link is damaged: ${wrong}`);
  }
  return files;
}

async function inflate(encoded: string): Promise<string> {
  let bytes: Uint8Array;
  try {
    bytes = await through(fromBase64(encoded), new DecompressionStream("deflate-raw"), maxBytes);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw error instanceof LinkError ? error : new LinkError("The link is damaged, or incomplete.");
  }
}

function parseFiles(text: string): File[] | undefined {
  try {
    return filesOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Passes bytes through a transformation whose output has at most max bytes. */
async function through(bytes: Uint8Array, transform: GenericTransformStream, max: number): Promise<Uint8Array> {
  const writer = (transform.writable as WritableStream<Uint8Array>).getWriter();
  const written = writer.write(bytes).then(() => writer.close());
  written.catch(() => undefined); // the reader reports it
  const reader = (transform.readable as ReadableStream<Uint8Array>).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    size += value.length;
    if (size > max) {
      reader.cancel().catch(() => undefined);
      throw new LinkError(`The link holds more than ${max.toLocaleString("en")} bytes.`);
    }
    parts.push(value);
  }
  await written;
  return concat(parts, size);
}

function concat(parts: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) {
    binary += String.fromCharCode(byte);
  }
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text: string): Uint8Array {
  if (!/^[\w-]*$/.test(text)) {
    throw new LinkError("The link is damaged, or incomplete.");
  }
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}
