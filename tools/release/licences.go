package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// allowed lists the licences, by SPDX identifier, of modules that the command and the library may link. These
// licences require only a notice. To allow another licence, add it here and give the reason in the commit message.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// forTests lists the packages that only tests import, and whose modules no program links. They may depend on licences
// that ask for more than a notice: durabletest draws its random calls with pgregory.net/rapid (MPL-2.0).
// A module of these packages that another package links as well is checked like any other.
var forTests = []string{"github.com/grapnel-go/grapnel/durable/durabletest"}

// platforms lists the platforms of releases. The linked modules depend on the platform.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// linked is a module that is linked into a program.
type linked struct {
	Path    string `json:"Path"`
	Version string `json:"Version"`
	Dir     string `json:"Dir"`
	Main    bool   `json:"Main"`
}

// licence is a file of a module with the text of a licence or a notice.
type licence struct {
	name string // the name of the file
	text string
	ids  []string // SPDX identifiers of the licences whose words are in the text
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents|unlicense)`)

// inventory matches files that list the licences of other modules, linked or not. They are copied but not checked.
var inventory = regexp.MustCompile(`(?i)(3rd|third)-?party`)

// signatures matches words of licences, in lower case and with single spaces.
var signatures = map[string]*regexp.Regexp{
	"Apache-2.0":       regexp.MustCompile(`apache license,? version 2\.0`),
	"MIT":              regexp.MustCompile(`permission is hereby granted, free of charge, to any person obtaining a copy`),
	"ISC":              regexp.MustCompile(`permission to use, copy, modify,? (and/or|and) distribute this software for any purpose with or without fee`),
	"BSD":              regexp.MustCompile(`redistribution and use in source and binary forms`),
	"MPL-2.0":          regexp.MustCompile(`mozilla public license,? (version|v\.) ?2\.0`),
	"GPL or LGPL":      regexp.MustCompile(`gnu (lesser |library )?general public license`),
	"AGPL":             regexp.MustCompile(`gnu affero general public license`),
	"BUSL":             regexp.MustCompile(`business source license`),
	"SSPL":             regexp.MustCompile(`server side public license`),
	"Elastic-2.0":      regexp.MustCompile(`elastic license`),
	"non-commercial":   regexp.MustCompile(`non-?commercial (use|purposes)`),
	"Commons Clause":   regexp.MustCompile(`commons clause`),
	"Creative Commons": regexp.MustCompile(`creative commons attribution-(noncommercial|sharealike|noderivatives)`),
}

var bsdThirdClause = regexp.MustCompile(`(neither the names? of|may not be used to endorse)`)

// identify returns the SPDX identifiers of the licences whose words are in the text, in order.
func identify(text string) []string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	var ids []string
	for id, words := range signatures {
		switch {
		case !words.MatchString(text):
		case id == "BSD" && bsdThirdClause.MatchString(text):
			ids = append(ids, "BSD-3-Clause")
		case id == "BSD":
			ids = append(ids, "BSD-2-Clause")
		default:
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// linkedModules returns the third-party modules that programs of the packages link on any of the platforms, by path.
func linkedModules(packages ...string) (map[string]linked, error) {
	found := map[string]linked{}
	for _, platform := range platforms {
		system, arch, _ := strings.Cut(platform, "/")
		c := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, packages...)...)
		c.Dir, c.Stderr = repository, os.Stderr
		c.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("list the packages for %s: %w", platform, err)
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *linked }
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("read the output of go list: %w", err)
			}
			if p.Module != nil && !p.Module.Main {
				found[p.Module.Path] = *p.Module
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the standard library: %w", err)
	}
	found["The Go standard library"] = linked{Path: "The Go standard library", Version: runtime.Version(), Dir: strings.TrimSpace(string(root))}
	return found, nil
}

// packagesOfPrograms returns the packages of the repository without those forTests.
func packagesOfPrograms() ([]string, error) {
	c := exec.Command("go", "list", "./...")
	c.Dir, c.Stderr = repository, os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the repository: %w", err)
	}
	packages := strings.Fields(string(out))
	for _, path := range forTests {
		if !slices.Contains(packages, path) {
			return nil, fmt.Errorf("forTests names %s, and the repository has no such package", path)
		}
	}
	return slices.DeleteFunc(packages, func(path string) bool { return slices.Contains(forTests, path) }), nil
}

// readLicences returns the licences and notices at the root of a module. It returns an error if there is none, or if one is not allowed.
func readLicences(m linked) ([]licence, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	var found []licence
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		l := licence{name: entry.Name(), text: string(text)}
		if !inventory.MatchString(l.name) {
			l.ids = identify(l.text)
		}
		for _, id := range l.ids {
			if !slices.Contains(allowed, id) {
				return nil, fmt.Errorf("%s %s: %s has words of a licence that is not allowed: %s", m.Path, m.Version, l.name, id)
			}
		}
		found, ids = append(found, l), append(ids, l.ids...)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s %s: %s has no licence that this program knows: read it, and add its words to signatures", m.Path, m.Version, m.Dir)
	}
	return found, nil
}

// checkLicences checks the modules that any package of the repository links, examples included but not those forTests,
// and counts their licences.
func checkLicences() error {
	packages, err := packagesOfPrograms()
	if err != nil {
		return err
	}
	modules, err := linkedModules(packages...)
	if err != nil {
		return err
	}
	count := map[string]int{}
	var wrong []error
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		licences, err := readLicences(modules[path])
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		ids := map[string]bool{}
		for _, l := range licences {
			for _, id := range l.ids {
				ids[id] = true
			}
		}
		count[strings.Join(slices.Sorted(maps.Keys(ids)), " and ")]++
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	for _, ids := range slices.Sorted(maps.Keys(count)) {
		fmt.Printf("%4d  %s\n", count[ids], ids)
	}
	return nil
}

// writeLicences writes the licences of all modules that the command links.
func writeLicences(file string) error {
	modules, err := linkedModules("./cmd/grapnel")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("The command grapnel contains code of these modules. Their licences and notices follow.\n")
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		licences, err := readLicences(m)
		if err != nil {
			return err
		}
		for _, l := range licences {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), m.Path, m.Version, l.name, strings.TrimSpace(l.text))
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
