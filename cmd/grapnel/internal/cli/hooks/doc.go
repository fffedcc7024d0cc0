// Package hooks has the commands that check, list, try and explain hooks and policies: they open no store.
package hooks
