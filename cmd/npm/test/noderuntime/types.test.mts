import test from "node:test";
import { expectTypeOf } from "expect-type";
import {
  NodeRuntime,
  Sidecar,
  type BindingDefinition,
  type HostDirectoryMount,
  type HostToolExample,
  type NodeModulesMount,
  type NodeRuntimeBootTiming,
  type NodeRuntimeBootTimingPhase,
  type NodeRuntimeCreateOptions,
  type NodeRuntimeExecOptions,
  type NodeRuntimeExecResult,
  type NodeRuntimeFetchInput,
  type NodeRuntimeFetchResponse,
  type NodeRuntimeListener,
  type NodeRuntimeListenerQuery,
  type NodeRuntimePermissions,
  type NodeRuntimeProcess,
  type NodeRuntimeResidentRunner,
  type NodeRuntimeResidentRunnerExecOptions,
  type NodeRuntimeResidentRunnerOptions,
  type NodeRuntimeResourceSnapshot,
  type NodeRuntimeRunResult,
  type NodeRuntimeSpawnOptions,
  type NodeRuntimeWaitForListenerOptions,
  type SidecarSpawnOptions,
} from "gaol";

// The compiler checks these; nothing here is executed.
function types(rt: NodeRuntime): void {
  expectTypeOf(NodeRuntime.create).parameter(0).toEqualTypeOf<NodeRuntimeCreateOptions | undefined>();
  expectTypeOf(NodeRuntime.create()).resolves.toEqualTypeOf<NodeRuntime>();
  expectTypeOf(rt.run<{ sum: number }>("")).resolves.toEqualTypeOf<NodeRuntimeRunResult<{ sum: number }>>();
  expectTypeOf<NodeRuntimeRunResult<number>["value"]>().toEqualTypeOf<number | undefined>();
  expectTypeOf(rt.run("")).resolves.toHaveProperty("value").toBeUnknown();
  expectTypeOf(rt.exec).toEqualTypeOf<(code: string, options?: NodeRuntimeExecOptions) => Promise<NodeRuntimeExecResult>>();
  expectTypeOf(rt.execCommand).toEqualTypeOf<(command: string, args?: string[], options?: NodeRuntimeExecOptions) => Promise<NodeRuntimeExecResult>>();
  expectTypeOf(rt.spawn).toEqualTypeOf<(code: string, options?: NodeRuntimeSpawnOptions) => Promise<NodeRuntimeProcess>>();
  expectTypeOf(rt.spawnCommand).toEqualTypeOf<(command: string, args?: string[], options?: NodeRuntimeSpawnOptions) => NodeRuntimeProcess>();
  expectTypeOf(rt.fetch).toEqualTypeOf<(port: number, input: NodeRuntimeFetchInput) => Promise<NodeRuntimeFetchResponse>>();
  expectTypeOf(rt.findListener).toEqualTypeOf<(query: NodeRuntimeListenerQuery) => NodeRuntimeListener | null>();
  expectTypeOf(rt.waitForListener).toEqualTypeOf<(query: NodeRuntimeListenerQuery, options?: NodeRuntimeWaitForListenerOptions) => Promise<NodeRuntimeListener>>();
  expectTypeOf(rt.createResidentRunner).toEqualTypeOf<(options?: NodeRuntimeResidentRunnerOptions) => Promise<NodeRuntimeResidentRunner>>();
  expectTypeOf<NodeRuntimeResidentRunner["exec"]>().toEqualTypeOf<(code: string, options?: NodeRuntimeResidentRunnerExecOptions) => Promise<NodeRuntimeExecResult>>();
  expectTypeOf(rt.registerBindings).toEqualTypeOf<(bindings: Record<string, BindingDefinition>) => Promise<void>>();
  expectTypeOf(rt.readFile).toEqualTypeOf<(path: string) => Promise<Uint8Array>>();
  expectTypeOf(rt.writeFile).toEqualTypeOf<(path: string, content: string | Uint8Array) => Promise<void>>();
  expectTypeOf(rt.readDir).toEqualTypeOf<(path: string) => Promise<string[]>>();
  expectTypeOf(rt.getResourceSnapshot()).resolves.toEqualTypeOf<NodeRuntimeResourceSnapshot>();
  expectTypeOf(rt.dispose).toEqualTypeOf<() => Promise<void>>();

  expectTypeOf<NodeRuntimeProcess>().toHaveProperty("exitCode").toEqualTypeOf<number | null>();
  expectTypeOf<NodeRuntimeProcess["kill"]>().toEqualTypeOf<(signal?: NodeJS.Signals | number) => void>();
  expectTypeOf<NodeRuntimeExecOptions["onStdout"]>().toEqualTypeOf<((chunk: Uint8Array) => void) | undefined>();
  expectTypeOf<NodeRuntimeCreateOptions["onBootTiming"]>().toEqualTypeOf<((timing: NodeRuntimeBootTiming) => void) | undefined>();
  expectTypeOf<NodeRuntimeBootTiming["phase"]>().toEqualTypeOf<NodeRuntimeBootTimingPhase>();
  expectTypeOf<NodeRuntimeCreateOptions["mounts"]>().toEqualTypeOf<HostDirectoryMount[] | undefined>();
  expectTypeOf<NodeRuntimeCreateOptions["nodeModules"]>().toEqualTypeOf<string | NodeModulesMount | undefined>();
  expectTypeOf<BindingDefinition["examples"]>().toEqualTypeOf<HostToolExample[] | undefined>();
  expectTypeOf(Sidecar.spawn).parameter(0).toEqualTypeOf<SidecarSpawnOptions | undefined>();

  // As programs write them.
  expectTypeOf({ network: "allow", binding: { rules: [{ mode: "allow", patterns: ["add"] }] } } as const).toExtend<{ network: NodeRuntimePermissions["network"] }>();
  const bindings: NodeRuntimeCreateOptions["bindings"] = {
    typed: { description: "", inputSchema: {}, handler: ({ city }: { city: string }) => city.length },
    inferred: { description: "", inputSchema: {}, handler: async ({ city }) => ({ city }) },
    none: { description: "", inputSchema: {}, handler: () => undefined },
  };
  void bindings;
  // @ts-expect-error: unknown options are errors of the compiler, too
  void NodeRuntime.create({ memoryLimit: 64 });
  // @ts-expect-error: and so are unknown scopes
  void NodeRuntime.create({ permissions: { tool: "allow" } });
}

test("types are those of secure-exec", () => void types);
