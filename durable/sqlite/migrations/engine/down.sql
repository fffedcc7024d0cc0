-- Reverts up.sql. engine.go has checked that version 2 can hold all runs.

DROP TRIGGER labels_follow;
DROP TABLE labels;
DROP TABLE signals;
DROP TABLE events;
DROP TABLE payloads;
DROP TABLE queues;
DROP INDEX runs_by_status;
DROP INDEX runs_by_kind;
DROP INDEX runs_by_name;
DROP INDEX runs_by_session;
DROP INDEX runs_by_parent;
DROP INDEX runs_by_block;
DROP INDEX runs_by_creation;
DROP INDEX runs_by_key;
DROP INDEX runs_by_queue;
DROP INDEX runs_ready;
DROP INDEX runs_owed;
DROP INDEX runs_held;
DROP INDEX runs_overdue;
DROP INDEX runs_due;
DROP INDEX runs_late;
DROP INDEX runs_unstarted;
DROP INDEX runs_by_end;

-- Version 2 keeps in ready since when a process should take the run up. A ready run with an open question continues
-- the work that it had when it was parked.
UPDATE runs SET
    ready = CASE
        WHEN status IN ('pending', 'ready')
            OR status IN ('running', 'waiting') AND cancel_reason <> ''
            OR status = 'waiting' AND (
                NOT EXISTS (SELECT 1 FROM questions WHERE run = runs.n AND answered IS NULL)
                OR EXISTS (SELECT 1 FROM questions WHERE run = runs.n AND answered IS NOT NULL AND ends))
        THEN coalesce(ready, updated)
    END,
    status = CASE
        WHEN status = 'waiting' THEN 'parked'
        WHEN status IN ('pending', 'ready') AND EXISTS (SELECT 1 FROM questions WHERE run = runs.n) THEN 'parked'
        WHEN status IN ('pending', 'ready') THEN 'running'
        WHEN status = 'completed' THEN 'done'
        WHEN status = 'failed' AND blocked <> 0 THEN 'denied'
        WHEN status = 'stopped' AND reason = 'rejected' THEN 'interrupted'
        ELSE status
    END;

ALTER TABLE runs DROP COLUMN offered;
ALTER TABLE runs DROP COLUMN offer_seq;
ALTER TABLE runs DROP COLUMN handled;
ALTER TABLE runs DROP COLUMN signals;
ALTER TABLE runs DROP COLUMN events;
ALTER TABLE runs DROP COLUMN attempts;
ALTER TABLE runs DROP COLUMN paused;
ALTER TABLE runs DROP COLUMN blocked;
ALTER TABLE runs DROP COLUMN idempotency_key;
ALTER TABLE runs DROP COLUMN deadline;
ALTER TABLE runs DROP COLUMN start_by;
ALTER TABLE runs DROP COLUMN not_before;
ALTER TABLE runs DROP COLUMN priority;
ALTER TABLE runs DROP COLUMN queue;
ALTER TABLE runs DROP COLUMN version;
ALTER TABLE runs DROP COLUMN kind;
ALTER TABLE runs RENAME COLUMN answer_by TO deadline;
ALTER TABLE runs RENAME COLUMN name TO agent;

CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_agent ON runs (agent);
CREATE INDEX runs_by_agent_status ON runs (agent, status);
CREATE INDEX runs_by_session ON runs (session);
CREATE INDEX runs_by_parent ON runs (parent);
CREATE INDEX runs_ready ON runs (ready) WHERE ready IS NOT NULL;
CREATE INDEX runs_by_deadline ON runs (deadline) WHERE status = 'parked' AND deadline IS NOT NULL;
CREATE INDEX runs_by_expiry ON runs (expires) WHERE status = 'running' AND owner <> '';
CREATE INDEX runs_by_lease ON runs (leased) WHERE status = 'running' AND owner <> '';
CREATE INDEX runs_by_end ON runs (updated) WHERE status NOT IN ('running', 'parked');
