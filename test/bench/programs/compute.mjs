// Compute-bound: floating point, integers and typed arrays. The functions are short and
// called often, so that the moment when V8 optimizes them matters little.
const rounds = Number(process.argv[2]);

function primes(composite) {
  composite.fill(0);
  let count = 0;
  for (let i = 2; i < composite.length; i++) {
    if (composite[i] === 1) continue;
    count++;
    for (let j = i * i; j < composite.length; j += i) composite[j] = 1;
  }
  return count;
}

function escape(cr, ci) {
  let zr = 0;
  let zi = 0;
  let i = 0;
  for (; i < 100 && zr * zr + zi * zi < 4; i++) {
    const next = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = next;
  }
  return i;
}

function mandelbrot(size) {
  let sum = 0;
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) sum += escape((2 * x) / size - 1.5, (2 * y) / size - 1);
  }
  return sum;
}

const sieve = new Uint8Array(20_000);
let hash = 0;
for (let i = 0; i < rounds; i++) hash = (Math.imul(hash, 31) + primes(sieve) + mandelbrot(40)) | 0;
console.log('compute', hash);
