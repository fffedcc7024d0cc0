-- Reverts up.sql. phasesmigration.go has checked that version 4 can hold all runs, and that no document is in use. The first
-- inputs of runs that were replaced, and the versions of deleted documents, are lost.

DROP TABLE documents;
DELETE FROM waits WHERE id = 'after' AND hash = 'after' AND kind = 'child';
ALTER TABLE payloads DROP COLUMN replaced;
ALTER TABLE payloads DROP COLUMN submitted;
ALTER TABLE runs DROP COLUMN demands;
ALTER TABLE runs DROP COLUMN phase;
