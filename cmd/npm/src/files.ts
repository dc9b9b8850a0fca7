import { Readable } from "node:stream";
import { newCapture } from "./capture.js";
import type { Input, Session } from "./connection/session.js";
import { GaolError } from "./errors.js";
import { checkOptions, type Names } from "./names.js";
import { signalNames } from "./optionnames.js";
import { asList, asNumber, asObject, asText } from "./parse.js";
import { newOutput } from "./streams.js";

/** A path in a sandbox. Names need not be UTF-8: use bytes then. */
export type Path = string | Uint8Array;

/** Describes a file. */
export interface FileInfo {
  /** Its path in the sandbox. Bytes that are not UTF-8 are replaced. */
  path: string;

  /** The path, if it is not UTF-8. */
  pathBytes?: Uint8Array;
  type: "file" | "folder" | "link" | "fifo" | "socket" | "device";

  /** In bytes. */
  size: number;

  /** Its permissions, in octal. */
  mode: string;

  /** When its content was changed, as the sandbox says. */
  modified: Date;

  /** The text of a link. Listings omit it. */
  target?: string;

  /** The text of a link, if it is not UTF-8. */
  targetBytes?: Uint8Array;
}

/** The files of a folder. */
export interface FileList {
  files: FileInfo[];

  /** There are more files than the limit, or folders that cannot be read. */
  truncated: boolean;
}

/** An option of all operations on files. */
export interface Cancelable {
  signal?: AbortSignal | undefined;
}

/** Options of {@link Files.read}. */
export interface ReadOptions extends Cancelable {
  /** The most bytes to read: larger files are an error. By default 64 MiB. */
  maxBytes?: number | undefined;
}

/** Options of new files and folders. */
export interface MakeOptions extends Cancelable {
  /** Permissions in octal. By default 644, and 755 for a folder. */
  mode?: string | undefined;

  /** Make missing parent folders. */
  createParents?: boolean | undefined;
}

/** Content of a file. */
export type Content = Input;

/** The files of a sandbox. Paths are absolute. Contents are streamed in both directions. */
export interface Files {
  /** Reads a file. */
  read(path: Path, options?: ReadOptions): Promise<Uint8Array>;

  /** Reads a file as UTF-8. */
  readText(path: Path, options?: ReadOptions): Promise<string>;

  /** Reads a file of any size. If it cannot be read, the stream has an error. */
  readStream(path: Path, options?: Cancelable): Readable;

  /** Writes a file. It appears when all of the content has arrived. */
  write(path: Path, content: Content, options?: MakeOptions): Promise<FileInfo>;

  /** Describes a file, or with `links` a link itself. */
  stat(path: Path, options?: Cancelable & { links?: boolean }): Promise<FileInfo>;

  /** Reports whether there is a file or folder. */
  exists(path: Path, options?: Cancelable): Promise<boolean>;

  /** Lists a folder: at most `limit` files, 1,000 by default. */
  list(path: Path, options?: Cancelable & { recursive?: boolean; limit?: number }): Promise<FileList>;

  /** Makes a folder. With `createParents`, an existing folder is no error. */
  makeDir(path: Path, options?: MakeOptions): Promise<void>;

  /** Moves a file or a folder. An existing file is replaced by a file, an empty folder by a folder. */
  move(from: Path, to: Path, options?: Cancelable): Promise<void>;

  /** Removes a file, an empty folder, or with `recursive` a folder with its content. */
  remove(path: Path, options?: Cancelable & { recursive?: boolean }): Promise<void>;

  /** Reads a folder as a tar archive. */
  readTar(path: Path, options?: Cancelable): Readable;

  /** Unpacks a tar archive into a folder. */
  writeTar(path: Path, archive: Content, options?: Cancelable & { createParents?: boolean }): Promise<{ entries: number; bytes: number }>;
}

const defaultMaxBytes = 64 << 20;

/** The options of a method of {@link Files}. */
type OptionsOf<M extends keyof Files> = Exclude<Parameters<Files[M]>[M extends "write" | "move" | "writeTar" ? 2 : 1], undefined>;

const readNames = { ...signalNames, maxBytes: true } satisfies Names<ReadOptions>;
const makeNames = { ...signalNames, mode: true, createParents: true } satisfies Names<MakeOptions>;
const optionNames = {
  read: readNames, readText: readNames, readStream: signalNames, write: makeNames, stat: { signal: true, links: true }, exists: signalNames,
  list: { signal: true, recursive: true, limit: true }, makeDir: makeNames, move: signalNames, remove: { signal: true, recursive: true },
  readTar: signalNames, writeTar: { signal: true, createParents: true },
} satisfies { [M in keyof Files]: Names<OptionsOf<M>> };

function checked<O extends Cancelable>(method: keyof Files, o: O): O {
  return checkOptions(`files.${method}`, o, optionNames[method]);
}

/** Returns the files of a sandbox. */
export function newFiles(session: () => Promise<Session>, sandbox: string): Files {
  const request = async (name: keyof Files, method: string, params: object, o: Cancelable, stdin?: Input): Promise<unknown> => {
    const { signal, ...rest } = checked(name, o);
    return (await session()).request(method, { sandbox, ...params, ...rest }, { signal, stdin });
  };
  const files: Files = {
    read: async (path, o = {}) => readAll(await session(), { sandbox, ...named("path", path) }, checked("read", o)),
    readText: async (path, o) => new TextDecoder().decode(await files.read(path, o)),
    readStream: (path, o = {}) => readStream(session, "readFile", { sandbox, ...named("path", path) }, checked("readStream", o)),
    write: async (path, content, o = {}) => parseInfo(await request("write", "writeFile", named("path", path), o, content)),
    stat: async (path, o = {}) => parseInfo(await request("stat", "stat", named("path", path), o)),
    exists: (path, o = {}) => request("exists", "stat", named("path", path), o).then(() => true, absent),
    list: async (path, o = {}) => parseList(await request("list", "listFiles", named("path", path), o)),
    makeDir: async (path, o = {}) => void (await request("makeDir", "makeDir", named("path", path), o)),
    move: async (from, to, o = {}) => void (await request("move", "move", { ...named("from", from), ...named("to", to) }, o)),
    remove: async (path, o = {}) => void (await request("remove", "remove", named("path", path), o)),
    readTar: (path, o = {}) => readStream(session, "readTar", { sandbox, ...named("path", path) }, checked("readTar", o)),
    async writeTar(path, archive, o = {}) {
      const counts = asObject(await request("writeTar", "writeTar", named("path", path), o, archive), "archive");
      return { entries: asNumber(counts["entries"], "archive"), bytes: asNumber(counts["bytes"], "archive") };
    },
  };
  return files;
}

/** Returns a path as requests have it: as text, or as bytes. */
function named(name: string, path: Path): object {
  return typeof path === "string" ? { [name]: path } : { [`${name}Bytes`]: Buffer.from(path).toString("base64") };
}

function absent(err: unknown): boolean {
  if (err instanceof GaolError && err.code === "not_found") return false;
  throw err;
}

async function readAll(session: Session, params: object, o: ReadOptions): Promise<Uint8Array> {
  const limit = o.maxBytes ?? defaultMaxBytes;
  const content = newCapture(limit);
  const tooLarge = (): never => {
    throw new GaolError("too_large", `gaol: the file has more than ${limit} bytes`, { status: 413 });
  };
  let size = 0;
  const onStdout = (piece: Uint8Array): unknown => ((size += piece.length) > limit ? tooLarge() : content.add(piece));
  await session.request("readFile", params, { signal: o.signal, onStdout });
  return content.end().bytes;
}

function readStream(session: () => Promise<Session>, method: string, params: object, o: Cancelable): Readable {
  const output = newOutput();
  const start = async (): Promise<void> => {
    const r = (await session()).open(method, params, { signal: o.signal, onStdout: output.push });
    output.stream.once("close", () => r.cancel());
    await r.result;
  };
  start().then(output.end, (err: unknown) => output.stream.destroy(err as Error));
  return output.stream;
}

function parseInfo(value: unknown): FileInfo {
  const { path, pathBytes, targetBytes, modified, ...rest } = asObject(value, "file");
  return {
    ...rest,
    path: asText(path, "file"),
    modified: new Date(asText(modified, "file")),
    ...(pathBytes !== undefined && { pathBytes: fromBase64(pathBytes) }),
    ...(targetBytes !== undefined && { targetBytes: fromBase64(targetBytes) }),
  } as FileInfo;
}

function parseList(value: unknown): FileList {
  const list = asObject(value, "list of files");
  return { files: asList(list["files"], "list of files").map(parseInfo), truncated: list["truncated"] === true };
}

function fromBase64(text: unknown): Uint8Array {
  return new Uint8Array(Buffer.from(asText(text, "path"), "base64"));
}
