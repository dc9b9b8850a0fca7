import Database from 'better-sqlite3';
const db = new Database('/tmp/better.db');
db.pragma('journal_mode = WAL');
db.exec('CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT); DELETE FROM t');
const insert = db.prepare('INSERT INTO t (name) VALUES (?)');
db.transaction((names) => names.forEach((n) => insert.run(n)))(['a', 'b', 'c']);
console.log(db.prepare('SELECT count(*) AS n, max(name) AS m FROM t').get());
db.close();
