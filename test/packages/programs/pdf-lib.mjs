import { PDFDocument, StandardFonts } from 'pdf-lib';
const doc = await PDFDocument.create();
const page = doc.addPage([200, 100]);
page.drawText('Hello', { x: 10, y: 50, font: await doc.embedFont(StandardFonts.Helvetica) });
const again = await PDFDocument.load(await doc.save());
console.log(again.getPageCount(), again.getPage(0).getSize());
