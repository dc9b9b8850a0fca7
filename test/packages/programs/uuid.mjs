import { v4, v5, v7, validate, version } from 'uuid';
console.log(v5('gaol', v5.URL), validate(v4()), version(v7()), new Set(Array.from({ length: 1000 }, () => v4())).size);
