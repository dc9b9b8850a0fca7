import { dump, load } from 'js-yaml';
const value = load('a: &x {b: 1}\nc: *x\nlist: [1, two, 3.5]\ntext: |\n  one\n  two\n');
console.log(value, dump(value));
