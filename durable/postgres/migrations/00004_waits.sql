-- +goose Up

-- Whatever a run waits for is a row of one kind. convert.go executes this file.

ALTER TABLE questions RENAME TO waits;
ALTER INDEX questions_pkey RENAME TO waits_pkey;
ALTER INDEX questions_run RENAME TO waits_run;
ALTER INDEX questions_token RENAME TO waits_token;
ALTER INDEX questions_child RENAME TO waits_child;
ALTER TABLE waits RENAME CONSTRAINT questions_run_fkey TO waits_run_fkey;
ALTER SEQUENCE questions_id_seq RENAME TO waits_num_seq;
ALTER TABLE waits RENAME COLUMN id TO num;
ALTER TABLE waits RENAME COLUMN call TO id;
ALTER TABLE waits
	ALTER COLUMN id TYPE text COLLATE "C",
	ADD COLUMN run_id        text COLLATE "C" NOT NULL DEFAULT '', -- the id of the run, for the order of OpenWaits
	ADD COLUMN kind          text COLLATE "C" NOT NULL DEFAULT 'approval',
	ADD COLUMN host          text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN checker       text COLLATE "C" NOT NULL DEFAULT '', -- the owner that watches; empty when none has yet
	ADD COLUMN checked_until timestamptz,                          -- until when the owner watches
	ADD COLUMN partial       text NOT NULL DEFAULT '',             -- the answers that did not decide, as JSON; empty for none
	ADD COLUMN who           text NOT NULL DEFAULT '';             -- who gave the deciding answer
UPDATE waits w SET run_id = r.id, kind = CASE WHEN w.child = '' THEN 'approval' ELSE 'child' END FROM runs r WHERE r.num = w.run;
ALTER TABLE waits ALTER COLUMN run_id DROP DEFAULT, ALTER COLUMN kind DROP DEFAULT;

-- The lists of open waits, each in its order. The id of a wait comes from a model and may be too long for an index.
CREATE INDEX waits_open ON waits (asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_kind ON waits (kind, asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_deadline ON waits (deadline) WHERE answered IS NULL AND deadline IS NOT NULL;

-- What ClaimChecks looks for: the waits of a checker, or of none, and those whose checker has not renewed its claim.
CREATE INDEX waits_checker ON waits (checker, kind, host, asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_checked_until ON waits (kind, host, checked_until) WHERE answered IS NULL AND checked_until IS NOT NULL;

-- Tokens of waits beside those in waits: further ones, and those of waits that the run does not have any more.
CREATE TABLE tokens (
	token bytea PRIMARY KEY, -- the SHA-256
	run   bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	wait  text COLLATE "C" NOT NULL, -- the id
	hash  text NOT NULL
);
CREATE INDEX tokens_run ON tokens (run);

-- The ID of the key with which data was last encrypted: see durable.Encrypt. The mark of encrypted data is before the ID in it.
CREATE TABLE encryption (
	single boolean PRIMARY KEY CHECK (single),
	key_id text NOT NULL
);
INSERT INTO encryption (single, key_id) SELECT true, encode(substring(e.data FROM 5 FOR 8), 'hex')
	FROM (SELECT data FROM entries ORDER BY run DESC, seq DESC LIMIT 1) e WHERE substring(e.data FROM 1 FOR 4) = '\x00676b31';

ALTER TABLE runs
	ADD COLUMN any_wait     boolean NOT NULL DEFAULT false, -- one wait that has happened is enough
	ADD COLUMN submitted_by text NOT NULL DEFAULT '';

-- Who decided what. A record outlives its run; its data does not.
CREATE TABLE audit (
	num     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at      timestamptz NOT NULL,
	kind    text COLLATE "C" NOT NULL,
	run     text COLLATE "C" NOT NULL, -- the id of the run
	subject text COLLATE "C" NOT NULL,
	who     text NOT NULL,
	wait    text NOT NULL,
	hash    text NOT NULL,
	more    boolean NOT NULL,
	ends    boolean NOT NULL,
	data    bytea
);
CREATE INDEX audit_run ON audit (run, num) WHERE run <> '';
CREATE INDEX audit_subject ON audit (left(subject, 200), num); -- the name of a tool comes from a model, too
CREATE INDEX audit_kind ON audit (kind, num) WHERE kind <> 'answer'; -- nearly all are answers

CREATE TABLE waivers (
	id         text COLLATE "C" PRIMARY KEY,
	at         timestamptz, -- when it was created
	who        text NOT NULL,
	expires    timestamptz,
	revoked    timestamptz, -- null while it is not
	revoked_by text NOT NULL DEFAULT '',
	data       bytea
);
CREATE INDEX waivers_expires ON waivers (expires) WHERE revoked IS NULL;

-- +goose Down

-- convert.go has checked that runs wait only for what the version before knows.

DROP TABLE waivers, audit, tokens, encryption;
ALTER TABLE runs DROP COLUMN any_wait, DROP COLUMN submitted_by;
DROP INDEX waits_checked_until, waits_checker, waits_deadline, waits_kind, waits_open;
ALTER TABLE waits DROP COLUMN run_id, DROP COLUMN kind, DROP COLUMN host, DROP COLUMN checker, DROP COLUMN checked_until,
	DROP COLUMN partial, DROP COLUMN who, ALTER COLUMN id TYPE text COLLATE "default";
ALTER TABLE waits RENAME COLUMN id TO call;
ALTER TABLE waits RENAME COLUMN num TO id;
ALTER SEQUENCE waits_num_seq RENAME TO questions_id_seq;
ALTER TABLE waits RENAME CONSTRAINT waits_run_fkey TO questions_run_fkey;
ALTER INDEX waits_child RENAME TO questions_child;
ALTER INDEX waits_token RENAME TO questions_token;
ALTER INDEX waits_run RENAME TO questions_run;
ALTER INDEX waits_pkey RENAME TO questions_pkey;
ALTER TABLE waits RENAME TO questions;
