// Package policy makes hooks of rules that stand in files: what an agent may do, said by
// people who do not write Go.
//
//	policy: workspace
//	variables: {workspace: /srv/app}
//	hooks:
//	  PreToolUse:
//	    - id: inside
//	      match: {any: [{tool: [read_file, write_file, edit_file]}, {args: {path: present}}]}
//	      when: '!path.within(args.path, workspace)'
//	      decision: deny
//	      reason: '${args.path} is outside of the workspace'
//
// A program loads the file and gives the policy to an agent:
//
//	p, err := policy.LoadFiles("workspace.yaml")
//	if err != nil {
//		return err // everything that is wrong, with file, line and column
//	}
//	a, err := builder.New().WithDriver(driver).With(policy.Use(p), capability.UseTools(tools...)).Build().Get()
//
// docs/policies.md is the manual of the files.
//
// # Rules and hooks
//
// Every rule, and every action, becomes one hook called policy/id, with its file and line
// as hooks.Origin. Matchers, order, time limits, failure policies and the fold of answers
// are those of package hooks, so that rules of files and hooks in Go stand in one order
// and are judged alike. What a rule asks for that its point has no power for is an error
// when the file is loaded, as it would not compile in Go.
//
// Conditions are those of package policy/condition, actions those of package action. A
// condition that cannot be judged is a failure of the hook: for what decides, a no.
//
// # Strictness
//
// A file loads whole or not at all. An unknown key, point, decision or name is an error,
// and all errors are told at once. Check tells of what loads and is most likely not meant.
// Files have bounds, aliases are not read, and texts of ${names} get values as they are,
// once.
//
// # Versions
//
// A Policy does not change. Its hash is of everything that decides, and stands on every
// decision. Live follows the files of a program that runs for long: a run is judged by
// the version that it began with, and a version that is wrong is told of and changes
// nothing.
//
// # Concurrency
//
// Policies serve any number of runs at once. What the actions of an occasion came to is
// kept in the run.
package policy
