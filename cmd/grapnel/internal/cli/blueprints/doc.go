// Package blueprints has the commands about blueprints, and their files, which pipelines are stored as, too.
package blueprints
