const _ = require('lodash');
const people = [{ name: 'Ada', team: 'a', age: 36 }, { name: 'Bob', team: 'b', age: 41 }, { name: 'Cy', team: 'a', age: 29 }];
console.log(_.mapValues(_.groupBy(people, 'team'), (list) => _.meanBy(list, 'age')));
console.log(_.template('Hello <%= name %>!')({ name: 'world' }));
console.log(_.cloneDeep({ a: [new Map([[1, { b: 2 }]])] }));
