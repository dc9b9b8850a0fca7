// An agent's program runs in a sandbox. It returns a value, and sees nothing of this machine.
import { NodeRuntime } from "gaol";

// A model has written this: nothing about it is trusted.
const generated = `
const numbers = [0, 1];
while (numbers.length < 20) numbers.push(numbers.at(-2) + numbers.at(-1));
console.log("computed " + numbers.length + " fibonacci numbers");
globalThis.__return({ fibonacci: numbers, sum: numbers.reduce((sum, n) => sum + n, 0) });
`;

// And this wants to know where it is.
const escape = `
import os from "node:os";
console.log("guest hostname: " + os.hostname());
`;

const runtime = await NodeRuntime.create();
try {
  const { exitCode, stdout, value } = await runtime.run(generated, { timeout: 30_000 });
  console.log("exitCode:", exitCode);
  console.log("stdout:", stdout.trim());
  console.log("returned value:", JSON.stringify(value));
  const attempt = await runtime.exec(escape, { timeout: 30_000 });
  console.log("\nescape attempt exitCode:", attempt.exitCode);
  console.log("escape attempt stdout:", attempt.stdout.trim());
} finally {
  await runtime.dispose();
}
