import assert from "node:assert/strict";
import test, { after } from "node:test";
import { Agent, run, setTracingDisabled, tool, Usage, type AgentInputItem, type Model, type ModelRequest, type ModelResponse } from "@openai/agents";
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { connect } from "gaol";
import { agentsTools, aiSDKTools, codeTool } from "gaol/ai";
import { sandboxTools } from "gaol/tools";

const connection = connect({ own: true });
after(() => connection.close());
setTracingDisabled(true); // traces go to a server

/** A call that the scripted model makes. It gets the last result. */
type Call = (last: Record<string, unknown>) => { name: string; args: object } | string;

/** The tools of the tests: code that calls functions of this program, and those of sandboxes. */
const tools = [
  codeTool({ about: "price(item) returns the price of an item.", globals: { price: (item: string) => ({ pen: 2, book: 15 })[item] }, connection }),
  ...Object.values(sandboxTools({ connection })),
];

/** What the scripted models do, and what they must see. */
const script: { call: Call; sees?: (result: Record<string, unknown>) => void }[] = [
  {
    call: () => ({ name: "run_code", args: { code: "console.log('adding')\nprice('pen') * 3 + price('book')" } }),
    sees: (r) => assert.deepEqual([r["result"], r["logs"], r["apiCallCount"]], [21, ["adding"], 2]),
  },
  { call: () => ({ name: "run_code", args: { code: "price(" } }), sees: (r) => assert.match(String(r["error"]), /^SyntaxError/) },
  { call: () => ({ name: "sandbox_init", args: { containerId: "model" } }), sees: (r) => assert.equal(r["rootPath"], "/workspace") },
  { call: () => ({ name: "sandbox_command", args: { containerId: "model", executable: "echo", args: ["hi"] } }), sees: (r) => assert.equal(r["stdout"], "hi\n") },
  { call: () => ({ name: "sandbox_destroy", args: { containerId: "model" } }), sees: (r) => assert.equal(r["removed"], true) },
  { call: () => ({ name: "sandbox_exists", args: { containerId: "model", path: "/" } }), sees: (r) => assert.match(String(r["failure"]), /"model" does not exist/) },
  { call: () => ({ name: "sandbox_exists", args: { path: 5 } }), sees: (r) => assert.match(String(r["failure"]), /path: the type is not string/) },
  { call: () => "done" },
];

test("tools of the Vercel AI SDK", async () => {
  let at = 0;
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      if (at > 0) script[at - 1]?.sees?.(lastOutput(prompt.at(-1)));
      const call = script[at++]?.call({}) ?? "done";
      const usage = { inputTokens: tokens, outputTokens: { total: 0, text: 0, reasoning: 0 } };
      if (typeof call === "string") return { content: [{ type: "text", text: call }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] };
      return {
        content: [{ type: "tool-call", toolCallId: `call-${at}`, toolName: call.name, input: JSON.stringify(call.args) }],
        finishReason: { unified: "tool-calls", raw: "tool-calls" },
        usage,
        warnings: [],
      };
    },
  });
  const { text } = await generateText({ model, prompt: "Use all tools.", tools: aiSDKTools(tools), stopWhen: isStepCount(20) });
  assert.deepEqual([text, at], ["done", script.length]);
  const described = model.doGenerateCalls[0]?.tools?.[0];
  assert.ok(described?.type === "function" && described.name === "run_code" && described.description?.endsWith("price of an item."));
  assert.deepEqual((described.inputSchema as { required: unknown }).required, ["code"]);
});

const tokens = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };

/** The output of the tool whose result a prompt ends with. */
function lastOutput(message: unknown): Record<string, unknown> {
  const { output } = (message as { content: { output: { type: string; value: unknown } }[] }).content[0] ?? { output: { type: "none", value: {} } };
  return output.type === "json" ? (output.value as Record<string, unknown>) : { failure: output.value };
}

test("tools of the OpenAI Agents SDK", async () => {
  let at = 0;
  const model: Model = {
    async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
      if (at > 0) script[at - 1]?.sees?.(lastItem((input as AgentInputItem[]).at(-1)));
      const call = script[at++]?.call({}) ?? "done";
      if (typeof call === "string") {
        return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: call }] }] };
      }
      return { usage: new Usage(), output: [{ type: "function_call", callId: `call-${at}`, name: call.name, status: "completed", arguments: JSON.stringify(call.args) }] };
    },
    getStreamedResponse: () => assert.fail("the test does not stream"),
  };
  const agent = new Agent({ name: "worker", model, tools: agentsTools(tools).map((o) => tool(o)) });
  const { finalOutput } = await run(agent, "Use all tools.", { maxTurns: 20 });
  assert.deepEqual([finalOutput, at], ["done", script.length]);
});

/** The output of the tool whose result an input ends with. */
function lastItem(item: unknown): Record<string, unknown> {
  const { output } = item as { output: string | { text: string } };
  const text = typeof output === "string" ? output : output.text;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { failure: text };
  }
}
