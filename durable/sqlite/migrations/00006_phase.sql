-- Version 6: lists of the runs in a phase.

-- +goose Up
CREATE INDEX runs_by_phase ON runs (phase, status) WHERE phase <> '';

-- +goose Down
DROP INDEX runs_by_phase;
