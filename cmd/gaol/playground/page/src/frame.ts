// The playground in a frame of another site. embed.ts is the other half.
//
//	site ── gaol:load {source | files} ──> frame
//	site <── gaol:ready, gaol:size {height} ── frame
//
// Which sites may show the frame is the server's frame-ancestors. A message loads files and runs nothing.
import { filesError, filesOf, mainPath, type File } from "./files.js";

/** A frame's parent. */
export interface Frame {
  origin: string;
  theme: string;
}

/** Returns the frame that a query describes, undefined if the page is not in one. */
export function frameOf(query: URLSearchParams): Frame | undefined {
  if (query.get("embed") !== "1") {
    return undefined;
  }
  const theme = query.get("theme") ?? "";
  return { origin: originOf(query.get("origin") ?? ""), theme: ["light", "dark"].includes(theme) ? theme : "" };
}

/** Exchanges messages with the parent. onLoad is called with files that it sends. */
export function connectFrame(frame: Frame, onLoad: (files: File[]) => void): void {
  if (window.parent === window || frame.origin === "") {
    return;
  }
  const send = (message: object): void => window.parent.postMessage(message, frame.origin);
  window.addEventListener("message", (event) => {
    const files = event.source === window.parent && event.origin === frame.origin ? loadedFiles(event.data) : undefined;
    if (files !== undefined) {
      onLoad(files);
    }
  });
  new ResizeObserver(() => send({ type: "gaol:size", height: document.body.offsetHeight })).observe(document.body);
  send({ type: "gaol:ready" });
}

/** Returns the files of a message {type: "gaol:load", source | files}, undefined if it is anything else. */
export function loadedFiles(message: unknown): File[] | undefined {
  if (typeof message !== "object" || message === null) {
    return undefined;
  }
  const { type, source, files: list } = message as Record<string, unknown>;
  if (type !== "gaol:load" || (source === undefined) === (list === undefined)) {
    return undefined;
  }
  const files = typeof source === "string" ? [{ path: mainPath, source }] : filesOf(list);
  return files === undefined || filesError(files) !== undefined ? undefined : files;
}

/** Returns an origin such as https://docs.example.com, or "" for anything else. */
function originOf(text: string): string {
  try {
    const { origin, protocol } = new URL(text);
    return origin === text && /^https?:$/.test(protocol) ? origin : "";
  } catch {
    return "";
  }
}
