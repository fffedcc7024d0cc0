-- +goose Up

-- What finds runs and questions among millions, and nothing that is not there without it.

-- When somebody should take up a run: when there is something to do and nobody holds it.
ALTER TABLE runs ADD COLUMN due timestamptz
	GENERATED ALWAYS AS (CASE WHEN ready IS NOT NULL THEN greatest(ready, expires) END) STORED;
CREATE INDEX runs_due ON runs (due) WHERE due IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended) WHERE ended IS NOT NULL;

-- The lists, each in its order.
CREATE INDEX runs_status ON runs (status, num);
CREATE INDEX runs_agent ON runs (agent, num);
CREATE INDEX runs_session ON runs (session, num);
CREATE INDEX runs_parent ON runs (parent, num) WHERE parent <> '';

CREATE INDEX questions_run ON questions (run, place);
CREATE INDEX questions_token ON questions (token) WHERE token IS NOT NULL;
CREATE INDEX questions_child ON questions (child) WHERE child <> '';

-- +goose Down
DROP INDEX questions_child, questions_token, questions_run, runs_parent, runs_session, runs_agent, runs_status, runs_ended;
ALTER TABLE runs DROP COLUMN due;
