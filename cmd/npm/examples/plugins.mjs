// Plugins of users: each call is a separate process, and cannot harm others.
import { NodeRuntime } from "gaol";

const plugins = {
  shout: `__return(input.text.toUpperCase() + "!")`,
  count: `__return(input.text.split(" ").length)`,
  broken: `throw new Error("this plugin is broken")`,
  endless: `for (;;);`,
};

const runtime = await NodeRuntime.create();
try {
  await runtime.run(""); // the first run of a server takes longer
  for (const [name, code] of Object.entries(plugins)) {
    const input = JSON.stringify({ text: "hello gentle world" });
    const { exitCode, value, stderr } = await runtime.run(`const input = ${input};\n${code}`, { timeout: 3000 });
    const reason = /^Error: .*$/m.exec(stderr)?.[0] ?? "it was killed";
    console.log(`${name}:`, exitCode === 0 ? value : reason);
  }
} finally {
  await runtime.dispose();
}
