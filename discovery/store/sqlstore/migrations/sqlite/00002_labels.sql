-- What a list's selector is looked for in: ",key=value,key=value,"; null in rows of before.
-- +goose Up
ALTER TABLE offers ADD COLUMN labels TEXT;
