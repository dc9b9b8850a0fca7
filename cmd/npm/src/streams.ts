import { Duplex, Readable, Writable } from "node:stream";
import type { OpenRequest } from "./connection/session.js";

/** A stream that receives pieces. */
export interface Receiver {
  /** Adds a piece. If it returns a promise, that resolves when the consumer wants more. */
  push(piece: Uint8Array): Promise<void> | undefined;

  /** Called when the consumer wants more, or nothing more. */
  read(): void;
}

/** Returns the methods with which a Readable receives pieces with backpressure. */
export function newReceiver(stream: () => Readable): Receiver {
  let waiting: (() => void)[] = [];
  return {
    push(piece) {
      if (stream().destroyed || stream().push(piece)) return undefined;
      return new Promise((resolve) => waiting.push(resolve));
    },
    read() {
      const woken = waiting;
      waiting = [];
      for (const resolve of woken) resolve();
    },
  };
}

/** An output of a process. */
export interface Output {
  readonly stream: Readable;
  readonly push: Receiver["push"];

  /** Ends the stream after its buffered data. */
  end(): void;

  /** Ends the stream immediately: its output is incomplete. It does not fail, which would end a program without a listener. */
  cut(): void;
}

/** Returns an output. If its reader destroys it, further pieces are dropped. */
export function newOutput(): Output {
  const receiver = newReceiver(() => stream);
  const stream: Readable = new Readable({
    read: () => receiver.read(),
    destroy(err, done) {
      receiver.read();
      done(err);
    },
  });
  return {
    stream,
    push: (piece) => receiver.push(piece),
    end: () => void (stream.destroyed || stream.push(null)),
    cut: () => void stream.destroy(),
  };
}

/** Returns the standard input of a request. Input after its end is dropped. */
export function newInput(r: OpenRequest): Writable {
  return new Writable(writing(r));
}

/** How streams write to a request. */
function writing(r: OpenRequest) {
  return {
    write(piece: Uint8Array, _: string, done: (err?: Error | null) => void) {
      r.write(piece).then(() => done(), done);
    },
    final(done: (err?: Error | null) => void) {
      r.end();
      done();
    },
  };
}

/** A connection to a server in a sandbox. */
export interface Pipe {
  readonly stream: Duplex;
  readonly push: Receiver["push"];
}

/** Returns the connection of a request. */
export function newPipe(request: () => OpenRequest): Pipe {
  const receiver = newReceiver(() => stream);
  const stream: Duplex = new Duplex({
    allowHalfOpen: false, // as of net.connect
    read: () => receiver.read(),
    write: (piece: Uint8Array, encoding, done) => writing(request()).write(piece, encoding, done),
    final: (done) => writing(request()).final(done),
    destroy(err, done) {
      receiver.read();
      request().cancel();
      done(err);
    },
  });
  return { stream, push: (piece) => receiver.push(piece) };
}
