const XLSX = require('xlsx');
const book = XLSX.utils.book_new();
XLSX.utils.book_append_sheet(book, XLSX.utils.json_to_sheet([{ a: 1, b: 'x' }, { a: 2, b: 'y' }]), 'S');
XLSX.writeFile(book, '/tmp/s.xlsx');
console.log(XLSX.utils.sheet_to_csv(XLSX.readFile('/tmp/s.xlsx').Sheets.S));
