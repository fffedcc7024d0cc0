-- Version 5: phases of runs, runs that start after others, and documents. 00005 is a Go migration, because the way back may be
-- refused: see phasesmigration.go.

ALTER TABLE runs ADD COLUMN phase   TEXT NOT NULL DEFAULT ''; -- the kind of the runner that has the run, in place of kind
ALTER TABLE runs ADD COLUMN demands TEXT NOT NULL DEFAULT ''; -- of the job, while the run has a phase; otherwise its queue has them

ALTER TABLE payloads ADD COLUMN submitted BLOB; -- the first input, if it was replaced
ALTER TABLE payloads ADD COLUMN replaced  INTEGER NOT NULL DEFAULT 0;

-- Each row is a version of a document. Versions stay when the document is deleted.
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

CREATE UNIQUE INDEX documents_newest ON documents (kind, name) WHERE newest = 1;
