// Package policies asks three engines the same question: does a policy of a hundred rules allow this tool call?
// Grapnel's policies, OPA and Cedar decide in this process, with the same rules in their own languages. Tests prove
// that they decide the same, and show where they differ; the benchmarks compare them.
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
// It is a separate module, so that the dependencies of OPA and Cedar stay here.
package policies
