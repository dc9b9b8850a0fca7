import type { Input, OpenRequest } from "./session.js";

type Piece = string | Uint8Array;

/** Sends standard input until its end, or the end of the request. */
export async function feed(r: OpenRequest, stdin: Input): Promise<void> {
  const source = iterate(stdin);
  let ended = false;
  let stop = (): void => undefined;
  const end = (): void => {
    ended = true;
    stop();
  };
  r.result.then(end, end);
  const next = (): Promise<IteratorResult<Piece>> =>
    new Promise((resolve, reject) => {
      stop = () => resolve({ done: true, value: undefined });
      if (ended) stop();
      else Promise.resolve(source.next()).then(resolve, reject);
    });
  for (let step = await next(); step.done !== true; step = await next()) await r.write(step.value);
  r.end();
  // Not awaited: a source can be waiting for input that never arrives.
  Promise.resolve(source.return?.()).catch(() => undefined);
}

function iterate(stdin: Input): Iterator<Piece> | AsyncIterator<Piece> {
  if (typeof stdin === "string" || stdin instanceof Uint8Array) return [stdin][Symbol.iterator]();
  return Symbol.asyncIterator in stdin ? stdin[Symbol.asyncIterator]() : stdin[Symbol.iterator]();
}
