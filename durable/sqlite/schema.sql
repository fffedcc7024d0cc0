-- The schema of a store. Times are microseconds since 1970; NULL means none.

-- A queue holds the runs that a worker with the same offer can execute. IDs are never reused.
CREATE TABLE queues (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    key     BLOB NOT NULL UNIQUE, -- 16 bytes
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    demands TEXT NOT NULL, -- JSON; empty for none
    polled  INTEGER        -- when a worker last asked for runs
) STRICT;

CREATE TABLE runs (
    num             INTEGER PRIMARY KEY, -- in order of creation
    id              TEXT    NOT NULL UNIQUE,
    session         TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    version         TEXT    NOT NULL DEFAULT '',
    parent          TEXT    NOT NULL,
    root            TEXT    NOT NULL,
    after           TEXT    NOT NULL DEFAULT '', -- the run that must end before this one can start
    turn            TEXT    NOT NULL DEFAULT '', -- this column and the columns below, to trace, are the job's traits
    parent_session  TEXT    NOT NULL DEFAULT '',
    calls_back      INTEGER NOT NULL DEFAULT 0,
    request_key     TEXT    NOT NULL DEFAULT '',
    hook            TEXT    NOT NULL DEFAULT '',
    has_hooks       INTEGER NOT NULL DEFAULT 0,
    holds_result    INTEGER NOT NULL DEFAULT 0,
    trace           TEXT    NOT NULL DEFAULT '',
    queue           INTEGER NOT NULL DEFAULT 0, -- the ID in queues
    phase           TEXT    NOT NULL DEFAULT '', -- the kind of the runner that has the run, in place of kind
    demands         TEXT    NOT NULL DEFAULT '', -- the job's demands while the run has a phase; otherwise the queue has them
    labels          TEXT    NOT NULL DEFAULT '', -- JSON; empty for none; the table labels finds runs by them
    priority        INTEGER NOT NULL DEFAULT 0,
    idempotency_key TEXT    NOT NULL DEFAULT '',
    submitted_by    TEXT    NOT NULL DEFAULT '',
    not_before      INTEGER,
    start_by        INTEGER,
    deadline        INTEGER, -- of the job
    created         INTEGER NOT NULL,

    status          TEXT    NOT NULL,
    reason          TEXT    NOT NULL DEFAULT '',
    blocked         INTEGER NOT NULL DEFAULT 0,
    paused          INTEGER NOT NULL DEFAULT 0,
    cancel_reason   TEXT    NOT NULL DEFAULT '',
    cancel_cause    TEXT    NOT NULL DEFAULT '',
    steps           INTEGER NOT NULL DEFAULT 0,
    attempts        INTEGER NOT NULL DEFAULT 0,
    entries         INTEGER NOT NULL DEFAULT 0, -- the last entry's number
    events          INTEGER NOT NULL DEFAULT 0, -- the last event's number
    signals         INTEGER NOT NULL DEFAULT 0, -- the last signal's number
    handled         INTEGER NOT NULL DEFAULT 0, -- the last handled signal's number
    updated         INTEGER NOT NULL,
    ready           INTEGER, -- since when the run has been ready
    offer_seq       INTEGER NOT NULL DEFAULT 0, -- how often the run has become ready
    offered         INTEGER, -- when the newest offer may be repeated
    any_wait        INTEGER NOT NULL DEFAULT 0, -- 1: the run is ready when one of its waits has happened
    answer_by       INTEGER, -- the first deadline of its open waits
    appended        BLOB, -- the last commit's fingerprint

    owner           TEXT    NOT NULL, -- empty when no process holds the run
    epoch           INTEGER NOT NULL,
    leased          INTEGER, -- when the lease was granted or renewed
    expires         INTEGER
) STRICT;

-- For lists. A list by kind, name or phase alone reads one part of its index for each status.
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_kind ON runs (kind, status);
CREATE INDEX runs_by_name ON runs (name, status);
CREATE INDEX runs_by_phase ON runs (phase, status) WHERE phase <> '';
CREATE INDEX runs_by_session ON runs (session) WHERE session <> '';
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent <> '';
CREATE INDEX runs_by_parent_session ON runs (parent_session) WHERE parent_session <> '';
CREATE INDEX runs_by_turn ON runs (turn) WHERE turn <> '';
CREATE INDEX runs_by_hooks ON runs (has_hooks, status) WHERE has_hooks <> 0;
CREATE INDEX runs_by_block ON runs (blocked) WHERE blocked <> 0;
CREATE INDEX runs_by_creation ON runs (created);

-- For submissions and claims.
CREATE UNIQUE INDEX runs_by_key ON runs (idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX runs_by_queue ON runs (queue);
CREATE INDEX runs_ready ON runs (queue, priority DESC, ready) WHERE status = 'ready';
CREATE INDEX runs_owed ON runs (offered, ready) WHERE status = 'ready';

-- For leases, timers and the removal of old runs.
CREATE INDEX runs_held ON runs (owner, expires, leased) WHERE owner <> '';
CREATE INDEX runs_overdue ON runs (answer_by) WHERE status = 'waiting' AND owner = '' AND paused = 0 AND answer_by IS NOT NULL;
CREATE INDEX runs_due ON runs (not_before) WHERE status = 'pending';
CREATE INDEX runs_late ON runs (deadline) WHERE deadline IS NOT NULL AND cancel_cause = ''
    AND status IN ('pending', 'ready', 'running', 'waiting');
CREATE INDEX runs_unstarted ON runs (start_by) WHERE start_by IS NOT NULL AND attempts = 0
    AND status IN ('pending', 'ready', 'running', 'waiting');
CREATE INDEX runs_by_end ON runs (updated) WHERE status NOT IN ('pending', 'ready', 'running', 'waiting');

-- Inputs and results are apart from runs, so that the row that each step updates is small.
CREATE TABLE payloads (
    run       INTEGER PRIMARY KEY REFERENCES runs (num) ON DELETE CASCADE,
    input     BLOB,
    result    BLOB,
    submitted BLOB, -- the first input, if a phase replaced it
    replaced  INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The status in the index finds a page by label and status at once.
CREATE TABLE labels (
    run    INTEGER NOT NULL REFERENCES runs (num) ON DELETE CASCADE,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    status TEXT    NOT NULL, -- the run's status
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX labels_by_value ON labels (name, value, status, run);

CREATE TRIGGER labels_follow AFTER UPDATE OF status ON runs WHEN old.status <> new.status BEGIN
    UPDATE labels SET status = new.status WHERE run = new.num;
END;

CREATE TABLE entries (
    run  INTEGER NOT NULL REFERENCES runs (num) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    kind TEXT    NOT NULL,
    key  TEXT    NOT NULL,
    at   INTEGER,
    data BLOB,
    PRIMARY KEY (run, seq)
) STRICT;

CREATE TABLE events (
    run  INTEGER NOT NULL REFERENCES runs (num) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    at   INTEGER,
    name TEXT    NOT NULL,
    data BLOB,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE signals (
    run  INTEGER NOT NULL REFERENCES runs (num) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    kind TEXT    NOT NULL,
    text TEXT    NOT NULL,
    who  TEXT    NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
    num           INTEGER PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES runs (num) ON DELETE CASCADE,
    run_id        TEXT    NOT NULL, -- the run's ID
    place         INTEGER NOT NULL, -- in call order
    id            TEXT    NOT NULL, -- identifies what was asked
    kind          TEXT    NOT NULL,
    subject       TEXT    NOT NULL, -- the call
    tool          TEXT    NOT NULL,
    asked         INTEGER NOT NULL, -- -62135596800000000, the year 1, means none
    deadline      INTEGER,
    child         TEXT    NOT NULL,
    host          TEXT    NOT NULL,
    token         BLOB, -- the first token's SHA-256
    data          BLOB,
    checker       TEXT    NOT NULL DEFAULT '', -- the process that watches for the event; empty for none
    checked_until INTEGER, -- when the checker's claim ends
    partial       TEXT    NOT NULL DEFAULT '', -- the answers that did not decide, as JSON; empty for none
    answered      INTEGER, -- when it was decided; the columns below describe the deciding answer
    ends          INTEGER NOT NULL,
    who           TEXT    NOT NULL,
    answer        BLOB
) STRICT;

CREATE INDEX waits_by_run ON waits (run, place);
CREATE INDEX waits_by_child ON waits (child) WHERE child <> '';

-- For lists of open waits, and for checkers.
CREATE INDEX waits_open ON waits (asked) WHERE answered IS NULL;
CREATE INDEX waits_by_kind ON waits (kind, asked) WHERE answered IS NULL;
CREATE INDEX waits_by_deadline ON waits (deadline) WHERE answered IS NULL AND deadline IS NOT NULL;
CREATE INDEX waits_unwatched ON waits (kind, host, asked) WHERE answered IS NULL AND checker = '';
CREATE INDEX waits_watched ON waits (checker) WHERE answered IS NULL AND checker <> '';
CREATE INDEX waits_lapsed ON waits (checked_until) WHERE answered IS NULL AND checker <> '';

-- The tokens of waits, also of waits that their run has no more.
CREATE TABLE tokens (
    token   BLOB    NOT NULL PRIMARY KEY, -- the token's SHA-256
    run     INTEGER NOT NULL REFERENCES runs (num) ON DELETE CASCADE,
    wait    TEXT    NOT NULL, -- the wait's ID
    subject TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_by_run ON tokens (run);

-- Records stay when their run is deleted; their data does not. Numbers are never reused.
CREATE TABLE audit (
    num     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    run     TEXT    NOT NULL, -- the run's ID
    subject TEXT    NOT NULL,
    who     TEXT    NOT NULL,
    wait    TEXT    NOT NULL, -- this column and the columns below describe an answer
    about   TEXT    NOT NULL,
    more    INTEGER NOT NULL,
    ends    INTEGER NOT NULL,
    data    BLOB
) STRICT;

CREATE INDEX audit_by_run ON audit (run);
CREATE INDEX audit_by_subject ON audit (subject);
CREATE INDEX audit_by_kind ON audit (kind);

CREATE TRIGGER audit_forgets AFTER DELETE ON runs BEGIN
    UPDATE audit SET data = NULL WHERE run = old.id AND data IS NOT NULL;
END;

CREATE TABLE waivers (
    num        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    at         INTEGER,
    who        TEXT    NOT NULL,
    expires    INTEGER,
    revoked    INTEGER,
    revoked_by TEXT    NOT NULL DEFAULT '',
    data       BLOB
) STRICT;

-- Each row is one version of a document. Versions stay when the document is deleted.
CREATE TABLE documents (
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    newest  INTEGER NOT NULL, -- 1 for the newest version, unless the document was deleted
    at      INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    data    BLOB,
    PRIMARY KEY (kind, name, version)
) STRICT;

CREATE UNIQUE INDEX documents_newest ON documents (kind, name) WHERE newest;

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB
) STRICT, WITHOUT ROWID;
