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

// Suite is the cases of one file. Make one with Open.
type Suite struct {
	// Path is the file's.
	Path string
	// policies are the paths of the policies that are tried.
	policies []string
	cases    []testCase

	fixtures fixtures
	file     *yamlfile.File
}

// suiteFile is a file of cases.
type suiteFile struct {
	Policy   pathList   `key:"policy"`
	Fixtures fixtures   `key:"fixtures"`
	Cases    []testCase `key:"cases,required"`
}

// pathList is one path, or several.
type pathList []string

// ReadNode reads a text, or a list.
func (p *pathList) ReadNode(n yamlfile.Node) {
	if n.Kind() == yamlfile.TextNode {
		*p = pathList{n.Raw()}
		return
	}
	var list []string
	n.Decode(&list)
	*p = list
}

// testCase is one thing that the rules are to do.
type testCase struct {
	Name string `key:"name,required"`
	// Event is fired at its point. In its place there may be a Transcript: what is said and
	// called, which is played against all rules as by a real agent.
	Event      *Event `key:"event"`
	Transcript []Turn `key:"transcript"`
	// Fixtures are the world of the case, besides that of the file.
	Fixtures fixtures `key:"fixtures"`
	// Faults are what goes wrong with actions, by the ids of their rules.
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
		n.Wrong("it has an event and a transcript: a case has one of them")
	case !has && c.Event == nil:
		n.Wrong("nothing happens: give it an event, such as {tool: bash, arguments: {command: ls}}, or a transcript")
	case !has && c.Expect.node.Kind() == yamlfile.AbsentNode:
		n.Wrong("nothing is expected: say what the rules are to do, such as expect: deny")
	case has:
		c.checkTranscript()
	}
	if c.Event != nil && lo.SomeBy(c.Event.Messages, Turn.expects) {
		n.Find("event", "messages").Wrong("expect: what was said before is not judged: put it into a transcript")
	}
}

// expects reports whether something is expected of the turn.
func (t Turn) expects() bool {
	return t.Expect != nil || lo.SomeBy(t.Calls, func(c Call) bool { return c.Expect != nil })
}

// checkTranscript finds transcripts that say nothing of what is to come of them.
func (c *testCase) checkTranscript() {
	if c.Expect.node.Kind() == yamlfile.AbsentNode && !lo.SomeBy(c.Transcript, Turn.expects) {
		c.node.Wrong("nothing is expected: say it of a call, such as expect: deny, or of the whole")
	}
	if c.Transcript[0].who == assistant {
		c.Transcript[0].node.Wrong("a transcript begins with what the user says")
	}
	for _, key := range []string{"decision", "rule", "reason", "told", "leaves", "arguments", "ran", "rules", "error"} {
		if at := c.Expect.node.Find(key); at.Kind() != yamlfile.AbsentNode {
			at.Wrong("%s: a transcript has many decisions: expect it of a call or a turn; "+
				"of the whole there are status, stopped, context, metadata, requests and files", key)
		}
	}
}

// Suffix is what the names of files of cases end in, before .yaml, .yml or .json.
const Suffix = ".test"

// Open reads a file of cases. What policies it is for it says itself, or it is beside one:
// NAME.test.yaml is for NAME.yaml. The error is everything that is wrong with it, a
// *yamlfile.Error.
func Open(path string) (*Suite, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("opening tests of a policy: %w", err)
	}
	return parseSuite(path, text)
}

// suiteFormat is the format of files of cases that this version reads.
const suiteFormat = 1

func parseSuite(path string, text []byte) (*Suite, error) {
	s := &Suite{Path: path, file: yamlfile.Parse(path, text)}
	s.file.Advise = adviseSuite
	if !s.file.CheckFormat(suiteFormat) {
		return s, s.file.Err()
	}
	root, ok := s.file.Root()
	if !ok && s.file.Err() == nil {
		s.file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: it has cases")
	}
	var in suiteFile
	if ok {
		root.Decode(&in)
	}
	s.cases, s.fixtures = in.Cases, in.Fixtures
	seen := map[string]int{}
	for _, c := range s.cases {
		if line, again := seen[c.Name]; again && c.Name != "" {
			c.node.Find("name").Wrong("the case in line %d has this name, too", line)
		}
		seen[c.Name] = c.node.Place().Line
	}
	s.policies = lo.Map(in.Policy, func(p string, _ int) string { return pathBelow(path, p) })
	if len(s.policies) == 0 {
		if beside, ok := findPolicyBeside(path); ok {
			s.policies = []string{beside}
		} else {
			s.file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong(`no policy: name it with the key "policy", or put %s beside it`,
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

// extensions are those of policies and their tests.
var extensions = []string{".yaml", ".yml", ".json"}

func besideName(path, extension string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, filepath.Ext(path)), Suffix) + extension
}

// findPolicyBeside returns the policy beside a file of cases, if there is one.
func findPolicyBeside(path string) (policy string, ok bool) {
	return lo.Find(lo.Map(extensions, func(e string, _ int) string { return besideName(path, e) }), func(p string) bool {
		_, err := os.Stat(p)
		return err == nil && p != path
	})
}

// IsSuite reports whether a file is one of cases, by its name.
func IsSuite(path string) bool {
	return slices.Contains(extensions, filepath.Ext(path)) && strings.HasSuffix(strings.TrimSuffix(path, filepath.Ext(path)), Suffix)
}

// Of returns the file of cases beside a policy, if there is one.
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
		return `the cases stand under "cases"`
	case "point", "tool", "arguments":
		return `it stands under "event"`
	case "decision":
		return `it stands under "expect"`
	}
	return adviseEvent(key)
}
