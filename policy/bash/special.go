package bash

import (
	"slices"
	"strings"

	"github.com/samber/lo"
)

// walkTee records the files that tee writes: tee -a log.
func walkTee(w *walker, c ctx, k call, g given) {
	w.walkOperands(c, k, tool{operands: "w*"}, g)
	if !g.has("a", "append") && c.in.isEmpty() {
		for _, o := range g.operands {
			w.file(c, o, Empties, k.index)
		}
	}
}

// walkMove also records the moved files as deleted.
func walkMove(w *walker, c ctx, k call, g given) {
	w.walkOperands(w.options(c, k, g), k, tool{operands: "d*w"}, g)
}

// walkLink handles ln. A symbolic link's target is relative to the link's directory.
func walkLink(w *walker, c ctx, k call, g given) {
	c = w.options(c, k, g)
	w.walkOperands(c, k, tool{operands: "r*w"}, g)
	sources := g.operands
	if !g.has("s", "symbolic") || len(sources) == 0 {
		return
	}
	var target Word
	if o, found := g.last("t", "target-directory"); found {
		target = o.value
	} else if target = sources[len(sources)-1]; len(sources) > 1 {
		sources = sources[:len(sources)-1]
	} else {
		return // the link is created in the working directory
	}
	at := target.loose()
	for _, dir := range []string{at, at[:strings.LastIndexByte(at, '/')+1]} {
		for _, source := range sources {
			if dir != "" && !strings.HasPrefix(source.Text, "/") {
				w.file(c, makeWord(strings.TrimSuffix(dir, "/")+"/"+source.loose(), false, false, source.Source, source.Pos), Reads, k.index)
			}
		}
	}
}

// walkRename handles rename. One program with this name takes Perl code, another takes two strings, and the name does
// not tell which it is.
func walkRename(w *walker, c ctx, k call, _ given) {
	for i, a := range k.args() {
		switch {
		case strings.HasPrefix(a.Text, "-"):
		case i == 0 || strings.HasPrefix(k.args()[i-1].Text, "-"):
			a.claim()
			if strings.ContainsAny(a.loose(), "(`$;{"+unknown) {
				w.setCode(k, "perl", a.loose())
				w.opaque(c, a.Pos.Offset, k.index, OpaqueCode, "rename may run its first word as Perl")
			}
		default:
			w.file(c, a, Writes, k.index)
		}
	}
}

// walkJQ records the files after the filter, and the files that options name.
func walkJQ(w *walker, c ctx, k call, _ given) {
	args := k.args()
	access, filtered, values := Reads, false, false
	if slices.ContainsFunc(args, inPlace) { // at any position
		access = Writes
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch short := !strings.HasPrefix(a.Text, "--"); {
		case a.Is("--arg"), a.Is("--argjson"):
			claimAll(args[i:min(i+3, len(args))])
			i += 2
		case a.Is("--slurpfile"), a.Is("--rawfile"), a.Is("--argfile"):
			claimAll(args[i:min(i+2, len(args))])
			if i += 2; i < len(args) {
				w.file(c, args[i], Reads, k.index)
			}
		case a.Is("--indent"):
			claimAll(args[i:min(i+2, len(args))])
			i++
		case a.Is("-L"):
			i++ // a module folder
		case a.Is("--args"), a.Is("--jsonargs"):
			a.claim()
			values = true
		case strings.HasPrefix(a.Text, "-") && len(a.Text) > 1:
			filtered = filtered || a.Is("--from-file") || short && strings.Contains(a.Text, "f") // the filter is a file
		case !filtered:
			filtered = true
			a.claim()
			if !isKnown(a.loose()) || strings.Contains(a.Text, "import") || strings.Contains(a.Text, "include") {
				w.file(c, makeWord(unknown, false, true, a.Source, a.Pos), Reads, k.index) // modules
			}
		case !values:
			w.file(c, a, access, k.index)
		default:
			a.claim()
		}
	}
}

// inPlace reports whether a word may tell sed to change its files in place: -i, -ni.bak, --in-place.
func inPlace(a Word) bool {
	return a.Is("--in-place") || a.Is("--inplace") ||
		strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.Contains(a.Text, "i")
}

// walkDD handles the operands of dd: dd if=/dev/zero of=disk.img.
func walkDD(w *walker, c ctx, k call, _ given) {
	for _, a := range k.args() {
		switch {
		case strings.HasPrefix(a.Text, "of="):
			w.file(c, a.cut(3), Writes, k.index)
		case strings.HasPrefix(a.Text, "if="):
			w.file(c, a.cut(3), Reads, k.index)
		case a.Kind == Literal:
			w.perhaps(c, k, a, Uses, false)
		}
	}
}

// walkGrep records the files that grep reads. The first operand is the pattern, unless -e or -f gives one.
func walkGrep(w *walker, c ctx, k call, g given) {
	c = w.options(c, k, g)
	roles := "-r*"
	if g.has("e", "regexp", "f", "file") {
		roles = "r*"
	}
	w.walkOperands(c, k, tool{operands: roles}, g)
}

const curlLong = "abstract-unix-socket^ alt-svc> anyauth append aws-sigv4: basic ca-native cacert< capath< cert< cert-status cert-type: ciphers: " +
	"compressed config^ connect-timeout: connect-to: continue-at: cookie* " +
	"cookie-jar> create-dirs create-file-mode: crlf crlfile< curves: data* data-ascii* data-binary* data-raw* data-urlencode* delegation: digest " +
	"disable disable-eprt disable-epsv disallow-username-in-url " +
	"dns-interface: dns-ipv4-addr: dns-ipv6-addr: dns-servers: doh-url& dump-header> egd-file< engine^ etag-compare< etag-save> expect100-timeout: " +
	"fail fail-early fail-with-body false-start form* form-escape form-string* " +
	"ftp-account: ftp-port: ftp-pasv get globoff happy-eyeballs-timeout-ms: haproxy-protocol head header* help? hostpubmd5: hsts> http0.9 http1.0 " +
	"http1.1 http2 http3 ignore-content-length include insecure interface: " +
	"ipv4 ipv6 json* junk-session-cookies keepalive-time: key< key-type: krb: libcurl> limit-rate: list-only local-port: location location-trusted " +
	"login-options: mail-auth: mail-from: mail-rcpt: manual max-filesize: " +
	"max-redirs: max-time: metalink negotiate netrc netrc-file< netrc-optional next no-alpn no-buffer no-keepalive no-npn no-progress-meter " +
	"no-sessionid noproxy: ntlm oauth2-bearer: output> output-dir@ parallel " +
	"parallel-immediate parallel-max: pass: path-as-is pinnedpubkey: post301 post302 post303 preproxy& progress-bar proto: proto-default: proto-redir: " +
	"proxy& proxy-header: proxy-insecure proxy-user: proxy1.0& " +
	"proxytunnel pubkey< quote: random-file< range: rate: raw referer* remote-header-name remote-name remote-name-all remote-time remove-on-error " +
	"request* request-target* resolve: retry: retry-all-errors " +
	"retry-connrefused retry-delay: retry-max-time: sasl-ir service-name: show-error show-headers silent socks4& socks4a& socks5& socks5-hostname& " +
	"speed-limit: speed-time: ssl ssl-no-revoke ssl-reqd stderr> suppress-connect-headers " +
	"ssl-sessions> knownhosts< tcp-fastopen tcp-nodelay telnet-option: tftp-blksize: time-cond: tls-max: tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding " +
	"trace> trace-ascii> trace-ids trace-time unix-socket< upload-file< url& url-query: use-ascii user* " +
	"user-agent* variable: verbose version vlan-priority: write-out* xattr"

// walkCurl records the hosts and files in the options and operands of curl.
func walkCurl(w *walker, c ctx, k call, _ given) { //nolint:gocognit // a table of cases, read top to bottom
	g := parseOptions(k.args(), "#0123468aA*b*Bc>C:d*D>e*E<fF*gGh?H*iIjJkK^lLm:MnNo>Op:P:qQ:r:RsSt:T<u*U*vVw*x&X*y:Y:z:Z:", curlLong)
	c = w.options(c, k, g)
	for _, o := range g.options {
		if !o.given {
			continue
		}
		switch o.name {
		case "proto-default": // the scheme may be file; then URLs are files, whose path begins after the host name
			if !strings.HasPrefix(strings.ToLower(o.value.raw), "http") {
				w.file(c, makeWord(unknown, false, false, "", o.value.Pos), Uses, k.index)
				for _, other := range g.options {
					if other.name == "url" {
						w.file(c, other.value, Uses, k.index)
					}
				}
				for _, url := range g.operands {
					w.file(c, url, Uses, k.index)
				}
			}
		case "url":
			if strings.HasPrefix(o.value.Text, "@") { // a file that contains URLs
				w.file(c, o.value.cut(1), Reads, k.index)
			}
		case "w", "write-out":
			for _, rest := range strings.Split(o.value.raw, "%output{")[1:] {
				name, _, _ := strings.Cut(strings.TrimPrefix(rest, ">>"), "}")
				w.file(c, makeWord(name, false, false, "", o.value.Pos), Writes, k.index)
			}
			fallthrough
		case "d", "data", "data-ascii", "data-binary", "json", "data-urlencode", "F", "form", "b", "cookie", "H", "header", "E",
			"variable", "url-query":
			text := o.value.Text
			if i := strings.IndexByte(text, '@'); i >= 0 && (i == 0 || o.name == "data-urlencode" || o.name == "F" || o.name == "form" ||
				o.name == "variable" || o.name == "url-query") {
				name := o.value.cut(i + 1)
				if o.name == "F" || o.name == "form" {
					w.perhaps(c, k, name, Reads, true) // the name may stand for several files
					name = upTo(name, ";,")
				}
				w.file(c, name, Reads, k.index)
			} else if i := strings.IndexByte(text, '<'); i >= 0 && (o.name == "F" || o.name == "form") {
				w.file(c, upTo(o.value.cut(i+1), ";,"), Reads, k.index)
			} else if (o.name == "b" || o.name == "cookie") && !strings.Contains(text, "=") {
				w.file(c, o.value, Reads, k.index)
			} else if o.value.Kind == Partial && text == "" && o.name != "H" && o.name != "header" && o.name != "w" && o.name != "write-out" {
				w.file(c, o.value, Reads, k.index) // the value may begin with @
			}
			o.value.claim()
		case "connect-to", "resolve": // they replace hosts in URLs
			fields := strings.SplitN(strings.TrimPrefix(o.value.raw, "+"), ":", 3)
			for name := range strings.SplitSeq(fields[len(fields)-1], ",") {
				name, _, _ = strings.Cut(strings.Trim(name, "[]"), lo.Ternary(o.name == "resolve", "]", ":"))
				w.host(c, makeWord(name, false, false, o.value.Source, o.value.Pos), k.index)
			}
		}
	}
	if g.has("n", "netrc", "netrc-optional") {
		w.file(c, literalWord("~/.netrc", w.place(k.at)), Reads, k.index)
	}
	stores := 0
	for _, o := range g.options {
		if o.name == "O" || o.name == "remote-name" || o.name == "remote-name-all" || o.name == "J" {
			stores++
		}
	}
	for _, o := range g.operands {
		w.url(c, k, o)
		if stores > 0 {
			w.walkSavedURL(c, k, o)
		}
	}
}

// upTo returns the beginning of a word before the first byte that is in stops.
func upTo(word Word, stops string) Word {
	if i := strings.IndexAny(word.Text, stops); i >= 0 {
		return literalWord(word.Text[:i], word.Pos)
	}
	return word
}

// url records the host of a URL with or without a scheme.
func (w *walker) url(c ctx, k call, word Word) {
	w.host(c, word, k.index)
}

// walkSavedURL records the file to which a URL is saved; it has the name of the URL's last element.
func (w *walker) walkSavedURL(c ctx, k call, word Word) {
	name, _, _ := strings.Cut(word.Text, "?")
	if _, rest, _ := strings.Cut(name, "://"); !strings.Contains(rest, "/") || strings.HasSuffix(rest, "/") {
		name = "index.html"
	}
	if word.Kind != Literal || baseName(name) == "" {
		w.file(c, makeWord(unknown, false, false, word.Source, word.Pos), Writes, k.index)
		return
	}
	w.file(c, literalWord(baseName(name), word.Pos), Writes, k.index)
}

// walkWget records hosts, and the files that wget saves under the names in its URLs.
func walkWget(w *walker, c ctx, k call, _ given) {
	g := parseOptions(k.args(), "VhbNcrkKmpxqvdFSi<e!O>o>a>P@l:A*R*D:I*X*B&t:T:w:Q:U*LHEn?46j0",
		"append-output> base& background backup-converted body-data: body-file< ca-certificate< ca-directory: certificate< config^ continue "+
			"convert-links cut-dirs: debug delete-after directory-prefix@ dns-timeout: "+
			"exclude-directories* execute! force-directories force-html follow-tags: ftp-password: ftp-user: header* help http-password: http-user: "+
			"https-only ignore-length include-directories* inet4-only inet6-only input-file< "+
			"keep-session-cookies level: limit-rate: load-cookies< local-encoding: max-redirect: method: mirror no-cache no-check-certificate "+
			"no-clobber no-cookies no-directories no-dns-cache no-glob no-host-directories no-hsts no-netrc "+
			"no-parent no-passive-ftp no-proxy no-verbose output-document> output-file> page-requisites password: post-data* post-file< private-key< "+
			"progress: protocol-directories proxy-password: proxy-user: quiet quota: random-wait "+
			"read-timeout: recursive referer* reject* reject-regex* accept* accept-regex* domains: rejected-log> relative remote-encoding: "+
			"restrict-file-names: retry-connrefused save-cookies> save-headers secure-protocol: server-response show-progress "+
			"span-hosts spider start-pos: timeout: timestamping tries: trust-server-names unlink use-askpass$ user: user-agent* verbose version wait: "+
			"waitretry: warc-file> xattr adjust-extension compression: connect-timeout: content-disposition content-on-error bind-address: ciphers:")
	c = w.options(c, k, g)
	if g.has("i", "input-file") {
		w.addHost("", "", literalWord("", w.place(k.at)), k.index)
	}
	for _, o := range g.operands {
		w.url(c, k, o)
		if !g.has("O", "output-document", "spider") {
			w.walkSavedURL(c, k, o)
		}
	}
}

// walkHTTPie records the host and uploaded files: http POST example.com file@x.
func walkHTTPie(w *walker, c ctx, k call, g given) {
	c = w.options(c, k, g)
	for _, o := range g.operands {
		if _, name, found := strings.Cut(o.Text, "@"); found && !strings.Contains(o.Text, "://") {
			w.file(c, literalWord(name, o.Pos), Reads, k.index)
			continue
		}
		if strings.Contains(o.Text, "://") || strings.ContainsAny(o.Text, "./") && !strings.ContainsAny(o.Text, "=") {
			w.host(c, o, k.index)
		}
	}
}

// walkURLs records the host of every word that may be a URL.
func walkURLs(w *walker, c ctx, k call, _ given) {
	for _, a := range k.args() {
		if !strings.HasPrefix(a.Text, "-") {
			w.url(c, k, a)
		} else if strings.Contains(a.Text, "://") {
			w.host(c, a.cut(urlStart(a.Text)), k.index)
		}
	}
}

// walkDig records the names that dig looks up, and the server after @.
func walkDig(w *walker, c ctx, k call, _ given) {
	for _, a := range k.args() {
		switch {
		case strings.HasPrefix(a.Text, "@"):
			w.host(c, a.cut(1), k.index)
		case strings.ContainsRune(a.Text, '.') && !strings.HasPrefix(a.Text, "+") && !strings.HasPrefix(a.Text, "-"), a.Kind == Partial:
			w.host(c, a, k.index)
		case strings.HasPrefix(a.Text, "-"), strings.HasPrefix(a.Text, "+"), looksLikePath(a.Text):
		case dnsWord().MatchString(a.Text):
			a.claim()
		default:
			w.host(c, a, k.index)
		}
	}
}

// dnsWord matches record types, classes and numbers: dig -p 53 x.example mx.
var dnsWord = lazyRegexp(`(?i)^([0-9]+|a|aaaa|afsdb|any|apl|axfr|caa|cdnskey|cds|cert|ch|chaos|cname|csync|dhcid|dlv|dname|dnskey|ds|hinfo|hip|hs|https|in|` +
	`ipseckey|ixfr=?[0-9]*|key|kx|loc|mx|naptr|none|ns|nsec|nsec3|nsec3param|null|openpgpkey|ptr|rp|rrsig|sig|smimea|soa|spf|srv|` +
	`sshfp|svcb|ta|tkey|tlsa|tsig|txt|uri|zonemd|(type|class)[0-9]+)$`)

// walkGetent records the names that getent looks up on the network: getent hosts name.
func walkGetent(w *walker, c ctx, k call, g given) {
	if len(g.operands) == 0 || g.operands[0].Kind == Literal &&
		!slices.Contains([]string{"hosts", "ahosts", "ahostsv4", "ahostsv6", "networks", "netgroup"}, g.operands[0].Text) {
		return
	}
	for _, o := range g.operands[1:] {
		if name := strings.ToLower(o.Text); o.Kind != Literal || name != "localhost" && !strings.HasPrefix(name, "127.") && name != "::1" {
			w.host(c, o, k.index)
		}
	}
}

// walkResolve records the names that resolvectl looks up.
func walkResolve(w *walker, c ctx, k call, g given) {
	local := []string{"status", "statistics", "dns", "domain", "show-cache", "flush-caches", "monitor"}
	if len(g.operands) == 0 || slices.ContainsFunc(local, g.operands[0].Is) {
		return
	}
	for _, o := range g.operands[1:] {
		w.host(c, o, k.index)
	}
}

// walkNames records every word that is neither an option nor a number as a host, because any may be looked up.
func walkNames(w *walker, c ctx, k call, _ given) {
	for _, a := range k.args() {
		number := strings.Trim(a.Text, "0123456789.") == "" && strings.Count(a.Text, ".") < 2
		if a.Kind != Literal || !number && !strings.HasPrefix(a.Text, "-") {
			w.host(c, a, k.index)
		}
	}
}

// walkEmacs records the host of a remote file: emacs /ssh:host:/x, emacs /user@host:/x.
func walkEmacs(w *walker, c ctx, k call, g given) {
	doubtfulCode(w, c, k, g)
	for _, a := range k.args() {
		for one := range a.alternatives {
			w.remoteFile(one, k.index)
		}
		w.remoteFile(a, k.index)
	}
}

// remoteFile records the hosts in an Emacs file name: one after each method, as in /ssh:a|ssh:b:/x.
func (w *walker) remoteFile(a Word, command int) {
	text, rooted := strings.CutPrefix(a.Text, "/")
	end := strings.LastIndexByte(text, ':')
	if !rooted || end < 0 || strings.Contains(text[:strings.IndexByte(text, ':')], "/") {
		return
	}
	if a.Kind != Literal {
		w.addHost("", "", a, command)
		return
	}
	for hop := range strings.SplitSeq(text[:end], "|") {
		if _, host, hasMethod := strings.Cut(hop, ":"); hasMethod {
			hop = host
		}
		name, port, _ := strings.Cut(hop[strings.LastIndexByte(hop, '@')+1:], "#")
		if name != "" {
			w.addHost(strings.ToLower(name), port, a, command)
		}
	}
}

// walkDate records that date may set the clock, which an operand other than a format or an unknown option may do.
func walkDate(w *walker, c ctx, k call, g given) {
	w.tool(c, k, tool{operands: "-*"}, g)
	if g.has("s", "set") || g.doubt || !g.has("j") && hasFunc(g.operands, func(a Word) bool { return !strings.HasPrefix(a.Text, "+") }) {
		w.effect(k, ChangesSystem)
	}
}

// walkHostname records that hostname may set the machine's name.
func walkHostname(w *walker, c ctx, k call, g given) {
	w.tool(c, k, tool{operands: "-*"}, g)
	if g.has("F", "file", "b", "boot") || g.doubt || len(g.operands) > 0 {
		w.effect(k, ChangesSystem)
	}
}

// walkFileType records the files that file reads. With -C, file writes a compiled list.
func walkFileType(w *walker, c ctx, k call, g given) {
	w.tool(c, k, tool{operands: "r*"}, g)
	if g.has("C", "compile") {
		w.file(c, makeWord(unknown+".mgc", false, false, "", w.place(k.at)), Writes, k.index)
	}
}

// walkTree records the folders that tree lists. With -R, tree writes a list in each of them.
func walkTree(w *walker, c ctx, k call, g given) {
	w.tool(c, k, tool{operands: "r*"}, g)
	if g.has("R") {
		w.file(c, makeWord(unknown+"/00Tree.html", false, false, "", w.place(k.at)), Writes, k.index)
	}
}

// walkMan walks the browser in man -H.
func walkMan(w *walker, c ctx, k call, g given) {
	w.options(c, k, g)
	if o, found := g.last("H", "html"); found && o.given {
		w.shellText(c, k, "man", o.value)
	}
}

// walkNetcat records the host and port of nc, and walks the command in -e and -c: nc -e /bin/sh host 99.
func walkNetcat(w *walker, c ctx, k call, g given) {
	if k.name != "ncat" {
		// Some implementations take -c as a command, others as a TLS switch; both readings are walked.
		for i, o := range g.options {
			if o.name == "c" && o.given && !strings.ContainsAny(o.value.Text, " /") && len(g.operands) < 2 {
				g.operands = append([]Word{o.value}, g.operands...)
				g.options[i].given = i >= 0
			}
		}
	}
	c = w.options(c, k, g)
	if len(g.operands) > 0 {
		port := ""
		if len(g.operands) > 1 {
			port = g.operands[1].Text
			g.operands[1].claim()
		}
		name, _, ok := hostOf(g.operands[0].Text, g.operands[0].Kind == Literal)
		if ok || g.operands[0].Kind == Partial {
			w.addHost(name, port, g.operands[0], k.index)
		}
	}
	_ = c
}

// walkSCP records local files and remote hosts: scp a host:b.
func walkSCP(w *walker, c ctx, k call, g given) {
	for _, o := range g.options {
		if o.name == "o" {
			w.sshOption(c, k, o.value)
		}
	}
	c = w.options(c, k, g)
	w.walkOperands(c, k, tool{operands: "p*p"}, g)
}

// walkRsync records local files and remote hosts, and walks the remote shell in -e.
func walkRsync(w *walker, c ctx, k call, _ given) {
	g := parseOptions(k.args(), "vqcarRubdlLkKHpEAXogDtOJSnWxmCzhPiUNIyF046se$B:f:T>M:",
		"rsh$ rsync-path$ include-from< exclude-from< files-from% log-file> out-format: password-file< write-batch> read-batch< only-write-batch> "+
			"partial-dir> temp-dir> backup-dir> suffix: "+
			"exclude* include/ filter: chmod: chown: usermap: groupmap: bwlimit: timeout: contimeout: compare-dest< copy-dest< link-dest< port: "+
			"address: sockopts: iconv: info: debug: max-size: min-size: max-delete: max-alloc: block-size: "+
			"compress-level: compress-choice: skip-compress: checksum-choice: modify-window: protocol: outbuf: remote-option: log-file-format: "+
			"stop-after: stop-at: early-input< archive delete delete-after delete-before delete-during delete-delay delete-excluded "+
			"dry-run verbose quiet recursive progress partial partial-dir: stats human-readable compress links copy-links perms times group owner "+
			"update inplace append ignore-existing existing remove-source-files force numeric-ids relative checksum one-file-system version help "+
			"delete-missing-args no-owner no-group no-perms no-times no-relative itemize-changes devices specials executability acls xattrs sparse "+
			"hard-links whole-file")
	c = w.options(c, k, g)
	w.walkOperands(c, k, tool{operands: "p*p"}, g)
}

//nolint:gocognit // flat: one case for each option
func walkTar(w *walker, c ctx, k call, _ given) {
	args := k.args()
	if len(args) > 0 && args[0].Kind == Literal && args[0].Text != "" && args[0].Text[0] != '-' {
		// Without a dash, the letters' values follow in the order of the letters.
		letters := args[0].Text
		rest := args[1:]
		var spread []Word
		for _, letter := range letters {
			spread = append(spread, literalWord("-"+string(letter), args[0].Pos))
			if strings.ContainsRune("bCfFgHIKLNTVXoh", letter) && letter != 'o' && letter != 'h' && len(rest) > 0 {
				spread, rest = append(spread, rest[0]), rest[1:]
			}
		}
		spread = append(spread, rest...)
		args = spread
	}
	g := parseOptions(args, "AcdrtuxBGhijJklmMnoOpPRsSUvwWzZ?af:C@I$F$T%X<b:g>H:K*L:N:V*",
		"checkpoint-action: checkpoint? to-command$ use-compress-program$ info-script$ new-volume-script$ rsh-command$ rmt-command$ file: directory@ "+
			"files-from% exclude-from< exclude* transform* xform* strip-components: "+
			"owner: group: mode: mtime: create extract get list append update delete diff compare concatenate verbose gzip bzip2 xz zstd auto-compress "+
			"sparse same-owner no-same-owner preserve-permissions keep-old-files overwrite "+
			"one-top-level? absolute-names wildcards no-wildcards to-stdout unlink-first remove-files listed-incremental> starting-file: label: "+
			"format: totals? warning: index-file> suffix: backup? occurrence? sort: numeric-owner exclude-vcs null help version no-recursion "+
			"dereference skip-old-files anchored ignore-case interactive lzma lzip lzop acls xattrs selinux no-auto-compress posix")
	extracts := g.has("x", "extract", "get")
	for _, o := range g.options {
		if !o.given {
			continue
		}
		switch o.name {
		case "f", "file":
			switch {
			case strings.Contains(o.value.Text, ":") && !g.has("force-local"):
				w.remotePath(c, o.value, Reads, k.index)
			case extracts || g.has("t", "list", "d", "diff", "compare"):
				w.file(c, o.value, Reads, k.index)
			default:
				w.file(c, o.value, Writes, k.index)
			}
		case "checkpoint-action":
			if strings.HasPrefix(o.value.Text, "exec=") {
				w.shellText(c, k, "tar", o.value.cut(len("exec=")))
			} else if o.value.Kind != Literal {
				w.opaque(c, o.value.Pos.Offset, k.index, OpaqueText, "tar --checkpoint-action may run unknown text")
			}
		}
	}
	c = w.options(c, k, g)
	if extracts && !g.has("O", "to-stdout") {
		w.file(c, literalWord(".", w.place(k.at)), Writes, k.index)
		if g.has("P", "absolute-names", "transform", "xform") { // the archive determines where its files go
			w.file(c, makeWord(unknown, false, true, "", w.place(k.at)), Writes, k.index)
		}
		return
	}
	if g.doubt {
		for _, a := range args {
			if a.Kind == Partial && strings.HasPrefix(a.Text+"-", "-") && a.Many {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueOption, "unknown option of tar")
			}
		}
	}
	for _, o := range g.operands {
		w.file(c, o, Reads, k.index)
	}
}

// walkZip records the archive and its members, and walks the test command in -TT.
func walkZip(w *walker, c ctx, k call, _ given) {
	g := parseOptions(k.args(), "0123456789AcdDeEfFgjJklLmoqrRSTuvVwXyz@b:i:n:t:P:s:x:", "- unzip-command$ TT$ recurse-paths test encrypt move exclude: "+
		"include: output-file> out>")
	w.options(c, k, g)
	for i, a := range k.args() {
		if a.Is("-TT") && i+1 < len(k.args()) {
			w.shellText(c, k, "zip", k.args()[i+1])
		}
	}
	if hasFunc(k.args(), func(a Word) bool {
		return a.Is("-@") || a.Kind == Literal && strings.HasPrefix(a.Text, "-") && strings.Contains(a.Text, "@")
	}) {
		w.namesFromInput(c, k)
	}
	w.walkOperands(c, k, tool{operands: "wr*"}, g)
}

// mountShare handles mount. A share may be on another machine.
func mountShare(w *walker, c ctx, k call, g given) {
	for _, a := range k.args() {
		colon := strings.IndexByte(a.Text, ':')
		if rest, found := strings.CutPrefix(a.Text, "//"); found {
			name, _, _ := strings.Cut(rest, "/")
			w.addHost(strings.ToLower(name), "", a, k.index)
		} else if colon > 0 && !strings.ContainsAny(a.Text[:colon], "/=-") {
			w.remotePath(c, a, Uses, k.index)
		}
	}
	w.walkOperands(w.options(c, k, g), k, tool{operands: "w*"}, g)
}

// changeMode handles chmod and similar programs. Their first operand is the mode, unless an option gives the mode.
func changeMode(w *walker, c ctx, k call, g given) {
	c = w.options(c, k, g)
	roles := "-w*"
	if g.has("reference", "m", "x", "M", "X", "modify", "remove", "b", "k", "restore") || hasFunc(k.args(), func(a Word) bool {
		return len(a.Text) > 1 && a.Text[0] == '-' && !strings.HasPrefix(a.Text, "--") && strings.ContainsAny(a.Text, "rwxst") // chmod -x f
	}) {
		roles = "w*"
	}
	w.walkOperands(c, k, tool{operands: roles}, g)
}

// namesFromInput records that a program reads file names from its input.
func (w *walker) namesFromInput(c ctx, k call) {
	hidden := makeWord(unknown, false, true, "", w.place(k.at))
	hidden.also = w.limitTexts(c.in.texts())
	w.file(c, hidden, Reads, k.index)
}

// walkVim walks the commands in vim's options. Options are opaque unless known to be harmless.
//
//nolint:gocognit // flat: one case for each option
func walkVim(w *walker, c ctx, k call, _ given) {
	args := k.args()
	for i := 0; i < len(args); i++ {
		a := args[i]
		text := a.Text
		switch {
		case text == "-c" || text == "--cmd" || text == "-S" || text == "-s" || text == "-u" || text == "-U" || text == "-W" || text == "-w":
			if i++; i >= len(args) {
				return
			}
			if text == "-c" || text == "--cmd" {
				w.vimCommand(c, k, args[i])
				continue
			}
			if text[1] == 'w' || text[1] == 'W' {
				w.file(c, args[i], Writes, k.index)
				continue
			}
			if args[i].Is("NONE") || args[i].Is("NORC") {
				continue
			}
			w.file(c, args[i], Runs, k.index)
			w.opaque(c, a.Pos.Offset, k.index, OpaqueFile, "vim runs the commands in a file: "+args[i].String())
		case strings.HasPrefix(text, "+"):
			w.vimCommand(c, k, a.cut(1))
		case strings.HasPrefix(text, "-") && text != "-":
			if a.Kind != Literal {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueOption, "unknown option of vim")
			}
			if len(text) > 2 && text[1] == 'c' {
				w.vimCommand(c, k, a.cut(2))
			} else if len(text) > 2 && text[1] != '-' && strings.ContainsAny(text[1:], "cSuUwWitTqr") { // -sc is -s -c
				w.opaque(c, a.Pos.Offset, k.index, OpaqueCode, "vim may run the text after "+text)
			}
		default:
			w.file(c, a, Writes, k.index)
		}
	}
	silent := func(w Word) bool { return len(w.Text) > 1 && w.Text[0] == '-' && strings.ContainsAny(w.Text, "esE") }
	if c.in.kind == piped && (k.name == "ex" || hasFunc(args, silent)) {
		w.vimCommand(c, k, makeWord(c.in.text, false, false, "", w.place(k.at)))
	}
}

// vimCommand walks one vim command: vim -c '!rm x' file. Unknown commands are opaque.
func (w *walker) vimCommand(c ctx, k call, word Word) {
	w.perhaps(c, k, word, Uses, false)
	text := strings.TrimLeft(word.loose(), ": ")
	switch text {
	case "q", "q!", "qa", "qa!", "wq", "wqa", "x", "xa", "w", "wa", "$", "set nu", "set number", "syntax on", "noh":
		return
	}
	if strings.Trim(text, "0123456789") == "" {
		return
	}
	if cut, found := strings.CutPrefix(text, "!"); found {
		w.shellText(c, k, "vim", makeWord(cut, false, false, "", word.Pos))
		return
	}
	w.setCode(k, "vim", text)
	w.opaque(c, word.Pos.Offset, k.index, OpaqueCode, "vim commands")
}

// walkEd walks the commands of ed; ! starts a shell.
func walkEd(w *walker, c ctx, k call, _ given) {
	for _, a := range k.args() {
		if strings.HasPrefix(a.Text, "!") {
			w.shellText(c, k, "ed", a.cut(1))
		} else if !strings.HasPrefix(a.Text, "-") {
			w.file(c, a, Writes, k.index)
		}
	}
	if c.in.kind != inherited && (!isKnown(c.in.text) || c.in.kind == fromFile || !isHarmlessEd(c.in.text)) {
		w.opaque(c, k.at, k.index, OpaqueCode, "ed runs its input")
	}
}

// isHarmlessEd reports whether ed commands start nothing and name no other file.
func isHarmlessEd(text string) bool {
	typing := false // the following lines are text, up to a dot
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case typing:
			typing = line != "."
		case typesEd().MatchString(line):
			typing = true
		case !harmlessEd().MatchString(line):
			return false
		}
	}
	return true
}

var (
	typesEd    = lazyRegexp(`^[0-9,;.$%+ -]*[aic]$`)
	harmlessEd = lazyRegexp(`^[0-9,;.$%+ -]*([pnldjqQhHPu=]|wq?|s/[^/\\]*/[^/\\]*/[gp0-9]*)?$`)
)

// doubtfulCode handles programs whose options may run code in ways that no table describes. Every option is opaque.
func doubtfulCode(w *walker, c ctx, k call, _ given) {
	for _, a := range k.args() {
		if strings.HasPrefix(a.Text, "-") || a.Kind != Literal {
			w.opaque(c, k.at, k.index, OpaqueCode, k.name+" may run what its options say")
			break
		}
	}
	for _, a := range k.args() {
		if !strings.HasPrefix(a.Text, "-") {
			w.file(c, a, Writes, k.index)
		}
	}
}

// makeTool handles make. Rules come from a file, and variables among the operands affect what the rules run: make
// CC=./x.
func makeTool(w *walker, c ctx, k call, _ given) {
	g := parseOptions(k.args(), "bmBdeikLnpqrRsStvwf:C@E:I@j?l?o:O?W:",
		"file: makefile: directory@ eval! include-dir: jobs? load-average? max-load? old-file: assume-old: what-if: new-file: assume-new: debug? "+
			"always-make environment-overrides ignore-errors keep-going "+
			"check-symlink-times just-print dry-run recon print-data-base question no-builtin-rules no-builtin-variables silent quiet no-silent stop "+
			"no-keep-going touch trace version print-directory no-print-directory output-sync? warn-undefined-variables shuffle? help")
	for _, o := range g.options {
		if o.name == "f" || o.name == "file" || o.name == "makefile" {
			if o.value.Is("-") || strings.HasPrefix(o.value.Text, "/dev/") {
				w.opaque(c, k.at, k.index, OpaqueInput, "make runs the rules in its input")
				continue
			}
			w.file(c, o.value, Runs, k.index)
		}
	}
	c = w.options(c, k, g)
	for _, o := range g.operands {
		name, _, assigned := strings.Cut(o.Text, "=")
		if !assigned {
			continue
		}
		name = strings.TrimRight(name, ":+?!")
		value := o.Text[strings.IndexByte(o.Text, '=')+1:]
		steers := variableRole(name) != plainVariable && !isHarmlessProgram(value) && !isHarmlessSetting(name, value)
		if steers || name == "SHELL" || name == "MAKEFLAGS" || name == ".SHELLFLAGS" || strings.ContainsAny(value, "$`;|&") {
			w.opaque(c, o.Pos.Offset, k.index, OpaqueEnvironment, "a variable of make that its rules run: "+name)
		}
	}
}

// walkDC handles dc, which runs !cmd in its text in a shell.
func walkDC(w *walker, c ctx, k call, _ given) {
	for i, a := range k.args() {
		if i > 0 && (k.words[i].Is("-e") || k.words[i].Is("--expression")) || strings.HasPrefix(a.Text, "-e") || strings.HasPrefix(a.Text, "--expression=") {
			if strings.Contains(a.Text, "!") || a.Kind != Literal {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueCode, "dc may run a command")
			}
		} else if !strings.HasPrefix(a.Text, "-") {
			w.file(c, a, Runs, k.index)
			w.opaque(c, a.Pos.Offset, k.index, OpaqueFile, "dc runs the commands in a file")
		}
	}
	if c.in.kind == fromFile || c.in.kind == piped && (!isKnown(c.in.text) || strings.Contains(c.in.text, "!")) {
		w.opaque(c, k.at, k.index, OpaqueCode, "dc may run a command")
	}
}

// walkDatabase handles database clients whose language can start a shell.
func walkDatabase(w *walker, c ctx, k call, _ given) {
	text := joinWords(k.args())
	if c.in.kind == piped {
		text += "\n" + c.in.text
	}
	lower := strings.ToLower(text)
	for _, sign := range []string{".shell", ".system", "\\!", "system", ".import", ".load", "load_extension", "program", "syscmd", "esyscmd",
		".output", ".once", "edit(", "-e", "\\g", "\\o", "\\copy", "\\i", "tee", "source", "pager"} {
		if (k.name == "R" || k.name == "Rscript" || sign != "-e") && strings.Contains(lower, sign) {
			w.setCode(k, k.name, text)
			w.opaque(c, k.at, k.index, OpaqueCode, k.name+" may start a shell")
			break
		}
	}
	if c.in.kind == fromFile || c.in.kind == piped && !isKnown(c.in.text) {
		w.opaque(c, k.at, k.index, OpaqueInput, k.name+" runs its input")
	}
	for i, a := range k.args() {
		switch {
		case a.Is("-f") && k.name == "psql", a.Is("-init"):
			if i+1 < len(k.args()) {
				w.file(c, k.args()[i+1], Runs, k.index)
				w.opaque(c, a.Pos.Offset, k.index, OpaqueFile, k.name+" runs the commands in a file")
			}
		case a.Is("-h") || a.Is("--host"):
			if i+1 < len(k.args()) {
				w.host(c, k.args()[i+1], k.index)
			}
		case strings.HasPrefix(a.Text, "-h") && len(a.Text) > 2 && k.name != "R" && k.name != "Rscript":
			w.host(c, a.cut(2), k.index)
		case strings.HasPrefix(a.Text, "--host="):
			w.host(c, a.cut(len("--host=")), k.index)
		case !strings.HasPrefix(a.Text, "-") && (k.name == "sqlite3" && i == 0 || k.name == "m4" || k.name == "Rscript" || k.name == "octave"):
			access := Writes
			if k.name != "sqlite3" {
				access = Runs
			}
			w.file(c, a, access, k.index)
		}
	}
}

// walkOpenSSL records the files and hosts that openssl's options name: openssl s_client -connect host:443.
func walkOpenSSL(w *walker, c ctx, k call, _ given) {
	args := k.args()
	if len(args) > 0 {
		w.out.Commands[k.index].Sub, w.out.Commands[k.index].Args = args[0].Text, args[1:]
	}
	for i := 1; i < len(args); i++ {
		if name, _, assigned := strings.Cut(args[i].Text, "="); assigned && strings.HasPrefix(name, "-") { // -connect=x is -connect x
			rest := append([]Word{literalWord(name, args[i].Pos), args[i].cut(len(name) + 1)}, args[i+1:]...)
			args = append(slices.Clip(args[:i]), rest...)
		}
		switch args[i-1].Text {
		case "-in", "-inkey", "-key", "-CAfile", "-config", "-cert", "-kfile", "-pass":
			if args[i-1].Text == "-pass" {
				if name, found := strings.CutPrefix(args[i].Text, "file:"); found {
					w.file(c, literalWord(name, args[i].Pos), Reads, k.index)
				}
				continue
			}
			w.file(c, args[i], Reads, k.index)
		case "-out", "-keyout", "-writerand":
			w.file(c, args[i], Writes, k.index)
		case "-connect", "-host", "-proxy", "-bind", "-url", "-server", "-path":
			w.host(c, args[i], k.index)
		case "-engine", "-provider", "-provider-path":
			w.opaque(c, args[i].Pos.Offset, k.index, OpaqueEnvironment, "openssl loads code")
		default:
			if args[0].Is("s_client") && !strings.HasPrefix(args[i].Text, "-") && strings.Contains(args[i].Text, ":") {
				w.host(c, args[i], k.index)
			}
		}
	}
}

// walkLess records the files that less reads; less +'!rm x' file runs a command.
func walkLess(w *walker, c ctx, k call, g given) {
	c = w.options(c, k, g)
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "an unknown option of less, which may write or run a file")
	}
	for _, a := range g.operands {
		switch {
		case strings.HasPrefix(a.Text, "+") && !strings.ContainsAny(a.Text, "!|v"):
			a.claim()
		case strings.HasPrefix(a.Text, "+"):
			w.opaque(c, a.Pos.Offset, k.index, OpaqueCode, "less runs the command in its first argument")
		default:
			w.file(c, a, Reads, k.index)
		}
	}
}

const lessLong = "log-file> LOG-FILE> lesskey-file^ lesskey-src^ lesskey-content! lesskey-context! pattern* prompt* tag* tag-file< tabs: buffers: color* " +
	"jump-target: max-forw-scroll: max-back-scroll: window: quotes* shift: header: line-num-width: search-options: rscroll: wheel-lines: modelines: " +
	"match-shift: intr: autosave: chop-long-lines raw-control-chars RAW-CONTROL-CHARS quit-if-one-screen no-init ignore-case IGNORE-CASE line-numbers " +
	"LINE-NUMBERS squeeze-blank-lines quit-at-eof QUIT-AT-EOF use-color mouse MOUSE follow-name incsearch status-column STATUS-COLUMN no-keypad tilde " +
	"wordwrap status-line quit-on-intr no-lessopen help version quiet silent QUIET SILENT hilite-search HILITE-SEARCH hilite-unread HILITE-UNREAD " +
	"force clear-screen CLEAR-SCREEN dumb search-skip-screen SEARCH-SKIP-SCREEN auto-buffers underline-special UNDERLINE-SPECIAL no-vbell " +
	"long-prompt LONG-PROMPT search-screen SEARCH-SCREEN no-histdups file-size form-feed no-number-headers no-search-headers " +
	"proc-backspace PROC-BACKSPACE proc-tab PROC-TAB proc-return PROC-RETURN show-preproc-errors exit-follow-on-close redraw-on-quit use-backslash"

// walkArchiver handles cpio and pax, which read the names of the files to pack or unpack from their input.
func walkArchiver(w *walker, c ctx, k call, _ given) {
	w.file(c, makeWord(unknown, false, true, "", w.place(k.at)), Uses, k.index)
}

// walkChecksum records the files that are read. With -c, these are the files listed in a file.
func walkChecksum(w *walker, c ctx, k call, g given) {
	c = w.options(c, k, g)
	w.walkOperands(c, k, tool{operands: "r*"}, g)
	if g.has("c", "check") {
		w.file(c, makeWord(unknown, false, true, "", w.place(k.at)), Reads, k.index)
	}
}
