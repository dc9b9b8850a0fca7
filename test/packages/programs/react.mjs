import { createElement as h, Suspense, useState } from 'react';
import { renderToString } from 'react-dom/server';
function Counter({ start }) {
  const [n] = useState(() => start * 2);
  return h('p', { className: 'c' }, 'n = ', n);
}
console.log(renderToString(h(Suspense, null, h(Counter, { start: 21 }))));
