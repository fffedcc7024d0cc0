package bash

import (
	"slices"
	"strings"
)

// multi describes a program with sub-commands: the options before the sub-command, and which sub-commands have a
// second level.
type multi struct {
	short, long string
	second      string // the sub-commands with a second level; "*" means all
	special     func(w *walker, c ctx, k call, sub string, args []Word, g given)
}

// subcommandsOf returns the options of programs with sub-commands: git -C dir push, docker run image rm. Second lists
// the sub-commands with a second level.
func subcommandsOf(name string) (multi, bool) {
	switch name {
	case "git", "hub":
		return multi{
			short: "+hvpPC@c:", long: "help version exec-path? html-path man-path info-path paginate no-pager no-replace-objects no-lazy-fetch " +
				"no-optional-locks no-advice bare git-dir: work-tree: namespace: " +
				"super-prefix: config-env: list-cmds: literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs attr-source: shallow-file:",
			second: "stash worktree remote submodule bisect notes reflog lfs flow bundle sparse-checkout maintenance", special: walkGit,
		}, true
	case "docker", "podman", "nerdctl":
		return multi{
			short: "+DH&c:l:v", long: "config: context: debug host& log-level: tls tlscacert: tlscert: tlskey: tlsverify version help remote " +
				"connection: url: root: runroot: namespace: storage-driver: cgroup-manager: events-backend:",
			second: "compose container image volume network system builder buildx context config secret service stack swarm node plugin manifest trust " +
				"pod machine generate kube play", special: walkDocker,
		}, true
	case "docker-compose", "podman-compose":
		return multi{short: "+f<p:DH&", long: "file< project-name: profile: env-file< project-directory@ ansi: parallel: verbose compatibility",
			special: walkCompose}, true
	case "kubectl", "oc":
		return multi{
			short: "+n:s&v:", long: "namespace: server& kubeconfig< context: cluster: user: token: as: as-group: v: request-timeout: " +
				"certificate-authority: client-certificate: client-key: cache-dir: insecure-skip-tls-verify tls-server-name: profile: match-server-version",
			second: "config rollout set create auth top certificate cluster-info plugin adm", special: walkKubectl,
		}, true
	case "lxc", "incus":
		return multi{short: "+qvh", long: "debug force-local project: quiet sub-commands verbose version help",
			second: "image network profile project storage config remote", special: walkLXC}, true
	case "vagrant", "multipass", "adb", "machinectl":
		return multi{short: "+s:H:M:qPt:deL:", second: "", special: walkGuest}, true
	case "npm", "pnpm", "yarn":
		return multi{short: "+C@gw:sdqD", long: "prefix@ global workspace: silent filter: dir@ cwd@ registry& loglevel: workspaces script-shell^ " +
			"verbose version help recursive", second: "config cache workspace global", special: walkNPM}, true
	case "npx", "bunx", "pnpx", "uvx", "pipx":
		return multi{short: "+", special: walkNPX}, true
	case "pip", "uv", "poetry", "pipenv", "conda", "mamba", "micromamba", "pdm", "hatch", "rye", "bundle", "mise", "asdf", "direnv", "nix", "rustup",
		"pixi", "devbox":
		return multi{short: "+qvhC@n:p:y", long: "quiet verbose help version no-cache-dir directory@ project: python: no-interaction index-url& proxy& " +
			"log> prefix: name: isolated yes no-ansi", second: "tool env config self python run_ cache", special: walkRunner}, true
	case "apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "zypper", "apk", "pacman", "brew", "snap", "flatpak", "port", "emerge", "rpm", "gem",
		"cargo", "go", "composer":
		return multi{short: "+qyfdsmuVhc^o:t:C@", long: "quiet yes assume-yes force-yes no-install-recommends option: config-file^ assumeyes root: help " +
			"version allow-unauthenticated verbose", second: "mod tool", special: walkPackages}, true
	case "systemctl", "service", "loginctl", "hostnamectl", "timedatectl", "journalctl", "launchctl", "rc-service":
		return multi{short: "+qfalHM:p:t:n:o:s:u:b?", long: "user system no-pager quiet force now type: state: lines: output: host: machine: property: " +
			"root: all full no-block no-ask-password plain", special: walkServices}, true
	case "gh", "glab", "aws", "gcloud", "az", "doctl", "heroku", "fly", "flyctl", "vercel", "netlify", "firebase", "supabase", "gsutil", "s3cmd",
		"rclone", "mc", "terraform", "tofu", "pulumi", "helm", "ansible", "vault", "consul", "nomad", "hg", "svn", "bzr", "jj", "ip", "nmcli", "zfs",
		"zpool", "btrfs", "lvm", "nft", "iptables", "ufw", "firewall-cmd", "virsh", "VBoxManage", "qm", "pct", "crictl", "ctr", "buildah", "skopeo",
		"make-", "op", "doppler", "aws-vault", "chamber", "infisical", "dotenv", "dotenvx":
		return multi{short: "+qvhR:n:p:r:", long: "profile: region: output: endpoint-url& project: subscription: repo: namespace: kube-context: " +
			"verbose debug help version quiet chdir@", second: secondName(name), special: walkService}, true
	}
	return multi{}, false
}

// secondName returns a service program's sub-commands that have sub-commands themselves; "*" means all.
func secondName(name string) string {
	switch name {
	case "gh", "glab", "aws", "az", "doctl", "gcloud":
		return "*"
	case "terraform", "tofu":
		return "state workspace providers"
	case "helm":
		return "repo plugin dependency get show"
	case "ip", "zfs", "btrfs":
		return "addr address link route rule neigh netns tunnel subvolume device"
	}
	return ""
}

// subcommand finds a call's sub-command. It returns the access to assume for words that no handler claims.
func (w *walker) subcommand(c ctx, k call, m multi) Access {
	g := parseOptions(k.args(), m.short, m.long)
	if g.doubt && len(g.operands) > 0 && hasFunc(k.args()[:min(g.at, len(k.args()))], func(w Word) bool { return w.Kind != Literal }) {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the sub-command of "+k.name+" is")
	}
	c = w.options(c, k, g)
	sub := ""
	args := g.operands
	if len(args) > 0 {
		switch {
		case args[0].Kind != Literal:
			w.opaque(c, k.at, k.index, OpaqueOption, "the sub-command of "+k.name+" is unknown")
			w.out.Commands[k.index].Args = args
		default:
			if !args[0].afterUnknown && !strings.ContainsAny(args[0].Text, "/:@=") {
				args[0].claim()
			}
			sub, args = args[0].Text, args[1:]
			two := m.second == "*" || m.second != "" && strings.Contains(" "+m.second+" ", " "+sub+" ")
			if two && k.name == "git" { // git remote -v remove x
				if i := slices.IndexFunc(args, func(a Word) bool { return !strings.HasPrefix(a.Text, "-") }); i > 0 {
					args = slices.Concat(args[i:i+1], args[:i], args[i+1:])
				}
			}
			if two && len(args) > 0 && args[0].Kind == Literal && args[0].Text != "" && args[0].Text[0] != '-' {
				args[0].claim()
				sub, args = sub+" "+args[0].Text, args[1:]
			}
			w.out.Commands[k.index].Sub, w.out.Commands[k.index].Args = sub, args
		}
	} else if k.hidden {
		w.opaque(c, k.at, k.index, OpaqueOption, "the sub-command of "+k.name+" is unknown")
	}
	w.settings(c, k, sub, args)
	if m.special != nil {
		m.special(w, c, k, sub, args, g)
	}
	if (k.name == "git" || k.name == "hub") && gitLooks(sub) {
		return Reads
	}
	return Uses
}

const dockerRun = "add-host: annotation: attach: blkio-weight: blkio-weight-device: cap-add: cap-drop: cgroup-parent: cgroupns: cidfile> cpu-period: " +
	"cpu-quota: cpu-rt-period: cpu-rt-runtime: cpu-shares: cpus: cpuset-cpus: cpuset-mems: " +
	"detach detach-keys: device: device-cgroup-rule: device-read-bps: device-read-iops: device-write-bps: device-write-iops: disable-content-trust " +
	"dns: dns-option: dns-search: domainname: entrypoint: env: env-file< expose: gpus: group-add: " +
	"health-cmd: health-interval: health-retries: health-start-period: health-timeout: help hostname: init interactive ip: ip6: ipc: isolation: " +
	"kernel-memory: label: label-file< link: link-local-ip: log-driver: log-opt: mac-address: memory: " +
	"memory-reservation: memory-swap: memory-swappiness: mount: name: network: net: network-alias: no-healthcheck oom-kill-disable oom-score-adj: pid: " +
	"pids-limit: platform: privileged publish: publish-all pull: quiet read-only restart: rm runtime: " +
	"security-opt: shm-size: sig-proxy stop-signal: stop-timeout: storage-opt: sysctl: tmpfs: tty ulimit: user: userns: uts: volume: volume-driver: " +
	"volumes-from: workdir: latest no-TTY no-deps service-ports use-aliases index: build quiet-pull remove-orphans"

// walkDocker runs commands in containers.
//
//nolint:gocognit // flat: one case for each sub-command
func walkDocker(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	switch sub {
	case "run", "container run", "create", "container create":
		g := parseOptions(args, "+dPitqa:c:e:h:l:m:p:u:v:w:", dockerRun)
		for _, o := range g.options {
			switch o.name {
			case "v", "volume":
				host, _, _ := strings.Cut(o.value.Text, ":")
				if strings.HasPrefix(host, "/") || strings.HasPrefix(host, ".") || strings.HasPrefix(host, "~") {
					w.file(c, literalWord(host, o.value.Pos), Writes, k.index)
				}
			case "mount":
				for part := range strings.SplitSeq(o.value.Text, ",") {
					if _, host, found := strings.Cut(part, "="); found && (strings.HasPrefix(part, "source=") || strings.HasPrefix(part, "src=")) {
						w.file(c, literalWord(host, o.value.Pos), Writes, k.index)
					}
				}
			}
		}
		w.options(c, k, g)
		if e, found := g.last("entrypoint"); found && len(g.operands) > 0 {
			words := append([]Word{e.value}, g.operands[1:]...)
			w.walkContained(c, k, "docker run", words, g.doubt)
			return
		}
		if len(g.operands) > 1 {
			w.walkContained(c, k, "docker run", g.operands[1:], g.doubt)
		} else if g.doubt && len(g.operands) == 0 {
			w.opaque(c, k.at, k.index, OpaqueOption, "the command that docker runs is unknown")
		}
	case "exec", "container exec":
		g := parseOptions(args, "+dite:u:w:l", dockerRun)
		if len(g.operands) > 1 {
			w.walkContained(c, k, "docker exec", g.operands[1:], g.doubt)
		}
	case "build", "buildx build", "image build", "builder build":
		g := parseOptions(args, "qf<t:c:m:", "file< tag: build-arg: no-cache pull target: platform: network: progress: iidfile> output> push load "+
			"cache-from: cache-to: secret: ssh: label: quiet squash rm force-rm")
		for _, context := range g.operands {
			if strings.Contains(context.Text, "://") || strings.HasPrefix(context.Text, "git@") {
				w.remotePath(c, context, Reads, k.index)
			}
		}
		w.walkOperands(w.options(c, k, g), k, tool{operands: "r"}, g)
	case "compose":
		// Options may come between the two levels.
		m, _ := subcommandsOf("docker-compose")
		g := parseOptions(args, m.short, m.long)
		c = w.options(c, k, g)
		if g.doubt {
			w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the sub-command of compose is")
		}
		if len(g.operands) > 0 && g.operands[0].Kind == Literal {
			w.out.Commands[k.index].Sub, w.out.Commands[k.index].Args = "compose "+g.operands[0].Text, g.operands[1:]
			walkCompose(w, c, k, g.operands[0].Text, g.operands[1:], g)
		}
	default:
		if rest, found := strings.CutPrefix(sub, "compose "); found {
			walkCompose(w, c, k, rest, args, given{})
		}
	}
}

// walkContained runs words in a container.
func (w *walker) walkContained(c ctx, k call, name string, words []Word, doubt bool) {
	if doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of "+name+" begins")
	}
	e := c.by(Container, name, k.at)
	e.st = newRemoteState()
	if words[0].Is("--") && len(words) > 1 {
		words = words[1:]
	}
	w.run(e, call{words: words, at: words[0].Pos.Offset, outside: true})
}

// walkCompose walks docker compose run service cmd, and exec.
func walkCompose(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	if sub != "run" && sub != "exec" {
		return
	}
	g := parseOptions(args, "+dTie:u:w:l:p:v:", dockerRun)
	if len(g.operands) > 1 {
		w.walkContained(c, k, "compose "+sub, g.operands[1:], g.doubt)
	}
}

// walkKubectl walks kubectl exec pod -- cmd, run and debug.
func walkKubectl(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	if sub != "exec" && sub != "run" && sub != "debug" {
		return
	}
	for i, a := range args {
		if a.Is("--") && i+1 < len(args) {
			w.walkContained(c, k, "kubectl "+sub, args[i+1:], false)
			return
		}
	}
	if sub == "exec" {
		g := parseOptions(args, "+itqc:f:n:", "container: filename: stdin tty quiet namespace: pod-running-timeout: context:")
		if len(g.operands) > 1 {
			w.walkContained(c, k, "kubectl exec", g.operands[1:], g.doubt)
		}
	}
}

// walkLXC walks lxc exec container -- cmd.
func walkLXC(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	if sub != "exec" {
		return
	}
	g := parseOptions(args, "+tTn", "cwd: disable-stdin env: force-interactive force-noninteractive group: mode: user: project:")
	if len(g.operands) > 1 {
		w.walkContained(c, k, "lxc exec", g.operands[1:], g.doubt)
	}
}

// walkGuest handles programs that run shell text or commands in a virtual machine or on a phone.
func walkGuest(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	switch {
	case sub == "ssh":
		g := parseOptions(args, "c:pt", "command: plain tty")
		if o, found := g.last("c", "command"); found {
			e := c.by(Remote, k.name, k.at)
			e.st = newRemoteState()
			w.shellText(e, k, k.name, o.value)
		}
	case (sub == "exec" || sub == "shell") && len(args) > 0:
		if k.name != "adb" {
			args = args[1:]
		}
		for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
			args = args[1:]
		}
		if len(args) > 0 {
			e := c.by(Remote, k.name, k.at)
			e.st = newRemoteState()
			w.shellText(e, k, k.name, makeWord(joinWords(args), false, false, "", args[0].Pos))
		}
	}
}

// walkNPM walks npm exec and its aliases, such as npx. It cannot see a package's scripts, which are in files.
func walkNPM(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	switch sub {
	case "exec", "x", "dlx", "create", "init":
		if len(args) > 0 && sub != "init" && sub != "create" {
			walkNPX(w, c, k, "", append([]Word{}, args...), parseOptions(args, "+", ""))
		}
	}
}

// walkNPX walks a program that npx finds or fetches, or the shell text in -c.
func walkNPX(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	if k.name == "npx" || k.name == "pnpx" || k.name == "bunx" || k.name == "uvx" || k.name == "pipx" {
		w.out.Commands[k.index].Sub, w.out.Commands[k.index].Args = "", k.args()
		args = k.args()
		if k.name == "pipx" && sub != "run" {
			w.out.Commands[k.index].Sub = sub
			return
		}
		if k.name == "pipx" && len(args) > 0 {
			args = args[1:]
		}
	}
	g := parseOptions(args, "+yqnc$p:", "yes no quiet call$ package: no-install ignore-existing shell$ shell-auto-fallback node-options: prefer-online "+
		"prefer-offline bun from: with: python: spec:")
	w.options(c, k, g)
	if len(g.operands) == 0 {
		return
	}
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of "+k.name+" begins")
	}
	w.run(c.by(Wrapper, k.name, k.at), call{words: g.operands, at: g.operands[0].Pos.Offset, outside: true})
}

// walkRunner handles programs whose run or exec sub-command starts another program.
func walkRunner(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	switch sub {
	case "run", "exec", "x", "tool run", "develop", "shell", "shell-hook":
	default:
		return
	}
	if k.name == "pip" || k.name == "asdf" && sub != "exec" {
		return
	}
	if k.name == "direnv" && len(args) > 0 {
		args = args[1:] // the first argument is a directory
	}
	if sub == "develop" || sub == "shell" || k.name == "nix" {
		for i, a := range args {
			if (a.Is("-c") || a.Is("--command")) && i+1 < len(args) {
				w.run(c.by(Wrapper, k.name, k.at), call{words: args[i+1:], at: args[i+1].Pos.Offset, outside: true})
			}
		}
		return
	}
	g := parseOptions(args, "+qvhn:p:c$", "name: prefix: python: with: extra: group: no-sync frozen locked isolated no-project env-file< quiet verbose "+
		"no-capture-output live-stream cwd@ from: package: dev all-extras module: directory@ active no-dev with-requirements< script^ command$")
	w.options(c, k, g)
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of "+k.name+" begins")
	}
	if len(g.operands) > 0 && g.operands[0].Text != "" {
		w.run(c.by(Wrapper, k.name+" "+sub, k.at), call{words: g.operands, at: g.operands[0].Pos.Offset, outside: true})
	}
}

// walkPackages handles package managers: some of their options run commands.
//
//nolint:gocognit // flat: one case for each sub-command
func walkPackages(w *walker, c ctx, k call, sub string, args []Word, g given) {
	all := append([]Word(nil), k.args()...)
	for i, a := range all {
		text := strings.ToLower(a.Text)
		switch {
		case strings.Contains(text, "-invoke"), strings.Contains(text, "dpkg::"), strings.Contains(text, "apt::update"), strings.Contains(text,
			"--pre-invoke"):
			_, command, _ := strings.Cut(a.Text, "=")
			w.opaque(c, a.Pos.Offset, k.index, OpaqueEnvironment, "an option that runs a command: "+a.String())
			w.shellText(c, k, k.name, makeWord(command, false, false, "", a.Pos))
		case (text == "--eval" || text == "-e" || strings.HasPrefix(text, "--eval=")) && k.name == "rpm":
			if strings.Contains(joinWords(all[i:]), "%(") || !isKnown(joinWords(all[i:])) || strings.Contains(joinWords(all[i:]), "%{lua") {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueCode, "rpm runs a macro")
			}
		}
	}
	switch {
	case k.name == "go" && (sub == "run" || sub == "generate" || sub == "test" || sub == "build" || sub == "vet" || sub == "install"):
		for i, a := range args {
			for _, name := range []string{"-exec", "-toolexec", "-vettool"} {
				if value, found := strings.CutPrefix(strings.TrimPrefix(a.Text, "-"), name[1:]+"="); found && strings.HasPrefix(a.Text, "-") {
					w.shellText(c, k, "go", makeWord(value, false, false, "", a.Pos))
				}
				if (a.Is(name) || a.Is("-"+name)) && i+1 < len(args) {
					w.shellText(c, k, "go", args[i+1])
				}
			}
		}
	case k.name == "go" && sub == "env" && hasFunc(args, changesGoEnv):
		w.opaque(c, k.at, k.index, OpaqueEnvironment, "go env may change the settings of go")
	case k.name == "cargo" && (sub == "run" || sub == "build" || sub == "test"):
		if g.has("config") {
			w.opaque(c, k.at, k.index, OpaqueEnvironment, "a setting of cargo")
		}
	}
}

// walkServices handles service managers: they start configured programs, not words of the line.
func walkServices(*walker, ctx, call, string, []Word, given) {}

// walkService handles programs that reach a service; some also start commands.
//
//nolint:gocognit // flat: one case for each sub-command
func walkService(w *walker, c ctx, k call, sub string, args []Word, _ given) {
	switch {
	case k.name == "ip" && strings.HasPrefix(sub, "netns"), k.name == "aws-vault" && sub == "exec", k.name == "op" && sub == "run",
		k.name == "doppler" && sub == "run", k.name == "chamber" && sub == "exec", k.name == "infisical" && sub == "run",
		k.name == "dotenv" || k.name == "dotenvx":
		for i, a := range args {
			if a.Is("--") && i+1 < len(args) {
				w.run(c.by(Wrapper, k.name, k.at), call{words: args[i+1:], at: args[i+1].Pos.Offset, outside: true})
				return
			}
		}
		from := 0
		if k.name == "ip" {
			if !strings.HasSuffix(sub, "exec") {
				return
			}
			from = 1
		}
		if len(args) > from {
			w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of "+k.name+" begins")
			w.run(c.by(Wrapper, k.name, k.at), call{words: args[from:], at: args[from].Pos.Offset, outside: true})
		}
	case k.name == "hg":
		for i, a := range k.args() {
			if a.Is("--config") && i+1 < len(k.args()) || strings.HasPrefix(a.Text, "--config=") {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueEnvironment, "a setting of hg may run a command")
			}
		}
	case k.name == "svn":
		for _, a := range k.args() {
			if strings.HasPrefix(a.Text, "--config-option") || strings.HasPrefix(a.Text, "--diff-cmd") || strings.HasPrefix(a.Text, "--editor-cmd") ||
				strings.HasPrefix(a.Text, "--diff3-cmd") {
				w.opaque(c, a.Pos.Offset, k.index, OpaqueEnvironment, "a setting of svn may run a command")
			}
		}
	}
}

// changesGoEnv reports whether an argument of go env may change settings, as -w and -u do.
func changesGoEnv(a Word) bool {
	return a.Kind != Literal || strings.HasPrefix(strings.TrimLeft(a.Text, "-"), "w") && a.Text[0] == '-' ||
		strings.HasPrefix(strings.TrimLeft(a.Text, "-"), "u") && a.Text[0] == '-'
}

// settings records a sub-command that changes its program's persistent settings, which determine what the program
// runs and which hosts it reaches. gitConfig handles git's settings.
func (w *walker) settings(c ctx, k call, sub string, args []Word) {
	first, second, _ := strings.Cut(sub, " ")
	switch first {
	case "config", "configure", "settings", "set-config", "context":
	case "c", "set", "unset", "pkg", "set-script":
		if k.name != "npm" && k.name != "pnpm" {
			return
		}
	default:
		return
	}
	if k.name == "git" || k.name == "hub" || first == "config" && (k.name == "docker-compose" || k.name == "podman-compose") {
		return
	}
	if second == "" && len(args) > 0 && args[0].Kind == Literal {
		second = strings.TrimLeft(args[0].Text, "-")
	}
	switch second {
	case "get", "list", "ls", "l", "view", "show", "show-sources", "current-context", "get-contexts", "get-clusters", "get-users", "debug", "help", "describe",
		"list-profiles", "inspect", "configurations":
		return
	}
	w.opaque(c, k.at, k.index, OpaqueEnvironment, k.name+" "+first+" may change the settings of "+k.name)
}
