-- +goose Up

-- Lists of the runs in a phase.
CREATE INDEX runs_phase ON runs (phase, status, num) WHERE phase <> '';

-- +goose Down
DROP INDEX runs_phase;
