package bash

// fileToolOf returns the options and operands of programs whose words name files or hosts.
func fileToolOf(name string) (tool, bool) {
	switch name {
	case "cat", "tac", "nl", "rev", "head", "tail", "wc", "od", "xxd", "hexdump", "hd", "strings", "base64", "base32", "basenc", "md5sum", "sha1sum",
		"sha224sum", "sha256sum",
		"sha384sum", "sha512sum", "b2sum", "cksum", "sum", "file", "stat", "cut", "paste", "fold", "fmt", "expand", "unexpand", "pr", "column", "shuf",
		"zcat", "bzcat", "xzcat", "zstdcat",
		"bat", "batcat", "more", "most", "ls", "dir", "vdir", "tree", "du", "readlink", "realpath", "comm", "join", "cmp", "diff", "colordiff",
		"sdiff", "nm", "objdump", "readelf",
		"ldd", "size", "lsattr", "getfacl", "getfattr", "namei", "look", "tsort", "csvlook", "hexyl", "xmllint", "less":
		t := readers(name)
		t.looks = true
		return t, true
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "zgrep", "bzgrep", "xzgrep":
		t := searchers(name)
		t.looks = true
		return t, true
	case "pdftotext", "ps2pdf":
		return tool{operands: "rw"}, true
	case "cpio", "pax", "afio": // they read file names from their input
		return tool{special: walkArchiver}, true
	case "rm", "rmdir", "unlink", "shred", "trash", "trash-put", "srm", "wipe", "rimraf", "del", "del-cli",
		"rip":
		return tool{short: "dfIirRvpn:s:uxz", long: "force interactive? recursive dir verbose one-file-system no-preserve-root preserve-root? parents " +
			"ignore-fail-on-non-empty iterations: random-source< size: remove? exact zero", operands: "d*"}, true
	case "touch":
		return tool{short: "acd*fhmr<t:", long: "date* no-create no-dereference reference< time:", operands: "w*"}, true
	case "mkdir", "mkfifo", "mknod":
		return tool{short: "m:pvZ", long: "mode: parents verbose context?", operands: "w*"}, true
	case "truncate":
		return tool{short: "cor<s:", long: "no-create io-blocks reference< size:", operands: "w*"}, true
	case "tee", "sponge":
		return tool{short: "aip", long: "append ignore-interrupts output-error?", operands: "w*", special: walkTee}, true
	case "chmod", "chown", "chgrp", "chattr", "setfacl", "setfattr":
		return tool{short: "cfvRHLPhm:x:M<X<bkdnp:V", long: "changes silent quiet verbose reference< recursive preserve-root no-preserve-root " +
			"dereference no-dereference from: modify: remove:", operands: "-w*", special: changeMode}, true
	case "cp":
		return tool{short: "abdfiHlLnPprRsS:t>TuvxZ", long: "archive attributes-only backup? copy-contents debug dereference force interactive link " +
			"no-clobber no-dereference no-target-directory one-file-system " +
			"parents preserve? no-preserve: recursive reflink? remove-destination sparse: strip-trailing-slashes symbolic-link suffix: " +
			"target-directory> update? verbose context? keep-directory-symlink", special: walkCopy}, true
	case "mv":
		return tool{short: "bfinS:t>TuvZ", long: "backup? debug exchange force interactive no-clobber no-copy no-target-directory " +
			"strip-trailing-slashes suffix: target-directory> update? verbose context", operands: "r*w", special: walkMove}, true
	case "ln", "link", "symlink":
		return tool{short: "bdFfiLnPrsS:t>Tv", long: "backup? directory force interactive logical no-dereference physical relative symbolic suffix: " +
			"target-directory> no-target-directory verbose", special: walkLink}, true
	case "install":
		return tool{short: "bcCdDg:m:o:pS:st>TvZ", long: "backup? compare directory group: mode: owner: preserve-timestamps strip strip-program^ " +
			"suffix: target-directory> no-target-directory verbose preserve-context context?", special: walkCopy}, true
	case "jq", "gojq", "jaq", "yq", "xq", "tomlq":
		return tool{special: walkJQ}, true
	case "rename", "prename", "mmv":
		return tool{special: walkRename}, true
	case "dd":
		return tool{special: walkDD}, true
	case "sort":
		return tool{short: "bdfghiMnrRVcCk:mo>sS:t*T@uz", long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort " +
			"ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort " +
			"random-source< reverse sort: version-sort batch-size: check? compress-program$ debug files0-from% key: merge output> stable buffer-size: " +
			"field-separator* temporary-directory@ parallel: unique zero-terminated", operands: "r*"}, true
	case "uniq":
		return tool{short: "cdDf:is:uw:z", long: "count repeated all-repeated? skip-fields: group? ignore-case skip-chars: unique zero-terminated " +
			"check-chars:", operands: "rw"}, true
	case "split", "csplit":
		return tool{short: "a:b:C:d?el:n:t:ux?f:kqsz", long: "suffix-length: additional-suffix: bytes: line-bytes: numeric-suffixes? hex-suffixes? " +
			"elide-empty-files filter$ lines: number: separator: unbuffered verbose prefix: digits: keep-files", operands: "rw"}, true
	case "sed":
		return tool{short: "nbe*f^E?ri?l:suz", long: "quiet silent debug expression* file^ follow-symlinks in-place? line-length: posix " +
			"regexp-extended separate sandbox unbuffered null-data zero-terminated help version", special: walkSed}, true
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		return tool{special: awk}, true
	case "curl":
		return tool{special: walkCurl}, true
	case "wget", "wget2":
		return tool{special: walkWget}, true
	case "aria2c", "axel", "lynx", "w3m", "links", "elinks", "http", "https", "httpie", "xh", "ab", "wrk", "siege", "lwp-request", "lftp", "ftp",
		"tftp", "telnet", "ping", "ping6",
		"traceroute", "tracepath", "mtr", "dig", "nslookup", "host", "whois", "nmap", "sftp", "rlogin", "rsh", "ssh-keyscan", "ssh-copy-id",
		"smbclient", "ldapsearch", "redis-cli", "mongo", "mongosh", "systemd-resolve", "avahi-resolve", "avahi-resolve-host-name",
		"avahi-resolve-address", "nmblookup", "drill", "delv", "kdig", "doggo", "dog", "unbound-host", "dns-sd", "dscacheutil", "resolvectl",
		"fping", "arping", "nping", "hping3", "tcping", "iperf", "iperf3", "ntpdate", "sntp", "rdate", "finger", "showmount", "rpcinfo", "snmpget",
		"snmpwalk", "nbtscan", "adnshost", "dnstracer",
		"dnsquery", "gethostip", "resolveip", "tcptraceroute", "lft", "httping", "zmap", "hesinfo":
		return networkTool(name), true
	case "nc", "ncat", "netcat":
		return tool{short: "46bCDdFhklNnrStUuvZze$c$g:G:i:I:M:m:O:o>P:p:q:s:T:V:w:X:x:", long: "exec$ sh-exec$ lua-exec^ lua-exec-internal^ output> " +
			"hex-dump> ssl ssl-cert< ssl-key< ssl-verify ssl-trustfile< proxy& proxy-type: proxy-auth: " +
			"listen keep-open udp sctp verbose wait: idle-timeout: delay: source: source-port: max-conns: chat broker crlf telnet nodns allow: " +
			"allowfile< deny: denyfile< send-only recv-only no-shutdown append-output help version zero", special: walkNetcat}, true
	case "scp":
		return tool{short: "346ABCOpqRrsTvc:D$F<i<J:l:o:P:S$X:", operands: "p*p", special: walkSCP}, true
	case "rsync":
		return tool{special: walkRsync}, true
	case "tar", "bsdtar":
		return tool{special: walkTar}, true
	case "zip":
		return tool{special: walkZip}, true
	case "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lzma", "compress", "uncompress", "lz4":
		return tool{short: "123456789cdfhklLnNqrtvVS:T:zo>", long: "stdout decompress force keep list quiet recursive suffix: test verbose fast best " +
			"threads: help version rm output>", operands: "w*"}, true
	case "unzip":
		return tool{short: "d>plvtzZaCjnLMoquUXP*x*", special: walkUnzip}, true
	case "7z", "7za", "unrar", "unar":
		return tool{short: "d>o:plvtzaCjnLMqouxUX", operands: "r"}, true
	case "patch":
		return tool{short: "bceEfFlnNRstTuvZB:d@D:g:i<o>p:r>V:x:Y:z:", long: "backup directory@ input< output> reject-file> strip: force reverse " +
			"dry-run", operands: "wr"}, true
	case "vi", "vim", "nvim", "view", "ex", "gvim", "vimdiff":
		return tool{special: walkVim}, true
	case "ed", "red":
		return tool{special: walkEd}, true
	case "emacs", "emacsclient":
		return tool{special: walkEmacs}, true
	case "mutt", "neomutt", "mail", "mailx":
		return tool{special: doubtfulCode}, true
	case "nano", "pico", "micro", "joe", "kate", "gedit", "code":
		return tool{operands: "w*"}, true
	case "man", "apropos", "info":
		return tool{short: "P$H?dDfkKwWcR:L:m:M:S:s:eiIap:tTZuhVE:Xl", long: "pager$ html? preprocessor:", special: walkMan, looks: true}, true
	case "make", "gmake", "gnumake", "bmake":
		return tool{special: makeTool}, true
	case "dc":
		return tool{special: walkDC}, true
	case "m4", "gnuplot", "octave", "maxima", "gp", "R", "Rscript", "ghci", "sqlite3", "psql", "mysql", "mariadb":
		return tool{special: walkDatabase}, true
	case "openssl":
		return tool{special: walkOpenSSL}, true
	case "gpg", "gpg2":
		return tool{short: "o>u:r:R:abcdesvntqz:f", long: "output> homedir: armor decrypt encrypt sign verify recipient: keyserver& passphrase: batch " +
			"yes import export recv-keys", operands: "r*"}, true
	case "ssh-keygen":
		return tool{short: "qf>C:t:b:N:P:yeilFRD^a:I:n:V:s<O:m:pBHk", operands: "r*"}, true
	case "mount":
		return tool{operands: "w*", special: mountShare}, true
	case "umount", "losetup", "mkswap", "swapon", "swapoff", "fsck", "fdisk", "parted", "sgdisk", "wipefs", "cryptsetup", "lvremove",
		"vgremove", "pvremove":
		return tool{operands: "w*"}, true
	case "pip", "pipx":
		return tool{}, false
	case "source", ".":
		return tool{special: notBuiltin}, true
	case "tcpdump":
		return tool{short: "AbdDefhHIJKlLnNOpqStuUvxX#B:c:C:E:F<G:i:j:m:M:Q:r<s:T:V<w>W:y:z$Z:", operands: ""}, true
	case "logrotate", "ansible", "ansible-playbook", "terraform", "vagrant", "capsh", "puppet", "chef-client", "cmake", "ninja", "gcc", "cc", "g++",
		"clang", "ld", "go", "cargo", "mvn", "gradle", "ant", "rake", "just", "task":
		return tool{}, false
	}
	if t, found := plainTool(name); found {
		return t, true
	}
	if len(name) > 4 && name[:4] == "mkfs" {
		return tool{operands: "w*"}, true
	}
	return tool{}, false
}

// plainTool returns the options of programs whose options name no files unless the table marks them.
func plainTool(name string) (tool, bool) {
	switch name {
	case "true", "false", "echo", "printf", "sleep", "seq", "expr", "test", "[", "yes", "factor", "kill", "pkill", "pgrep", "pidof", "ps", "pstree",
		"uname", "arch", "whoami", "id", "groups", "logname", "tty", "nproc", "uptime", "free", "vmstat", "clear", "reset", "tput", "which", "whereis",
		"locale", "getconf", "lsblk", "lscpu", "lsusb", "lspci", "lsmod", "cal", "ncal", "basename", "dirname", "pathchk", "w", "killall", "renice",
		"printenv", "numfmt", "command", "type":
		return tool{operands: "-*", claims: true, looks: true}, true
	case "getent":
		return tool{short: "+s:iA", long: "service: no-idn no-addrconfig", special: walkGetent, claims: true, looks: true}, true
	case "tr":
		return tool{short: "cCdst", operands: "-*", claims: true, looks: true}, true
	case "date":
		return tool{short: "d*f<r<s*uRI?jnv:z:", long: "date* file< reference< set* utc universal iso-8601? rfc-3339: rfc-email rfc-2822 debug " +
			"resolution help version", special: walkDate}, true
	case "hostname":
		return tool{short: "aAbdfF<hiIsvVy", long: "file< boot alias all-fqdns all-ip-addresses domain fqdn long ip-address nis short yp help version " +
			"verbose", special: walkHostname}, true
	case "df", "lsof", "who", "users", "last", "sync", "fuser", "pathchk_":
		return tool{operands: "r*", looks: true}, true
	}
	return tool{}, false
}

// readers returns the options and operands of programs that read the files named by their operands: cat, head, diff.
// The type tool describes the table language.
func readers(name string) tool {
	switch name {
	case "shuf":
		return tool{short: "ei:n:o>rz", long: "echo input-range: head-count: output> random-source< repeat zero-terminated", operands: "r*"}
	case "tree":
		return tool{short: "adfhHlLmspugDFqNQrtxXJACSnco>I*P*", long: "noreport prune dirsfirst fromfile gitignore gitfile< infofile< info filelimit: " +
			"timefmt* charset: matchdirs ignore-case metafirst si du inodes device help version output> fromtabfile", special: walkTree}
	case "column":
		return tool{short: "c:s*o*tN:R:T:H:E:W:O:n:JdexhVr:i:p:L", long: "separator* output-separator* table table-columns: json fillrows output-width: " +
			"table-name: table-right: table-hide: table-order: table-noheadings", operands: "r*"}
	case "join", "nl":
		return tool{short: "a:e*i:j:1:2:o:t*v:b*d*f*h*l:n:ps*v:w:", long: "check-order nocheck-order header zero-terminated ignore-case number-format: " +
			"number-separator* body-numbering* section-delimiter* number-width: starting-line-number: line-increment: no-renumber", operands: "r*"}
	case "comm":
		return tool{short: "123z", long: "output-delimiter* total check-order nocheck-order zero-terminated", operands: "r*"}
	case "ls", "dir", "vdir":
		return tool{short: "aAbBcCdDfFgGhHiI*klLmnNopqQrRsStT:uUvw:xXZ1", long: "all almost-all author escape block-size: ignore-backups color? directory " +
			"dired classify? file-type format: full-time group-directories-first no-group human-readable si dereference-command-line " +
			"dereference-command-line-symlink-to-dir hide* hyperlink? indicator-style: inode ignore* kibibytes dereference literal numeric-uid-gid " +
			"hide-control-chars show-control-chars quote-name quoting-style: reverse recursive size sort: time: time-style: tabsize: width: context " +
			"zero help version", operands: "r*"}
	case "bat", "batcat":
		return tool{short: "Appl:H:r:m:nuSfdLhV", long: "pager$ language: highlight-line: line-range: map-syntax: theme: style: color: wrap: paging: tabs: " +
			"decorations: file-name* diff plain number show-all list-languages list-themes help version", operands: "r*"}
	case "diff", "sdiff", "colordiff", "cmp":
		return tool{short: "abBcC:dD*eEF*hiI*lLnNpPqrsS*tTuU:vwW:x*X<yZo>", long: "brief recursive unified? context? side-by-side width: ignore-case " +
			"ignore-all-space ignore-blank-lines ignore-space-change ignore-trailing-space ignore-matching-lines* exclude* exclude-from< from-file< " +
			"to-file< label* output> color? new-file text strip-trailing-cr report-identical-files suppress-common-lines minimal speed-large-files " +
			"ed normal rcs show-c-function show-function-line* no-dereference starting-file: unidirectional-new-file paginate ifdef* tabsize: " +
			"diff-program$ line-format* old-line-format* new-line-format* unchanged-line-format* bytes: ignore-initial: verbose print-bytes silent quiet",
			operands: "r*"}
	case "du":
		return tool{short: "0aAbB:cd:DhHklLmPsSt:xX<", long: "null all apparent-size block-size: bytes total dereference-args max-depth: files0-from% " +
			"human-readable inodes count-links dereference no-dereference separate-dirs si summarize threshold: time? time-style: exclude-from< exclude* " +
			"one-file-system help version", operands: "r*"}
	case "file":
		return tool{short: "bcCdEf%F*hikLlm<M<nNprsSP:v0zZe:", long: "brief checking-printout compile files-from% separator* no-dereference mime mime-type " +
			"mime-encoding keep-going dereference magic-file< no-buffer no-pad print0 preserve-date raw special-files uncompress exclude: extension apple " +
			"parameter: help version", special: walkFileType}
	case "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum":
		return tool{short: "a:bctwzl:rs", long: "algorithm: binary check tag text zero ignore-missing quiet status strict warn length: base64 raw debug",
			operands: "r*", special: walkChecksum}
	case "head", "tail":
		return tool{short: "c:n:fFqsvz0123456789", long: "bytes: lines: follow? pid: retry sleep-interval: max-unchanged-stats: quiet silent verbose " +
			"zero-terminated", operands: "r*"}
	case "cut", "paste":
		return tool{short: "b:c:d*f:nsz", long: "bytes: characters: delimiter* delimiters* fields: complement only-delimited output-delimiter* serial " +
			"zero-terminated", operands: "r*"}
	case "stat":
		return tool{short: "Lfc*t", long: "dereference file-system format* printf* terse cached:", operands: "r*"}
	case "od", "xxd", "hexdump", "hd":
		if name == "xxd" {
			return tool{short: "abCeEidprRuvg:c:l:n:o:s:", long: "- ps plain postscript include cols: groupsize: len: seek: name: offset: bits revert " +
				"uppercase little-endian ebcdic autoskip capitalize version help", operands: "rw"}
		}
		if name == "od" {
			return tool{short: "A:j:N:S?t:vw?abcdDefFhHiIlLoOsxX", long: "address-radix: skip-bytes: read-bytes: format: width? strings? " +
				"output-duplicates traditional endian:", operands: "r*"}
		}
		return tool{short: "A:j:N:S?t:vw?bcdfhilosxCe*n:", long: "address-radix: skip-bytes: read-bytes: format: width?", operands: "r*"}
	case "pr":
		return tool{short: "acdDe?fFhi?Jl:mn?N:o:rs?S?tTvw:W:", long: "across columns: double-space date-format* expand-tabs? form-feed header* " +
			"output-tabs? join-lines length: merge number-lines? first-line-number: indent: no-file-warnings separator? sep-string? omit-header " +
			"omit-pagination show-nonprinting width: page-width: help version", operands: "r*"}
	case "strings", "fold", "fmt", "base64", "base32", "basenc":
		return tool{short: "abcdfhHlkLmsSzADe:n:t:w:v:i:N:o:p:I:P:X:B:x0", long: "wrap: decode ignore-garbage max-depth: exclude: width: bytes: " +
			"encoding: radix: separator: files0-from%", operands: "r*"}
	case "wc":
		return tool{short: "clmLw", long: "bytes chars lines max-line-length words total: files0-from%", operands: "r*"}
	case "less":
		return tool{short: `aABcCdeEfFgGiIJKLmMnNqQrRsSuUvVwWX~0123456789b:D*h:j:k^o>O>p*P*t*T<x:y:z:"*#:`, long: lessLong, special: walkLess}
	case "xmllint":
		return tool{long: "- xpath: schema< output> format noout html huge", short: "o>", operands: "r*"}
	}
	return tool{operands: "r*"}
}

// searchers returns the options of grep and its relatives, whose first operand is a pattern.
func searchers(name string) tool {
	if name == "rg" {
		return tool{
			short: "e*f<A:B:C:g/m:j:t:T:r*M:E:d:FiIlLnNopPqsSuUvVwxz0cH.a",
			long: "regexp* file< pre$ pre-glob: hostname-bin$ glob/ iglob/ glob-case-insensitive type: " +
				"type-not: type-add/ type-clear: after-context: before-context: context: max-count: max-depth: threads: replace* " +
				"encoding: sort: sortr: color: colors: engine: ignore-file< path-separator: max-columns: max-filesize: dfa-size-limit: " +
				"regex-size-limit: context-separator: field-match-separator: generate:", special: walkGrep,
		}
	}
	if name == "ack" || name == "ag" {
		return tool{short: "A:B:C:m:g:G:", long: "pager$ after: before: context: ackrc^", special: walkGrep}
	}
	return tool{
		short: "EFGPe*f<ivwxyZzcoLlm:qsbHhnTuUA:B:C:aD:d:Ir0123456789R", long: "regexp* file< max-count: after-context: before-context: context: " +
			"color? colour? label* binary-files: devices: directories: exclude* exclude-from< exclude-dir* include/", special: walkGrep,
	}
}

// networkTool returns the options of programs that reach a host: ping, dig, telnet. For other programs, every URL
// among their words counts.
func networkTool(name string) tool {
	switch name {
	case "aria2c":
		return tool{short: "d@o>i<l>j:s:x:k:c", long: "dir@ out> input-file< log> on-download-complete^ on-download-start^ on-download-error^ " +
			"on-download-stop^ conf-path<", operands: "h*"}
	case "ping", "ping6":
		return tool{short: "4aAbBdDfhLnOqrRUvV6c:e:F:i:I:l:m:M:N:p:Q:s:S:t:T:w:W:", operands: "h"}
	case "traceroute", "tracepath", "mtr":
		return tool{short: "46dFnrTIUDf:g:i:m:N:p:q:s:t:w:z:c:", operands: "h"}
	case "dig", "drill", "delv", "kdig", "doggo", "dog":
		return tool{special: walkDig}
	case "resolvectl":
		return tool{short: "+46i:p:t:c:h", long: "interface: protocol: type: class: raw? json: legend? cname? validate? synthesize? cache? zone? " +
			"trust-anchor? network? search? service-address? service-txt? no-pager help version", special: walkResolve}
	case "systemd-resolve", "avahi-resolve", "avahi-resolve-host-name", "avahi-resolve-address", "nmblookup", "unbound-host", "dns-sd", "dscacheutil",
		"fping", "arping", "nping", "hping3", "tcping", "iperf", "iperf3", "ntpdate", "sntp", "rdate", "finger", "showmount", "rpcinfo", "snmpget",
		"snmpwalk", "nbtscan", "adnshost", "dnstracer",
		"dnsquery", "gethostip", "resolveip", "tcptraceroute", "lft", "httping", "zmap", "hesinfo":
		return tool{special: walkNames}
	case "nslookup", "host", "whois", "nmap", "ssh-keyscan":
		return tool{short: "ACdlrsTwvav46nPc:N:R:t:W:m:h&p:i<o>T:f<", long: "- script^ script-args: type: query:", operands: "h*"}
	case "telnet", "ftp", "tftp", "rlogin", "rsh", "lftp", "sftp", "ssh-copy-id":
		return tool{short: "468acdEfFKLNrxXe!n:l:p:u:i<o:P:b^B:F<S$D$R:", operands: "h"}
	case "redis-cli", "mongo", "mongosh", "ldapsearch", "smbclient":
		return tool{short: "h&p:a:u:H&x:", long: "host& eval!", operands: ""}
	case "http", "https", "httpie", "xh":
		return tool{short: "o>a:A:d", long: "output> auth: download session: verify:", special: walkHTTPie}
	}
	return tool{special: walkURLs}
}
