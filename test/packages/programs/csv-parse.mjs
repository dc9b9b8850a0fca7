import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
const rows = parse('id,name\n1,"Ada, Countess"\n2,"say ""hi"""\n', { columns: true, cast: true });
console.log(rows);
console.log(stringify(rows.map((r) => ({ ...r, id: r.id + 1 })), { header: true }));
