package policytest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Suite holds the cases in one file. Create one with Open.
type Suite struct {
	// Path is the file's path.
	Path string
	// policies lists the paths of the policies under test.
	policies []string
	cases    []testCase

	fixtures fixtures
	file     *yamlfile.File
}

// suiteFile is a case file.
type suiteFile struct {
	Policy   pathList   `key:"policy"`
	Fixtures fixtures   `key:"fixtures"`
	Cases    []testCase `key:"cases,required"`
}

// pathList is one or more paths.
type pathList []string

// ReadNode reads a string or a list.
func (p *pathList) ReadNode(n yamlfile.Node) {
	if n.Kind() == yamlfile.TextNode {
		*p = pathList{n.Raw()}
		return
	}
	var list []string
	n.Decode(&list)
	*p = list
}

// testCase is one case.
type testCase struct {
	Name string `key:"name,required"`
	// Event is fired at its point. Alternatively, a real agent plays the conversation in Transcript against all
	// rules.
	Event      *Event `key:"event"`
	Transcript []Turn `key:"transcript"`
	// Fixtures describes the case's environment, in addition to the file's.
	Fixtures fixtures `key:"fixtures"`
	// Faults holds the simulated failures of actions, by rule ID.
	Faults map[string]injectedFault `key:"faults"`
	Expect expectation              `key:"expect"`

	node yamlfile.Node
}

type caseOf testCase

// ReadNode reads a case.
func (c *testCase) ReadNode(n yamlfile.Node) {
	c.node = n
	if !n.Decode((*caseOf)(c)) {
		return
	}
	switch has := c.Transcript != nil; {
	case has && c.Event != nil:
		n.Wrong("event and transcript are mutually exclusive: remove one of them")
	case !has && c.Event == nil:
		n.Wrong("event is missing: add one, such as {tool: bash, arguments: {command: ls}}, or a transcript")
	case !has && c.Expect.node.Kind() == yamlfile.AbsentNode:
		n.Wrong("expect is missing: add the expected decision, such as expect: deny")
	case has:
		c.checkTranscript()
	}
	if c.Event != nil && lo.SomeBy(c.Event.Messages, Turn.expects) {
		n.Find("event", "messages").Wrong("expect: earlier messages are not judged: use a transcript")
	}
}

// expects reports whether the turn has expectations.
func (t Turn) expects() bool {
	return t.Expect != nil || lo.SomeBy(t.Calls, func(c Call) bool { return c.Expect != nil })
}

// checkTranscript reports transcripts without expectations.
func (c *testCase) checkTranscript() {
	if c.Expect.node.Kind() == yamlfile.AbsentNode && !lo.SomeBy(c.Transcript, Turn.expects) {
		c.node.Wrong("expect is missing: add it to a call, such as expect: deny, or to the case")
	}
	if c.Transcript[0].who == assistant {
		c.Transcript[0].node.Wrong("a transcript must begin with a user turn")
	}
	for _, key := range []string{"decision", "rule", "reason", "told", "leaves", "arguments", "ran", "rules", "error"} {
		if at := c.Expect.node.Find(key); at.Kind() != yamlfile.AbsentNode {
			at.Wrong("%s: a transcript has many decisions: move this to a call or a turn; "+
				"a case can expect status, stopped, context, metadata, requests and files", key)
		}
	}
}

// Suffix ends the names of case files, before .yaml, .yml or .json.
const Suffix = ".test"

// Open reads a case file. It tests the policies that the file names or, by default, the policy beside it:
// NAME.test.yaml tests NAME.yaml. The error is a *yamlfile.Error with all problems.
func Open(path string) (*Suite, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("opening tests of a policy: %w", err)
	}
	return parseSuite(path, text)
}

// suiteFormat is the supported format version of case files.
const suiteFormat = 1

func parseSuite(path string, text []byte) (*Suite, error) {
	s := &Suite{Path: path, file: yamlfile.Parse(path, text)}
	s.file.Advise = adviseSuite
	if !s.file.CheckFormat(suiteFormat) {
		return s, s.file.Err()
	}
	root, ok := s.file.Root()
	if !ok && s.file.Err() == nil {
		s.file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: add cases")
	}
	var in suiteFile
	if ok {
		root.Decode(&in)
	}
	s.cases, s.fixtures = in.Cases, in.Fixtures
	seen := map[string]int{}
	for _, c := range s.cases {
		if line, again := seen[c.Name]; again && c.Name != "" {
			c.node.Find("name").Wrong("the case in line %d has the same name", line)
		}
		seen[c.Name] = c.node.Place().Line
	}
	s.policies = lo.Map(in.Policy, func(p string, _ int) string { return pathBelow(path, p) })
	if len(s.policies) == 0 {
		if beside, ok := findPolicyBeside(path); ok {
			s.policies = []string{beside}
		} else {
			s.file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong(`no policy: set the key "policy", or put %s beside the file`,
				filepath.Base(besideName(path, ".yaml")))
		}
	}
	return s, s.file.Err()
}

func pathBelow(path, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(path), name)
}

// extensions lists the file extensions of policies and their tests.
var extensions = []string{".yaml", ".yml", ".json"}

func besideName(path, extension string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, filepath.Ext(path)), Suffix) + extension
}

// findPolicyBeside returns the policy beside a case file, if it exists.
func findPolicyBeside(path string) (policy string, ok bool) {
	return lo.Find(lo.Map(extensions, func(e string, _ int) string { return besideName(path, e) }), func(p string) bool {
		_, err := os.Stat(p)
		return err == nil && p != path
	})
}

// IsSuite reports whether a file name is a case file's name.
func IsSuite(path string) bool {
	return slices.Contains(extensions, filepath.Ext(path)) && strings.HasSuffix(strings.TrimSuffix(path, filepath.Ext(path)), Suffix)
}

// Of returns the case file beside a policy, if it exists.
func Of(policy string) (path string, ok bool) {
	stem := strings.TrimSuffix(policy, filepath.Ext(policy))
	return lo.Find(lo.Map(extensions, func(e string, _ int) string { return stem + Suffix + e }), func(p string) bool {
		_, err := os.Stat(p)
		return err == nil
	})
}

func adviseSuite(key string) string {
	switch key {
	case "tests":
		return `move it to "cases"`
	case "point", "tool", "arguments":
		return `move it to "event"`
	case "decision":
		return `move it to "expect"`
	}
	return adviseEvent(key)
}
