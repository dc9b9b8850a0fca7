// A program whose types the compiler checks, with the declarations of the installed package.
import { connect, GaolError, hostFunction, run, Sandbox, type RunResult } from "gaol";
import { agentsTools, aiSDKTools, codeTool } from "gaol/ai";
import { createSandbox, normalizeCode, SANDBOX_MEMORY_MB, type ExecutionResult } from "gaol/evaluate";
import { runInSandbox, type SnippetOutput } from "gaol/snippets";
import { sandboxTools, type ToolResults } from "gaol/tools";
import { schemas } from "gaol/tools/zod";
import { z } from "zod";

export async function use(): Promise<void> {
  await using sandbox = await Sandbox.create({ connection: connect(), files: { "/workspace/a": new Uint8Array([1]) } });
  const result: RunResult<number> = await sandbox.run<number>("__return(1)");
  if (result.cause === "") result.signal satisfies "";
  const greet = hostFunction({ input: z.object({ name: z.string() }) }, ({ name }) => name.length);
  const executed: ExecutionResult<number> = await createSandbox({ greet }).execute<number>("greet({ name: 'x' })");
  const command: ToolResults["sandbox_command"] = await sandboxTools().sandbox_command.execute(
    schemas.sandbox_command.input.parse({ containerId: "a", executable: "x" }),
  );
  // @ts-expect-error: no such property
  void command.nothing;
  // @ts-expect-error: the path is missing
  void sandboxTools().sandbox_exists.execute({ containerId: "a" });
  // @ts-expect-error: a wrong type
  await run(1);
  const output: SnippetOutput = await runInSandbox({ files: [{ path: "src/main.ts", source: "1" }] }, { timeoutMs: 1000, network: "public" });
  // @ts-expect-error: either source or files
  void runInSandbox({ source: "1", files: [] });
  output.facts["n"] satisfies unknown;
  const tools = [codeTool({ globals: { greet } }), ...Object.values(sandboxTools())];
  console.log(executed.apiCallCount, await normalizeCode("1"), SANDBOX_MEMORY_MB, aiSDKTools(tools), agentsTools(tools), GaolError);
}
