-- +goose Up

-- What is known of a run without its journal. Text that PostgreSQL cannot hold is
-- written as \x and hexadecimal digits: see text.go.
CREATE TABLE runs (
	num           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- counts runs: the order of a list
	id            text COLLATE "C" NOT NULL UNIQUE,
	session       text COLLATE "C" NOT NULL,
	agent         text COLLATE "C" NOT NULL,
	parent        text COLLATE "C" NOT NULL,
	root          text COLLATE "C" NOT NULL,
	status        text COLLATE "C" NOT NULL,
	reason        text NOT NULL,
	steps         bigint NOT NULL,
	entries       bigint NOT NULL DEFAULT 0, -- the number of the last one
	appended      bytea,                     -- what the last append was: see append.go
	created       timestamptz NOT NULL DEFAULT now(),
	updated       timestamptz NOT NULL DEFAULT now(),
	ended         timestamptz,               -- null while it has not
	deadline      timestamptz,               -- of the first open question
	cancel_reason text NOT NULL DEFAULT '',
	owner         text NOT NULL,
	epoch         bigint NOT NULL DEFAULT 1,
	expires       timestamptz,               -- null when nobody has a lease
	ready         timestamptz DEFAULT now()  -- since when, or from when on, there is something to do; null: somebody must say something first
) WITH (fillfactor = 80); -- a step changes no index, if its page has room for the new row

CREATE TABLE entries (
	run  bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	seq  bigint NOT NULL,
	kind text NOT NULL,
	key  text NOT NULL,
	at   timestamptz NOT NULL,
	data bytea,
	PRIMARY KEY (run, seq)
);

CREATE TABLE questions (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run      bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	place    bigint NOT NULL, -- in the order of the calls
	call     text NOT NULL,
	hash     text NOT NULL,
	tool     text NOT NULL,
	asked    timestamptz NOT NULL,
	deadline timestamptz,
	child    text COLLATE "C" NOT NULL,
	token    bytea,
	data     bytea,
	answered timestamptz, -- null while nobody has
	ends     boolean NOT NULL,
	answer   bytea
);

CREATE TABLE switches (
	name   text PRIMARY KEY,
	is_on  boolean NOT NULL,
	reason text NOT NULL,
	by     text NOT NULL,
	since  timestamptz
);

-- +goose Down
DROP TABLE switches, questions, entries, runs; -- Rollback refuses to: runs would be lost
