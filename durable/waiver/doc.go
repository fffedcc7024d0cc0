// Package waiver provides standing answers: "yes, and from now on". A waiver approves, until it expires or is revoked, the
// questions of one rule about calls of one tool, with certain arguments.
//
//	w, err := waiver.New(waiver.Scope{
//		Rule: "payments/large", Tool: "transfer", Arguments: map[string]string{"to": "landlord"},
//	}, "ann", time.Now().Add(30*24*time.Hour))
//	err = store.AddWaiver(ctx, w)
//
//	b := builder.New().With(capability.UseHooks(waiver.Hook(store)))
//
// A waiver answers as a hook does, in the place of a person: see the rank of hooks at InterventionRequested. So it never
// answers a question of a required policy, a question with approvers or a quorum, the question whether a call in doubt is
// repeated, or a gate. A call with several questions runs without a person only if waivers cover all of them.
//
// Waivers, their authors and their revocations are in the audit log of the store. The approval of a call that a waiver
// answered names the waiver.
//
// Everything in this package is safe for concurrent use.
package waiver
