// What an AI agent wrote when asked for the first twenty Fibonacci numbers.
function fibonacci(count) {
  const numbers = [];
  let [a, b] = [0, 1];
  for (let i = 0; i < count; i++) {
    numbers.push(a);
    [a, b] = [b, a + b];
  }
  return numbers;
}

const numbers = fibonacci(20);
const sum = numbers.reduce((total, n) => total + n, 0);

console.log(`computed ${numbers.length} fibonacci numbers`);
globalThis.__return({ fibonacci: numbers, sum });
