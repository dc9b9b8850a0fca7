// Does the example in a page of documentation work? A snippet runs in a sandbox, and its result has the output.
import { runInSandbox } from "gaol/snippets";

const page = `
Counters count:

\`\`\`ts
const counter = { count: 0 };
counter.count++;
console.log("count:", counter.count);
export { counter };
\`\`\`

This one has a mistake:

\`\`\`ts
const counter = { count: 0 };
counter.increment();
\`\`\`
`;

for (const [, source] of page.matchAll(/^```ts\n(.*?)^```/gms)) {
  const { logs, facts, errors } = await runInSandbox(source, { timeoutMs: 5000 });
  console.log(errors.length === 0 ? "works" : "fails", JSON.stringify({ logs, facts }));
  for (const error of errors) console.log(error.split("\n")[0]);
}
