// Package jail runs shell lines of tests, such as attacks that policies must stop, in an environment where they can
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
// Each line starts in a folder that no other line has touched. All lines of a call run one after the other in
// one process with its own namespaces: without a network except a loopback, without the processes of the
// machine, with its folders read-only and its home folders and devices hidden, as an unprivileged user. A
// test on a machine that cannot create such namespaces is skipped, see package parts.
package jail

import "time"

// Cell is the environment in which lines start.
type Cell struct {
	// Top is an existing folder, under whose path the lines see Files. Nothing in it changes: the jail
	// mounts its own folder there.
	Top string
	// Files are the contents of files by their path below Top. A name that ends in a slash is an empty
	// folder. Lines start in Top/home, which is their HOME.
	Files map[string]string
	// Links are the targets of symbolic links by their path below Top.
	Links map[string]string
	// Setup is shell text that runs once in Top/home, after the files were created. Each line sees its
	// results.
	Setup string
	// Hosts are names of machines that a line may try to reach. In the jail they have an address at which
	// connections are recorded.
	Hosts []string
	// Limit is the maximum duration of a line. Zero means five seconds. The effects until then count.
	Limit time.Duration
}

// Outcome describes the effects of a line.
type Outcome struct {
	// Output is the standard output and standard error, at most 64 KiB.
	Output string
	// Changed reports whether the line changed a file of Top outside of Top/home.
	Changed bool
	// Made are the files of Top/home that the line created or changed, with their contents, at most 64 KiB
	// each.
	Made map[string]string
	// Reached are the ports of Hosts to which the line made a connection: of FTP, SSH, Telnet, SMTP, HTTP, HTTPS, rsync and git, 4444
	// and 8080.
	Reached []int
}

// ports are the ports on which the jail records connections to the hosts of a cell.
var ports = []int{21, 22, 23, 25, 80, 443, 873, 4444, 8080, 9418}
