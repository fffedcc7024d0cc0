-- Reverts up.sql. waitsmigration.go has checked that version 3 can hold all waits. Answers that did not decide, audit
-- records, waivers and names of people are lost.

DROP TABLE encryption;
DROP TABLE tokens;
DROP TRIGGER audit_forgets;
DROP TABLE waivers;
DROP TABLE audit;

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

INSERT INTO questions (run, place, call, hash, tool, asked, deadline, child, token, data, answered, ends, answer)
    SELECT run, place, id, hash, tool, nullif(asked, -62135596800000000), deadline, child, token, data, answered, ends, answer FROM waits;
DROP TABLE waits;

CREATE INDEX questions_by_token ON questions (token) WHERE token IS NOT NULL;
CREATE INDEX questions_by_child ON questions (child) WHERE child <> '';

ALTER TABLE runs DROP COLUMN ended_by;
ALTER TABLE runs DROP COLUMN submitted_by;
ALTER TABLE runs DROP COLUMN any_wait;
