import { JSDOM } from 'jsdom';
const { window } = new JSDOM('<p id=x>Hello</p><script>document.title = [1,2,3].map(n => n * 2).join()</script>', { runScripts: 'dangerously' });
window.document.querySelector('#x').innerHTML += ' <b>world</b>';
console.log(window.document.title, window.document.body.textContent.trim(), window.getComputedStyle(window.document.body).display);
window.close();
