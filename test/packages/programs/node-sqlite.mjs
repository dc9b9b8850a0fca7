import { DatabaseSync } from 'node:sqlite';
const db = new DatabaseSync('/tmp/own.db');
db.exec('DROP TABLE IF EXISTS t; CREATE TABLE t (v TEXT); INSERT INTO t VALUES (json(\'{"a":1}\'))');
console.log(db.prepare("SELECT v ->> 'a' AS a FROM t").all());
db.close();
