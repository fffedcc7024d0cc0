package bash

import (
	"slices"
	"strings"
)

// walkGit walks the programs that git settings and sub-commands start.
func walkGit(w *walker, c ctx, k call, sub string, args []Word, g given) {
	aliases := w.gitGlobals(c, k, g.options)
	if text, found := aliases[strings.ToLower(sub)]; found && text != "" && text[0] != '!' {
		// The alias contains the words of another git command.
		e := c.by(Alias, "git "+sub, k.at)
		words := []Word{k.words[0]}
		for word := range strings.FieldsSeq(text) {
			words = append(words, makeWord(strings.Trim(word, `"'`), false, false, "", w.place(k.at)))
		}
		e.depth += 20
		w.run(e, call{words: append(words, args...), at: k.at, outside: true})
		return
	}
	first, _, _ := strings.Cut(sub, " ")
	claimTexts(sub, args)
	w.gitVariables(c, k)
	w.gitEffects(c, k, sub, args)
	switch {
	case sub == "":
	case aliases[strings.ToLower(sub)] != "":
	case !gitKnows(first):
		w.opaque(c, k.at, k.index, OpaqueName, "git "+first+" may be an alias or a program")
	default:
		w.gitFiles(c, k, sub, args)
		w.gitSub(c, k, sub, args)
	}
}

// gitGlobals walks the settings before the sub-command, and returns the aliases among them.
func (w *walker) gitGlobals(c ctx, k call, options []option) map[string]string {
	aliases := map[string]string(nil)
	for _, o := range options {
		switch o.name {
		case "c":
			key, _, assigned := strings.Cut(o.value.Text, "=")
			if o.value.Kind != Literal && !assigned {
				w.opaque(c, o.value.Pos.Offset, k.index, OpaqueEnvironment, "unknown git setting")
				w.effect(k, SetsPrograms)
				continue
			}
			value := literalWord("true", o.value.Pos)
			if assigned {
				value = o.value.cut(len(key) + 1)
			}
			w.gitSetting(c, k, key, value)
			if name, found := strings.CutPrefix(strings.ToLower(key), "alias."); found {
				if aliases == nil {
					aliases = map[string]string{}
				}
				aliases[name] = value.loose()
			}
		case "config-env":
			key, _, _ := strings.Cut(o.value.Text, "=")
			if o.value.Kind == Partial && !strings.Contains(o.value.Text, "=") || gitRuns(key) != 0 {
				w.opaque(c, o.value.Pos.Offset, k.index, OpaqueEnvironment, "git runs the value of a variable: "+key)
			}
			w.gitSettingEffects(k, key, nil)
		case "exec-path", "git-dir":
			if o.given {
				if o.name == "exec-path" || !isGitDir(o.value.raw) {
					w.effect(k, SetsPrograms)
				}
				w.opaque(c, k.at, k.index, OpaqueEnvironment, "git reads its programs or settings from "+o.value.String())
			}
		}
	}
	return aliases
}

// isGitDir reports whether a path is usual for a repository. Another folder may have been filled with settings.
func isGitDir(path string) bool { return strings.HasSuffix(strings.TrimRight(path, "/"), ".git") }

// gitFiles records files that may be outside the repository: files that options name, and files that some
// sub-commands read without an option.
func (w *walker) gitFiles(c ctx, k call, sub string, args []Word) {
	anywhere := sub == "hash-object" || sub == "apply" || slices.ContainsFunc(args, func(a Word) bool { return a.Is("--no-index") })
	for i, a := range args {
		name, value, attached := gitOption(sub, args, i)
		switch {
		case strings.HasPrefix(name, "--outp") && !strings.HasPrefix(name, "--output-ind") && (attached || i+1 < len(args)):
			w.file(c, value, Writes, k.index)
		case gitReadsFile(sub, name):
			if attached || i+1 < len(args) {
				w.file(c, value, Reads, k.index)
			}
		case strings.HasPrefix(a.Text, "-S") && len(a.Text) > 2 && isBlame(sub):
			w.file(c, a.cut(2), Reads, k.index)
		case strings.HasPrefix(a.Text, "-"):
		case anywhere, sub == "diff" && (strings.HasPrefix(a.Text, "/") || strings.HasPrefix(a.Text, "~") || strings.Contains("/"+a.Text+"/", "/../")):
			w.file(c, a, Reads, k.index)
		}
	}
}

// gitReadsFile reports whether an option of git names a file that is read.
func gitReadsFile(sub, option string) bool {
	switch option {
	case "-S":
		return isBlame(sub)
	case "-f":
		return sub == "grep"
	}
	return abbreviates(option, "--contents") || abbreviates(option, "--pathspec-from-file") || abbreviates(option, "--ignore-revs-file") ||
		abbreviates(option, "--file") && (sub == "commit" || sub == "tag" || sub == "merge" || strings.HasPrefix(sub, "notes "))
}

// isBlame reports whether -S of the sub-command names a file. For other sub-commands it takes a string.
func isBlame(sub string) bool { return sub == "blame" || sub == "annotate" }

// abbreviates reports whether git may take a word for a long option. Ambiguous abbreviations count, too.
func abbreviates(word, option string) bool {
	return len(word) > len("--x") && strings.HasPrefix(option, word)
}

// gitOption parses argument i as an option. It returns the name and the value, and whether the value is attached to
// the name.
func gitOption(sub string, args []Word, i int) (name string, value Word, attached bool) {
	a := args[i]
	name, _, attached = strings.Cut(a.Text, "=")
	begins := min(len(name)+1, len(a.raw))
	if behind := behindF(a.Text); behind > 0 && (sub == "commit" || sub == "tag") {
		name, begins, attached = "--file", behind, behind < len(a.raw)
	}
	if !attached && i+1 < len(args) {
		return name, args[i+1], attached
	}
	return name, a.cut(begins), attached
}

// behindF returns the index of the value of -F in an option cluster such as -aF, or zero if the cluster has no -F.
func behindF(option string) int {
	if !strings.HasPrefix(option, "-") || strings.HasPrefix(option, "--") {
		return 0
	}
	if i := strings.IndexAny(option, "FmcCtuS"); i > 0 && option[i] == 'F' { // the other letters also take values
		return i + 1
	}
	return 0
}

// gitSetting handles a setting on the line. The values of some settings are commands.
func (w *walker) gitSetting(c ctx, k call, key string, value Word) {
	if value.Kind == Literal {
		w.gitSettingEffects(k, key, &value.Text)
	} else {
		w.gitSettingEffects(k, key, nil)
	}
	switch gitRuns(key) {
	case '$':
		text := value
		if strings.HasPrefix(value.Text, "!") {
			text = value.cut(1)
		} else if strings.HasPrefix(strings.ToLower(key), "alias.") {
			if value.Kind != Literal || k.stays {
				w.opaque(c, value.Pos.Offset, k.index, OpaqueEnvironment, "a git alias: "+key)
			}
			return
		}
		if value.Kind == Literal && isHarmlessProgram(value.Text) {
			return
		}
		w.opaque(c, value.Pos.Offset, k.index, OpaqueEnvironment, "git runs the value of the setting "+key)
		w.shellText(c.by(Environment, key, value.Pos.Offset), k, "git", text)
	case 'o':
		w.opaque(c, value.Pos.Offset, k.index, OpaqueEnvironment, "a git setting that may run a program: "+key)
	}
}

// gitRuns classifies a setting: '$' if its value is shell text, 0 if it is known to neither run a command nor reach a
// host, 'o' for any other setting.
func gitRuns(key string) byte {
	key = strings.ToLower(key)
	section, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch section {
	case "alias", "pager":
		return '$'
	case "user", "author", "committer", "color", "advice", "column", "push", "pull", "rebase", "fetch", "branch", "log", "status", "tag", "commit", "format",
		"stash", "rerere", "gc", "pack", "merge", "diff", "blame", "apply", "am", "feature", "index", "i18n", "grep", "clean", "checkout", "notes", "receive", "transfer":
		if harmlessGitNames().MatchString(last) && section != "receive" && section != "transfer" {
			return 0
		}
	case "core":
		switch last {
		case "autocrlf", "safecrlf", "eol", "quotepath", "abbrev", "filemode", "ignorecase", "longpaths", "precomposeunicode", "compression", "commentchar",
			"whitespace", "logallrefupdates", "checkstat", "trustctime", "bigfilethreshold", "preloadindex", "untrackedcache", "fscache", "multipackindex":
			return 0
		}
	case "init":
		if last == "defaultbranch" {
			return 0
		}
	case "http":
		switch last {
		case "postbuffer", "version", "lowspeedlimit", "lowspeedtime", "maxrequests":
			return 0
		}
	}
	switch last {
	case "pager", "editor", "sshcommand", "askpass", "gitproxy", "fsmonitor", "external", "command", "textconv", "clean", "smudge", "process",
		"driver", "helper", "program",
		"cmd", "difffilter", "packobjectshook", "uploadpack", "receivepack", "sendmailcmd", "tocmd", "cccmd", "headercmd", "alternaterefscommand",
		"defaultkeycommand":
		return '$'
	}
	return 'o'
}

// harmlessGitNames matches the last parts of settings whose values are names, numbers or booleans.
var harmlessGitNames = lazyRegexp(`^(name|email|signingkey|useconfigonly|ui|status|branch|diff|interactive|grep|default|autosetupremote|followtags|` +
	`rebase|ff|octopus|autostash|autosquash|updaterefs|prune|prunetags|all|parallel|autosetupmerge|autosetuprebase|date|decorate|follow|` +
	`abbrevcommit|showsignature|showuntrackedfiles|short|relativepaths|sort|gpgsign|verbose|status|cleanup|pretty|numbered|signoff|subjectprefix|showpatch|showstat|` +
	`enabled|autoupdate|auto|autodetach|threads|windowmemory|conflictstyle|renames|renamelimit|stat|log|algorithm|context|colormoved|colormovedws|mnemonicprefix|noprefix|` +
	`statgraphwidth|wserrorhighlight|indentheuristic|suppressblankempty|wordregex|ignorewhitespace|whitespace|threeway|keepcr|version|commitencoding|logoutputencoding|` +
	`linenumber|patterntype|extendedregexp|requireforce|defaultremote|guess|detachedhead|[a-z]*hint|pushnonffcurrent|addignoredfile|statushints|skippedcherrypicks)$`)

// gitKnows reports whether the sub-command is built into git. Any other name may be an alias, which may run anything.
func gitKnows(sub string) bool {
	switch sub {
	case "add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bugreport", "bundle", "cat-file", "check-attr", "check-ignore",
		"check-mailmap",
		"check-ref-format", "checkout", "checkout-index", "cherry", "cherry-pick", "citool", "clean", "clone", "column", "commit", "commit-graph",
		"commit-tree", "config",
		"count-objects", "credential", "credential-cache", "credential-store", "cvsimport", "daemon", "describe", "diagnose", "diff", "diff-files",
		"diff-index", "diff-tree",
		"difftool", "fast-export", "fast-import", "fetch", "fetch-pack", "filter-branch", "fmt-merge-msg", "for-each-ref", "for-each-repo",
		"format-patch", "fsck", "fsmonitor--daemon",
		"gc", "get-tar-commit-id", "grep", "gui", "hash-object", "help", "hook", "http-backend", "http-fetch", "http-push", "imap-send", "index-pack",
		"init", "init-db", "instaweb",
		"interpret-trailers", "log", "ls-files", "ls-remote", "ls-tree", "mailinfo", "mailsplit", "maintenance", "merge", "merge-base", "merge-file",
		"merge-index", "merge-one-file",
		"merge-tree", "mergetool", "mktag", "mktree", "multi-pack-index", "mv", "name-rev", "notes", "p4", "pack-objects", "pack-redundant",
		"pack-refs", "patch-id", "prune", "prune-packed",
		"pull", "push", "quiltimport", "range-diff", "read-tree", "rebase", "receive-pack", "reflog", "refs", "remote", "repack", "replace", "replay",
		"request-pull", "rerere", "reset", "restore",
		"rev-list", "rev-parse", "revert", "rm", "send-email", "send-pack", "shell", "shortlog", "show", "show-branch", "show-index", "show-ref",
		"sparse-checkout", "stage", "stash", "status",
		"stripspace", "submodule", "subtree", "svn", "switch", "symbolic-ref", "tag", "unpack-file", "unpack-objects", "update-index", "update-ref",
		"update-server-info", "upload-archive",
		"upload-pack", "var", "verify-commit", "verify-pack", "verify-tag", "version", "whatchanged", "worktree", "write-tree", "lfs", "flow",
		"backfill", "last-modified":
		return true
	}
	return false
}

// gitSub walks the sub-commands that start a program or reach a host.
func (w *walker) gitSub(c ctx, k call, sub string, args []Word) {
	switch sub {
	case "submodule foreach":
		g := parseOptions(args, "+q", "quiet recursive")
		w.walkOperands(c, k, tool{operands: "X"}, g)
	case "bisect run":
		if len(args) > 0 {
			w.run(c.by(Wrapper, "git bisect run", k.at), call{words: args, at: args[0].Pos.Offset, outside: true})
		}
	case "hook", "for-each-repo", "instaweb", "gui", "citool", "svn", "p4", "cvsimport", "daemon", "mergetool", "shell", "merge-index":
		if sub != "mergetool" || len(args) > 0 {
			w.opaque(c, k.at, k.index, OpaqueOption, "git "+sub+" may start programs")
		}
	case "config":
		w.gitConfig(c, k, args)
	case "rebase", "difftool", "grep", "filter-branch", "clone", "fetch", "pull", "ls-remote", "push", "archive", "send-email", "send-pack",
		"fetch-pack", "am", "commit", "init", "remote add", "submodule add", "remote set-url", "request-pull":
		w.gitOptions(c, k, sub, args)
	}
}

//nolint:gocognit // flat: one case for each sub-command
func (w *walker) gitOptions(c ctx, k call, sub string, args []Word) {
	var operands []Word
	switch sub {
	case "fetch", "pull":
		operands = parseOptions(args, gitFetchShort, gitFetchLong).operands
	case "push":
		operands = parseOptions(args, gitPushShort, gitPushLong).operands
	}
	for i, a := range args {
		name, value, attached := gitOption(sub, args, i)
		runs := false
		switch sub {
		case "rebase":
			runs = abbreviates(name, "--exec") || name == "-x"
			if !runs && strings.HasPrefix(a.Text, "-x") && len(a.Text) > 2 {
				runs, value = true, a.cut(2)
			}
		case "difftool":
			runs = abbreviates(name, "--extcmd") || name == "-x"
			if !runs && strings.HasPrefix(a.Text, "-x") && len(a.Text) > 2 {
				runs, value = true, a.cut(2)
			}
		case "grep":
			if strings.HasPrefix(a.Text, "-O") && len(a.Text) > 2 {
				runs, value = true, a.cut(2)
			}
			runs = runs || abbreviates(name, "--open-files-in-pager") && attached
		case "filter-branch":
			runs = strings.HasSuffix(name, "-filter") || name == "--setup"
		case "clone", "fetch", "pull", "ls-remote", "fetch-pack":
			runs = abbreviates(name, "--upload-pack") || abbreviates(name, "--exec") || sub == "clone" && name == "-u"
			if sub == "clone" && strings.HasPrefix(a.Text, "-c") && len(a.Text) > 2 {
				name, value = "-c", a.cut(2)
			}
			if sub == "clone" && (abbreviates(name, "--template") || name == "-c" || abbreviates(name, "--config")) {
				if abbreviates(name, "--template") {
					w.gitTemplate(c, k, a)
				} else {
					key, _, _ := strings.Cut(value.Text, "=")
					w.gitSetting(c, k, key, value.cut(min(len(key)+1, len(value.raw))))
				}
			}
		case "push", "send-pack", "archive":
			runs = abbreviates(name, "--receive-pack") || abbreviates(name, "--exec")
		case "init":
			if abbreviates(name, "--template") {
				w.gitTemplate(c, k, a)
			}
		case "send-email":
			runs = strings.HasSuffix(name, "-cmd")
		}
		if runs {
			w.shellText(c, k, "git", value)
		}
		w.gitRemote(c, k, sub, a, len(operands) > 0 && operands[0].Pos == a.Pos)
	}
}

// gitTemplate records that a new repository receives a template's hooks.
func (w *walker) gitTemplate(c ctx, k call, a Word) {
	w.opaque(c, a.Pos.Offset, k.index, OpaqueEnvironment, "a git template may contain hooks")
	w.effect(k, SetsPrograms)
}

// gitRemote records a repository's host, or a transport that is a command. whole reports that the argument is a
// repository, not a pair of branches.
func (w *walker) gitRemote(c ctx, k call, sub string, a Word, whole bool) {
	switch sub {
	case "clone", "fetch", "pull", "push", "ls-remote", "remote add", "remote set-url", "submodule add", "archive", "request-pull", "fetch-pack", "send-pack":
	default:
		return
	}
	if sub == "archive" && strings.HasPrefix(a.Text, "--remote=") {
		a = a.cut(len("--remote="))
	}
	for one := range a.alternatives {
		w.gitRemote(c, k, sub, one, whole)
	}
	a.also = nil
	colon := strings.IndexByte(a.Text, ':')
	switch {
	case a.Kind == Partial && !strings.HasPrefix(a.Text, "-") && !strings.Contains(a.Text, "://") && strings.ContainsAny(a.Suffix, ":@") && sub != "push":
		w.addHost("", "", a, k.index) // $HOST:path
	case strings.HasPrefix(a.Text, "ext::"):
		w.shellText(c, k, "git", a.cut(len("ext::")))
	case strings.Contains(a.Text, "::") && !strings.HasPrefix(a.Text, "-"):
		w.opaque(c, a.Pos.Offset, k.index, OpaqueOption, "a git transport that runs a program: "+a.String())
	case strings.Contains(a.Text, "://"): // stranger has recorded the host
	case strings.Contains(a.Text, "@") && strings.Contains(a.Text, ":") && !strings.HasPrefix(a.Text, "-"):
		w.remotePath(c, a, Reads, k.index)
	case colon > 0 && !strings.ContainsAny(a.Text[:colon], "/-+^"): // host:path, not a pair of branches
		_, _, isHost := bareHost(a.Text[:colon])
		if isHost || whole || sub == "clone" || sub == "ls-remote" || strings.HasSuffix(sub, "add") || sub == "remote set-url" || sub == "archive" {
			w.remotePath(c, a, Reads, k.index)
		}
	}
}

// gitConfig handles git config, whose settings persist.
func (w *walker) gitConfig(c ctx, k call, args []Word) {
	g := parseOptions(args, "f>zle", "global system local worktree file> blob: get get-all get-regexp get-urlmatch replace-all add unset unset-all "+
		"rename-section remove-section list null name-only includes no-includes type: bool int bool-or-int path expiry-date show-origin show-scope "+
		"default: edit fixed-value comment: all value: regexp")
	c = w.options(c, k, g)
	ops := g.operands
	claimAll(ops)
	k.stays = true
	action := ""
	if len(ops) > 0 && ops[0].Kind == Literal && !strings.Contains(ops[0].Text, ".") { // a word without a dot is not a setting
		action, ops = ops[0].Text, ops[1:]
	}
	is := func(names ...string) bool { return g.has(names...) || slices.Contains(names, action) }
	switch {
	case is("get", "get-all", "get-regexp", "get-urlmatch", "list", "l"):
		return
	case is("edit", "e", "rename-section", "remove-section"):
		w.opaque(c, k.at, k.index, OpaqueEnvironment, "git config changes settings")
		w.effect(k, SetsPrograms)
		return
	case is("unset", "unset-all") && len(ops) > 0:
		w.gitSettingEffects(k, ops[0].Text, nil)
		return
	case len(ops) < 2 && !k.hidden:
		return
	case ops[0].Kind != Literal || len(ops) < 2:
		w.opaque(c, k.at, k.index, OpaqueEnvironment, "unknown git setting")
		w.effect(k, SetsPrograms)
		return
	}
	switch {
	case g.has("global"):
		w.file(c, makeWord(c.st.lookup("HOME").text+"/.gitconfig", false, false, "", ops[0].Pos), Writes, k.index)
	case g.has("system"):
		w.file(c, literalWord("/etc/gitconfig", ops[0].Pos), Writes, k.index)
	}
	w.gitSetting(c, k, ops[0].Text, ops[1])
}

// gitLooks reports whether the git sub-command only reads.
func gitLooks(sub string) bool {
	switch sub {
	case "status", "log", "diff", "show", "blame", "annotate", "grep", "ls-files", "ls-tree", "rev-parse", "describe", "shortlog", "rev-list", "cat-file",
		"name-rev", "merge-base", "for-each-ref", "stash list", "stash show", "remote get-url", "worktree list", "reflog show", "whatchanged", "cherry",
		"show-ref", "show-branch", "check-ignore", "check-attr", "count-objects", "diff-tree", "diff-index", "diff-files", "range-diff", "version", "help":
		return true
	}
	return false
}

// claimTexts claims the git arguments that are messages, patterns and formats.
func claimTexts(sub string, args []Word) {
	pattern := sub == "grep"
	for i, a := range args {
		name, _, attached := strings.Cut(a.Text, "=")
		text := false
		switch name {
		case "--message", "--author", "--date", "--grep", "--format", "--pretty", "--since", "--until", "--after", "--before", "--trailer", "--committer",
			"--subject-prefix", "--abbrev", "--color", "--decorate", "--sort", "--contains", "--merged":
			text = true
		case "-S", "-G":
			text = !isBlame(sub)
		case "-e":
			text = sub == "grep"
		}
		letters := strings.TrimLeft(a.Text, "aeinopqsvz-")
		switch sub {
		case "commit", "tag", "merge", "stash push", "stash save", "notes add", "notes append":
			if strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.HasPrefix(letters, "m") {
				text, attached = true, len(letters) > 1
			}
		}
		switch {
		case text && attached, !isBlame(sub) && len(a.Text) > 2 && (strings.HasPrefix(a.Text, "-S") || strings.HasPrefix(a.Text, "-G")):
			a.claim()
		case text && i+1 < len(args):
			a.claim()
			args[i+1].claim()
			pattern = pattern && name != "-e"
		case pattern && gitReadsFile(sub, name):
			pattern = false // -f names a file with patterns
		case pattern && !strings.HasPrefix(a.Text, "-"):
			a.claim()
			pattern = false
		}
	}
}
