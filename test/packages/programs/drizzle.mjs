import Database from 'better-sqlite3';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
const users = sqliteTable('users', { id: integer().primaryKey(), name: text().notNull() });
const db = drizzle(new Database(':memory:'));
db.run(sql`CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)`);
db.insert(users).values([{ name: 'Ada' }, { name: 'Bob' }]).run();
console.log(db.select().from(users).where(eq(users.name, 'Bob')).all(), db.select().from(users).where(eq(users.id, 1)).toSQL());
