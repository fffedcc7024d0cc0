-- +goose Up

-- The ID of a wait identifies what was asked; its subject is the call.
ALTER TABLE waits RENAME COLUMN hash TO subject;
ALTER TABLE tokens RENAME COLUMN hash TO subject;
ALTER TABLE audit RENAME COLUMN hash TO about;
UPDATE waits SET id = subject, subject = id WHERE kind = 'child' AND id <> 'after';

-- +goose Down
UPDATE waits SET id = subject, subject = id WHERE kind = 'child' AND id <> 'after';
ALTER TABLE audit RENAME COLUMN about TO hash;
ALTER TABLE tokens RENAME COLUMN subject TO hash;
ALTER TABLE waits RENAME COLUMN subject TO hash;
