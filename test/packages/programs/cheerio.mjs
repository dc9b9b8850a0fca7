import * as cheerio from 'cheerio';
const $ = cheerio.load('<ul id="f"><li class="a">Apple</li><li>Pear<b>!</b></li></ul>');
$('li').last().addClass('p').append('<i>x</i>');
console.log($('.a').text(), $('li').map((_, e) => $(e).text()).get(), $.html('#f'));
