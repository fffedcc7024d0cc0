-- The schema of a store. Text that PostgreSQL cannot hold is stored as \x and hexadecimal digits: see text.go.

-- A queue holds the runs that a worker with the same offer can execute.
CREATE TABLE queues (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key     bytea NOT NULL UNIQUE,
	kind    text COLLATE "C" NOT NULL,
	name    text COLLATE "C" NOT NULL,
	demands text NOT NULL, -- JSON; empty for none
	polled  timestamptz    -- when a worker last asked for runs, to some seconds
);

CREATE TABLE runs (
	num             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in order of creation, for lists
	id              text COLLATE "C" NOT NULL UNIQUE,
	session         text COLLATE "C" NOT NULL,
	kind            text COLLATE "C" NOT NULL,
	name            text COLLATE "C" NOT NULL,
	version         text NOT NULL DEFAULT '',
	parent          text COLLATE "C" NOT NULL,
	root            text COLLATE "C" NOT NULL,
	after           text COLLATE "C" NOT NULL DEFAULT '', -- the run that must end before this one can start
	turn            text COLLATE "C" NOT NULL DEFAULT '', -- this column and the columns below, to trace, are the job's traits
	parent_session  text COLLATE "C" NOT NULL DEFAULT '',
	calls_back      boolean NOT NULL DEFAULT false,
	request_key     text COLLATE "C" NOT NULL DEFAULT '',
	hook            text NOT NULL DEFAULT '',
	has_hooks       boolean NOT NULL DEFAULT false,
	holds_result    boolean NOT NULL DEFAULT false,
	trace           text NOT NULL DEFAULT '',
	queue           bigint NOT NULL REFERENCES queues,
	phase           text COLLATE "C" NOT NULL DEFAULT '', -- the kind of the runner that has the run, in place of kind
	demands         text NOT NULL DEFAULT '', -- the job's demands while the run has a phase; otherwise the queue has them
	labels          text NOT NULL DEFAULT '', -- JSON; empty for none; the table labels finds runs by them
	priority        smallint NOT NULL DEFAULT 0,
	idempotency_key text COLLATE "C" NOT NULL DEFAULT '',
	submitted_by    text NOT NULL DEFAULT '',
	not_before      timestamptz,
	start_by        timestamptz,
	deadline        timestamptz, -- of the job
	created         timestamptz NOT NULL DEFAULT now(),

	status          text COLLATE "C" NOT NULL,
	reason          text NOT NULL,
	blocked         boolean NOT NULL DEFAULT false,
	paused          boolean NOT NULL DEFAULT false,
	cancel_reason   text NOT NULL DEFAULT '',
	cancel_cause    text COLLATE "C" NOT NULL DEFAULT '',
	steps           bigint NOT NULL,
	attempts        bigint NOT NULL DEFAULT 0,
	entries         bigint NOT NULL DEFAULT 0, -- the last entry's number
	events          bigint NOT NULL DEFAULT 0, -- the last event's number
	signals         bigint NOT NULL DEFAULT 0, -- the last signal's number
	handled         bigint NOT NULL DEFAULT 0, -- the last handled signal's number
	appended        bytea, -- the last commit's fingerprint
	updated         timestamptz NOT NULL DEFAULT now(),
	ended           timestamptz, -- null while the run has not ended
	ready           timestamptz, -- since when the run has been ready; null while it is not
	offer_seq       bigint NOT NULL DEFAULT 0, -- how often the run has become ready
	offered         timestamptz, -- when the newest offer may be repeated: see queues.go; null while it is owed
	any_wait        boolean NOT NULL DEFAULT false, -- the run is ready when one of its waits has happened
	answer_by       timestamptz, -- the first deadline of its open waits

	owner           text NOT NULL,
	epoch           bigint NOT NULL,
	expires         timestamptz -- null when no process has a lease
) WITH (fillfactor = 80); -- a step changes no index, if its page has room for the new row

-- For lists, each in its order.
CREATE INDEX runs_status ON runs (status, num);
CREATE INDEX runs_kind ON runs (kind, status, num);
CREATE INDEX runs_name ON runs (name, status, num);
CREATE INDEX runs_phase ON runs (phase, status, num) WHERE phase <> '';
CREATE INDEX runs_session ON runs (session, num);
CREATE INDEX runs_parent ON runs (parent, num) WHERE parent <> '';
CREATE INDEX runs_parent_session ON runs (parent_session, num) WHERE parent_session <> '';
CREATE INDEX runs_turn ON runs (turn, status, num) WHERE turn <> '';
CREATE INDEX runs_hooks ON runs (status, num) WHERE has_hooks;
CREATE INDEX runs_blocked ON runs (num) WHERE blocked;
CREATE INDEX runs_created ON runs (created, num);

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

-- Large values, which a step and a list do not touch.
CREATE TABLE payloads (
	run       bigint PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
	input     bytea,
	result    bytea,
	submitted bytea, -- the first input, if a phase replaced it
	replaced  boolean NOT NULL DEFAULT false
);

-- The labels of runs, with the run's status, so that a list by label and status reads one index.
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

CREATE TABLE entries (
	run  bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	seq  bigint NOT NULL,
	kind text NOT NULL,
	key  text NOT NULL,
	at   timestamptz,
	data bytea,
	PRIMARY KEY (run, seq)
);

CREATE TABLE events (
	run  bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	seq  bigint NOT NULL,
	at   timestamptz,
	name text NOT NULL,
	data bytea,
	PRIMARY KEY (run, seq)
);

CREATE TABLE signals (
	run  bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	seq  bigint NOT NULL,
	kind text NOT NULL,
	text text NOT NULL,
	who  text NOT NULL,
	at   timestamptz NOT NULL,
	PRIMARY KEY (run, seq)
);

CREATE TABLE waits (
	num           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run           bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	run_id        text COLLATE "C" NOT NULL, -- the run's ID, for the order of OpenWaits
	place         bigint NOT NULL, -- in call order
	id            text COLLATE "C" NOT NULL, -- identifies what was asked
	kind          text COLLATE "C" NOT NULL,
	subject       text NOT NULL, -- the call
	tool          text NOT NULL,
	asked         timestamptz NOT NULL,
	deadline      timestamptz,
	child         text COLLATE "C" NOT NULL,
	host          text COLLATE "C" NOT NULL DEFAULT '',
	token         bytea, -- the token's SHA-256
	data          bytea,
	checker       text COLLATE "C" NOT NULL DEFAULT '', -- the process that watches for the event; empty for none
	checked_until timestamptz, -- when the checker's claim ends
	partial       text NOT NULL DEFAULT '', -- the answers that did not decide, as JSON; empty for none
	answered      timestamptz, -- when it was decided; the columns below describe the deciding answer
	ends          boolean NOT NULL,
	who           text NOT NULL DEFAULT '',
	answer        bytea
);
CREATE INDEX waits_run ON waits (run, place);
CREATE INDEX waits_child ON waits (child) WHERE child <> '';

-- For lists of open waits, each in its order. A wait's ID may be too long for an index.
CREATE INDEX waits_open ON waits (asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_kind ON waits (kind, asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_deadline ON waits (deadline) WHERE answered IS NULL AND deadline IS NOT NULL;

-- For ClaimChecks: the waits of one checker or of none, and those with a lapsed claim.
CREATE INDEX waits_checker ON waits (checker, kind, host, asked, run_id) WHERE answered IS NULL;
CREATE INDEX waits_checked_until ON waits (kind, host, checked_until) WHERE answered IS NULL AND checked_until IS NOT NULL;

-- The tokens of waits, also of waits that their run has no more.
CREATE TABLE tokens (
	token   bytea PRIMARY KEY, -- the token's SHA-256
	run     bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
	wait    text COLLATE "C" NOT NULL, -- the wait's ID
	subject text NOT NULL
);
CREATE INDEX tokens_run ON tokens (run);

-- Who decided what. A record outlives its run; its data does not.
CREATE TABLE audit (
	num     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at      timestamptz NOT NULL,
	kind    text COLLATE "C" NOT NULL,
	run     text COLLATE "C" NOT NULL, -- the run's ID
	subject text COLLATE "C" NOT NULL,
	who     text NOT NULL,
	wait    text NOT NULL, -- this column and the columns below describe an answer
	about   text NOT NULL,
	more    boolean NOT NULL,
	ends    boolean NOT NULL,
	data    bytea
);
CREATE INDEX audit_run ON audit (run, num) WHERE run <> '';
CREATE INDEX audit_subject ON audit (left(subject, 200), num); -- a model chooses the name of a tool
CREATE INDEX audit_kind ON audit (kind, num) WHERE kind <> 'answer'; -- nearly all records are answers

CREATE FUNCTION clear_audit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	UPDATE audit a SET data = NULL FROM gone WHERE a.run = gone.id AND a.run <> '' AND a.data IS NOT NULL;
	RETURN NULL;
END
$$;
CREATE TRIGGER clear_audit AFTER DELETE ON runs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION clear_audit();

CREATE TABLE waivers (
	id         text COLLATE "C" PRIMARY KEY,
	at         timestamptz, -- when it was created
	who        text NOT NULL,
	expires    timestamptz,
	revoked    timestamptz, -- null while it is in force
	revoked_by text NOT NULL DEFAULT '',
	data       bytea
);
CREATE INDEX waivers_expires ON waivers (expires) WHERE revoked IS NULL;

-- Each row is one version of a document. Versions stay when the document is deleted.
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

CREATE TABLE settings (
	name  text PRIMARY KEY,
	value bytea
);

-- Open compares the digest of these statements.
CREATE TABLE schema_digest (
	digest text NOT NULL
);
