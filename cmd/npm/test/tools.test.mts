import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { expectTypeOf } from "expect-type";
import { GaolError, type JSONSchema } from "gaol";
import { sandboxTools, type Tool, type ToolArguments, type ToolName, type ToolResults } from "gaol/tools";
import { schemas } from "gaol/tools/zod";
import { z } from "zod";
import { connection } from "./own.mjs";

const tools = sandboxTools({ connection });

const code = (want: string, location?: string) => (err: unknown) => {
  assert.ok(err instanceof GaolError, String(err));
  assert.deepEqual([err.code, err.errors[0]?.location], [want, location]);
  return true;
};

/** A step of a workflow, as engines have them in JSON. */
interface Step {
  tool: ToolName;
  args: object;
  want: object;
}

test("a workflow takes a sandbox through its life", async () => {
  const sum = "export const sum = (list) => list.reduce((a, b) => a + b, 0)\n";
  const main = "import { sum } from './lib/sum.mjs'\nconsole.log(sum([1, 2, 3]), process.argv[2])\n";
  const steps: Step[] = [
    { tool: "sandbox_create_directory", args: { path: "src/lib", recursive: true }, want: { path: "/workspace/src/lib" } },
    { tool: "sandbox_write_file", args: { path: "src/lib/sum.mjs", content: sum }, want: { path: "/workspace/src/lib/sum.mjs", size: sum.length } },
    { tool: "sandbox_write_file", args: { path: "src/main.mjs", content: btoa(main), encoding: "base64" }, want: { size: main.length } },
    { tool: "sandbox_read_file", args: { path: "src/lib/sum.mjs" }, want: { content: sum, encoding: "utf8", size: sum.length } },
    { tool: "sandbox_command", args: { executable: "node", args: ["src/main.mjs", "a b"] }, want: { stdout: "6 a b\n", stderr: "", exitCode: 0, cause: "" } },
    { tool: "sandbox_command", args: { executable: "node", args: ["-e", "for (;;);"], timeout: 300 }, want: { timedOut: true, cause: "timeout" } },
    { tool: "sandbox_list_directory", args: { path: "src" }, want: { path: "/workspace/src", truncated: false } },
    { tool: "sandbox_file_info", args: { path: "src/main.mjs" }, want: { name: "main.mjs", type: "file", size: main.length } },
    { tool: "sandbox_delete", args: { path: "src", recursive: true }, want: { path: "/workspace/src", deleted: true } },
    { tool: "sandbox_exists", args: { path: "src" }, want: { path: "/workspace/src", exists: false } },
    { tool: "sandbox_destroy", args: {}, want: { removed: true } },
  ];
  const { containerId, hostName } = await tools.sandbox_init.execute({ containerName: "worker" });
  assert.equal(hostName, "worker");
  for (const { tool, args, want } of steps) {
    const { execute } = tools[tool] as Tool<object>;
    const result = (await execute({ containerId, ...args })) as Record<string, unknown>;
    assert.deepEqual(Object.fromEntries(Object.keys(want).map((name) => [name, result[name]])), want, tool);
  }
  await assert.rejects(tools.sandbox_exists.execute({ containerId, path: "/" }), code("not_found", "containerId"));
});

test("the results are those of the schemas", async () => {
  const { containerId } = schemas.sandbox_init.output.parse(await tools.sandbox_init.execute({}));
  const out = schemas.sandbox_command.output.parse(await tools.sandbox_command.execute({ containerId, executable: "sh", args: ["-c", "exit 3"] }));
  assert.equal(out.exitCode, 3);
  schemas.sandbox_list_directory.output.parse(await tools.sandbox_list_directory.execute({ containerId, path: "/" }));
  schemas.sandbox_file_info.output.parse(await tools.sandbox_file_info.execute({ containerId, path: "/workspace" }));
  schemas.sandbox_destroy.output.parse(await tools.sandbox_destroy.execute({ containerId }));
});

test("errors have the tools' codes, and name the argument", async () => {
  const { containerId } = await tools.sandbox_init.execute({});
  await assert.rejects(tools.sandbox_exists.execute({ containerId: "none", path: "/" }), code("not_found", "containerId"));
  await assert.rejects(tools.sandbox_read_file.execute({ containerId, path: "/etc" }), code("is_directory"));
  await assert.rejects(tools.sandbox_read_file.execute({ containerId, path: "" }), code("invalid_argument", "path"));
  await assert.rejects(tools.sandbox_init.execute({ rootPath: "../up" }), code("invalid_argument", "rootPath"));
  await assert.rejects(tools.sandbox_exists.execute({ containerId, path: "x", more: 1 } as never), code("invalid_argument", "more"));
  await assert.rejects(tools.sandbox_write_file.execute({ containerId, path: "x", content: "\u0001".repeat(20 << 20) }), code("too_large"));
  await tools.sandbox_destroy.execute({ containerId });
});

test("a signal ends a command", async () => {
  const { containerId } = await tools.sandbox_init.execute({});
  const reason = new Error("enough");
  const control = new AbortController();
  const running = tools.sandbox_command.execute({ containerId, executable: "sh", args: ["-c", "touch /workspace/started; sleep 1000"] }, { signal: control.signal });
  while (!(await tools.sandbox_exists.execute({ containerId, path: "started" })).exists) await new Promise(setImmediate);
  control.abort(reason);
  await assert.rejects(running, reason);
  await tools.sandbox_destroy.execute({ containerId });
});

/** Returns a schema in one spelling: zod escapes slashes in patterns, and sorts and omits required properties differently. */
function comparable({ required = [], ...schema }: JSONSchema): unknown {
  return JSON.parse(JSON.stringify({ ...schema, required: [...(required as string[])].sort() }).replaceAll("\\\\/", "/"));
}

test("zod's schemas are the tools'", () => {
  for (const { name, inputSchema } of Object.values(tools)) {
    assert.deepEqual(comparable(z.toJSONSchema(schemas[name].input, { io: "input" })), comparable(inputSchema), name);
  }
  expectTypeOf(schemas.sandbox_command.input.parse({ containerId: "a", executable: "x" })).toEqualTypeOf<ToolArguments["sandbox_command"]>();
  expectTypeOf(tools.sandbox_exists.execute).returns.resolves.toEqualTypeOf<{ path: string; exists: boolean }>();
  // @ts-expect-error: path is required
  void (() => tools.sandbox_exists.execute({ containerId: "a" }));
});

/** The types of a JSON Schema's properties, such as `path!: string`; ! marks required ones. */
function properties(schema: Record<string, unknown>): string[] {
  const required = (schema["required"] ?? []) as string[];
  return Object.entries(schema["properties"] as Record<string, { type: string }>).map(([name, { type }]) => `${name}${required.includes(name) ? "!" : ""}: ${type}`).sort();
}

test("the types have the properties of the schemas", () => {
  // A value of each type, with all of its properties. The compiler reports those that are missing or unknown.
  const text = "string", flag = "boolean", whole = "integer", list = "array";
  type Described<T> = { [K in keyof T as {} extends Pick<T, K> ? K : `${K & string}!`]-?: string };
  const inputs: { [N in ToolName]: Described<ToolArguments[N]> } = {
    sandbox_init: { containerId: text, imageName: text, containerName: text, projectOutPath: text, rootPath: text },
    sandbox_destroy: { "containerId!": text, removeContainer: flag },
    sandbox_command: { "containerId!": text, "executable!": text, args: list, workingDirectory: text, envVars: list, timeout: whole },
    sandbox_write_file: { "containerId!": text, "path!": text, "content!": text, encoding: text, createParentDirs: flag },
    sandbox_read_file: { "containerId!": text, "path!": text, encoding: text },
    sandbox_list_directory: { "containerId!": text, "path!": text, recursive: flag },
    sandbox_create_directory: { "containerId!": text, "path!": text, recursive: flag },
    sandbox_delete: { "containerId!": text, "path!": text, recursive: flag, force: flag },
    sandbox_exists: { "containerId!": text, "path!": text },
    sandbox_file_info: { "containerId!": text, "path!": text },
  };
  const outputs: { [N in ToolName]: Described<ToolResults[N]> } = {
    sandbox_init: { "containerId!": text, "containerName!": text, "hostName!": text, "imageName!": text, "rootPath!": text, "projectOutPath!": text },
    sandbox_destroy: { "containerId!": text, "removed!": flag },
    sandbox_command: { "stdout!": text, "stderr!": text, "exitCode!": whole, "timedOut!": flag, "cause!": text, "stdoutTruncated!": flag, "stderrTruncated!": flag },
    sandbox_write_file: { "path!": text, "size!": whole },
    sandbox_read_file: { "path!": text, "content!": text, "encoding!": text, "size!": whole },
    sandbox_list_directory: { "path!": text, "entries!": list, "truncated!": flag },
    sandbox_create_directory: { "path!": text },
    sandbox_delete: { "path!": text, "deleted!": flag },
    sandbox_exists: { "path!": text, "exists!": flag },
    sandbox_file_info: {
      ...{ "path!": text, "name!": text, "type!": text, "size!": whole, "permissions!": text, "owner!": whole, "group!": whole },
      ...{ "modifiedAt!": text, "accessedAt!": text, createdAt: text },
    },
  };
  const described = (o: Record<string, string>): string[] => Object.entries(o).map(([name, type]) => `${name}: ${type}`).sort();
  for (const { name, inputSchema, outputSchema } of Object.values(tools)) {
    assert.deepEqual(described(inputs[name]), properties(inputSchema), name);
    assert.deepEqual(described(outputs[name]), properties(outputSchema), name);
  }
});

test("a project folder is shared with the host", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "gaol-project-"));
  try {
    const { containerId, projectOutPath } = await tools.sandbox_init.execute({ projectOutPath: path.join(folder, "out") });
    assert.equal(projectOutPath, path.join(folder, "out"));
    await tools.sandbox_write_file.execute({ containerId, path: "report.txt", content: "done" });
    assert.equal(readFileSync(path.join(folder, "out", "report.txt"), "utf8"), "done");
    await tools.sandbox_destroy.execute({ containerId });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
