package bash

// toolOf returns the options and operands of a known program. The grammars follow the manuals.
func toolOf(name string) (tool, bool) {
	if t, found := wrapperOf(name); found {
		return t, true
	}
	return fileToolOf(name)
}

// wrapperOf returns the options and operands of programs that start others.
func wrapperOf(name string) (tool, bool) {
	switch name {
	case "sudo":
		return tool{
			short: "+ABbEeHiKklNnPSsVvC:D@g:h:p:R@r:T:t:U:u:a:c:",
			long: "askpass background bell close-from: chdir@ preserve-env? edit group: set-home help host: login remove-timestamp reset-timestamp " +
				"list no-update non-interactive preserve-groups prompt: chroot@ role: stdin shell type: command-timeout: other-user: user: version validate",
			operands: "=x", special: walkSudo,
		}, true
	case "doas":
		return tool{short: "+LnsC<a:u:", operands: "=x", special: walkSudo}, true
	case "env":
		return tool{
			short: "+i0vu:C@S:", long: "ignore-environment null unset: chdir@ split-string: block-signal? default-signal? ignore-signal? " +
				"list-signal-handling debug argv0: help version",
			operands: "=x", special: walkEnv,
		}, true
	case "nohup", "setsid", "catchsegv", "fakeroot", "dbus-run-session", "unbuffer", "linux32", "linux64", "setarch", "torsocks", "torify",
		"systemd-inhibit", "caffeinate",
		"gosu", "su-exec", "chpst", "eatmydata", "firejail", "bwrap", "proot", "xvfb-run", "aa-exec", "rlwrap", "faketime", "cpulimit", "numactl",
		"cgexec", "chrt", "taskset",
		"prlimit", "setpriv", "runcon", "newgrp", "sg", "pkexec", "dumb-init", "tini", "s6-setuidgid", "softlimit", "setuidgid", "envdir",
		"daemonize", "start-stop-daemon",
		"valgrind", "ltrace", "perf", "heaptrack", "time", "gtime", "nice", "ionice", "stdbuf", "timeout", "strace", "chroot", "unshare", "nsenter",
		"hyperfine", "chronic", "ifne", "proxychains", "proxychains4", "viddy", "pee", "mispipe", "run0", "nix-shell", "sem":
		return plainWrapper(name), true
	case "xterm", "uxterm", "rxvt", "urxvt", "x-terminal-emulator", "konsole", "alacritty", "kitty", "foot", "gnome-terminal", "xfce4-terminal",
		"mate-terminal", "lxterminal", "terminator", "tilix", "wezterm", "ghostty", "st":
		return tool{special: walkWindow}, true
	case "bazel", "bazelisk", "buck2":
		return tool{special: walkLabels}, true
	case "watch":
		return tool{
			short: "+bcCdeghn:q:prtvwx", long: "beep color no-color differences? errexit chgexit interval: equexit: precise no-rerun no-title no-wrap " +
				"exec help version",
			special: walkWatch,
		}, true
	case "xargs":
		return tool{
			short: "+0a<d*E*e?I*i?L:l?n:oP:prs:tx",
			long: "null arg-file< delimiter* eof? replace? max-lines? max-args: open-tty max-procs: interactive process-slot-var: no-run-if-empty " +
				"max-chars: " +
				"show-limits verbose exit help version", special: walkXargs,
		}, true
	case "parallel":
		return tool{special: walkParallel}, true
	case "find":
		return tool{special: walkFind}, true
	case "fd", "fdfind":
		return tool{special: walkFD}, true
	case "k3s", "k0s", "microk8s", "minikube":
		return tool{special: walkBundledKubectl}, true
	case "su", "runuser":
		return tool{special: walkSu}, true
	case "ssh", "slogin", "mosh", "autossh":
		return tool{
			short: "+46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E>e:F<I^i<J:L:l:m:O:o:p:P:Q:R:S:W:w:", long: "ssh$ server$ client$ predict: port: family: no-init " +
				"local", special: walkSSH,
		}, true
	case "busybox", "toybox":
		return tool{special: walkBusyBox}, true
	case "flock":
		return tool{short: "+sxeonuw:E:FcvhV", long: "shared exclusive unlock nonblock timeout: wait: conflict-exit-code: close no-fork command " +
			"verbose help version", special: walkFlock}, true
	case "script":
		return tool{short: "aqfec$I>O>B>T>E:o:m:Vht", long: "append command$ echo: return flush force log-io> log-in> log-out> log-timing> " +
			"logging-format: output-limit: quiet timing? help version", operands: "w"}, true
	case "systemd-run":
		return tool{
			short: "+GqrtPSdM:H:p:E:u:hC", long: "user system scope unit: property: description: slice: slice-inherit expand-environment: no-block " +
				"remain-after-exit wait service-type: uid: gid: nice: " +
				"working-directory@ same-dir setenv: pty pipe quiet on-active: on-boot: on-startup: on-unit-active: on-unit-inactive: on-calendar: " +
				"on-clock-change on-timezone-change path-property: socket-property: " +
				"timer-property: collect no-ask-password machine: host: send-sighup shell help version pty-late job-mode: ignore-failure", operands: "x",
		}, true
	case "at", "batch":
		return tool{short: "mMldrcvVbf^q:t:", special: walkAt}, true
	case "crontab":
		return tool{short: "u:elrisTnx:", special: walkCrontab}, true
	case "entr":
		return tool{short: "+acdnprsxz", special: walkEntr}, true
	case "watchexec", "nodemon", "reflex", "chokidar", "inotifywait":
		return tool{special: walkDoubtful}, true
	case "tmux", "screen", "dtach", "abduco", "zellij":
		return tool{special: walkTerminal}, true
	case "expect", "socat", "gdb", "lldb", "rr":
		return tool{special: walkDoubtful}, true
	case "ld.so", "ld-linux.so", "ld-linux-x86-64.so.2", "ld-linux.so.2", "ld-linux-aarch64.so.1", "ld-musl-x86_64.so.1":
		return tool{short: "+", long: "list verify inhibit-cache library-path: inhibit-rpath: audit: preload: argv0: glibc-hwcaps-prepend: " +
			"glibc-hwcaps-mask: help version list-tunables list-diagnostics", operands: "x"}, true
	case "run-parts":
		return tool{long: "test list verbose report debug regex: lsbsysinit umask: arg: exit-on-error reverse new-session stdin help version",
			operands: "e", special: runParts}, true
	}
	return tool{}, false
}

// plainWrapper returns wrappers that take options, then some words, and then the command.
func plainWrapper(name string) tool {
	switch name {
	case "time", "gtime":
		return tool{short: "+apqvVf:o>h", long: "append format: output> portability quiet verbose help version", operands: "x"}
	case "nice":
		return tool{short: "+n:0123456789", long: "adjustment: help version", operands: "x"}
	case "ionice":
		return tool{short: "+c:n:p:P:tu:hV", long: "class: classdata: pid: pgid: ignore uid: help version", operands: "x"}
	case "stdbuf":
		return tool{short: "+i:o:e:", long: "input: output: error: help version", operands: "x"}
	case "timeout":
		return tool{short: "+fpvk:s:", long: "foreground preserve-status kill-after: signal: verbose help version", operands: "-x"}
	case "setsid":
		return tool{short: "+cfwhV", long: "ctty fork wait help version", operands: "x"}
	case "chroot":
		return tool{short: "+", long: "groups: userspec: skip-chdir help version", operands: "-x", via: Container}
	case "strace", "ltrace":
		return tool{
			short: "+AcCdDfFhikntrTvVwxXyYzZqa:b:e:E:I:o>O:p:P:s:S:u:U:l:",
			long: "daemonize? attach: trace-path: columns: detach-on: successful-only failed-only status: signal: trace: output> string-limit: user: " +
				"env: follow-forks output-separately " +
				"summary summary-only summary-wall tips? const-print-style: decode-fds? decode-pids? instruction-pointer stack-traces? syscall-number " +
				"relative-timestamps? absolute-timestamps? " +
				"syscall-times? no-abbrev quiet? silent? silence? strings-in-hex? seccomp-bpf interruptible: kill-on-exit debug help version", operands: "x",
		}
	case "unshare":
		return tool{
			short: "+m?u?i?n?p?U?C?T?fcrhVR@w@S:G:l:",
			long: "mount? uts? ipc? net? pid? user? cgroup? time? fork kill-child? mount-proc? map-root-user map-current-user map-auto map-user: " +
				"map-group: map-users: map-groups: propagation: setgroups: " +
				"keep-caps root@ wd@ setuid: setgid: monotonic: boottime: load-interp: help version", operands: "x", special: orShell,
		}
	case "nsenter":
		return tool{
			short: "+at:T?m?u?i?n?p?C?U?S:G:r?w?W:FeZhVN:",
			long: "all target: time? mount? uts? ipc? net? pid? cgroup? user? setuid? setgid? preserve-credentials root? wd? wdns: no-fork " +
				"follow-context env user-parent join-cgroup keep-caps help version",
			operands: "x", special: orShell, via: Container,
		}
	case "chrt":
		return tool{short: "+abdfiomRrvp:T:P:D:hV", long: "batch deadline fifo idle other rr sched-runtime: sched-period: sched-deadline: " +
			"reset-on-fork all-tasks max pid: verbose help version", operands: "-x"}
	case "taskset":
		return tool{short: "+acp:hV", long: "all-tasks cpu-list pid: help version", operands: "-x"}
	case "prlimit":
		return tool{
			short: "+c?d?e?f?i?l?m?n?q?r?s?t?u?v?x?y?p:o:hV",
			long: "core? data? nice? fsize? sigpending? memlock? rss? nofile? msgqueue? rtprio? stack? cpu? nproc? as? locks? rttime? pid: output: " +
				"noheadings raw verbose help version", operands: "x",
		}
	case "setpriv":
		return tool{
			short: "+dhV", long: "dump no-new-privs nnp ambient-caps: inh-caps: bounding-set: ruid: euid: rgid: egid: reuid: regid: clear-groups " +
				"keep-groups init-groups groups: securebits: pdeathsig: " +
				"selinux-label: apparmor-profile: reset-env ptracer: landlock-access: landlock-rule: seccomp-filter: list-caps help version", operands: "x",
		}
	case "pkexec":
		return tool{short: "+", long: "disable-internal-agent keep-cwd user: help version", operands: "x"}
	case "fakeroot":
		return tool{short: "+l:s>i<ub:hv", long: "lib: faked: save-file> load-file< unknown-is-real fd-base: help version", operands: "x"}
	case "dbus-run-session":
		return tool{short: "+", long: "config-file: dbus-daemon: help version", operands: "x"}
	case "linux32", "linux64":
		return tool{short: "+BFILRSTXZ3vhV", long: "32bit fdpic-funcptrs short-inode addr-compat-layout addr-no-randomize whole-seconds " +
			"sticky-timeouts read-implies-exec mmap-page-zero 3gb 4gb uname-2.6 verbose help version", operands: "x"}
	case "setarch":
		return tool{short: "+BFILRSTXZ3vhV", long: "32bit addr-no-randomize verbose help version", operands: "-x"}
	case "gosu", "su-exec", "s6-setuidgid", "setuidgid", "envdir":
		return tool{short: "+", operands: "-x"}
	case "xvfb-run":
		return tool{short: "+ade:f>hln:lp:s:w:", long: "auto-servernum auto-display error-file> auth-file> help listen-tcp server-num: xauth-protocol: " +
			"server-args: wait:", operands: "x"}
	case "valgrind":
		return tool{short: "+hqvd", long: "tool: log-file: leak-check: track-origins: show-leak-kinds: error-exitcode: trace-children: suppressions: " +
			"quiet verbose help version", operands: "x"}
	case "perf", "newgrp", "sg", "chpst", "start-stop-daemon", "hyperfine", "firejail", "bwrap", "proot", "faketime", "cpulimit", "numactl", "cgexec",
		"daemonize", "softlimit", "viddy", "pee", "mispipe", "run0", "nix-shell", "sem":
		return tool{special: walkDoubtful}
	case "chronic":
		return tool{short: "+ve", operands: "x"}
	case "ifne":
		return tool{short: "+n", operands: "x"}
	case "proxychains", "proxychains4":
		return tool{short: "+qf<", operands: "x"}
	case "systemd-inhibit":
		return tool{short: "+h", long: "what: who: why: mode: list help version no-pager no-legend no-ask-password", operands: "x"}
	case "caffeinate":
		return tool{short: "+dimsut:w:", operands: "x"}
	case "rlwrap":
		return tool{special: walkDoubtful}
	}
	return tool{short: "+hvqV", long: "help version quiet verbose", operands: "x"}
}
