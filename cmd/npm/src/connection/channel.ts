import type { Duplex } from "node:stream";

/** A WebSocket, of which a session needs this. */
export interface Channel {
  send(f: Uint8Array): void;

  /** Closes the connection, with a code and a reason for the server. */
  close(code: number, reason: string): void;

  /** Asks the server for a sign of life. */
  ping(): void;

  /** Whether the connection keeps the Node process alive. */
  keepAlive(yes: boolean): void;

  /** Sets the functions for each message, for each pong, and for the end. */
  listen(on: ChannelEvents): void;
}

/** What happens on a {@link Channel}. */
export interface ChannelEvents {
  message(data: Uint8Array, binary: boolean): void;
  pong(): void;

  /** The connection has ended. The reason is empty if it is unknown. */
  close(reason: string): void;
}

/** A stream to a server that is kept alive, or not. */
export type Stream = Duplex & { ref?(): unknown; unref?(): unknown };
