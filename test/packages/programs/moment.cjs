const moment = require('moment');
require('moment/locale/de');
const m = moment.utc('2024-02-29T12:00:00Z');
console.log(m.format('LLLL'), m.clone().add(1, 'year').format('YYYY-MM-DD'), moment.duration(90, 'minutes').humanize());
