import assert from "node:assert/strict";
import test from "node:test";
import { Agent, run, setTracingDisabled, tool, Usage, type AgentInputItem, type Model, type ModelRequest, type ModelResponse } from "@openai/agents";
import * as ai7 from "ai";
import { MockLanguageModelV4 } from "ai/test";
import * as ai6 from "ai6";
import { MockLanguageModelV3 } from "ai6/test";
import { Sandbox } from "gaol";
import { agentsTools, aiSDKTools, codeTool } from "gaol/ai";
import { sandboxTools } from "gaol/tools";
import { connection } from "./own.mjs";

setTracingDisabled(true); // traces go to a server

/** What a scripted model does: it calls a tool, or says something. */
type Call = { name: string; args: object } | string;

/** The tools of the tests: code that calls functions of this program, and those of sandboxes. */
const tools = [
  codeTool({ about: "price(item) returns the price of an item.", globals: { price: (item: string) => ({ pen: 2, book: 15 })[item] }, connection }),
  ...Object.values(sandboxTools({ connection })),
];

/** What a scripted model does, and what it must see afterwards. */
type Script = { call: Call; sees?: (result: Record<string, unknown>) => void }[];

/** Calls with all kinds of results. */
const script: Script = [
  {
    call: { name: "run_code", args: { code: "console.log('adding')\nprice('pen') * 3 + price('book')" } },
    sees: (r) => assert.deepEqual([r["result"], r["logs"], r["apiCallCount"]], [21, ["adding"], 2]),
  },
  { call: { name: "run_code", args: { code: "price(" } }, sees: (r) => assert.match(String(r["error"]), /^SyntaxError/) },
  { call: { name: "sandbox_init", args: { containerId: "model" } }, sees: (r) => assert.equal(r["rootPath"], "/workspace") },
  { call: { name: "sandbox_command", args: { containerId: "model", executable: "echo", args: ["hi"] } }, sees: (r) => assert.equal(r["stdout"], "hi\n") },
  { call: { name: "sandbox_destroy", args: { containerId: "model" } }, sees: (r) => assert.equal(r["removed"], true) },
  { call: { name: "sandbox_exists", args: { containerId: "model", path: "/" } }, sees: (r) => assert.match(String(r["failure"]), /"model" does not exist/) },
  { call: { name: "sandbox_exists", args: { containerId: "model", path: 5 } }, sees: (r) => assert.match(String(r["failure"]), /path: expected string/) },
  { call: { name: "run_code", args: {} }, sees: (r) => assert.match(String(r["failure"]), /code: want a string/) },
  { call: "done" },
];

/** A model that follows a script. */
interface Scripted<M> {
  model: M;

  /** How many steps it has made. */
  steps(): number;
}

/** Code that an endless loop follows, once it has called a function that cancels the call. */
function endless(): { tool: ReturnType<typeof codeTool>; signal: AbortSignal; script: Script } {
  const control = new AbortController();
  const tool = codeTool({ globals: { started: () => control.abort() }, timeoutMs: 0, connection });
  return { tool, signal: control.signal, script: [{ call: { name: "run_code", args: { code: "started(); for (;;);" } } }] };
}

/** Waits until no code is executed. Each execution has a sandbox of its own. */
async function idle(): Promise<void> {
  while ((await Sandbox.list({ connection })).length > 0) await new Promise(setImmediate);
}

type Mock = MockLanguageModelV3 | MockLanguageModelV4;

function aiModel<M extends Mock>(Model: new (o: never) => M, script: Script): Scripted<M> {
  let at = 0;
  const tokens = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
  const rest = { usage: { inputTokens: tokens, outputTokens: { total: 0, text: 0, reasoning: 0 } }, warnings: [] };
  const model = new Model({
    doGenerate: async ({ prompt }: { prompt: unknown[] }) => {
      if (at > 0) script[at - 1]?.sees?.(aiOutput(prompt.at(-1)));
      const call = script[at++]?.call ?? "done";
      if (typeof call === "string") return { content: [{ type: "text", text: call }], finishReason: { unified: "stop", raw: "stop" }, ...rest };
      const made = { type: "tool-call" as const, toolCallId: `call-${at}`, toolName: call.name, input: JSON.stringify(call.args) };
      return { content: [made], finishReason: { unified: "tool-calls", raw: "tool-calls" }, ...rest };
    },
  } as never);
  return { model, steps: () => at };
}

/** The output of the tool whose result a prompt of the AI SDK ends with. */
function aiOutput(message: unknown): Record<string, unknown> {
  const { output } = (message as { content: { output: { type: string; value: unknown } }[] }).content[0] ?? { output: { type: "none", value: {} } };
  return output.type === "json" ? (output.value as Record<string, unknown>) : { failure: output.value };
}

/** Calls a model by a version of the Vercel AI SDK. */
type Generate<M> = (model: M, prompt: string, tools: ReturnType<typeof aiSDKTools>, abortSignal?: AbortSignal) => PromiseLike<{ text: string }>;

function testAISDK<M extends Mock>(version: number, Model: new (o: never) => M, generate: Generate<M>): void {
  test(`tools of the Vercel AI SDK ${version}`, async () => {
    const { model, steps } = aiModel(Model, script);
    const { text } = await generate(model, "Use all tools.", aiSDKTools(tools));
    assert.deepEqual([text, steps()], ["done", script.length]);
    const described = model.doGenerateCalls[0]?.tools?.[0];
    assert.ok(described?.type === "function" && described.name === "run_code" && described.description?.endsWith("price of an item."));
    assert.deepEqual((described.inputSchema as { required: unknown }).required, ["code"]);
  });

  test(`the Vercel AI SDK ${version} cancels a call`, async () => {
    const { tool, signal, script } = endless();
    await assert.rejects(async () => generate(aiModel(Model, script).model, "Loop.", aiSDKTools([tool]), signal), { name: "AbortError" });
    await idle();
  });
}

testAISDK(6, MockLanguageModelV3, (model, prompt, tools, abortSignal) =>
  ai6.generateText({ model, prompt, tools, stopWhen: ai6.stepCountIs(20), ...(abortSignal && { abortSignal }) }));
testAISDK(7, MockLanguageModelV4, (model, prompt, tools, abortSignal) =>
  ai7.generateText({ model, prompt, tools, stopWhen: ai7.stepCountIs(20), ...(abortSignal && { abortSignal }) }));

function agentsModel(script: Script): Scripted<Model> {
  let at = 0;
  const model: Model = {
    async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
      if (at > 0) script[at - 1]?.sees?.(agentsOutput((input as AgentInputItem[]).at(-1)));
      const call = script[at++]?.call ?? "done";
      const usage = new Usage();
      if (typeof call === "string") return { usage, output: [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: call }] }] };
      return { usage, output: [{ type: "function_call", callId: `call-${at}`, name: call.name, status: "completed", arguments: JSON.stringify(call.args) }] };
    },
    getStreamedResponse: () => assert.fail("the test does not stream"),
  };
  return { model, steps: () => at };
}

/** The output of the tool whose result an input of the Agents SDK ends with. */
function agentsOutput(item: unknown): Record<string, unknown> {
  const { output } = item as { output: string | { text: string } };
  const text = typeof output === "string" ? output : output.text;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { failure: text };
  }
}

test("tools of the OpenAI Agents SDK", async () => {
  const { model, steps } = agentsModel(script);
  const agent = new Agent({ name: "worker", model, tools: agentsTools(tools).map((o) => tool(o)) });
  const { finalOutput } = await run(agent, "Use all tools.", { maxTurns: 20 });
  assert.deepEqual([finalOutput, steps()], ["done", script.length]);
});

test("the OpenAI Agents SDK cancels a call", async () => {
  const { tool: code, signal, script } = endless();
  const agent = new Agent({ name: "worker", model: agentsModel(script).model, tools: agentsTools([code]).map((o) => tool(o)) });
  await assert.rejects(run(agent, "Loop.", { signal }), (err: Error) => /abort/i.test(`${err.name} ${err.message}`));
  await idle();
});
