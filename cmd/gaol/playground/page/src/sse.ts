// Parses server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html

/** An event of a stream. */
export interface ServerEvent {
  type: string;
  data: string;
}

/** Parses a stream, piece by piece. An event's lines have at most max characters together. */
export class EventParser {
  #line: string[] = []; // pieces of the current line
  #size = 0; // characters of the current event
  #skipNewline = false; // the last piece ended with \r
  #type = "";
  #data: string[] = [];

  constructor(
    readonly onEvent: (event: ServerEvent) => void,
    readonly max = 16 << 20,
  ) {}

  /** Parses the next piece. It throws a RangeError if an event is too long. */
  push(piece: string): void {
    if (piece === "") {
      return;
    }
    const text = this.#skipNewline && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#skipNewline = piece.endsWith("\r");
    let start = 0;
    for (const end of text.matchAll(/\r\n|\n|\r/g)) {
      this.#keep(text.slice(start, end.index));
      this.#endLine();
      start = end.index + end[0].length;
    }
    this.#keep(text.slice(start));
  }

  #keep(part: string): void {
    this.#size += part.length;
    if (this.#size > this.max) {
      throw new RangeError(`an event has more than ${this.max} characters`);
    }
    if (part !== "") {
      this.#line.push(part);
    }
  }

  #endLine(): void {
    const line = this.#line.join("");
    this.#line = [];
    if (line === "") {
      this.#endEvent();
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") {
      this.#type = value;
    } else if (field === "data") {
      this.#data.push(value);
    }
  }

  #endEvent(): void {
    if (this.#data.length > 0) {
      this.onEvent({ type: this.#type || "message", data: this.#data.join("\n") });
    }
    this.#type = "";
    this.#data = [];
    this.#size = 0;
  }
}
