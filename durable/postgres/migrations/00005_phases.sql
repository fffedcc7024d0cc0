-- +goose Up

-- Phases of runs, runs that start after others, and documents. convert.go executes this file.

ALTER TABLE runs
	ADD COLUMN phase   text COLLATE "C" NOT NULL DEFAULT '', -- the kind of the runner that has the run, in place of kind
	ADD COLUMN demands text NOT NULL DEFAULT '';             -- of the job, while the run has a phase; otherwise its queue has them

ALTER TABLE payloads
	ADD COLUMN submitted bytea, -- the first input, if it was replaced
	ADD COLUMN replaced  boolean NOT NULL DEFAULT false;

-- Each row is a version of a document. Versions stay when the document is deleted.
CREATE TABLE documents (
	kind    text COLLATE "C" NOT NULL,
	name    bytea NOT NULL, -- lists have the order of its bytes
	version bigint NOT NULL,
	newest  boolean NOT NULL, -- whether it is the newest version of a document that was not deleted
	at      timestamptz NOT NULL,
	who     text NOT NULL,
	data    bytea,
	PRIMARY KEY (kind, name, version)
);
CREATE UNIQUE INDEX documents_newest ON documents (kind, name) WHERE newest;

-- +goose Down

-- convert.go has checked that no run has a phase or waits to start after another one, and that no document is in use. The first
-- inputs of runs that were replaced, and the versions of deleted documents, are lost.

DROP TABLE documents;
DELETE FROM waits WHERE id = 'after' AND hash = 'after' AND kind = 'child';
ALTER TABLE payloads DROP COLUMN submitted, DROP COLUMN replaced;
ALTER TABLE runs DROP COLUMN phase, DROP COLUMN demands;
