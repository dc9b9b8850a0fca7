// JSON: parse a document of some 100 kB, change it, write it again.
const rounds = Number(process.argv[2]);

const people = Array.from({ length: 500 }, (_, i) => ({
  id: i,
  name: `person ${i} \u00e9\n"quoted"`,
  scores: Array.from({ length: 12 }, (_, j) => (i * 37 + j * 11) / 7),
  address: { street: `${i} Main Street`, town: 'Springfield', tags: ['a', 'b', null, true] },
}));

let text = JSON.stringify(people);
for (let i = 0; i < rounds; i++) {
  const document = JSON.parse(text);
  document[i % document.length].name = `renamed ${i}`;
  text = JSON.stringify(document);
}
console.log('json', text.length);
