// Package agentfile reads agent files: YAML or JSON that says what an agent is
// made of, without a line of Go.
//
//	file, err := agentfile.Load("fixer.yaml")
//	if err != nil {
//		return err // an *Error: every mistake, with its line, its column and what would be right
//	}
//	fmt.Println(file.Name, file.Model)
//
// # What is read
//
// The keys are the fields of File; docs/agent-file.md lists them for those who
// write files. A key that is not known, one that comes twice, a value of the wrong
// type, an unknown tool, hook or provider: each is a Problem, and all of them are
// told at once. Only a file that is not YAML, or not JSON, is told of by its
// first mistake.
//
// # What is not
//
// Text is taken as it stands: ${NAME} is not replaced. There is no place for keys
// and passwords; they come from the environment. Anchors, aliases, merge keys and
// tags are refused, so that a small file is a small agent. A file is a megabyte at
// most.
//
// A file that ends in .json is read as JSON, any other as YAML.
package agentfile
