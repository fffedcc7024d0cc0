-- +goose Up

-- Runs of every kind, with stored statuses. convert.go executes this file: it first creates the table needs (name, key) and
-- fills it, because the key of a queue is computed in Go.

DROP INDEX runs_agent, runs_status;
ALTER TABLE runs DROP COLUMN due;

-- What workers must offer: runs with equal needs are in one queue.
CREATE TABLE queues (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key     bytea NOT NULL UNIQUE,
	kind    text COLLATE "C" NOT NULL,
	name    text COLLATE "C" NOT NULL,
	demands text NOT NULL, -- JSON; empty for none
	polled  timestamptz    -- when a worker last looked for its runs, to some seconds
);
INSERT INTO queues (key, kind, name, demands) SELECT key, 'agent', name, '' FROM needs;
DROP TABLE needs;

ALTER TABLE runs RENAME COLUMN agent TO name;
ALTER TABLE runs RENAME COLUMN deadline TO answer_by;
ALTER TABLE runs
	ALTER COLUMN ready DROP DEFAULT, -- since when the run has been ready; null while it is not
	ALTER COLUMN epoch DROP DEFAULT,
	ADD COLUMN kind            text COLLATE "C" NOT NULL DEFAULT 'agent',
	ADD COLUMN version         text NOT NULL DEFAULT '',
	ADD COLUMN queue           bigint,
	ADD COLUMN labels          text NOT NULL DEFAULT '', -- JSON; empty for none; the table labels finds runs by them
	ADD COLUMN priority        smallint NOT NULL DEFAULT 0,
	ADD COLUMN not_before      timestamptz,
	ADD COLUMN start_by        timestamptz,
	ADD COLUMN deadline        timestamptz,              -- of the job
	ADD COLUMN idempotency_key text COLLATE "C",
	ADD COLUMN blocked         boolean NOT NULL DEFAULT false,
	ADD COLUMN paused          boolean NOT NULL DEFAULT false,
	ADD COLUMN attempts        bigint NOT NULL DEFAULT 0,
	ADD COLUMN events          bigint NOT NULL DEFAULT 0, -- the number of the last event
	ADD COLUMN signals         bigint NOT NULL DEFAULT 0, -- the number of the last signal
	ADD COLUMN handled         bigint NOT NULL DEFAULT 0, -- the number of the last signal that the run has handled
	ADD COLUMN offer_seq       bigint NOT NULL DEFAULT 0, -- how often the run has become ready
	ADD COLUMN offered         timestamptz;               -- when the newest offer may be made again: see offers.go; null while it is owed

UPDATE runs r SET
	queue = q.id,
	attempts = r.epoch,
	blocked = r.status = 'denied',
	status = n.status,
	ready = CASE WHEN n.status = 'ready' THEN least(r.ready, now()) END,
	offer_seq = CASE WHEN n.status = 'ready' THEN 1 ELSE 0 END
FROM queues q, (
	SELECT num, CASE status
		WHEN 'running' THEN CASE WHEN expires IS NULL THEN 'ready' ELSE 'running' END
		WHEN '' THEN CASE WHEN expires IS NULL THEN 'ready' ELSE 'running' END
		WHEN 'parked' THEN CASE WHEN expires IS NULL AND ready <= now() THEN 'ready' ELSE 'waiting' END
		WHEN 'done' THEN 'completed'
		WHEN 'stopped' THEN 'stopped'
		WHEN 'interrupted' THEN 'stopped'
		WHEN 'cancelled' THEN 'cancelled'
		ELSE 'failed' END AS status
	FROM runs
) n
WHERE n.num = r.num AND q.name = r.name;

ALTER TABLE runs ALTER COLUMN queue SET NOT NULL, ADD FOREIGN KEY (queue) REFERENCES queues;

-- Large values, which a step and a list do not touch.
CREATE TABLE payloads (
	run    bigint PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
	input  bytea,
	result bytea
);

CREATE TABLE events (
	run  bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	seq  bigint NOT NULL,
	at   timestamptz NOT NULL,
	name text NOT NULL,
	data bytea,
	PRIMARY KEY (run, seq)
);

CREATE TABLE signals (
	run  bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	seq  bigint NOT NULL,
	kind text NOT NULL,
	text text NOT NULL,
	by   text NOT NULL,
	at   timestamptz NOT NULL,
	PRIMARY KEY (run, seq)
);

-- The labels of runs, with the status of the run, so that a list by label and status reads one index.
CREATE TABLE labels (
	run    bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	name   text COLLATE "C" NOT NULL,
	value  text COLLATE "C" NOT NULL,
	status text COLLATE "C" NOT NULL,
	PRIMARY KEY (run, name)
);
CREATE INDEX labels_value ON labels (name, value, status, run);

CREATE FUNCTION copy_status() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	UPDATE labels SET status = NEW.status WHERE run = NEW.num;
	RETURN NULL;
END
$$;
CREATE TRIGGER copy_status AFTER UPDATE OF status ON runs FOR EACH ROW
	WHEN (NEW.labels <> '' AND NEW.status <> OLD.status) EXECUTE FUNCTION copy_status();

-- The lists, each in its order.
CREATE INDEX runs_status ON runs (status, num);
CREATE INDEX runs_kind ON runs (kind, status, num);
CREATE INDEX runs_name ON runs (name, status, num);
CREATE INDEX runs_blocked ON runs (num) WHERE blocked;
CREATE INDEX runs_created ON runs (created, num);

-- The order in which workers claim the runs of a queue.
CREATE INDEX runs_queue ON runs (queue, status, priority DESC, ready, num);
CREATE UNIQUE INDEX runs_idempotency_key ON runs (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_owner ON runs (owner) WHERE owner <> '';

-- What Reconcile and Owed look for.
CREATE INDEX runs_expires ON runs (expires) WHERE expires IS NOT NULL;
CREATE INDEX runs_answer_by ON runs (answer_by) WHERE answer_by IS NOT NULL AND status = 'waiting' AND expires IS NULL AND NOT paused;
CREATE INDEX runs_not_before ON runs (not_before) WHERE status = 'pending';
CREATE INDEX runs_deadline ON runs (deadline) WHERE deadline IS NOT NULL AND ended IS NULL AND cancel_reason = '';
CREATE INDEX runs_start_by ON runs (start_by) WHERE start_by IS NOT NULL AND ended IS NULL AND attempts = 0;
CREATE INDEX runs_owed ON runs (ready, num) WHERE status = 'ready' AND offered IS NULL;
CREATE INDEX runs_offered ON runs (offered) WHERE status = 'ready' AND offered IS NOT NULL;

-- +goose Down

-- convert.go has checked that there are only runs of agents that have started.

DROP TRIGGER copy_status ON runs;
DROP FUNCTION copy_status;
DROP TABLE labels, signals, events, payloads;
DROP INDEX runs_offered, runs_owed, runs_start_by, runs_deadline, runs_not_before, runs_answer_by, runs_expires, runs_owner,
	runs_idempotency_key, runs_queue, runs_created, runs_blocked, runs_name, runs_kind, runs_status;

UPDATE runs r SET
	status = CASE
		WHEN r.status IN ('ready', 'running') AND NOT n.asked THEN 'running'
		WHEN r.status IN ('pending', 'ready', 'running', 'waiting') THEN 'parked'
		WHEN r.status = 'completed' THEN 'done'
		WHEN r.status = 'failed' AND r.blocked THEN 'denied'
		WHEN r.status = 'stopped' AND r.reason = 'rejected' THEN 'interrupted'
		ELSE r.status END,
	ready = CASE
		WHEN r.ended IS NOT NULL THEN NULL
		WHEN r.status IN ('ready', 'running') OR r.cancel_reason <> '' OR n.answered THEN coalesce(r.ready, r.updated)
		ELSE r.answer_by END,
	epoch = greatest(r.epoch, 1)
FROM (
	SELECT x.num, count(q.id) > 0 AS asked,
		count(q.id) FILTER (WHERE q.answered IS NULL) = 0 OR bool_or(q.answered IS NOT NULL AND q.ends)
			OR bool_or(q.answered IS NULL AND c.ended IS NOT NULL) AS answered
	FROM runs x LEFT JOIN questions q ON q.run = x.num LEFT JOIN runs c ON c.id = q.child GROUP BY x.num
) n
WHERE n.num = r.num;

ALTER TABLE runs DROP COLUMN kind, DROP COLUMN version, DROP COLUMN queue, DROP COLUMN labels, DROP COLUMN priority, DROP COLUMN not_before,
	DROP COLUMN start_by, DROP COLUMN deadline, DROP COLUMN idempotency_key, DROP COLUMN blocked, DROP COLUMN paused, DROP COLUMN attempts,
	DROP COLUMN events, DROP COLUMN signals, DROP COLUMN handled, DROP COLUMN offer_seq, DROP COLUMN offered,
	ALTER COLUMN ready SET DEFAULT now(), ALTER COLUMN epoch SET DEFAULT 1;
ALTER TABLE runs RENAME COLUMN name TO agent;
ALTER TABLE runs RENAME COLUMN answer_by TO deadline;
DROP TABLE queues;

ALTER TABLE runs ADD COLUMN due timestamptz
	GENERATED ALWAYS AS (CASE WHEN ready IS NOT NULL THEN greatest(ready, expires) END) STORED;
CREATE INDEX runs_due ON runs (due) WHERE due IS NOT NULL;
CREATE INDEX runs_status ON runs (status, num);
CREATE INDEX runs_agent ON runs (agent, num);
