// Package worker executes ready runs until it is stopped, for "grapnel runs work", for services and for pipelines.
package worker
