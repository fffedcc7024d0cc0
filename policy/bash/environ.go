package bash

import (
	"strings"
)

// environment looks at a variable that is set: some change what runs.
func (w *walker) environment(c ctx, name, text string, at, command int) {
	switch role := variableRole(name); role {
	case runsValue:
		if text == "" {
			return
		}
		if !known(text) {
			w.opaque(c, at, command, OpaqueEnvironment, "programs run what "+name+" holds, which is not known")
		}
		w.later(c, name, text, at)
	case expandsValue:
		if strings.ContainsAny(text, "$`\\") || !known(text) {
			if !known(text) {
				w.opaque(c, at, command, OpaqueEnvironment, "bash expands what "+name+" holds, which is not known")
			}
			e := c.by(Environment, name, at)
			e.st = c.st.fork()
			e.out = nil
			w.document(e, strings.ReplaceAll(text, unknown, ""), at)
		}
	case changesPrograms:
		w.opaque(c, at, command, OpaqueEnvironment, name+" changes what programs do")
	case findsCode:
		if !known(text) || strings.HasPrefix(text, "/") || strings.Contains(text, ":/") || strings.Contains(text, "..") || strings.HasPrefix(text, "~") {
			w.opaque(c, at, command, OpaqueEnvironment, name+" changes where programs find code")
		}
	}
}

// later walks a value that some program runs as shell text.
func (w *walker) later(c ctx, name, text string, at int) {
	e := c.by(Environment, name, at)
	e.st = c.st.fork()
	e.st.own()
	e.out, e.in = nil, input{kind: piped, text: unknown}
	w.text(e, text, at)
}

type variable uint8

const (
	plainVariable variable = iota
	runsValue
	expandsValue
	changesPrograms
	findsCode
)

func variableRole(name string) variable {
	switch name {
	case "PROMPT_COMMAND", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EDITOR", "GIT_PAGER",
		"GIT_SEQUENCE_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR",
		"RSYNC_RSH", "CVS_RSH", "SVN_SSH", "HG_EDITOR", "FCEDIT", "PSQL_EDITOR", "PSQL_PAGER", "KUBE_EDITOR", "KUBECTL_EXTERNAL_DIFF",
		"SYSTEMD_PAGER", "SYSTEMD_EDITOR", "DELTA_PAGER", "BAT_PAGER", "AWS_PAGER", "GH_PAGER", "GH_EDITOR", "GH_BROWSER", "LESSEDIT",
		"FZF_DEFAULT_COMMAND", "DIFFPROG", "MAKE", "CC", "CXX", "RUSTC_WRAPPER", "TERMINAL", "SHELL", "STARSHIP_SHELL":
		return runsValue
	case "PS0", "PS1", "PS2", "PS4":
		return expandsValue
	case "PATH", "ENV", "BASH_ALIASES", "BASH_CMDS", "LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "LESSOPEN", "LESSCLOSE",
		"PERL5OPT", "PERL5DB", "RUBYOPT",
		"NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
		"MAVEN_OPTS", "GRADLE_OPTS", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "TAR_OPTIONS", "GCONV_PATH", "LOCPATH", "OPENSSL_CONF",
		"OPENSSL_MODULES", "OPENSSL_ENGINES", "CURL_HOME", "WGETRC", "SYSTEM_WGETRC", "INPUTRC", "ZDOTDIR", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_CONFIG",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_COMMON_DIR", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "PHPRC", "PHP_INI_SCAN_DIR", "LUA_INIT", "BUNDLE_GEMFILE", "NPM_CONFIG_SCRIPT_SHELL",
		"npm_config_script_shell", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "EXINIT", "VIMINIT", "GVIMINIT", "RIPGREP_CONFIG_PATH",
		"GLIBC_TUNABLES", "ANSIBLE_CONFIG", "EXECIGNORE", "GLOBIGNORE", "HISTFILE", "BASH_LOADABLES_PATH", "RUSTC", "CARGO_BUILD_RUSTC_WRAPPER", "GOFLAGS":
		return changesPrograms
	case "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "CLASSPATH", "LUA_PATH", "LUA_CPATH", "CDPATH", "GEM_PATH":
		return findsCode
	}
	switch {
	case strings.HasPrefix(name, "GIT_CONFIG_KEY_"), strings.HasPrefix(name, "GIT_CONFIG_VALUE_"), strings.HasPrefix(name, "BASH_FUNC_"),
		strings.HasPrefix(name, "LD_"):
		return changesPrograms
	}
	return plainVariable
}
