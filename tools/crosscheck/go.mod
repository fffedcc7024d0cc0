// A module of its own keeps golang.org/x/tools out of the users' direct requirements.
module github.com/grapnel-go/grapnel/tools/crosscheck

go 1.26.0

require (
	golang.org/x/sync v0.24.0
	golang.org/x/tools v0.52.0
)

require golang.org/x/mod v0.42.0 // indirect
