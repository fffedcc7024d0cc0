-- What the schema has beside its tables. Text that PostgreSQL cannot hold is stored as \x and hexadecimal digits: see values.go.

ALTER TABLE runs SET (fillfactor = 80); -- a step changes no index, if its page has room for the new row

-- For lists, each in its order.
CREATE INDEX runs_status ON runs (status, num);
CREATE INDEX runs_kind ON runs (kind, status, num);
CREATE INDEX runs_name ON runs (name, status, num);
CREATE INDEX runs_phase ON runs (phase, status, num) WHERE phase <> '';
CREATE INDEX runs_session ON runs (session, num);
CREATE INDEX runs_parent ON runs (parent, num) WHERE parent <> '';
CREATE INDEX runs_parent_session ON runs (parent_session, num) WHERE parent_session <> '';
CREATE INDEX runs_retry_of ON runs (retry_of, num) WHERE retry_of <> '';
CREATE INDEX runs_turn ON runs (status, num) WHERE turn <> '';
CREATE INDEX runs_hooks ON runs (status, num) WHERE has_hooks;
CREATE INDEX runs_blocked ON runs (num) WHERE blocked;
CREATE INDEX runs_decided ON runs (num) WHERE decisions <> '';
CREATE INDEX runs_submitted_by ON runs (submitted_by, status, num) WHERE submitted_by <> '';
CREATE INDEX runs_created ON runs (created, num);
CREATE INDEX labels_value ON labels (name, value, status, run);

-- For submissions and claims: workers claim the runs of a queue in this order.
CREATE UNIQUE INDEX runs_idempotency_key ON runs (idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX runs_queue ON runs (queue, status, priority DESC, ready, num);
CREATE INDEX runs_ready ON runs (priority DESC, ready, num) WHERE ready IS NOT NULL; -- of all queues
CREATE INDEX runs_owner ON runs (owner) WHERE owner <> '';

-- For Reconcile, Owed and Prune.
CREATE INDEX runs_expires ON runs (expires) WHERE expires IS NOT NULL;
CREATE INDEX runs_answer_by ON runs (answer_by) WHERE answer_by IS NOT NULL AND status = 'waiting' AND expires IS NULL AND NOT paused;
CREATE INDEX runs_not_before ON runs (not_before) WHERE status = 'pending';
CREATE INDEX runs_deadline ON runs (deadline) WHERE deadline IS NOT NULL AND ended IS NULL AND cancel_cause = '';
CREATE INDEX runs_start_by ON runs (start_by) WHERE start_by IS NOT NULL AND ended IS NULL AND attempts = 0;
CREATE INDEX runs_owed ON runs (ready, num) WHERE status = 'ready' AND offered IS NULL;
CREATE INDEX runs_offered ON runs (offered) WHERE status = 'ready' AND offered IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended) WHERE ended IS NOT NULL;
CREATE INDEX runs_idle ON runs (idle) WHERE idle IS NOT NULL; -- for runs that have changed

CREATE INDEX waits_run ON waits (run, place);
CREATE INDEX waits_child ON waits (child) WHERE child <> '';
CREATE INDEX tokens_run ON tokens (run);

-- For lists of open waits, each in its order. A wait's ID may be too long for an index.
CREATE INDEX waits_open ON waits (asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_kind ON waits (kind, asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_deadline ON waits (deadline) WHERE answered IS NULL AND deadline IS NOT NULL;

-- For ClaimChecks: the waits of one checker or of none, and those with a lapsed claim.
CREATE INDEX waits_checker ON waits (checker, kind, host, asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_checked_until ON waits (kind, host, checked_until) WHERE answered IS NULL AND checked_until IS NOT NULL;

CREATE INDEX audit_run ON audit (run, num) WHERE run <> '';
CREATE INDEX audit_subject ON audit (left(subject, 200), num); -- a model chooses the name of a tool
CREATE INDEX audit_kind ON audit (kind, num) WHERE kind <> 'answer'; -- nearly all records are answers

CREATE FUNCTION copy_status() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	UPDATE labels SET status = NEW.status WHERE run = NEW.num;
	RETURN NULL;
END
$$;
CREATE TRIGGER copy_status AFTER UPDATE OF status ON runs FOR EACH ROW
	WHEN (NEW.labels <> '' AND NEW.status <> OLD.status) EXECUTE FUNCTION copy_status();

CREATE FUNCTION clear_audit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	UPDATE audit a SET data = NULL FROM gone WHERE a.run = gone.id AND a.run <> '' AND a.data IS NOT NULL;
	RETURN NULL;
END
$$;
CREATE TRIGGER clear_audit AFTER DELETE ON runs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION clear_audit();

-- Open compares the digest of these statements.
CREATE TABLE schema_digest (
	digest text NOT NULL
);
