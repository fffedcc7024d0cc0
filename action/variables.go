package action

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Variables are the values that an action is told of under names of their own. Processes get them in their environment;
// texts of other actions may name them as ${NAME}. A value is never read as anything but a value.
type Variables struct {
	// Session, Stage and NextStage place the run; NextStage is empty in the last one, and where there are no stages.
	Session   string `json:"SESSION"`
	Stage     string `json:"STAGE"`
	NextStage string `json:"NEXT_STAGE"`
	// Iteration counts from one, MaxIterations is the most there may be. Zero, as "", outside of pipelines.
	Iteration     int `json:"ITERATION"`
	MaxIterations int `json:"MAX_ITERATIONS"`
	// Progress, Status and Ctx are paths of files.
	Progress string `json:"PROGRESS"`
	Status   string `json:"STATUS"`
	Ctx      string `json:"CTX"`
	// LastDecision is that of the iteration before; LastHookStatus is "success" or "failed", of the action before this
	// one at the same point, and empty for the first.
	LastDecision   string `json:"LAST_DECISION"`
	LastHookStatus string `json:"LAST_HOOK_STATUS"`
	// ChangedFiles and StageOutputs are lists, one to a line.
	ChangedFiles string `json:"CHANGED_FILES"`
	StageOutputs string `json:"STAGE_OUTPUTS"`
	// Error is what went wrong, at the points where something did.
	Error string `json:"ERROR"`
	// Timestamp is when, in RFC 3339.
	Timestamp string `json:"TIMESTAMP"`
	// CallbackURL is where a gate waits for an answer; only that gate's own webhook gets it.
	CallbackURL string `json:"CALLBACK_URL"`
	// HookResponse is the answer of the last gate or http action, SpawnOutput the output of the last pipeline, that was
	// waited for at this point.
	HookResponse string `json:"HOOK_RESPONSE"`
	SpawnOutput  string `json:"SPAWN_OUTPUT"`
}

// VariableNames returns the names of all variables, in the order of the fields.
func VariableNames() []string {
	names := make([]string, 0, 17)
	for name := range (Variables{}).All() {
		names = append(names, name)
	}
	return names
}

// All returns every name with its value as text.
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

// formatCount returns a number as text; nothing for zero.
func formatCount(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// value returns the value of a name, and whether there is such a variable.
func (v Variables) value(name string) (string, bool) {
	for known, value := range v.All() {
		if known == name {
			return value, true
		}
	}
	return "", false
}

// After returns the variables for the next action at the same point, when this one was waited for.
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

// environMost is how long a value in the environment of a process may be, in bytes. Linux takes twice as much.
const environMost = 64 << 10

// environ returns the variables as a process gets them. A NUL byte, which no environment can hold, becomes U+FFFD; of what is
// too long the beginning is there, and GRAPNEL_CUT names those variables. Standard input has all of it as it is.
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

// truncateText returns at most n bytes of s, in whole runes.
func truncateText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// named matches the name of a value in a text: ${NAME} or ${dotted.path}.
var named = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

// expandNames puts values in the place of their names, once: what comes in is not looked at again. Names that are unknown
// stay as they stand.
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
