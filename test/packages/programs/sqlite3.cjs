const sqlite3 = require('sqlite3');
const db = new sqlite3.Database(':memory:');
db.serialize(() => {
  db.run('CREATE TABLE t (n INTEGER)');
  for (let n = 0; n < 10; n++) db.run('INSERT INTO t VALUES (?)', n);
  db.get('SELECT sum(n) AS sum FROM t', (err, row) => console.log(err, row));
});
db.close();
