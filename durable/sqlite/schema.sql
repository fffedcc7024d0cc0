-- What the schema has beside its tables.

ALTER TABLE runs ADD leased INTEGER; -- when the lease was granted or renewed

-- For lists. A list by kind, name or phase alone reads one part of its index for each status.
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_kind ON runs (kind, status);
CREATE INDEX runs_by_name ON runs (name, status);
CREATE INDEX runs_by_phase ON runs (phase, status) WHERE phase <> '';
CREATE INDEX runs_by_session ON runs (session) WHERE session <> '';
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent <> '';
CREATE INDEX runs_by_parent_session ON runs (parent_session) WHERE parent_session <> '';
CREATE INDEX runs_by_retry ON runs (retry_of) WHERE retry_of <> '';
CREATE INDEX runs_by_turn ON runs (status) WHERE turn <> '';
CREATE INDEX runs_by_hooks ON runs (has_hooks, status) WHERE has_hooks <> 0;
CREATE INDEX runs_by_block ON runs (blocked) WHERE blocked <> 0;
CREATE INDEX runs_by_decision ON runs (num) WHERE decisions <> '';
CREATE INDEX runs_by_submitter ON runs (submitted_by, status) WHERE submitted_by <> '';
CREATE INDEX runs_by_creation ON runs (created);
CREATE INDEX labels_by_value ON labels (name, value, status, run);

-- For submissions and claims.
CREATE UNIQUE INDEX runs_by_key ON runs (idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX runs_by_queue ON runs (queue);
CREATE INDEX runs_ready ON runs (queue, priority DESC, ready) WHERE status = 'ready';
CREATE INDEX runs_owed ON runs (offered, ready) WHERE status = 'ready';

-- For leases, timers and the removal of old runs.
CREATE INDEX runs_held ON runs (owner, expires, leased) WHERE owner <> '';
CREATE INDEX runs_answer_by ON runs (answer_by) WHERE answer_by IS NOT NULL AND status = 'waiting' AND expires IS NULL AND NOT paused;
CREATE INDEX runs_not_before ON runs (not_before) WHERE status = 'pending';
CREATE INDEX runs_deadline ON runs (deadline) WHERE deadline IS NOT NULL AND ended IS NULL AND cancel_cause = '';
CREATE INDEX runs_start_by ON runs (start_by) WHERE start_by IS NOT NULL AND ended IS NULL AND attempts = 0;
CREATE INDEX runs_ended ON runs (ended) WHERE ended IS NOT NULL;
CREATE INDEX runs_idle ON runs (idle) WHERE idle IS NOT NULL; -- for runs that have changed

CREATE INDEX waits_by_run ON waits (run, place);
CREATE INDEX waits_by_child ON waits (child) WHERE child <> '';
CREATE INDEX tokens_by_run ON tokens (run);

-- For lists of open waits, and for checkers.
CREATE INDEX waits_open ON waits (asked) WHERE answered IS NULL;
CREATE INDEX waits_by_kind ON waits (kind, asked) WHERE answered IS NULL;
CREATE INDEX waits_by_deadline ON waits (deadline) WHERE answered IS NULL AND deadline IS NOT NULL;
CREATE INDEX waits_unwatched ON waits (kind, host, asked) WHERE answered IS NULL AND checker = '';
CREATE INDEX waits_watched ON waits (checker) WHERE answered IS NULL AND checker <> '';
CREATE INDEX waits_lapsed ON waits (checked_until) WHERE answered IS NULL AND checker <> '';

CREATE INDEX audit_by_run ON audit (run);
CREATE INDEX audit_by_subject ON audit (subject);
CREATE INDEX audit_by_kind ON audit (kind);

CREATE TRIGGER labels_follow AFTER UPDATE OF status ON runs WHEN old.status <> new.status BEGIN
    UPDATE labels SET status = new.status WHERE run = new.num;
END;

CREATE TRIGGER audit_forgets AFTER DELETE ON runs BEGIN
    UPDATE audit SET data = NULL WHERE run = old.id AND data IS NOT NULL;
END;
