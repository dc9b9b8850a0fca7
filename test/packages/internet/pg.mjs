// gaol: --allow-net api.example.com:5432
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import pg from 'pg';
const options = { host: 'api.example.com', user: 'guest', password: 'sesame', database: 'postgres' };
for (const ssl of [false, { ca: readFileSync(process.env.CA, 'utf8') }]) {
  const pool = new pg.Pool({ ...options, ssl, max: 5 });
  console.log((await pool.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).rows);
  await pool.query('create table t (id int primary key, text text)');
  await pool.query(`insert into t select i, repeat('x', i) from generate_series(1, $1) i`, [1000]);
  console.log((await pool.query('select sum(length(text)) from t')).rows);
  console.log((await pool.query('select * from t')).rows.reduce((n, row) => n + row.text.length, 0));
  console.log(await Promise.all(Array.from({ length: 20 }, async (_, i) => (await pool.query('select $1::int * 2 as n', [i])).rows[0].n)));
  await pool.query('select 1/0').catch((err) => console.log(err.code));
  const client = await pool.connect();
  await client.query('listen news');
  const news = once(client, 'notification');
  await pool.query(`notify news, 'hello'`);
  console.log((await news)[0].payload);
  client.release(true);
  await pool.query('drop table t');
  await pool.end();
}
await new pg.Client({ ...options, ssl: true }).connect().catch((err) => console.log(err.code));
await new pg.Client({ ...options, password: 'wrong' }).connect().catch((err) => console.log(err.code));
