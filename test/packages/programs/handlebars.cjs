const Handlebars = require('handlebars');
Handlebars.registerHelper('up', (s) => s.toUpperCase());
console.log(Handlebars.compile('{{#each list}}{{@index}}: {{up name}} {{/each}}{{{html}}}')({ list: [{ name: 'a' }, { name: 'b' }], html: '<b>' }));
