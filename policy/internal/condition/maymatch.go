package condition

import (
	"slices"
	"strings"
)

// A program may take a file name pattern instead of a path: grep --include='.e*', find -name 'id_*'. Such a pattern
// names a rule's files if it matches one of their names but no ordinary name: '.env*' names .env, and '*' names
// nothing.

// pathMayMatch works like pathMatches. A path with wildcards or braces also matches a pattern if it names a file that
// the pattern matches.
func (l *Language) pathMayMatch(p string) func(pattern string) (bool, error) {
	plain := l.pathMatches(p)
	if lower := strings.ToLower(p); lower != p { // on some disks .ENV is .env
		exact, folded := plain, l.pathMayMatch(lower)
		return func(pattern string) (bool, error) {
			if ok, err := exact(pattern); ok || err != nil {
				return ok, err
			}
			return folded(pattern)
		}
	}
	if !strings.ContainsAny(p, "*?[{") || len(p) > maxPath {
		return plain
	}
	globs := expandBraces(p)
	return func(pattern string) (bool, error) {
		if globs == nil {
			return true, nil // too many alternatives
		}
		if ok, err := plain(pattern); ok || err != nil {
			return ok, err
		}
		return slices.ContainsFunc(globs, func(glob string) bool { return namesFile(glob, pattern) }), nil
	}
}

// namesFile reports whether a file name glob matches a file that a rule's pattern matches, but no ordinary file.
func namesFile(glob, pattern string) bool {
	if strings.HasPrefix(pattern, "/") && !strings.HasPrefix(glob, "/") {
		return false
	}
	if ok, err := globbedPath(glob, pattern); ok || err != nil {
		return true
	}
	names := strings.Split(strings.TrimSuffix(glob, "/"), "/")
	for _, sample := range samplesOf(pattern) {
		wanted := strings.Split(sample, "/")
		if len(names) < len(wanted) {
			continue
		}
		last := names[len(names)-len(wanted):]
		matched, special := true, false
		for i, name := range wanted {
			matched = matched && nameFits(name, last[i])
		}
		for i := 0; matched && i < len(last); i++ {
			special = special || !isOrdinary(last[i], i == len(last)-1)
		}
		if special {
			return true
		}
	}
	return false
}

// filler stands for the text of a wildcard in a sample. No glob contains it.
const filler = "\u00b7"

// samplesOf returns paths that a rule's pattern matches: ** is no name at the start and any name at the end, and * is
// no text, any text, or the end of a common kind of file.
func samplesOf(pattern string) []string {
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "**/"), "/")
	if strings.HasSuffix(pattern, "/**") {
		pattern = strings.TrimSuffix(pattern, "**") + filler
	}
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	var samples []string
	for _, text := range []string{"", filler, "yaml", "json", "env"} {
		samples = append(samples, strings.ReplaceAll(pattern, "*", text))
	}
	return samples
}

// nameFits reports whether one name in a glob matches a name. An invalid glob matches.
func nameFits(name, glob string) bool {
	if glob == "**" {
		return true
	}
	ok, err := matchGlob(name, glob)
	return ok || err != nil
}

// isOrdinary reports whether one name in a glob matches an ordinary folder, or an ordinary file.
func isOrdinary(glob string, isFile bool) bool {
	if isFile {
		return slices.ContainsFunc(ordinaryFiles, func(name string) bool { return nameFits(name, glob) })
	}
	return nameFits("src", glob) || nameFits(".git", glob)
}

// ordinaryFiles lists file names, and beginnings and parts of names, that are not secret.
var ordinaryFiles = strings.Fields("main main.go main.py main.js main.ts main.tsx main.rs main.rb main.java main.kt main.c main.h main.cpp main.cs main.php " +
	"main.sh " +
	"main.md main.txt main.json main.yaml main.yml main.toml main.xml main.html main.css main.sql main.csv main.log main.lock main.tf main.conf main.cfg " +
	"main.ini main.properties main.proto main.swift main.exs main.lua Makefile README.md package.json service.go server.ts src config.json style.css " +
	"test.py index.html client.go tests setup.py docs .gitignore .git .bashrc keys.go token.go account.go state.go pass.go")

// expandBraces returns the alternatives of a pattern with braces: a{b,c} is ab and ac. It returns nil if there are
// more than 64.
func expandBraces(p string) []string {
	open := strings.IndexByte(p, '{')
	if open < 0 {
		return []string{p}
	}
	depth, from := 0, open+1
	var parts []string
	for i := open; i < len(p); i++ {
		switch p[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 || depth == 1 && p[i] == ',' {
			parts = append(parts, p[from:i])
			from = i + 1
		}
		if depth == 0 {
			break
		}
	}
	if depth > 0 {
		return []string{p}
	}
	var all []string
	for _, part := range parts {
		rest := expandBraces(part + p[from:])
		if rest == nil || len(all)+len(rest) > 64 {
			return nil
		}
		for _, one := range rest {
			all = append(all, p[:open]+one)
		}
	}
	return all
}
