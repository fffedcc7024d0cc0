// Package pipeline has the commands about pipelines, which have their own sessions, locks and views.
package pipeline
