package bash

import (
	"maps"
	"slices"
	"strings"
)

// gitLoss describes how a git sub-command loses something: always, or with one of the risky options.
type gitLoss struct {
	effect Effect
	// short and long are the sub-command's option grammar; see parseOptions. They are needed only where an option
	// takes a value.
	short, long string
	// risky lists options that have the effect, short options as one letter. An abbreviation counts.
	risky string
	// judge, unless nil, reports whether options or operands have the effect without a risky option.
	judge func(g given, args []Word) bool
}

const (
	gitCheckoutLong = "orphan: conflict: pathspec-from-file: pathspec-file-nul detach track? force merge ours theirs overwrite-ignore " +
		"ignore-skip-worktree-bits overlay patch ignore-other-worktrees recurse-submodules? progress guess quiet unified: inter-hunk-context:"
	gitFetchLong = "force append atomic depth: deepen: shallow-since: shallow-exclude: unshallow update-shallow negotiation-tip: dry-run porcelain " +
		"prune prune-tags keep multiple jobs: refmap: recurse-submodules? tags no-tags set-upstream update-head-ok upload-pack: quiet verbose " +
		"progress server-option: filter: stdin all write-fetch-head refetch rebase? ff ff-only no-ff strategy: strategy-option: autostash commit " +
		"edit stat squash gpg-sign? signoff cleanup: log?"
	gitFetchShort = "fapPkntuqv46o:j:s:X:r?S?e"
	gitPushShort  = "fnvqud46o:D"
	gitPushLong   = "force force-with-lease? force-if-includes delete mirror prune all branches tags follow-tags dry-run porcelain quiet verbose " +
		"push-option: receive-pack: exec: repo: set-upstream thin signed? atomic progress ipv4 ipv6 recurse-submodules:"
)

// gitLosses returns how a git sub-command loses changes or commits. The grammars follow the manuals.
func gitLosses(sub string) []gitLoss {
	discards := func(short, long, risky string, judge func(g given, args []Word) bool) []gitLoss {
		return []gitLoss{{DiscardsChanges, short, long, risky, judge}}
	}
	loses := func(short, long, risky string, judge func(g given, args []Word) bool) []gitLoss {
		return []gitLoss{{LosesCommits, short, long, risky, judge}}
	}
	if strings.HasPrefix(sub, "flow ") {
		return loses("", "", "", func(g given, _ []Word) bool { return len(g.operands) > 0 && g.operands[0].Is("delete") })
	}
	if strings.HasPrefix(sub, "submodule") {
		return discards("qfb:", "branch: reference: depth: jobs: name: filter:", "f force", nil)
	}
	switch sub {
	case "reset":
		return discards("qNp", "pathspec-from-file:", "hard merge keep", nil)
	case "clean":
		return discards("dfinqe:xX", "dry-run force interactive quiet exclude:", "no-dry-run", func(g given, _ []Word) bool { return !g.has("n", "dry-run") })
	case "checkout":
		return discards("qb:B:lftd23pmU:", gitCheckoutLong, "f force B p patch ours theirs 2 3 pathspec-from-file", checksOutPaths)
	case "switch":
		return discards("qfc:C:dtml", "create: force-create: orphan: conflict: track? recurse-submodules?", "f force discard-changes C force-create", nil)
	case "restore":
		return discards("s:pWSq23mU:", "source: staged worktree pathspec-from-file: conflict: recurse-submodules? unified: inter-hunk-context:",
			"W worktree no-staged", func(g given, _ []Word) bool { return !g.has("S", "staged") })
	case "rm", "mv":
		return discards("rnqfkv", "pathspec-from-file:", "f force", nil)
	case "checkout-index", "read-tree", "worktree remove":
		return discards("", "", "", always)
	case "merge", "rebase", "cherry-pick", "revert", "am": // they restore the files from before the operation
		return discards("", "", "abort skip", nil)
	case "apply":
		return discards("R3p:C:vqNz", "exclude: include: directory: whitespace: build-fake-ancestor: reverse check stat numstat summary cached apply", "",
			func(g given, _ []Word) bool {
				return g.has("R", "reverse") && (g.has("apply") || !g.has("check", "stat", "numstat", "summary", "cached"))
			})
	case "stash drop", "stash clear", "reflog expire", "reflog delete", "reflog drop", "update-ref", "filter-branch", "filter-repo", "prune", "replace",
		"remote remove", "remote rm":
		return loses("", "", "", always)
	case "symbolic-ref": // a branch that becomes symbolic loses its commit
		return loses("m:qd", "", "d delete", func(g given, _ []Word) bool {
			return len(g.operands) > 1 && !symbolicHead().MatchString(g.operands[0].raw)
		})
	case "remote add": // the next fetch replaces all branches
		return loses("t:m:f", "mirror?", "mirror", nil)
	case "lfs migrate":
		return loses("", "", "", func(g given, _ []Word) bool {
			return !slices.ContainsFunc(g.operands, func(a Word) bool { return a.Is("info") })
		})
	case "branch":
		return loses("vqtu:airdDmMcClf", "set-upstream-to: color? abbrev? contains: no-contains: merged: no-merged: column? sort: points-at: format:",
			"D f force d delete M C", nil)
	case "tag":
		return loses("n?lvdasu:m:F:fei", "message: file: local-user: cleanup: color? contains: no-contains: merged: no-merged: column? sort: points-at: "+
			"format: trailer:", "d delete f force", nil)
	case "worktree add":
		return loses("fb:B:dq", "reason: orphan lock", "B", nil)
	case "gc":
		return loses("q", "prune? aggressive auto", "prune", nil)
	case "repack": // without -k and -A, packs lose unreachable objects
		return loses("aAdfFlqnkim", "window: depth: threads: window-memory: max-pack-size: unpack-unreachable: keep-pack: geometric: filter: keep-unreachable",
			"", func(g given, _ []Word) bool { return g.has("a") && g.has("d") && !g.has("k", "A", "keep-unreachable") })
	case "fast-import":
		return loses("", "", "force", nil)
	case "fetch", "pull":
		return loses(gitFetchShort, gitFetchLong, "f force P prune-tags stdin", forcesRefspec)
	case "push", "send-pack", "http-push":
		return []gitLoss{{ReplacesPushed, gitPushShort, gitPushLong, "f force force-with-lease force-if-includes d delete D mirror prune",
			func(g given, _ []Word) bool {
				return hasFunc(g.operands, func(a Word) bool { return strings.HasPrefix(a.Text, "+") || strings.HasPrefix(a.Text, ":") })
			}}}
	}
	return nil
}

func always(given, []Word) bool { return true }

// gitSkips returns the options with which a git sub-command skips hooks or signatures, and a grammar.
func gitSkips(sub string) (short, long, risky string) {
	const signs = "no-verify no-gpg-sign no-verify-signatures"
	switch sub {
	case "commit":
		return "aqvsepnoizm:F:c:C:t:S?u?U:", "message: file: author: date: template: cleanup: fixup: squash: trailer: reuse-message: reedit-message: " +
			"pathspec-from-file:", "n " + signs
	case "am":
		return "ikb3sucqnzC:p:S?r", "directory: exclude: include: whitespace: patch-format:", "n " + signs
	case "merge", "rebase", "cherry-pick", "revert", "pull", "push", "commit-tree":
		return "", "", signs + " no-signed"
	case "tag":
		return "", "", "no-sign"
	}
	return "", "", ""
}

// checksOutPaths reports whether the operands of git checkout name files, whose changes are lost. A single name may
// be a branch or a file: see isPathspec.
func checksOutPaths(g given, args []Word) bool {
	if i := slices.IndexFunc(args, func(a Word) bool { return a.Is("--") }); i >= 0 {
		return i+1 < len(args)
	}
	if namesCommit(g) {
		return false
	}
	return len(g.operands) > 1 || len(g.operands) == 1 && isPathspec(g.operands[0])
}

// namesCommit reports whether git checkout's options imply that the operand is a commit.
func namesCommit(g given) bool { return g.has("b", "orphan", "t", "track", "d", "detach") }

// isPathspec reports whether a word cannot be a branch or commit name under git's reference rules, or looks more like
// a file name.
func isPathspec(a Word) bool {
	text := strings.ReplaceAll(a.raw, unknown, "x")
	switch {
	case a.Kind == Pattern || a.Kind == Partial && a.Text == "" && a.Suffix == "":
		return true
	case text == "" || text == "-" || strings.Contains(text, "@{") || strings.Contains(text, "^{"):
		return false
	}
	return notReference().MatchString(text) || fileName().MatchString(text)
}

var (
	notReference = lazyRegexp(`^[./:~]|[*?\[\\\s]|/$|//|/\.|\.lock$`)
	// fileName matches names with a file extension, but not versions such as v1.2, 1.x and v1.0.0-rc.1.
	fileName = lazyRegexp(`[^/.]\.([a-wyzA-WYZ]|[A-Za-z][A-Za-z0-9_]{1,9})$|` +
		`(^|/)([A-Z][a-z]+file|README|LICENSE|LICENCE|CHANGELOG|CHANGES|AUTHORS|CONTRIBUTING|COPYING|NOTICE|NEWS|TODO|CODEOWNERS|VERSION)$`)
)

// forcesRefspec reports whether the operands of git fetch replace or delete branches in this repository.
func forcesRefspec(g given, _ []Word) bool {
	return hasFunc(g.operands[min(1, len(g.operands)):], func(a Word) bool {
		_, to, assigned := strings.Cut(a.raw, ":")
		if strings.HasPrefix(to, "refs/remotes/") {
			return false
		}
		return strings.HasPrefix(a.Text, "+") || assigned && to != "" && g.risks("p prune")
	})
}

// risks reports whether one of the options was given. Unlike has, it accepts every abbreviation of a long option.
func (g *given) risks(names string) bool {
	return slices.ContainsFunc(g.options, func(o option) bool {
		for name := range strings.SplitSeq(names, " ") {
			if o.name == name || len(name) > 1 && o.written != "" && strings.HasPrefix(name, o.written) {
				return true
			}
		}
		return false
	})
}

// gitEffects records what a git sub-command may lose or skip.
func (w *walker) gitEffects(c ctx, k call, sub string, args []Word) {
	for variant := range variants(args) {
		if !w.spend(len(variant)) {
			return
		}
		for _, loss := range gitLosses(sub) {
			g := parseOptions(variant, loss.short, loss.long)
			if g.risks(loss.risky) || loss.judge != nil && loss.judge(g, variant) {
				w.effect(k, loss.effect)
			} else if sub == "checkout" && len(g.operands) == 1 && !namesCommit(g) && !hasFunc(variant, isDashes) && g.operands[0].Kind == Literal {
				w.file(c, g.operands[0], Writes, k.index) // a branch or a file
			}
		}
		short, long, risky := gitSkips(sub)
		if g := parseOptions(variant, short, long); risky != "" && g.risks(risky) {
			w.effect(k, SkipsChecks)
		}
	}
	// The patch may come from the changes themselves: git diff -R | git apply.
	if sub == "apply" && c.in.kind == piped && k.index > 0 && w.out.Commands[k.index-1].Name == "git" {
		w.effect(k, DiscardsChanges)
	}
	switch sub {
	case "maintenance start", "maintenance register", "lfs install", "lfs uninstall", "lfs update":
		w.effect(k, SetsPrograms)
	}
}

func isDashes(a Word) bool { return a.Is("--") }

// variants yields the arguments and, for each possible value of an unknown argument, the arguments with that value in
// its place.
func variants(args []Word) func(func([]Word) bool) {
	return func(yield func([]Word) bool) {
		if !yield(args) {
			return
		}
		for i, a := range args {
			for one := range a.alternatives {
				variant := slices.Clone(args)
				variant[i] = one
				if !yield(variant) {
					return
				}
			}
		}
	}
}

// effect records a command's effect once.
func (w *walker) effect(k call, e Effect) {
	if c := &w.out.Commands[k.index]; !slices.Contains(c.Effects, e) {
		c.Effects = append(c.Effects, e)
	}
}

// protectsGit matches settings with which git checks something, or keeps lost commits. The value switches them on or
// off, except for settings that needsCare matches.
var (
	protectsGit = lazyRegexp(`^(core\.(hookspath|protectntfs|protecthfs|logallrefupdates)|(commit|tag|push)\.(gpgsign|forcesignannotated)|gpg\..*|` +
		`merge\.verifysignatures|(receive|fetch|transfer)\.(fsckobjects|fsck\..*|deny.*)|fsck\..*|http\.(.*\.)?(sslverify|ssl.*|schannel.*)|` +
		`clean\.requireforce|safe\..*|protocol\.(.*\.)?allow|gc\.(.*\.)?(reflogexpire.*|pruneexpire)|remote\..*\.(mirror|push))$`)
	needsCare  = lazyRegexp(`^(core\.hookspath|gpg\.|fsck\.|(receive|fetch)\.fsck\.|safe\.|protocol\.|gc\.|remote\.|http\..*ssl(ca|backend|cert|key))`)
	switchedOn = lazyRegexp(`(?i)^(true|yes|on|1|always|if-asked)$`)

	// symbolicHead matches references that are always symbolic.
	symbolicHead = lazyRegexp(`^(HEAD|refs/remotes/[^/]+/HEAD)$`)
)

// gitSettingEffects records the effect of changing a git setting, on the line or persistently. A nil value is removed
// or unknown.
func (w *walker) gitSettingEffects(k call, key string, value *string) {
	protects := protectsGit().MatchString(strings.ToLower(key))
	always := needsCare().MatchString(strings.ToLower(key))
	if protects && (always || value == nil || !switchedOn().MatchString(*value)) {
		w.effect(k, SkipsChecks)
	}
	if protects && !always {
		return
	}
	switch runs := gitRuns(key); {
	case runs == '$' && !k.stays && value != nil:
		alias := strings.HasPrefix(strings.ToLower(key), "alias.") && !strings.HasPrefix(*value, "!")
		if !alias && !isHarmlessProgram(*value) {
			w.effect(k, SetsPrograms)
		}
	case runs != 0:
		w.effect(k, SetsPrograms)
	}
}

// gitVariables records the effects of variables that act as git settings: GIT_CONFIG_KEY_0, GIT_SSH_COMMAND, HUSKY.
func (w *walker) gitVariables(c ctx, k call) {
	for _, name := range slices.Sorted(maps.Keys(c.st.vars)) {
		held := c.st.lookup(name)
		value := held.text
		known := &value
		if !isKnown(value) {
			known = nil
		}
		if before, set := w.env[name]; set && before == value || value == unknown && !held.exported {
			continue // the variable's value before the line
		}
		switch key := gitSettingOf(name); {
		case key != "":
			w.gitSettingEffects(k, key, known)
		case strings.HasPrefix(name, "GIT_CONFIG_KEY_"):
			set := c.st.lookup("GIT_CONFIG_VALUE_" + strings.TrimPrefix(name, "GIT_CONFIG_KEY_")).text
			switch {
			case known == nil:
				w.effect(k, SetsPrograms)
			case isKnown(set):
				w.gitSettingEffects(k, value, &set)
			default:
				w.gitSettingEffects(k, value, nil)
			}
		case strings.HasPrefix(name, "GIT_CONFIG_VALUE_"), name == "GIT_CONFIG_COUNT", name == "GIT_CONFIG_NOSYSTEM" && (value == "0" || value == "false"):
		case (name == "GIT_DIR" || name == "GIT_COMMON_DIR") && isGitDir(value):
		case strings.HasPrefix(name, "GIT_CONFIG"), name == "GIT_EXEC_PATH", name == "GIT_TEMPLATE_DIR", name == "GIT_DIR", name == "GIT_COMMON_DIR",
			name == "HOME", name == "XDG_CONFIG_HOME":
			w.effect(k, SetsPrograms)
		case skipsHooks(name, value):
			w.effect(k, SkipsChecks)
		}
	}
}

// gitSettingOf returns the setting that a variable overrides.
func gitSettingOf(variable string) string {
	switch variable {
	case "GIT_SSH", "GIT_SSH_COMMAND":
		return "core.sshCommand"
	case "GIT_EDITOR", "EDITOR", "VISUAL":
		return "core.editor"
	case "GIT_SEQUENCE_EDITOR":
		return "sequence.editor"
	case "GIT_PAGER", "PAGER":
		return "core.pager"
	case "GIT_ASKPASS", "SSH_ASKPASS":
		return "core.askPass"
	case "GIT_EXTERNAL_DIFF":
		return "diff.external"
	case "GIT_PROXY_COMMAND":
		return "core.gitProxy"
	case "GIT_ALLOW_PROTOCOL":
		return "protocol.allow"
	case "GIT_SSL_NO_VERIFY", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH":
		return "http.sslCAInfo"
	}
	return ""
}

// skipsHooks reports whether a variable tells a hook manager to run no hooks, or fewer.
func skipsHooks(variable, value string) bool {
	switch variable {
	case "HUSKY", "LEFTHOOK":
		return value != "1" && value != "true"
	case "HUSKY_SKIP_HOOKS", "SKIP", "PRE_COMMIT_ALLOW_NO_CONFIG", "OVERCOMMIT_DISABLE", "LEFTHOOK_EXCLUDE":
		return value != "" && value != "0"
	}
	return false
}
