package action

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Variables are the named values that every action receives. Processes get them in their environment. Other actions'
// text may name them as ${NAME}. A value is never interpreted as code or markup.
type Variables struct {
	// Session, Stage and NextStage locate the run. NextStage is empty in the last stage and outside of pipelines.
	Session   string `json:"SESSION"`
	Stage     string `json:"STAGE"`
	NextStage string `json:"NEXT_STAGE"`
	// Iteration counts from one, and MaxIterations is the limit. Outside of pipelines both are zero, which becomes
	// empty text.
	Iteration     int `json:"ITERATION"`
	MaxIterations int `json:"MAX_ITERATIONS"`
	// Progress, Status and Ctx are file paths.
	Progress string `json:"PROGRESS"`
	Status   string `json:"STATUS"`
	Ctx      string `json:"CTX"`
	// LastDecision is the previous iteration's decision. LastHookStatus is "success" or "failed", for the previous
	// action at the same point. It is empty for the first action.
	LastDecision   string `json:"LAST_DECISION"`
	LastHookStatus string `json:"LAST_HOOK_STATUS"`
	// ChangedFiles and StageOutputs are lists with one entry per line.
	ChangedFiles string `json:"CHANGED_FILES"`
	StageOutputs string `json:"STAGE_OUTPUTS"`
	// Error is the failure, at points about a failure.
	Error string `json:"ERROR"`
	// Timestamp is the request's time in RFC 3339.
	Timestamp string `json:"TIMESTAMP"`
	// CallbackURL is the URL where a gate waits for an answer. Only that gate's own webhook receives it.
	CallbackURL string `json:"CALLBACK_URL"`
	// HookResponse is the last answer from a gate or http action at this point. SpawnOutput is the last pipeline's
	// output at this point. Detached actions do not set them.
	HookResponse string `json:"HOOK_RESPONSE"`
	SpawnOutput  string `json:"SPAWN_OUTPUT"`
}

// VariableNames returns all variable names, in field order.
func VariableNames() []string {
	names := make([]string, 0, 17)
	for name := range (Variables{}).All() {
		names = append(names, name)
	}
	return names
}

// All returns all names with their values as text.
func (v Variables) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, pair := range [...][2]string{
			{"SESSION", v.Session},
			{"STAGE", v.Stage},
			{"NEXT_STAGE", v.NextStage},
			{"ITERATION", formatCount(v.Iteration)},
			{"MAX_ITERATIONS", formatCount(v.MaxIterations)},
			{"PROGRESS", v.Progress},
			{"STATUS", v.Status},
			{"CTX", v.Ctx},
			{"LAST_DECISION", v.LastDecision},
			{"LAST_HOOK_STATUS", v.LastHookStatus},
			{"CHANGED_FILES", v.ChangedFiles},
			{"STAGE_OUTPUTS", v.StageOutputs},
			{"ERROR", v.Error},
			{"TIMESTAMP", v.Timestamp},
			{"CALLBACK_URL", v.CallbackURL},
			{"HOOK_RESPONSE", v.HookResponse},
			{"SPAWN_OUTPUT", v.SpawnOutput},
		} {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

// formatCount returns a number as text. Zero becomes empty text.
func formatCount(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (v Variables) value(name string) (string, bool) {
	for known, value := range v.All() {
		if known == name {
			return value, true
		}
	}
	return "", false
}

// After returns the variables for the next action at the same point, once this action has finished.
func (v Variables) After(d Declared, a *Answer, err error) Variables {
	v.LastHookStatus = "success"
	if err != nil {
		v.LastHookStatus = "failed"
	}
	if a == nil {
		return v
	}
	switch d.(type) {
	case HTTP, Gate:
		v.HookResponse = a.Output
	case Spawn:
		v.SpawnOutput = a.Output
	}
	return v
}

// environMost is the maximum size of a value in a process's environment, in bytes. Linux allows twice as much.
const environMost = 64 << 10

// environ returns the variables as environment variables. An environment cannot hold NUL bytes, so they become U+FFFD.
// Values that are too long are truncated, and GRAPNEL_CUT names their variables. The request on standard input always
// contains the complete values.
func (v Variables) environ() map[string]string {
	env := map[string]string{}
	var cut []string
	for name, value := range v.All() {
		env[name] = strings.ReplaceAll(value, "\x00", string(utf8.RuneError))
		if len(env[name]) > environMost {
			env[name] = truncateText(env[name], environMost)
			cut = append(cut, name)
		}
	}
	env["GRAPNEL_CUT"] = strings.Join(cut, " ")
	return env
}

// truncateText returns at most n bytes of s, without splitting a rune.
func truncateText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// named matches a value's name in text: ${NAME} or ${dotted.path}.
var named = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

// expandNames replaces names with their values, once. It does not expand names inside values. Unknown names stay
// unchanged.
func expandNames(text string, value func(name string) (string, bool)) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return named.ReplaceAllStringFunc(text, func(name string) string {
		if v, ok := value(name[2 : len(name)-1]); ok {
			return v
		}
		return name
	})
}
