import { codeSandboxNames, createSandbox, type CodeSandboxOptions, type ExecutionResult } from "../evaluate/sandbox.js";
import { GaolError } from "../errors.js";
import type { Globals } from "../functions.js";
import { checkOptions, type Names } from "../names.js";
import type { Tool } from "../tools/tools.js";

/** Options of {@link codeTool}. */
export interface CodeToolOptions extends CodeSandboxOptions {
  /** The tool's name. By default `run_code`. */
  name?: string | undefined;

  /** Text for the model after the tool's own description: for example, which functions the code can call. */
  about?: string | undefined;

  /** Variables of the code: values, functions, and objects that have both. */
  globals?: Globals | undefined;
}

const optionNames = { ...codeSandboxNames, name: true, about: true, globals: true } satisfies Names<CodeToolOptions>;

/** The input of the tool. */
export interface CodeInput {
  code: string;
}

const description =
  "Runs JavaScript or TypeScript in a sandbox with Node.js, without network but its own localhost, and without files of earlier calls. " +
  "The value of the last expression is the result; what the code prints is in logs. It may use import, require and await.";

const inputSchema = {
  type: "object",
  properties: { code: { type: "string", description: "The code." } },
  required: ["code"],
  additionalProperties: false,
};

/** Returns a tool that runs the model's code, each call in a new sandbox. */
export function codeTool(options: CodeToolOptions = {}): Tool<CodeInput, ExecutionResult> {
  const { name = "run_code", about, globals, ...rest } = checkOptions("codeTool", options, optionNames);
  const sandbox = createSandbox(globals, rest);
  return {
    name,
    description: about === undefined ? description : `${description}\n\n${about}`,
    inputSchema,
    async execute(input: Partial<CodeInput> | null | undefined, o) {
      const code: unknown = input?.code; // models send anything
      if (typeof code !== "string") throw new GaolError("invalid_argument", `gaol: ${name}: code: want a string`);
      return sandbox.execute(code, o);
    },
  };
}
