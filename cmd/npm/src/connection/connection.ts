import { ConnectionError } from "../errors.js";
import { checkOptions } from "../names.js";
import { openSession, type Opened } from "./connect.js";
import { connectNames, type ConnectOptions } from "./find.js";
import type { Session } from "./session.js";

/**
 * A server, with a connection that is made when it is used. After the end of the connection, the next use
 * makes another one. A connection without requests in progress does not keep the Node process alive.
 */
export interface Connection {
  /** Returns the session on the current connection. It connects if there is none. */
  session(): Promise<Session>;

  /** Closes the connection. The server closes the sandboxes that were created on it. */
  close(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void>;
}

/** Returns a server to use. It connects when it is used. */
export function newConnection(options: ConnectOptions = {}): Connection {
  checkOptions("connect", options, connectNames);
  let opened: Promise<Opened> | undefined;
  let closed = false;
  const current = (): Promise<Opened> => (opened ??= openSession(options));
  const forget = (old: Promise<Opened>): void => void (opened === old && (opened = undefined));
  const close = async (): Promise<void> => {
    closed = true;
    const last = await opened?.catch(() => undefined);
    await last?.session.close();
    await last?.exited();
  };
  return {
    async session() {
      if (closed) throw new ConnectionError("connection", "gaol: the connection was closed");
      const tried = current();
      tried.catch(() => forget(tried));
      const { session } = await tried;
      if (session.error === undefined) return session;
      forget(tried);
      return (await current()).session;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

let shared: Connection | undefined;

/** Returns the connection of the whole program, which uses the server that the environment chooses. */
export function sharedConnection(): Connection {
  return (shared ??= newConnection());
}
