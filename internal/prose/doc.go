// Command prose checks how the names and comments of this module read, against the
// rules in CONTRIBUTING.md under "Plain English". Linters check Go; this checks English.
//
//	scripts/prose            compares every package with the allow-list
//	scripts/prose ./agent    lists each finding of the named packages
//	scripts/prose -update    lowers the allow-list to what was found
//
// The allow-list, internal/prose/allowed.txt, holds the number of findings that each
// package may have for each rule. The numbers may only shrink: more findings fail, and
// so do fewer, until -update has lowered the number. A package that is not in the list
// may have none.
//
// The rules:
//
//   - comment: a comment of a function starts with its name and a verb ("Parse reads …").
//   - word: comments, messages and documents avoid words and phrases that make a reader
//     stumble, such as "nobody" or "what is left of".
//   - case: no two functions or methods of a package differ only in case.
//   - one-word: at most 15 % of the unexported functions of a package have names of one
//     word. Findings are the names beyond that share.
//   - participle: functions that do something are verbs: applyStep, not took or told.
//     Functions that report a bool may be participles.
package main
