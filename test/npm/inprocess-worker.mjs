// The thread of inprocess.mjs that executes a bundle, and reports what the snippet did.
import { parentPort, workerData } from "node:worker_threads";

const logs = [];
for (const [method, level] of Object.entries({ log: "log", info: "log", debug: "log", warn: "warn", error: "error" })) {
  console[method] = (...args) => void logs.push(`[${level}] ${args.map((arg) => (typeof arg === "string" ? arg : JSON.stringify(arg))).join(" ")}`);
}
globalThis.__systems = [];

let facts = {};
let derived = {};
const errors = [];
try {
  await import(`data:text/javascript;base64,${Buffer.from(workerData).toString("base64")}`);
  for (const system of globalThis.__systems) {
    await system.settle?.();
    facts = { ...facts, ...system.facts.$store.toObject() };
    derived = { ...derived, ...Object.fromEntries(Object.keys(system.derive).map((name) => [name, system.derive[name]])) };
  }
} catch (err) {
  errors.push(String(err?.message ?? err));
}
parentPort.postMessage({ logs, facts, derived, errors });
