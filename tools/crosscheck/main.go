// Command crosscheck type-checks the module around it, tests included, for other systems:
//
//	go -C tools/crosscheck run . darwin/arm64 windows/amd64
//
// It reads the source of all dependencies and compiles nothing, which "go vet" would do for each system.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, system := range os.Args[1:] {
		goos, goarch, _ := strings.Cut(system, "/")
		loaded, err := packages.Load(&packages.Config{
			Mode:  packages.LoadAllSyntax,
			Dir:   "../..",
			Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
			Tests: true,
		}, "./...")
		if err != nil {
			fmt.Fprintf(os.Stderr, "crosscheck: load the module for %s: %v\n", system, err)
			os.Exit(1)
		}
		if packages.PrintErrors(loaded) > 0 {
			fmt.Fprintf(os.Stderr, "crosscheck: these errors are on %s\n", system)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
