// The kernel enforces permissions. Rules that it cannot enforce are rejected, with the nearest that it can.
import { NodeRuntime } from "gaol";

const runtime = await NodeRuntime.create({
  env: { API_TOKEN: "secret", LANGUAGE: "en" },
  files: { "/vault/key.pem": "private", "/data/public.txt": "public" },
  permissions: {
    fs: { default: "allow", rules: [{ mode: "deny", operations: ["*"], paths: ["/vault/**"] }] },
    env: { default: "allow", rules: [{ mode: "deny", operations: ["read"], patterns: ["API_*"] }] },
    childProcess: "deny",
  },
});
try {
  const { stdout } = await runtime.exec(`
    import { spawnSync } from "node:child_process";
    import { readFileSync } from "node:fs";
    const attempt = (name, act) => {
      try { console.log(name + ":", act()); } catch (error) { console.log(name + ":", error.code); }
    };
    attempt("public file", () => readFileSync("/data/public.txt", "utf8"));
    attempt("vault", () => readFileSync("/vault/key.pem", "utf8"));
    attempt("token", () => process.env.API_TOKEN ?? "absent");
    attempt("shell", () => spawnSync("sh", ["-c", "id"]).error?.code);
    await fetch("http://example.com/").catch(() => console.log("network: denied"));
  `);
  process.stdout.write(stdout);
} finally {
  await runtime.dispose();
}

const unenforceable = { fs: { default: "allow", rules: [{ mode: "deny", paths: ["/data/*.csv"] }] } };
await NodeRuntime.create({ permissions: unenforceable }).catch((error) => console.log("rejected:", error.message));
