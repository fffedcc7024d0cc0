-- Version 4: waits of every kind, who submitted a run, the audit log and waivers. 00004 is a Go migration, because the way
-- back may be refused: see waitsmigration.go.

ALTER TABLE runs ADD COLUMN any_wait     INTEGER NOT NULL DEFAULT 0; -- the run is ready when one of its waits has happened
ALTER TABLE runs ADD COLUMN submitted_by TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN ended_by     BLOB; -- the fingerprint of the commit that ended the run

CREATE TABLE waits (
    run           INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    place         INTEGER NOT NULL, -- in call order
    id            TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    hash          TEXT    NOT NULL,
    tool          TEXT    NOT NULL,
    asked         INTEGER NOT NULL, -- -62135596800000000, the year 1, for none
    deadline      INTEGER,
    child         TEXT    NOT NULL,
    host          TEXT    NOT NULL,
    token         BLOB, -- SHA-256 of the token
    data          BLOB,
    checker       TEXT    NOT NULL, -- who watches for it; empty for none
    checked_until INTEGER, -- when the claim of the checker ends
    partial       TEXT    NOT NULL, -- the answers that did not decide, as a JSON list, or empty
    answered      INTEGER, -- when it was decided; the columns that follow are of the answer that did
    ends          INTEGER NOT NULL,
    who           TEXT    NOT NULL,
    answer        BLOB,
    PRIMARY KEY (run, place)
) STRICT;

INSERT INTO waits (run, place, id, kind, hash, tool, asked, deadline, child, host, token, data, checker, partial, answered, ends, who, answer)
    SELECT run, place, call, iif(child <> '', 'child', 'approval'), hash, tool, ifnull(asked, -62135596800000000), deadline, child, '', token,
        data, '', '', answered, ends, '', answer FROM questions;
DROP TABLE questions;

CREATE INDEX waits_by_token ON waits (token) WHERE token IS NOT NULL;
CREATE INDEX waits_by_child ON waits (child) WHERE child <> '';
-- For lists of open waits, and for those who watch.
CREATE INDEX waits_open ON waits (asked) WHERE answered IS NULL;
CREATE INDEX waits_by_kind ON waits (kind, asked) WHERE answered IS NULL;
CREATE INDEX waits_by_deadline ON waits (deadline) WHERE answered IS NULL AND deadline IS NOT NULL;
CREATE INDEX waits_unwatched ON waits (kind, host, asked) WHERE answered IS NULL AND checker = '';
CREATE INDEX waits_watched ON waits (checker) WHERE answered IS NULL AND checker <> '';
CREATE INDEX waits_lapsed ON waits (checked_until) WHERE answered IS NULL AND checker <> '';

-- Tokens of waits beside those in waits: further ones, and those of waits that the run does not have any more.
CREATE TABLE tokens (
    token BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
    run   INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    wait  TEXT    NOT NULL, -- the id
    hash  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_by_run ON tokens (run);

-- The ID of the key with which data was last encrypted: see durable.Encrypt. The mark of encrypted data is before the ID in it.
CREATE TABLE encryption (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    key_id TEXT NOT NULL
) STRICT;

INSERT INTO encryption (only, key_id)
    SELECT 1, lower(hex(substr(data, 5, 8))) FROM (SELECT data FROM entries ORDER BY run DESC, seq DESC LIMIT 1) WHERE substr(data, 1, 4) = x'00676b31';

-- Records stay when their run is deleted. A number is never used again.
CREATE TABLE audit (
    n       INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    run     TEXT    NOT NULL, -- the id
    subject TEXT    NOT NULL,
    who     TEXT    NOT NULL,
    wait    TEXT    NOT NULL, -- this and the columns that follow are of an answer
    hash    TEXT    NOT NULL,
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
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    at         INTEGER,
    who        TEXT    NOT NULL,
    expires    INTEGER,
    revoked    INTEGER,
    revoked_by TEXT    NOT NULL DEFAULT '',
    data       BLOB
) STRICT;
