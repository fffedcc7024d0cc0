-- Version 3: runs of every kind, with queues, events, signals, labels, inputs and results. 00003 is a Go migration,
-- because the keys of queues are hashes: see engine.go.

DROP INDEX runs_by_status;
DROP INDEX runs_by_agent;
DROP INDEX runs_by_agent_status;
DROP INDEX runs_by_session;
DROP INDEX runs_by_parent;
DROP INDEX runs_ready;
DROP INDEX runs_by_deadline;
DROP INDEX runs_by_expiry;
DROP INDEX runs_by_lease;
DROP INDEX runs_by_end;

-- A queue is what a worker must offer to run the runs in it. A number is never used again.
CREATE TABLE queues (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    key     BLOB NOT NULL UNIQUE, -- 16 bytes
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    demands TEXT NOT NULL, -- a JSON object, or empty
    polled  INTEGER -- when a worker last looked for runs in it
) STRICT;

ALTER TABLE runs RENAME COLUMN agent TO name;
ALTER TABLE runs RENAME COLUMN deadline TO answer_by; -- of the first question without an answer
ALTER TABLE runs ADD COLUMN kind            TEXT    NOT NULL DEFAULT 'agent';
ALTER TABLE runs ADD COLUMN version         TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN queue           INTEGER NOT NULL DEFAULT 0; -- the id of a queue
ALTER TABLE runs ADD COLUMN priority        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN not_before      INTEGER;
ALTER TABLE runs ADD COLUMN start_by        INTEGER;
ALTER TABLE runs ADD COLUMN deadline        INTEGER; -- of the job
ALTER TABLE runs ADD COLUMN idempotency_key TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN blocked         INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN paused          INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN attempts        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN events          INTEGER NOT NULL DEFAULT 0; -- the number of the last event
ALTER TABLE runs ADD COLUMN signals         INTEGER NOT NULL DEFAULT 0; -- the number of the last signal
ALTER TABLE runs ADD COLUMN handled         INTEGER NOT NULL DEFAULT 0; -- the number of the last handled signal
ALTER TABLE runs ADD COLUMN offer_seq       INTEGER NOT NULL DEFAULT 0; -- how often the run has become ready
ALTER TABLE runs ADD COLUMN offered         INTEGER; -- when the newest offer may be made again: see offers.go

-- Inputs and results are apart from runs, so that the row that each step updates is small.
CREATE TABLE payloads (
    run    INTEGER PRIMARY KEY REFERENCES runs (n) ON DELETE CASCADE,
    input  BLOB,
    result BLOB
) STRICT;

CREATE TABLE events (
    run  INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    at   INTEGER,
    name TEXT    NOT NULL,
    data BLOB,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE signals (
    run  INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    kind TEXT    NOT NULL,
    text TEXT    NOT NULL,
    who  TEXT    NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE labels (
    run    INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    status TEXT    NOT NULL, -- of the run
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

-- A run that no process held and that was to be continued is ready; others keep what they are.
UPDATE runs SET
    attempts = epoch,
    offer_seq = CASE WHEN owner = '' AND (status = 'running' OR status = 'parked' AND ready IS NOT NULL) THEN 1 ELSE 0 END,
    ready = CASE WHEN owner = '' AND (status = 'running' OR status = 'parked' AND ready IS NOT NULL) THEN coalesce(ready, updated) END,
    blocked = CASE WHEN status = 'denied' THEN 1 ELSE 0 END,
    reason = CASE WHEN status = 'interrupted' THEN 'rejected' ELSE reason END,
    status = CASE
        WHEN owner = '' AND (status = 'running' OR status = 'parked' AND ready IS NOT NULL) THEN 'ready'
        WHEN status = 'parked' THEN 'waiting'
        WHEN status = 'done' THEN 'completed'
        WHEN status = 'denied' THEN 'failed'
        WHEN status = 'interrupted' THEN 'stopped'
        ELSE status
    END;

-- For lists. A list by kind, name or label alone reads one part of its index for each status.
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_kind ON runs (kind, status);
CREATE INDEX runs_by_name ON runs (name, status);
CREATE INDEX runs_by_session ON runs (session) WHERE session <> '';
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent <> '';
CREATE INDEX runs_by_block ON runs (blocked) WHERE blocked <> 0;
CREATE INDEX runs_by_creation ON runs (created);
CREATE INDEX labels_by_value ON labels (name, value, status, run);

-- For submissions and claims.
CREATE UNIQUE INDEX runs_by_key ON runs (idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX runs_by_queue ON runs (queue);
CREATE INDEX runs_ready ON runs (queue, priority DESC, ready) WHERE status = 'ready';
CREATE INDEX runs_owed ON runs (offered, ready) WHERE status = 'ready';

-- For leases, timers and the end of old runs.
CREATE INDEX runs_held ON runs (owner, expires, leased) WHERE owner <> '';
CREATE INDEX runs_overdue ON runs (answer_by) WHERE status = 'waiting' AND owner = '' AND paused = 0 AND answer_by IS NOT NULL;
CREATE INDEX runs_due ON runs (not_before) WHERE status = 'pending';
CREATE INDEX runs_late ON runs (deadline) WHERE deadline IS NOT NULL AND cancel_reason = ''
    AND status IN ('pending', 'ready', 'running', 'waiting');
CREATE INDEX runs_unstarted ON runs (start_by) WHERE start_by IS NOT NULL AND attempts = 0
    AND status IN ('pending', 'ready', 'running', 'waiting');
CREATE INDEX runs_by_end ON runs (updated) WHERE status NOT IN ('pending', 'ready', 'running', 'waiting');

-- The index by label contains the status, so that both together find a page at once.
CREATE TRIGGER labels_follow AFTER UPDATE OF status ON runs WHEN old.status <> new.status BEGIN
    UPDATE labels SET status = new.status WHERE run = new.n;
END;
