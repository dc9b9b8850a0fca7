const Papa = require('papaparse');
const { data, errors } = Papa.parse('a;b\n1;x\n2;"y;z"\n', { header: true, dynamicTyping: true, skipEmptyLines: true });
console.log(data, errors, Papa.unparse(data));
