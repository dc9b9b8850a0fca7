import { Readable } from "node:stream";
import { newCapture } from "./capture.js";
import type { Input, Session } from "./connection/session.js";
import { GaolError } from "./errors.js";
import { checkOptions, type Names } from "./names.js";
import { fields, type FileInfo, type FileList, type FileStat, type FolderList, type FileRemove, type FolderMake, type FolderUnpack, type Unpacked } from "./operations.js";
import { signalNames } from "./optionnames.js";
import type { Cancelable } from "./options.js";
import { perform, type Params, type Result } from "./perform.js";
import { newOutput } from "./streams.js";

/** A path in a sandbox. Names need not be UTF-8: use bytes then. */
export type Path = string | Uint8Array;

/** Options of {@link Files.read}. */
export interface ReadOptions extends Cancelable {
  /** The most bytes to read: larger files are an error. By default 64 MiB. */
  maxBytes?: number | undefined;
}

/** Options of new files and folders. */
export interface MakeOptions extends Cancelable, FolderMake {}

/** Content of a file. */
export type Content = Input;

/** The files of a sandbox. Paths are absolute. Contents are streamed in both directions. */
export interface Files {
  /** Reads a file. */
  read(path: Path, options?: ReadOptions): Promise<Uint8Array>;

  /** Reads a file as UTF-8. */
  readText(path: Path, options?: ReadOptions): Promise<string>;

  /** Reads a file of any size. If it cannot be read, the stream fails. */
  readStream(path: Path, options?: Cancelable): Readable;

  /** Writes a file. It appears when all of the content has arrived. */
  write(path: Path, content: Content, options?: MakeOptions): Promise<FileInfo>;

  /** Describes a file, or with `links` a link itself. */
  stat(path: Path, options?: Cancelable & FileStat): Promise<FileInfo>;

  /** Reports whether there is a file or folder. */
  exists(path: Path, options?: Cancelable): Promise<boolean>;

  /** Lists a folder: at most `limit` files, 1,000 by default. */
  list(path: Path, options?: Cancelable & FolderList): Promise<FileList>;

  /** Makes a folder. With `createParents`, an existing folder is no error. */
  makeDir(path: Path, options?: MakeOptions): Promise<void>;

  /** Moves a file or a folder. An existing file is replaced by a file, an empty folder by a folder. */
  move(from: Path, to: Path, options?: Cancelable): Promise<void>;

  /** Removes a file, an empty folder, or with `recursive` a folder with its content. */
  remove(path: Path, options?: Cancelable & FileRemove): Promise<void>;

  /** Reads a folder as a tar archive. */
  readTar(path: Path, options?: Cancelable): Readable;

  /** Unpacks a tar archive into a folder. */
  writeTar(path: Path, archive: Content, options?: Cancelable & FolderUnpack): Promise<Unpacked>;
}

const defaultMaxBytes = 64 << 20;

/** The options of a method of {@link Files}. */
type OptionsOf<M extends keyof Files> = Exclude<Parameters<Files[M]>[M extends "write" | "move" | "writeTar" ? 2 : 1], undefined>;

const readNames = { ...signalNames, maxBytes: true } satisfies Names<ReadOptions>;
const makeNames = { ...signalNames, ...fields.FolderMake } satisfies Names<MakeOptions>;
const optionNames = {
  read: readNames, readText: readNames, readStream: signalNames, write: makeNames, stat: { ...signalNames, ...fields.FileStat }, exists: signalNames,
  list: { ...signalNames, ...fields.FolderList }, makeDir: makeNames, move: signalNames, remove: { ...signalNames, ...fields.FileRemove },
  readTar: signalNames, writeTar: { ...signalNames, ...fields.FolderUnpack },
} satisfies { [M in keyof Files]: Names<OptionsOf<M>> };

function checked<O extends Cancelable>(method: keyof Files, o: O): O {
  return checkOptions(`files.${method}`, o, optionNames[method]);
}

type FileMethod = "writeFile" | "statFile" | "listFiles" | "makeFolder" | "moveFile" | "removeFile" | "unpackFolder";

/** Returns the files of a sandbox. */
export function newFiles(session: () => Promise<Session>, sandbox: string): Files {
  const request = async <M extends FileMethod>(name: keyof Files, method: M, paths: object, o: Cancelable, stdin?: Input): Promise<Result<M>> => {
    const { signal, ...rest } = checked(name, o);
    return perform(await session(), method, { sandbox, ...paths, ...rest } as Params<M>, { signal, stdin });
  };
  const at = (path: Path): object => ({ sandbox, ...named("path", path) });
  const files: Files = {
    read: async (path, o = {}) => readAll(await session(), at(path), checked("read", o)),
    readText: async (path, o) => new TextDecoder().decode(await files.read(path, o)),
    readStream: (path, o = {}) => readStream(session, "readFile", at(path), checked("readStream", o)),
    write: (path, content, o = {}) => request("write", "writeFile", at(path), o, content),
    stat: (path, o = {}) => request("stat", "statFile", at(path), o),
    exists: (path, o = {}) => request("exists", "statFile", at(path), o).then(() => true, absent),
    list: (path, o = {}) => request("list", "listFiles", at(path), o),
    makeDir: async (path, o = {}) => void (await request("makeDir", "makeFolder", at(path), o)),
    move: async (from, to, o = {}) => void (await request("move", "moveFile", { ...named("from", from), ...named("to", to) }, o)),
    remove: async (path, o = {}) => void (await request("remove", "removeFile", at(path), o)),
    readTar: (path, o = {}) => readStream(session, "packFolder", at(path), checked("readTar", o)),
    writeTar: (path, archive, o = {}) => request("writeTar", "unpackFolder", at(path), o, archive),
  };
  return files;
}

/** Returns a path as requests have it: as text, or as bytes. */
function named(name: string, path: Path): object {
  return { [typeof path === "string" ? name : `${name}Bytes`]: path };
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
