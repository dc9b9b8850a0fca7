import { createHash } from 'node:crypto';
import sharp from 'sharp';
const png = await sharp({ create: { width: 64, height: 32, channels: 3, background: { r: 200, g: 10, b: 10 } } })
  .composite([{ input: Buffer.from('<svg width="20" height="20"><circle cx="10" cy="10" r="9" fill="lime"/></svg>'), left: 5, top: 5 }])
  .png().toBuffer();
const { width, height, format } = await sharp(png).metadata();
const raw = await sharp(png).raw().toBuffer();
console.log(width, height, format, createHash('sha256').update(raw).digest('hex'));
console.log((await sharp(png).rotate(90).webp().toBuffer({ resolveWithObject: true })).info.format);
