// Package registry builds agents from names. A Definition, in YAML, JSON or Go, describes an agent, and a Registry maps
// its names to Go values.
//
//	newOpenAI := func(_ context.Context, _ *registry.Making, model string) (agent.Driver, error) {
//		return openai.New(openai.Config{Model: model})
//	}
//	type settings struct {
//		File string `key:"file,required"`
//	}
//	openLog := func(_ context.Context, m *registry.Making, s settings) ([]hooks.Hook, error) {
//		log, err := audit.Open(s.File, audit.Options{})
//		if err != nil {
//			return nil, err
//		}
//		m.Closing(log.Close)
//		return log.Hooks(), nil
//	}
//	reg := registry.Registry{
//		Drivers: map[string]registry.DriverMaker{"openai/": newOpenAI},
//		Tools:   map[string]registry.Maker[[]toolexec.Tool]{"box": registry.UseTools(tools...)},
//		Hooks: map[string]registry.Maker[[]hooks.Hook]{
//			"no-push": registry.UseHooks(noPush),
//			"log":     registry.With(openLog),
//		},
//	}
//	file, err := reg.Load("clerk.yaml")
//	// …
//	built, err := reg.BuildFile(ctx, file)
//	// …
//	defer built.Close()
//	a, err := built.Agent().Get()
//
// # Names
//
// There is no global registry. A program creates one where it uses it, and two registries may use the same name for
// different things. Unknown names, forbidden duplicates, invalid settings and unknown keys are errors when the
// definition is loaded, with a suggestion of the nearest name. All of them are reported at once, with file, line and
// column. Errors that only occur when a part is made, such as a file that cannot be opened, are reported by Build, with
// their line.
//
// A hook that matches none of the agent's tools is an error, because it would guard nothing.
//
// # Hooks before and after a run
//
// The key hooks is for hooks at any points. The keys preHooks and postHooks are for hooks about the whole run, as in
// other systems:
//
//   - preHooks are only for hooks at InputSubmitted or ExecutionStart. They are called in the order of the
//     list, before the model: they may deny or rewrite the input and set metadata that all later hooks see.
//   - postHooks are only for hooks at ExecutionEnd or AgentFailed. They are called in the order of the list
//     when a run has ended, with its status, also if it failed, was cancelled or denied. The run returns
//     after them.
//
// A hook at another point is an error there. For hooks that the run should not wait for, use Detached. They are started
// after the others. Priorities override the order of the lists.
//
// # Round trips
//
// A definition that is read, written and read again is equal, in YAML and in JSON, and also when converted from one to
// the other. Absent values are empty, and empty values are omitted. Comments are not kept.
//
// # Secrets
//
// A definition has no place for keys and passwords, only for the names of environment variables. Errors do
// not show values that look like secrets.
package registry
