import { customAlphabet, nanoid } from 'nanoid';
console.log(nanoid().length, /^[ab]{12}$/.test(customAlphabet('ab', 12)()), new Set(Array.from({ length: 1000 }, () => nanoid())).size);
