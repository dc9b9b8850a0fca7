// What TypeScript infers. The compiler runs these tests.
import test from "node:test";
import { expectTypeOf } from "expect-type";
import { hostFunction, submit, waitBatchRun, type BatchRun, type Cause, type Evaluation, type GuestError, type RunEvent, type RunResult, type Sandbox, type StandardSchema, type SubmitOptions } from "gaol";
import { z } from "zod";

test("types", () => {
  expectTypeOf<Sandbox["run"]>().returns.resolves.toEqualTypeOf<RunResult<unknown>>();
  expectTypeOf<RunResult<number>["value"]>().toEqualTypeOf<number | undefined>();
  expectTypeOf<RunResult["cause"]>().toEqualTypeOf<Cause | "">();

  const exited = (r: RunResult): r is RunResult & { cause: "" } => r.cause === "";
  expectTypeOf(exited).guards.toExtend<{ signal: "" }>();

  expectTypeOf(waitBatchRun<number>).returns.resolves.toEqualTypeOf<BatchRun<number>>();
  expectTypeOf<BatchRun<number>["result"]>().toEqualTypeOf<RunResult<number> | undefined>();
  expectTypeOf(submit).parameter(1).toEqualTypeOf<SubmitOptions | undefined>();
  expectTypeOf<Extract<keyof SubmitOptions, "signal" | "onStdout" | "onStderr" | "mounts" | "globals" | "commands">>().toBeNever();

  type Failed = Extract<Evaluation<number>, { error: GuestError }>;
  expectTypeOf<Failed["value"]>().toEqualTypeOf<undefined>();
  type Succeeded = Extract<Evaluation<number>, { error: null }>;
  expectTypeOf<Succeeded["value"]>().toEqualTypeOf<number | undefined>();

  hostFunction({ input: z.object({ a: z.coerce.number(), b: z.string().default("x") }) }, (input, { signal }) => {
    expectTypeOf(input).toEqualTypeOf<{ a: number; b: string }>();
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
  });
  hostFunction({ input: { type: "string" } }, (input) => expectTypeOf(input).toBeUnknown());
  hostFunction<{ n: number }>({ input: { type: "object" } }, (input) => expectTypeOf(input.n).toBeNumber());
  expectTypeOf(z.string()).toExtend<StandardSchema<string>>();

  expectTypeOf<Extract<RunEvent, { type: "stdout" }>["data"]>().toEqualTypeOf<Uint8Array>();
});
