-- expires is in Unix nanoseconds; record is the JSON of store.Record. A file that was made before there were migrations has
-- the tables already.
-- +goose Up
CREATE TABLE IF NOT EXISTS offers (
	name    TEXT PRIMARY KEY,
	writer  TEXT NOT NULL,
	expires INTEGER NOT NULL,
	record  TEXT NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX IF NOT EXISTS offers_writer ON offers (writer, expires);
CREATE INDEX IF NOT EXISTS offers_expires ON offers (expires);
CREATE TABLE IF NOT EXISTS sessions (
	session  INTEGER PRIMARY KEY AUTOINCREMENT,
	writer   TEXT NOT NULL,
	provider TEXT NOT NULL,
	sequence INTEGER NOT NULL,
	UNIQUE (writer, provider)
) STRICT;
