// Package jail runs shell lines in tests, such as attacks that policies must stop, in an environment where they can
// do no harm.
//
//	func TestMain(m *testing.M) { jail.Main(m) }
//
//	func TestAttack(t *testing.T) {
//		lines := []string{"rm a", "cat secret"}
//		for i, o := range jail.Run(t, jail.Cell{Files: map[string]string{"home/a": "one\n", "secret": "s"}}, lines) {
//			assert.False(t, o.Changed, lines[i])
//		}
//	}
//
// Each line starts in a fresh folder. The lines that are passed to Run run one after the other in one process with its
// own namespaces: without a network except a loopback, without the machine's processes, with its folders read-only and
// its home folders and devices hidden, as an unprivileged user. On a machine that cannot create such namespaces, the
// test is skipped: see package parts.
package jail

import "time"

// Cell is the environment in which lines start.
type Cell struct {
	// Top is an existing folder; the lines see Files below its path. Nothing in it changes: the jail mounts its own
	// folder there.
	Top string
	// Files maps paths below Top to file contents. A name that ends in a slash is an empty folder. Lines start in
	// Top/home, which is their HOME.
	Files map[string]string
	// Links maps paths below Top to targets of symbolic links.
	Links map[string]string
	// Setup is shell code that runs once in Top/home, after the files were created. Each line sees its results.
	Setup string
	// Hosts lists names of machines that a line may try to reach. The jail resolves them to an address at which it
	// records connections.
	Hosts []string
	// Limit is the maximum duration of a line; zero means five seconds. Effects of a line that exceeds it are
	// recorded, too.
	Limit time.Duration
}

// Outcome describes the effects of a line.
type Outcome struct {
	// Output is the standard output and standard error, at most 64 KiB.
	Output string
	// Changed reports whether the line changed a file in Top outside of Top/home.
	Changed bool
	// Made holds the files in Top/home that the line created or changed, with at most 64 KiB of content each.
	Made map[string]string
	// Reached lists the ports of Hosts to which the line connected: the ports of FTP, SSH, Telnet, SMTP, HTTP, HTTPS,
	// rsync and git, 4444 and 8080.
	Reached []int
}

// ports lists the ports on which the jail records connections to the cell's hosts.
var ports = []int{21, 22, 23, 25, 80, 443, 873, 4444, 8080, 9418}
