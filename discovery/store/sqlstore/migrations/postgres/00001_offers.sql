-- The columns are those of SQLite. Names compare by their bytes, as the pages of a list do, whatever the database's locale.
-- +goose Up
CREATE TABLE offers (
	name    TEXT COLLATE "C" PRIMARY KEY,
	writer  TEXT NOT NULL,
	expires BIGINT NOT NULL,
	record  TEXT NOT NULL,
	labels  TEXT
);
CREATE INDEX offers_writer ON offers (writer, expires);
CREATE INDEX offers_expires ON offers (expires);
CREATE TABLE sessions (
	session  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	writer   TEXT NOT NULL,
	provider TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	UNIQUE (writer, provider)
);
