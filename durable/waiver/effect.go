package waiver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Effect is what a waiver would have done to the answers that are in the audit log.
type Effect struct {
	// Answers is how many recorded answers of people about the tool were looked at, and Covered are those among them that the
	// waiver would have given, newest first.
	Answers int
	Covered []durable.Answered
	// Rejected is how many of Covered were rejections.
	Rejected int
}

// Preview returns what a waiver of the scope would have done to the answers that people have given since a time. It looks
// at no more than limit answers, the newest ones.
func Preview(ctx context.Context, store durable.AuditReader, s Scope, since time.Time, limit int) (e Effect, err error) {
	f := durable.AuditFilter{Kind: durable.AuditAnswer, Limit: min(limit, durable.DefaultLimit)}
	if patternOf(s.Tool) == s.Tool {
		f.Subject = s.Tool
	}
	for e.Answers < limit {
		records, err := store.AuditRecords(ctx, f)
		if err != nil {
			return e, fmt.Errorf("reading the recorded answers: %w", err)
		}
		for _, r := range records {
			if r.At.Before(since) || e.Answers == limit {
				return e, nil
			}
			answered, err := durable.AnsweredOf(r)
			if err != nil {
				return e, err
			}
			if e.Answers++; slices.ContainsFunc(answered.AskedBy, func(rule string) bool { return s.Covers(rule, answered.Call) }) {
				e.Covered = append(e.Covered, answered)
				if answered.Verdict != agent.Approve {
					e.Rejected++
				}
			}
		}
		if len(records) < f.Limit {
			break
		}
		f.Before = records[len(records)-1].Seq
	}
	return e, nil
}
