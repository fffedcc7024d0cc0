package bash

import (
	"strings"
)

// environment checks an assigned variable. Some variables change what programs run or reach.
func (w *walker) environment(c ctx, name, text string, at, command int) {
	switch variableRole(name) {
	case runsValue:
		if isHarmlessProgram(text) {
			return
		}
		w.opaque(c, at, command, OpaqueEnvironment, "programs run the value of "+name)
		w.later(c, name, text, at)
	case expandsValue:
		if strings.ContainsAny(text, "$`\\") || !isKnown(text) {
			w.opaque(c, at, command, OpaqueEnvironment, "bash expands the value of "+name)
			e := c.by(Environment, name, at)
			e.st = c.st.fork()
			e.out = nil
			w.document(e, strings.ReplaceAll(text, unknown, ""), at)
		}
	case changesPrograms:
		if !isHarmlessSetting(name, text) {
			w.opaque(c, at, command, OpaqueEnvironment, name+" changes what programs do")
			if runsCommands().MatchString(name) {
				w.later(c, name, text, at)
			}
		}
	case findsCode:
		if !isKnown(text) || strings.HasPrefix(text, "/") || strings.Contains(text, ":/") || strings.Contains(text, "..") || strings.HasPrefix(text, "~") {
			w.opaque(c, at, command, OpaqueEnvironment, name+" changes where programs find code")
		}
	}
}

// environmentFiles records the files and hosts in a variable's value, because programs receive the variable. It skips
// variables that environment makes opaque.
func (w *walker) environmentFiles(c ctx, name string, value Word, command int) {
	if variableRole(name) == plainVariable && !harmlessValue().MatchString(value.raw) && !namesNoFile(name) {
		from := len(w.out.Hosts)
		w.perhapsNamed(c, call{index: command}, name, value, Uses, true)
		for i := from; i < len(w.out.Hosts); i++ {
			w.out.Hosts[i].Variable = name
		}
	}
}

// harmlessValue matches numbers and values that switch something on or off.
var harmlessValue = lazyRegexp(`^(|[0-9]+|true|false|yes|no|on|off|TRUE|FALSE)$`)

// namesNoFile reports whether a variable never holds the name of a file or host.
func namesNoFile(name string) bool {
	switch name {
	case "GOOS", "GOARCH", "GOARM", "GOAMD64", "GO111MODULE", "CGO_ENABLED", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOEXPERIMENT", "TZ", "LANG", "LC_ALL", "TERM":
		return true
	}
	return false
}

// later walks a variable's value as shell text that a program runs later.
func (w *walker) later(c ctx, name, text string, at int) {
	e := c.by(Environment, name, at)
	e.st = c.st.fork()
	e.st.own()
	e.out, e.in = nil, input{kind: piped, text: unknown}
	w.text(e, text, at)
}

// variable is a variable's role in programs.
type variable uint8

const (
	plainVariable   variable = iota
	runsValue                // programs run its value
	expandsValue             // bash expands its value
	changesPrograms          // changes what programs run, read or reach
	findsCode                // determines where programs find code
)

// variableRole returns a variable's role: EDITOR is run, PS1 is expanded, PYTHONPATH finds code, PATH changes what
// programs do.
func variableRole(name string) variable {
	switch name {
	case "PROMPT_COMMAND", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESSEDIT", "FCEDIT", "FZF_DEFAULT_COMMAND", "DIFFPROG", "MAKE", "CC", "CXX",
		"CPP", "LD", "AR", "AS", "NM", "FC", "F77", "RANLIB", "STRIP", "OBJCOPY", "LINKER", "PKG_CONFIG", "GCCGO", "RUSTC", "RUSTDOC", "TERMINAL", "SHELL",
		"STARSHIP_SHELL", "LEX", "YACC", "INSTALL", "CONFIG_SHELL", "GIT_EDITOR", "GIT_PAGER", "GIT_SEQUENCE_EDITOR", "HG", "PYTHON", "NODE":
		return runsValue
	case "PS0", "PS1", "PS2", "PS4":
		return expandsValue
	case "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "CLASSPATH", "LUA_PATH", "LUA_CPATH", "CDPATH", "GEM_PATH":
		return findsCode
	case "PATH", "ENV", "HOME", "SHELLOPTS", "BASHOPTS", "LESS", "LESSOPEN", "LESSCLOSE", "LESSKEY", "LESSKEYIN", "LESSHISTFILE", "MORE", "MAKEFLAGS", "MFLAGS",
		"GNUMAKEFLAGS", "MAKEFILES", "GCONV_PATH", "LOCPATH", "NLSPATH", "WGETRC", "SYSTEM_WGETRC", "INPUTRC", "ZDOTDIR", "PHPRC", "PHP_INI_SCAN_DIR",
		"LUA_INIT", "EXINIT", "VIMINIT", "GVIMINIT", "VIM", "VIMRUNTIME", "RIPGREP_CONFIG_PATH", "GLIBC_TUNABLES", "EXECIGNORE", "GLOBIGNORE", "HISTFILE",
		"MAILPATH", "MAIL", "KUBECONFIG", "GREP_OPTIONS", "TAR_OPTIONS", "RSYNC_RSH", "CVS_RSH", "SVN_SSH", "HGRCPATH", "HGEDITOR", "GOFLAGS", "GOENV", "GOROOT",
		"GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOINSECURE", "GOVCS", "GOTOOLCHAIN", "GOTOOLDIR", "GOCACHEPROG", "GOAUTH",
		"COMPILER_PATH", "GCC_EXEC_PREFIX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "DEPENDENCIES_OUTPUT", "PGHOST", "PGHOSTADDR",
		"PGSERVICEFILE", "PGPASSFILE", "MYSQL_HOST", "REDISCLI_HISTFILE", "CATALINA_OPTS", "SBT_OPTS", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS",
		"DENO_DIR", "MANPATH", "MANOPT", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "LS_OPTIONS", "MALLOC_TRACE", "RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES",
		"SSLKEYLOGFILE", "REQUESTS_CA_BUNDLE", "BUNDLER_ORIG_PATH", "_JAVA_OPTIONS", "JULIA_LOAD_PATH", "R_PROFILE", "R_PROFILE_USER", "R_ENVIRON", "RPROMPT":
		return changesPrograms
	}
	return variableFamily(name)
}

// variableFamily returns a variable's role by the prefix and suffix of its name.
func variableFamily(name string) variable {
	upper := strings.ToUpper(name)
	if harmlessVariable().MatchString(upper) {
		return plainVariable
	}
	for _, begin := range []string{"GIT_", "BASH_", "LD_", "DYLD_", "NODE_", "NPM_", "PNPM_", "YARN_", "COREPACK_", "PYTHON", "PERL", "RUBY", "BUNDLE_", "GEM_",
		"JAVA_", "JDK_", "MAVEN_", "MVN_", "GRADLE_", "KOTLIN_", "CARGO_", "RUSTC_", "RUSTDOC", "RUSTFLAGS", "RUSTUP_", "PIP_", "UV_", "PIPENV_", "POETRY_", "CONDA_",
		"DOCKER_", "COMPOSE_", "BUILDKIT_", "HELM_", "KUBE_", "KUBECTL_", "SSH_", "SUDO_", "XDG_CONFIG", "XDG_DATA", "OPENSSL_", "SSL_", "CURL_", "HTTPIE_", "ANSIBLE_",
		"AWS_CONFIG", "AWS_ENDPOINT", "AWS_SHARED", "CLOUDSDK_", "GNUPG", "TF_", "TERRAFORM_", "VAULT_", "COMPOSER_", "PHP_", "LUA_", "GOTOOL"} {
		if strings.HasPrefix(upper, begin) {
			return changesPrograms
		}
	}
	for _, end := range []string{"_PROXY", "_PAGER", "_EDITOR", "_BROWSER", "_ASKPASS", "_SHELL", "_WRAPPER", "_RSH", "_SSH", "_COMMAND", "_CMD", "_OPTS", "_OPTIONS",
		"_PRELOAD", "_PLUGINS", "_ENDPOINT", "_LINKER", "_RUNNER", "FLAGS"} {
		if strings.HasSuffix(upper, end) && upper != "NO_PROXY" {
			return changesPrograms
		}
	}
	return plainVariable
}

// runsCommands matches variables in these families whose values are shell text.
var runsCommands = lazyRegexp(`_(COMMAND|SSH|RSH|DIFF|ASKPASS|PAGER|EDITOR|BROWSER|WRAPPER|CMD)$`)

// harmlessVariable matches variables in these families that neither run nor reach anything.
var harmlessVariable = lazyRegexp(`^(GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|GIT_(TERMINAL_PROMPT|MERGE_AUTOEDIT|OPTIONAL_LOCKS|LFS_SKIP_SMUDGE|` +
	`ADVICE|REFLOG_ACTION|CEILING_DIRECTORIES)|NODE_(ENV|NO_WARNINGS)|PYTHON(UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|HASHSEED|UTF8|FAULTHANDLER|OPTIMIZE|` +
	`VERBOSE|MALLOC|ASYNCIODEBUG|TRACEMALLOC|LEGACYWINDOWSSTDIO|NOUSERSITE|SAFEPATH)|CARGO_(TERM_.*|INCREMENTAL|NET_OFFLINE|BUILD_JOBS)|` +
	`PIP_(NO_INPUT|DISABLE_PIP_VERSION_CHECK|NO_CACHE_DIR|QUIET|VERBOSE|ROOT_USER_ACTION)|NPM_CONFIG_(YES|LOGLEVEL|FUND|AUDIT|PROGRESS|COLOR|UPDATE_NOTIFIER)|` +
	`DOCKER_(BUILDKIT|CLI_HINTS)|COMPOSE_(PROJECT_NAME|PROFILES)|RUST_.*|PERL_(UNICODE|HASH_SEED)|NO_PROXY)$`)

// isHarmlessProgram reports whether a variable's or setting's value is empty or names a well-known pager, editor or
// compiler.
func isHarmlessProgram(text string) bool {
	return harmlessProgram().MatchString(strings.TrimSpace(text))
}

var harmlessProgram = lazyRegexp(`^(|:|true|false|cat|more|less( +-[A-Za-z]+)*|vi|vim|nvim|nano|emacs|ed|` +
	`(/usr)?/bin/(true|false|cat|less|sh|bash|dash|zsh)|sh|bash|zsh|gcc|cc|g\+\+|c\+\+|clang|clang\+\+|cpp|ld|ar|as|nm|ranlib|strip|objcopy|gfortran|make|gmake|` +
	`rustc|rustdoc|python|python3|node|pkg-config|ccache +(gcc|g\+\+|clang|clang\+\+))$`)

// isHarmlessSetting reports whether a sensitive variable's value is harmless.
func isHarmlessSetting(name, text string) bool {
	switch {
	case text == "":
		return name != "PATH" && name != "HOME" && name != "GIT_DIR" && name != "GIT_WORK_TREE" && name != "BASH_ENV"
	case name == "GOFLAGS":
		return harmlessGoFlags().MatchString(text)
	case name == "GOPROXY", name == "GOSUMDB":
		return text == "off"
	case name == "GOTOOLCHAIN":
		return text == "local"
	case name == "GOENV":
		return text == "off"
	case name == "LESS":
		return harmlessFlags().MatchString(text)
	case name == "MAKEFLAGS":
		return harmlessJobs().MatchString(text)
	case strings.HasPrefix(name, "GIT_TRACE"), name == "GIT_CONFIG_NOSYSTEM", name == "GIT_CURL_VERBOSE":
		return text == "0" || text == "1" || text == "2" || text == "true" || text == "false"
	case name == "GIT_CONFIG_GLOBAL", name == "GIT_CONFIG_SYSTEM", name == "PIP_CONFIG_FILE", name == "npm_config_userconfig":
		return text == "/dev/null"
	case strings.HasSuffix(name, "_PAGER"), strings.HasSuffix(name, "_EDITOR"), strings.HasSuffix(name, "_BROWSER"), strings.HasSuffix(name, "_SHELL"),
		strings.HasSuffix(name, "_ASKPASS"):
		return isHarmlessProgram(text)
	case strings.HasSuffix(name, "FLAGS"):
		return harmlessCompilerFlags().MatchString(text)
	case name == "NODE_OPTIONS":
		return harmlessNodeOptions().MatchString(text)
	}
	return false
}

var (
	harmlessGoFlags       = lazyRegexp(`^( *-(mod=(mod|vendor|readonly)|count=[0-9]+|v|race|trimpath|tags=[A-Za-z0-9_,]+|p=[0-9]+|buildvcs=(true|false|auto)))+ *$`)
	harmlessFlags         = lazyRegexp(`^-?[A-Za-z]+$`)
	harmlessJobs          = lazyRegexp(`^-?-?(j *[0-9]*|s|k|jobs=[0-9]+)$`)
	harmlessCompilerFlags = lazyRegexp(`^( *-(O[0-3sgz]?|g[0-3]?|W[a-z][a-z0-9-]*(=[a-z0-9]+)?|w|std=[a-z0-9+]+|D[A-Za-z0-9_]+(=[A-Za-z0-9_]*)?|f(PIC|pic|PIE|no-[a-z-]+|sanitize=[a-z,]+)|` +
		`m(64|32|arch=native)|pthread|static|s|l[a-z0-9]+))+ *$`)
	harmlessNodeOptions = lazyRegexp(`^( *--(max-old-space-size=[0-9]+|no-warnings|no-deprecation|trace-warnings|enable-source-maps|unhandled-rejections=[a-z]+))+ *$`)
)
