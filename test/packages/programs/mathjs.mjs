import { create, all } from 'mathjs';
const math = create(all, { number: 'BigNumber', precision: 40 });
console.log(math.evaluate('sqrt(2)').toString(), math.derivative('x^3 + 2x', 'x').toString(), math.evaluate('5 inch to cm').toString());
console.log(math.det([[1, 2], [3, 4]]).toString(), math.simplify('2x + 3x').toString());
