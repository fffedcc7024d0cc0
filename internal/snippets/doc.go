// Package snippets finds the Go code that documents show and type-checks it: the code
// blocks of Markdown files and of doc comments.
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
// A block is a whole file, declarations, or statements. A page is one Markdown file or
// one doc comment, and is read top to bottom: a block sees what the blocks above it on
// the page declare, and what the prelude declares. Packages are found by their names, as
// goimports finds them: packages of this module first, then the standard library, then
// the modules that go.mod requires directly.
//
// A block counts as Go when its page says so (a fence with "go"), or when it parses as
// Go. A block of which nothing is said, which does not parse and yet has something that
// only Go has (":=", "func ", a line that ends with "{", a call like pkg.Name()) is an
// error, so that broken Go is not mistaken for plain text.
package snippets
