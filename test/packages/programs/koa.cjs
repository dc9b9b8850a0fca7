const Koa = require('koa');
const inject = require('light-my-request');
const app = new Koa();
app.use(async (ctx, next) => { ctx.set('x-before', '1'); await next(); });
app.use((ctx) => { ctx.body = { path: ctx.path, accepts: ctx.accepts('json', 'html') }; });
inject(app.callback(), { url: '/here', headers: { accept: 'text/html' } }).then((r) => console.log(r.statusCode, r.headers['x-before'], r.body));
