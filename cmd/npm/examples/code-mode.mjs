// A model writes one program that calls several functions of this process, instead of calling them one by one.
import { NodeRuntime } from "gaol";

const stock = { apples: 12, pears: 0, plums: 7 };
const prices = { apples: 3, pears: 4, plums: 5 };
const item = { type: "object", properties: { name: { enum: Object.keys(stock) } }, required: ["name"] };

const runtime = await NodeRuntime.create({
  bindings: {
    "get-stock": { description: "Returns how many there are", inputSchema: item, handler: ({ name }) => ({ count: stock[name] }) },
    "get-price": { description: "Returns the price of one", inputSchema: item, handler: async ({ name }) => ({ price: prices[name] }) },
  },
});

const generated = `
const names = ["apples", "pears", "plums"];
const counts = await Promise.all(names.map((name) => callBinding("get-stock", { name })));
let total = 0;
for (const [i, name] of names.entries()) {
  if (counts[i].count === 0) continue;
  const { price } = await callBinding("get-price", { name });
  total += price * counts[i].count;
}
const wrong = await callBinding("get-price", { name: "melons" }).catch((error) => error.message);
__return({ total, wrong });
`;

try {
  const { exitCode, value } = await runtime.run(generated, { timeout: 30_000 });
  console.log("exit code:", exitCode);
  console.log("total:", value.total);
  console.log("wrong input:", value.wrong);
} finally {
  await runtime.dispose();
}
