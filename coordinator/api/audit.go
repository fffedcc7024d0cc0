package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// kindAudit is the kind of the documents of the audit log; their names are in the order of time.
const kindAudit = "audit"

// auditKey is the key in the metadata of an operation that is not recorded, or that records itself: all others are that change something.
const auditKey = "audit"

// withOwnAudit says that the handler of an operation calls record when it changes something, with what the path does not say.
func withOwnAudit(o *huma.Operation) { o.Metadata[auditKey] = "own" }

// withoutAudit says that an operation changes nothing, or that what it writes is in the run, with the runner: its lease, its journal or its
// events.
func withoutAudit(o *huma.Operation) { o.Metadata[auditKey] = "none" }

// auditTime is the form of times in the names of entries: they have one length.
const auditTime = "20060102T150405.000000000Z"

// audited is what the audit log says about a request besides its author, and the entry of it that the next change stores.
type audited struct {
	operation, path, runner string
	status                  string // when no change has stored the entry
	entry                   durable.Companion
}

type auditedKey struct{}

// withAudit returns ctx for record, and records an operation that changes something, unless it does so itself.
func (a *api) withAudit(ctx huma.Context) huma.Context {
	o, at := ctx.Operation(), ctx.URL()
	target := &audited{operation: o.OperationID, path: at.Path}
	if o.Metadata[roleKey] == wire.RunnerRole {
		target.runner = ctx.Header("Grapnel-Runner")
	}
	ctx = huma.WithContext(ctx, durable.WithCompanion(context.WithValue(ctx.Context(), auditedKey{}, target), &target.entry))
	if o.Method != http.MethodGet && o.Metadata[auditKey] == nil {
		a.record(ctx.Context(), "")
	}
	return ctx
}

// record adds what a request is about to change, and the runs that it claims, to the audit log, together with its first change.
func (a *api) record(ctx context.Context, detail string) {
	by := identityOf(ctx)
	target, _ := ctx.Value(auditedKey{}).(*audited)
	target.entry.Set(func(claimed ...durable.Run) durable.Document {
		words := []string{detail}
		if target.runner != "" {
			words = []string{"runner", target.runner, detail}
		}
		for _, r := range claimed {
			words = append(words, string(r.ID))
		}
		return newEntry(wire.AuditEntry{
			By: by.Name, TokenID: by.ID, Operation: target.operation, Path: target.path, Detail: strings.Join(lo.Compact(words), " "),
			Status: target.status,
		})
	})
}

// setOutcome sets the status of the entry of a request that no change has stored.
func setOutcome(ctx context.Context, status string) {
	if target, _ := ctx.Value(auditedKey{}).(*audited); target != nil {
		target.status = status
	}
}

// recordNow adds to the audit log what a request was to change and has not changed, even if its client has gone.
func recordNow(ctx context.Context, store durable.Documents) error {
	entry, over := durable.TakeCompanion(ctx)
	if entry == nil {
		return nil
	}
	_, err := store.PutDocument(context.WithoutCancel(ctx), entry())
	over(err == nil)
	if err != nil {
		return fmt.Errorf("writing to the audit log: %w", err)
	}
	return nil
}

// maxAudited limits the path and the detail in an entry, in bytes each.
const maxAudited = 4 << 10

// newEntry returns an entry of the audit log, with a new ID.
func newEntry(e wire.AuditEntry) durable.Document {
	for _, text := range []*string{&e.Path, &e.Detail} {
		if len(*text) > maxAudited {
			*text = strings.ToValidUTF8((*text)[:maxAudited], "") + "…"
		}
	}
	e.Status = cmp.Or(e.Status, auditOK)
	e.Time = time.Now().UTC()
	e.ID = e.Time.Format(auditTime) + "-" + rand.Text()[:8]
	data, _ := json.Marshal(e) //nolint:errchkjson // texts and a time can always be written
	return durable.Document{Kind: kindAudit, Name: e.ID, By: e.By, Data: data}
}

func (a *api) addAudit() {
	add(a, route(http.MethodGet, "/audit", "read-audit-log", "Read who has changed what, and when: the newest first", wire.Admin),
		func(ctx context.Context, in *wire.AuditFilter) (wire.AuditList, error) {
			return listAudit(ctx, a.store, *in)
		})
}

// auditRead is how many entries a page with a filter reads.
const auditRead = 2000

// listAudit returns a page of the audit log.
func listAudit(ctx context.Context, store durable.Documents, f wire.AuditFilter) (wire.AuditList, error) {
	out := wire.AuditList{Entries: []wire.AuditEntry{}}
	limit, read := cmp.Or(f.Limit, durable.DefaultLimit), f.By+f.Operation+f.Run+f.Status
	most := lo.Ternary(read == "", limit, auditRead)
	list, from := store.ListDocumentsBefore, f.Before
	if f.After != "" {
		list, from = store.ListDocuments, f.After
	}
	docs, err := list(ctx, kindAudit, from, most)
	if err != nil {
		return out, err
	}
	last := ""
	for _, d := range docs {
		var e wire.AuditEntry
		if err := json.Unmarshal(d.Data, &e); err != nil {
			return out, fmt.Errorf("reading entry %s of the audit log: %w", d.Name, err)
		}
		if last = d.Name; selectsEntry(f, e) {
			out.Entries = append(out.Entries, e)
		}
		if len(out.Entries) == limit {
			break
		}
	}
	if len(out.Entries) == limit || len(docs) == most {
		out.Next = last
	}
	return out, nil
}

// selectsEntry reports whether a filter selects an entry.
func selectsEntry(f wire.AuditFilter, e wire.AuditEntry) bool {
	return (f.By == "" || f.By == e.By) && (f.Operation == "" || f.Operation == e.Operation) &&
		(f.Status == "" || f.Status == e.Status || f.Status == "failed" && e.Status != auditOK) &&
		(f.Run == "" || f.Run == string(e.Run) || slices.Contains(strings.Split(e.Path, "/"), f.Run) || slices.Contains(strings.Fields(e.Detail), f.Run))
}

// auditOK is the status of an entry about a request that was done.
const auditOK = "ok"

// outcomeOf returns the status of an entry about a request with an error, if any.
func outcomeOf(err error) string {
	if err == nil {
		return auditOK
	}
	return strconv.Itoa(statusOf(err))
}
