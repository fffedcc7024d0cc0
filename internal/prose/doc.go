// Command prose checks the English of this module's names and comments against the rules in CONTRIBUTING.md
// under "Plain English".
//
//	scripts/prose            lists the findings of all packages and pages, and fails if there are any
//	scripts/prose ./agent    lists only the findings in the named folders
//
// The rules:
//
//   - comment: a function's comment starts with its name and a verb ("Parse reads …").
//   - word: comments, messages and documents avoid words and phrases that make a reader
//     stumble, such as "nobody" or "what is left of".
//   - phrase: at most two of a thousand comment lines in a folder contain a genitive or an empty pronoun
//     that reads as translated, such as "the events of a run" or "those of". Findings are the lines beyond that share.
//   - case: no two functions or methods in a package differ only in case.
//   - one-word: at most 15 % of a package's unexported functions, and one more, have
//     names of one word. Findings are the names beyond that share.
//   - participle: functions that do something are verbs: applyStep, not took or told.
//     Functions that report a bool may be participles.
package main
