// Package registry makes agents of names: a Definition, in YAML, JSON or Go, says what an
// agent is made of, and a Registry knows what the names in it stand for.
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
// There is no registry for the whole program: one is made where it is used, and two may
// know different things by one name. A name that is not known, or that stands twice where
// it can be there once, is an error when the definition is loaded, with the nearest name
// there is; so are settings that do not fit, and unknown keys. All of them are
// told at once, with file, line and column. What only shows when something is made, such as
// a file that cannot be opened, is told with its line by Build.
//
// A hook that no call of the agent's tools can reach is an error: it would guard nothing.
//
// # Hooks before and after a run
//
// Under hooks belong hooks at whatever points. preHooks and postHooks are for those that
// are about the run as a whole, as other systems have them:
//
//   - preHooks stand at InputSubmitted or ExecutionStart and at nothing else. They are asked
//     in the order of the list, before the model is: they may deny or rewrite the input and
//     set metadata that all later hooks see.
//   - postHooks stand at ExecutionEnd or AgentFailed and at nothing else. They are told in
//     the order of the list how the run ended: of every run, also one that failed, was
//     cancelled or denied, with its status. The run does not return before they do.
//
// A hook that stands elsewhere is an error there. Hooks that are not to be waited for are
// Detached where they are made; they are started when the others have been told. Priorities
// go before the order of the lists.
//
// # Round trips
//
// What was read, written and read again is equal, in YAML and in JSON, and from one to the
// other. What is absent is empty, and what is empty is left away. Comments are not kept.
//
// # Secrets
//
// A definition has no place for keys and passwords, only for the names of variables of the
// environment. What looks like one is not shown in errors.
package registry
