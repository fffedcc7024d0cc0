// Package policies asks three engines the same question: may this tool call run, by a policy
// of a hundred rules? Grapnel's policies, OPA and Cedar decide in this process, by the same
// rules in the language of each. Tests prove that they decide alike, and where they do not;
// the benchmarks set them side by side.
//
//	for _, e := range policies.Engines() {
//		decider, err := e.Load(ctx, e.Text())
//		if err != nil {
//			return err
//		}
//		rule, err := decider.Decide(ctx, policies.Call{Tool: "tool3", Arguments: `{"n":39,"path":"/etc/passwd"}`})
//		fmt.Println(e.Name, rule, err) // r39
//	}
//
// It is a module of its own, so that what OPA and Cedar need stays here.
package policies
