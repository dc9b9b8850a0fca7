// Performs operations by the built npm package:
//
//	node doors.mjs SOCKET
//
// Each line of standard input is a step: {"operation", "in", "data"}. Each line of standard output is its reply: {"code",
// "status"} of an error, or {"result"} as HTTP has it.
import { createInterface } from "node:readline";
import { connect, GaolError } from "../../../cmd/npm/dist/index.mjs";
import package_ from "../../../cmd/npm/dist/perform.js";

const connection = connect({ socket: process.argv[2] });
const session = await connection.session();
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await reply(JSON.parse(line)), encode));
}
await connection.close();

async function reply({ operation, in: params, data }) {
  const printed = { stdout: [], stderr: [] };
  try {
    const result = await package_.perform(session, operation, params, {
      stdin: data || undefined,
      events: false,
      onStdout: (piece) => printed.stdout.push(Buffer.from(piece)),
      onStderr: (piece) => printed.stderr.push(Buffer.from(piece)),
    });
    if (result?.launcher === undefined) return { result };
    return { result: { ...result, stdout: text(printed.stdout), stderr: text(printed.stderr) } };
  } catch (err) {
    if (!(err instanceof GaolError)) throw err;
    return { code: err.code, status: err.status };
  }
}

function text(pieces) {
  return Buffer.concat(pieces).toString();
}

/** Adds the output of a process's result, which events have and the package's types omit. */
function encode(_, value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return value?.launcher !== undefined && value.stdout === undefined ? { ...value, stdout: "", stderr: "" } : value;
}
