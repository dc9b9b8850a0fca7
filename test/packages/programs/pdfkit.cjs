const PDFDocument = require('pdfkit');
const doc = new PDFDocument({ compress: false, info: { CreationDate: new Date(0) } });
const parts = [];
doc.on('data', (part) => parts.push(part)).on('end', () => {
  const pdf = Buffer.concat(parts).toString('latin1');
  console.log(pdf.slice(0, 8), pdf.includes('/Helvetica'), pdf.trimEnd().endsWith('%%EOF'));
});
doc.fontSize(20).text('Some text').rect(10, 10, 50, 50).fill('red');
doc.end();
