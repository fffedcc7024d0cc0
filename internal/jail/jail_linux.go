package jail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/grapnel-go/grapnel/internal/parts"
)

const (
	inside  = "GRAPNEL_JAIL" // set in the process that runs the lines
	address = "127.66.66.66" // the address of all Hosts
	nobody  = 65534
	most    = 64 << 10 // maximum size in bytes of an output or a file in an Outcome
)

// errNoJail begins the report of a process that could not create its jail.
const errNoJail = "no jail: "

type request struct {
	Bash  string
	Cell  Cell
	Lines []string
}

// Main runs a binary's tests or, in the jail, the lines of [Run].
func Main(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(m.Run())
	}
	if err := serveLines(); err != nil {
		fmt.Fprint(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run runs each line with bash and returns the outcomes in order. It skips the test on a machine that cannot create a
// jail.
func Run(t testing.TB, c Cell, lines []string) []Outcome {
	t.Helper()
	bash := parts.Command(t, "bash", "install bash")
	in, err := json.Marshal(request{bash, c, lines})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{inside + "=1"}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(in)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 { // otherwise root's files would belong to the jail
		uid, gid = nobody, nobody
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}},
		Credential:  &syscall.Credential{NoSetGroups: true}, Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		parts.Missing(t, "attack lines run in namespaces, which this machine does not support: "+err.Error())
	}
	err = cmd.Wait()
	if reason, found := strings.CutPrefix(failed.String(), errNoJail); found {
		parts.Missing(t, "attack lines run in namespaces, which this machine does not support: "+reason)
	}
	require.NoError(t, err, failed.String())
	var outcomes []Outcome
	require.NoError(t, json.Unmarshal(out.Bytes(), &outcomes))
	require.Len(t, outcomes, len(lines))
	return outcomes
}

// serveLines runs as the first process in the namespaces.
func serveLines() error {
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return err
	}
	if err := hideMachine(r.Cell); err != nil {
		return fmt.Errorf("%s%w", errNoJail, err)
	}
	w, err := watchHosts()
	if err != nil {
		return fmt.Errorf("%s%w", errNoJail, err)
	}
	blank, err := makeFiles(r)
	if err != nil {
		return err
	}
	outcomes := make([]Outcome, len(r.Lines))
	for i, line := range r.Lines {
		if outcomes[i], err = tryLine(r, blank, w, line); err != nil {
			return fmt.Errorf("line %d: %w", i, err)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(outcomes)
}

// hideMachine protects the machine: its folders become read-only, and home, device and socket folders are hidden.
func hideMachine(c Cell) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	devices := map[string]string{}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		devices[name] = "/dev/" + name
	}
	const room = "/tmp"
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make the machine's folders read-only: %w", err)
	}
	if err := unix.Mount("none", room, "tmpfs", 0, "size=200m"); err != nil {
		return fmt.Errorf("mount a folder in memory: %w", err)
	}
	dev := filepath.Join(room, "dev")
	if err := os.Mkdir(dev, 0o755); err != nil { //nolint:gosec // like /dev
		return err
	}
	for name, path := range devices {
		here := filepath.Join(dev, name)
		if err := errors.Join(os.WriteFile(here, nil, 0o600), unix.Mount(path, here, "", unix.MS_BIND, "")); err != nil {
			return fmt.Errorf("bind %s: %w", path, err)
		}
	}
	if err := errors.Join(os.Symlink("/proc/self/fd", dev+"/fd"), os.Symlink("/proc/self/fd/0", dev+"/stdin"),
		os.Symlink("/proc/self/fd/1", dev+"/stdout"), os.Symlink("/proc/self/fd/2", dev+"/stderr")); err != nil {
		return err
	}
	if err := unix.Mount(dev, "/dev", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("hide the devices: %w", err)
	}
	for _, path := range []string{"/root", "/home", "/run", "/var/run", "/var/tmp", "/mnt", "/srv"} {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			if err := unix.Mount("none", path, "tmpfs", 0, "size=1m"); err != nil {
				return fmt.Errorf("hide %s: %w", path, err)
			}
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	hosts := filepath.Join(room, "hosts")
	text := "127.0.0.1 localhost\n" + address + " " + strings.Join(c.Hosts, " ") + "\n"
	err := os.WriteFile(hosts, []byte(text), 0o644)
	if err = errors.Join(err, unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, "")); err != nil {
		return fmt.Errorf("name the hosts: %w", err)
	}
	if err := os.MkdirAll(c.Top, 0o700); err != nil {
		return err
	}
	if !strings.HasPrefix(c.Top, room+"/") {
		if err := unix.Mount("none", c.Top, "tmpfs", 0, "size=200m"); err != nil {
			return fmt.Errorf("mount a folder in memory: %w", err)
		}
	}
	for what, limit := range map[int]uint64{unix.RLIMIT_CPU: 3600, unix.RLIMIT_FSIZE: 20 << 20, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	return nil
}

// watcher records connections to the cell's hosts.
type watcher struct {
	mu      sync.Mutex
	reached []int
	marked  chan struct{} // receives an element for each mark that has arrived
}

// marker is the source address of marks, which are connections of the watcher itself. When a mark has arrived, all
// earlier connections have arrived, too.
var marker = net.IPv4(127, 99, 99, 99)

// note records a connection from an address to a port, or the arrival of a mark.
func (w *watcher) note(from net.Addr, port int) {
	if strings.HasPrefix(from.String(), marker.String()+":") {
		w.marked <- struct{}{}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.reached, port) {
		w.reached = append(w.reached, port)
	}
}

// take returns the ports that were reached since the last call. It waits for all earlier connections: each port
// reports them in order and ends with a mark.
func (w *watcher) take() ([]int, error) {
	tcp, udp := net.Dialer{LocalAddr: &net.TCPAddr{IP: marker}}, net.Dialer{LocalAddr: &net.UDPAddr{IP: marker}}
	for _, port := range ports {
		at := fmt.Sprintf("%s:%d", address, port)
		stream, err := tcp.DialContext(context.Background(), "tcp4", at)
		if err != nil {
			return nil, fmt.Errorf("mark the connections so far: %w", err)
		}
		_ = stream.Close()
		datagrams, err := udp.DialContext(context.Background(), "udp4", at)
		if err != nil {
			return nil, fmt.Errorf("mark the datagrams so far: %w", err)
		}
		_, err = datagrams.Write([]byte{0})
		if err = errors.Join(err, datagrams.Close()); err != nil {
			return nil, fmt.Errorf("mark the datagrams so far: %w", err)
		}
	}
	for range 2 * len(ports) {
		<-w.marked
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	reached := w.reached
	w.reached = nil
	return reached, nil
}

// watchHosts listens on the loopback, the only network in the jail.
func watchHosts() (*watcher, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	flags, err := unix.NewIfreq("lo")
	if err != nil {
		return nil, err
	}
	flags.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, flags); err != nil {
		return nil, fmt.Errorf("start the loopback: %w", err)
	}
	w := &watcher{marked: make(chan struct{}, 2*len(ports))}
	for _, port := range ports {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", fmt.Sprintf("%s:%d", address, port))
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		u, err := net.ListenPacket("udp4", fmt.Sprintf("%s:%d", address, port)) //nolint:noctx // closed when the process ends
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.note(c.RemoteAddr(), port)
				_ = c.Close() // only the connection is of interest
			}
		}()
		go func() {
			for {
				_, from, err := u.ReadFrom(make([]byte, 1))
				if err != nil {
					return
				}
				w.note(from, port)
			}
		}()
	}
	return w, nil
}

// makeFiles creates the cell's files, and returns the folder of a copy that no line sees.
func makeFiles(r request) (string, error) {
	c := r.Cell
	blank := c.Top + "-blank"
	if !strings.HasPrefix(blank, "/tmp/") {
		blank = "/tmp/blank"
	}
	home := filepath.Join(c.Top, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	for name, text := range c.Files {
		path := filepath.Join(c.Top, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return "", err
			}
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			return "", err
		}
	}
	for name, target := range c.Links {
		if err := os.Symlink(target, filepath.Join(c.Top, name)); err != nil {
			return "", err
		}
	}
	if r.Cell.Setup != "" {
		if out, err := runLine(r, r.Cell.Setup, time.Minute); err != nil {
			return "", fmt.Errorf("set up: %w: %s", err, out)
		}
	}
	return blank, os.CopyFS(blank, os.DirFS(c.Top))
}

// runLine runs a line to its end, including all processes that it leaves running.
func runLine(r request, line string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Bash, "--norc", "--noprofile", "-c", line) //nolint:gosec // the jail exists to run such lines
	cmd.Dir = filepath.Join(r.Cell.Top, "home")
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + cmd.Dir, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "TERM=dumb"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Reading a pipe may stop early. A file is complete when the processes have ended.
	out, err := os.CreateTemp("", "output")
	if err != nil {
		return "", err
	}
	defer out.Close()
	if err := os.Remove(out.Name()); err != nil {
		return "", err
	}
	cmd.Stdout, cmd.Stderr = out, out
	ran := cmd.Run()
	_ = unix.Kill(-1, unix.SIGKILL) // all except the first process, which is this one
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break // no process is left
		}
	}
	text, err := io.ReadAll(io.NewSectionReader(out, 0, most))
	if err != nil {
		return "", err
	}
	return string(text), ran
}

// tryLine runs one line in a fresh copy of the cell.
func tryLine(r request, blank string, w *watcher, line string) (Outcome, error) {
	c := r.Cell
	if err := removeEntries(c.Top); err != nil {
		return Outcome{}, err
	}
	if err := os.CopyFS(c.Top, os.DirFS(blank)); err != nil {
		return Outcome{}, err
	}
	before, err := fingerprints(c.Top)
	if err != nil {
		return Outcome{}, err
	}
	limit := c.Limit
	if limit == 0 {
		limit = 5 * time.Second
	}
	if _, err := w.take(); err != nil {
		return Outcome{}, err
	}
	out, err := runLine(r, line, limit)
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed && !errors.Is(err, context.DeadlineExceeded) {
		return Outcome{}, err
	}
	after, err := fingerprints(c.Top)
	if err != nil {
		return Outcome{}, err
	}
	reached, err := w.take()
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Output: out, Made: map[string]string{}, Reached: reached}
	for path, mark := range after {
		if before[path] == mark {
			continue
		}
		if name, within := strings.CutPrefix(path, "home/"); !within {
			o.Changed = o.Changed || path != "home"
		} else if text, err := readSome(filepath.Join(c.Top, path)); err == nil {
			o.Made[name] = text
		}
	}
	for path := range before {
		if _, there := after[path]; !there && !strings.HasPrefix(path, "home/") {
			o.Changed = true
		}
	}
	return o, nil
}

func readSome(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errors.ErrUnsupported)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	return string(text), err
}

// removeEntries removes a folder's content, even if a line has removed permissions.
func removeEntries(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// fingerprints returns a fingerprint of each file and folder below a folder: permissions, content and, outside of
// home, modification time.
func fingerprints(top string) (map[string][32]byte, error) {
	prints := map[string][32]byte{}
	return prints, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h := sha256.New()
		name := strings.TrimPrefix(strings.TrimPrefix(path, top), "/")
		fmt.Fprintln(h, info.Mode())
		if info.Mode().IsRegular() {
			if !strings.HasPrefix(name, "home/") {
				fmt.Fprintln(h, info.ModTime())
			}
			text, err := readSome(path)
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			fmt.Fprint(h, info.Size(), text)
		}
		prints[name] = [32]byte(h.Sum(nil))
		return nil
	})
}
