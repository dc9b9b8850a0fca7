const Ajv = require('ajv').default;
const validate = new Ajv({ allErrors: true }).compile({ type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'], additionalProperties: false });
console.log(validate({ n: 3 }), validate({ n: 1, x: 2 }), validate.errors.map((e) => e.message));
