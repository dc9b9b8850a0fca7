const { Workbook } = require('exceljs');
(async () => {
  const book = new Workbook();
  const sheet = book.addWorksheet('One');
  sheet.columns = [{ header: 'Name', key: 'name' }, { header: 'Sum', key: 'sum' }];
  for (let i = 0; i < 500; i++) sheet.addRow({ name: `n${i}`, sum: i });
  sheet.getCell('C1').value = { formula: 'SUM(B2:B501)', result: 124750 };
  await book.xlsx.writeFile('/tmp/book.xlsx');
  const read = new Workbook();
  await read.xlsx.readFile('/tmp/book.xlsx');
  const s = read.getWorksheet('One');
  console.log(s.rowCount, s.getCell('A501').value, s.getCell('C1').result);
})();
