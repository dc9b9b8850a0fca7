// GC-heavy: short-lived objects, and some 50 MB of long-lived ones that change.
const rounds = Number(process.argv[2]);

const kept = new Map();
let sum = 0;
for (let i = 0; i < rounds; i++) {
  for (let j = 0; j < 10_000; j++) {
    const node = { key: `k${j}`, list: [i, j, i + j], next: { value: i ^ j } };
    sum = (sum + node.list[2] + node.next.value) | 0;
    if (j % 10 === 0) kept.set((i * 1000 + j / 10) % 200_000, node);
  }
}
console.log('garbage', kept.size, sum);
