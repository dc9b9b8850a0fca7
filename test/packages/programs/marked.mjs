import { marked } from 'marked';
console.log(marked.parse('# Hi *you*\n\n| a | b |\n|---|--:|\n| 1 | `2` |\n\n```js\nlet x = 1 < 2;\n```\n'));
