// Package snippets type-checks the Go code in documents: code blocks in Markdown files and doc comments.
//
//	blocks, err := snippets.Find(".")
//	if err != nil {
//		return err
//	}
//	packages, err := snippets.List(ctx, ".", "./...")
//	if err != nil {
//		return err
//	}
//	report := packages.Check(`var driver agent.Driver`, blocks)
//	fmt.Println(errors.Join(report.Errors...))
//
// A block is a whole file, declarations, or statements. A page is one Markdown file or one doc comment, and is read
// top to bottom: a block can use declarations in earlier blocks on the page and in the prelude. Packages
// are found by name, as goimports does: packages of this module first, then the standard library, then the
// modules that go.mod requires directly.
//
// A block counts as Go if its page says so (a fence with "go"), or if it parses as Go. A block without a language
// that does not parse, but contains syntax that only Go has (":=", "func ", a line that ends with "{", a call like
// pkg.Name()), is an error, so that broken Go is not mistaken for plain text.
package snippets
