package bash

import (
	"strings"
)

// file records a file that a command names.
func (w *walker) file(c ctx, word Word, access Access, command int) {
	word.claim()
	word.claimed = nil
	if word.Text == "-" && word.Kind == Literal || !w.spend(2) {
		return
	}
	if len(w.out.Files) > maxFiles {
		w.exhaust()
		return
	}
	for one := range word.alternatives {
		w.file(c, one, access, command)
	}
	w.fileHost(word, command)
	if strings.HasPrefix(word.Text, "/dev/") && harmlessDevice(word.Text[len("/dev/"):]) {
		return
	}
	f := File{Known: word.Kind != Partial, Access: access, Command: command, Word: word, Pos: word.Pos}
	text := word.Text
	if word.here {
		text = "./" + text
	}
	if word.Kind == Partial && endsInName(word.Suffix) && w.spend(2) {
		// Rules may check only the end of the path: $DIR/.env.
		ending := f
		ending.Path = inDir(append(c.st.dirs, ".")[0], strings.ReplaceAll(word.raw, unknown, "…"))
		w.out.Files = append(w.out.Files, ending)
	}
	rooted := strings.HasPrefix(text, "/") || text == "~" || strings.HasPrefix(text, "~/")
	if c.st.dirs == nil || rooted || text == "" && !f.Known {
		f.Path, f.Known = text, f.Known && rooted
		if f.Known {
			f.Path = tidyPath(text)
		}
		w.out.Files = append(w.out.Files, f)
		return
	}
	for _, dir := range c.st.dirs {
		f.Path = inDir(dir, text)
		if f.Known && strings.ContainsAny(dir, "*?") { // the shell is in one of several folders
			f.Word.Kind = Pattern
		}
		if !f.Known && strings.HasSuffix(text, "/") && !strings.HasSuffix(f.Path, "/") {
			f.Path += "/"
		}
		w.out.Files = append(w.out.Files, f)
	}
}

// fileHost records the host of a file that a program may read over the network: a URL, or a bash or gawk path such as
// /inet/tcp/0/host/80.
func (w *walker) fileHost(word Word, command int) {
	if name, port, found := networkPath(word); found {
		w.addHost(name, port, word, command)
		return
	}
	scheme, rest, found := strings.Cut(word.Text, "://")
	if !found || strings.EqualFold(scheme, "file") || strings.HasPrefix(rest, "/") || strings.Contains(scheme, "/") {
		return
	}
	if name, port, ok := hostOf(word.Text[urlStart(word.Text):], word.Kind == Literal); ok || word.Kind == Partial {
		w.addHost(name, port, word, command)
	}
}

// networkPath parses a path that bash or gawk connects to a host. The name is empty if it is not completely known.
func networkPath(word Word) (name, port string, found bool) {
	for _, begin := range []string{"/dev/tcp/", "/dev/udp/", "/inet/", "/inet4/", "/inet6/"} {
		rest, isNetwork := strings.CutPrefix(word.Text, begin)
		if !isNetwork {
			continue
		}
		if begin[1] == 'i' { // protocol/local port/host/port
			fields := strings.SplitN(rest, "/", 3)
			if len(fields) < 3 {
				return "", "", true
			}
			rest = fields[2]
		}
		name, port, _ = strings.Cut(rest, "/")
		if word.Kind != Literal && port == "" {
			name = ""
		}
		return strings.ToLower(name), port, true
	}
	return "", "", false
}

// namedFiles records the files below a directory that a program finds by a name pattern: find -name '*.go'. The path
// has ** for the folders between; the disk is not searched.
func (w *walker) namedFiles(c ctx, k call, dir string, pattern Word) {
	for one := range pattern.alternatives {
		w.namedFiles(c, k, dir, one)
	}
	text := strings.TrimPrefix(strings.TrimLeft(strings.ReplaceAll(pattern.raw, unknown, "*"), "/"), "./")
	if text == "" || strings.HasPrefix(text, "!") {
		return
	}
	if dir != "" {
		dir = strings.TrimSuffix(dir, "/") + "/"
	}
	w.file(c, makeWord(dir+"**/"+text, false, false, pattern.Source, pattern.Pos), Reads, k.index)
}

// endsInName reports whether the end of a word identifies a file name: it contains a slash or a dot, and ends in a
// letter or digit.
func endsInName(suffix string) bool {
	return strings.ContainsAny(suffix, "/.") && isAlnum(rune(suffix[len(suffix)-1]))
}

// harmlessDevice reports whether name is a device that neither stores nor sends anything.
func harmlessDevice(name string) bool {
	switch name {
	case "null", "stdin", "stdout", "stderr", "tty", "zero", "full", "urandom", "random":
		return true
	}
	return strings.HasPrefix(name, "fd/")
}

// redirectedFile records a redirection's file or host: >x, <x, >/dev/tcp/host/80. Here-documents and >&2 have
// neither.
func (w *walker) redirectedFile(c ctx, r Redirect, command int) {
	for one := range r.Target.alternatives {
		w.redirectedFile(c, Redirect{Op: r.Op, FD: r.FD, Target: one, Pos: r.Pos}, command)
	}
	r.Target.also = nil
	access := Writes
	switch r.Op {
	case "<":
		access = Reads
	case "<<", "<<-", "<<<":
		return
	case "<&":
		return
	case ">&":
		if t := r.Target; t.Kind == Literal && (t.Text == "-" || strings.Trim(t.Text, "0123456789-") == "") || t.Kind == Partial && t.Text == "" {
			return
		}
	}
	if name, port, found := networkPath(r.Target); found {
		w.addHost(name, port, r.Target, command)
		return
	}
	w.file(c, r.Target, access, command)
}

// addHost records a host that a command reaches.
func (w *walker) addHost(name, port string, word Word, command int) {
	word.claim()
	word.claimed = nil
	w.noteHost(Host{Name: name, Port: port, Command: command, Word: word, Pos: word.Pos})
}

// noteHost records a host, up to a limit.
func (w *walker) noteHost(h Host) {
	if !w.spend(2) {
		return
	}
	if len(w.out.Hosts) > maxFiles {
		w.exhaust()
		return
	}
	if n := len(w.out.Hosts); n > 0 {
		if last := w.out.Hosts[n-1]; last.Name == h.Name && last.Port == h.Port && last.Command == h.Command && last.Pos == h.Pos {
			return // the word was recorded both as a file and as a URL
		}
	}
	w.out.Hosts = append(w.out.Hosts, h)
}

// host records the machine that a word names as a URL, as user@host:path or as a plain host.
func (w *walker) host(c ctx, word Word, command int) {
	for one := range word.alternatives {
		w.host(c, one, command)
	}
	word.also = nil
	if w.fileURL(c, word, Uses, command) {
		return
	}
	word.claim()
	name, port, ok := hostOf(word.Text, word.Kind == Literal)
	if ok || word.Kind == Partial {
		w.addHost(name, port, word, command)
	}
}

// hostOf parses the host of a URL, or the bare form that curl, ssh and others accept. If text is only the known
// beginning, the host counts only if it is certainly complete.
func hostOf(text string, whole bool) (name, port string, ok bool) {
	scheme, rest, url := strings.Cut(text, "://")
	if !url {
		rest = text
	}
	if url && strings.EqualFold(scheme, "file") {
		return "", "", false
	}
	// Programs disagree about the end of the host: each of these characters ends it for some program.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		if !whole {
			return "", "", false
		}
		end = len(rest)
	}
	authority := rest[:end]
	if strings.ContainsAny(authority, "\\{}$*? ") {
		return "", "", true // programs may parse it differently
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	if inner, found := strings.CutPrefix(authority, "["); found {
		name, rest, _ = strings.Cut(inner, "]")
		return name, strings.TrimPrefix(rest, ":"), true
	}
	name, port, _ = strings.Cut(authority, ":")
	return strings.ToLower(name), port, name != ""
}

// remotePath records an operand of scp or rsync: a local file or a host.
func (w *walker) remotePath(c ctx, word Word, access Access, command int) {
	for one := range word.alternatives {
		w.remotePath(c, one, access, command)
	}
	word.also = nil
	text := word.Text
	if strings.Contains(text, "://") {
		w.host(c, word, command)
		return
	}
	colon, slash := strings.IndexByte(text, ':'), strings.IndexByte(text, '/')
	if colon > 0 && (slash < 0 || colon < slash) {
		name := text[:colon]
		w.addHost(strings.ToLower(name[strings.LastIndexByte(name, '@')+1:]), "", word, command)
		return
	}
	if word.Kind == Partial && slash < 0 {
		w.addHost("", "", word, command) // may be a host
	}
	w.file(c, word, access, command)
}
