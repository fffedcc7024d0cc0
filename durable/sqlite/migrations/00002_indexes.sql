-- What lists, looks for work and finds questions among millions of runs.

-- +goose Up
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_agent ON runs (agent);
CREATE INDEX runs_by_agent_status ON runs (agent, status);
CREATE INDEX runs_by_session ON runs (session);
CREATE INDEX runs_by_parent ON runs (parent);
CREATE INDEX runs_ready ON runs (ready) WHERE ready IS NOT NULL;
CREATE INDEX runs_by_deadline ON runs (deadline) WHERE status = 'parked' AND deadline IS NOT NULL;
CREATE INDEX runs_by_expiry ON runs (expires) WHERE status = 'running' AND owner <> '';
CREATE INDEX runs_by_lease ON runs (leased) WHERE status = 'running' AND owner <> '';
CREATE INDEX runs_by_end ON runs (updated) WHERE status NOT IN ('running', 'parked');
CREATE INDEX questions_by_token ON questions (token) WHERE token IS NOT NULL;
CREATE INDEX questions_by_child ON questions (child) WHERE child <> '';

-- +goose Down
DROP INDEX questions_by_child;
DROP INDEX questions_by_token;
DROP INDEX runs_by_end;
DROP INDEX runs_by_lease;
DROP INDEX runs_by_expiry;
DROP INDEX runs_by_deadline;
DROP INDEX runs_ready;
DROP INDEX runs_by_parent;
DROP INDEX runs_by_session;
DROP INDEX runs_by_agent_status;
DROP INDEX runs_by_agent;
DROP INDEX runs_by_status;
