// Package jail runs shell lines of tests where they can harm nothing: attacks that policies are to stop.
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
// Each line starts in a folder that no other line has touched. All lines of a call run one after the other in one process
// with namespaces of its own: without a network but a loopback, without the processes of the machine, with its folders
// read-only and its home folders and devices hidden, as a user without rights. A test on a machine that cannot make such
// namespaces skips, see package parts.
package jail

import "time"

// Cell is what lines find when they start.
type Cell struct {
	// Top is an existing folder, under whose path the lines see Files. Nothing in it is changed: the jail has a folder of
	// its own there.
	Top string
	// Files are the texts of files by their path below Top. A name that ends in a slash is an empty folder. Lines start
	// in Top/home, which is their HOME.
	Files map[string]string
	// Links are the targets of symbolic links by their path below Top.
	Links map[string]string
	// Setup is shell text that runs once in Top/home, when the files are there. What it makes there is there for each line.
	Setup string
	// Hosts are names of machines that a line may try to reach. In the jail they stand for an address that notices it.
	Hosts []string
	// Limit is how long a line may run. Zero is five seconds. What a line did until then counts.
	Limit time.Duration
}

// Outcome is what a line did.
type Outcome struct {
	// Output is what it wrote to standard output and standard error, at most 64 KiB.
	Output string
	// Changed reports whether a file of Top outside of Top/home is another than before.
	Changed bool
	// Made are the files of Top/home that the line made or changed, with their texts, at most 64 KiB each.
	Made map[string]string
	// Reached are the ports of Hosts to which the line made a connection: of FTP, SSH, Telnet, SMTP, HTTP, HTTPS, rsync and git, 4444
	// and 8080.
	Reached []int
}

// ports are those on which the jail notices connections to the hosts of a cell.
var ports = []int{21, 22, 23, 25, 80, 443, 873, 4444, 8080, 9418}
