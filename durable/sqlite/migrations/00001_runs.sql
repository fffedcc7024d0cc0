-- Times are microseconds since 1970; NULL is none.

-- +goose Up
CREATE TABLE runs (
    n             INTEGER PRIMARY KEY, -- the order in which runs were made
    id            TEXT    NOT NULL UNIQUE,
    session       TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    parent        TEXT    NOT NULL,
    root          TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    reason        TEXT    NOT NULL DEFAULT '',
    steps         INTEGER NOT NULL DEFAULT 0,
    entries       INTEGER NOT NULL DEFAULT 0,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    deadline      INTEGER, -- of the first question without an answer
    cancel_reason TEXT    NOT NULL DEFAULT '',
    owner         TEXT    NOT NULL,
    epoch         INTEGER NOT NULL,
    leased        INTEGER, -- when the lease was given or renewed
    expires       INTEGER,
    ready         INTEGER  -- since when somebody should take the run up, whatever the clock says
) STRICT;

CREATE TABLE entries (
    run  INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    kind TEXT    NOT NULL,
    key  TEXT    NOT NULL,
    at   INTEGER,
    data BLOB,
    PRIMARY KEY (run, seq)
) STRICT;

CREATE TABLE questions (
    run      INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    place    INTEGER NOT NULL, -- in call order
    call     TEXT    NOT NULL,
    hash     TEXT    NOT NULL,
    tool     TEXT    NOT NULL,
    asked    INTEGER,
    deadline INTEGER,
    child    TEXT    NOT NULL,
    token    BLOB, -- SHA-256 of the token
    data     BLOB,
    answered INTEGER,
    ends     INTEGER NOT NULL DEFAULT 0,
    answer   BLOB,
    PRIMARY KEY (run, place)
) STRICT;

CREATE TABLE deny_tools (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    is_on  INTEGER NOT NULL,
    reason TEXT    NOT NULL,
    who    TEXT    NOT NULL,
    since  INTEGER
) STRICT;

-- +goose Down
DROP TABLE deny_tools;
DROP TABLE questions;
DROP TABLE entries;
DROP TABLE runs;
