package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/time/rate"

	"github.com/grapnel-go/grapnel/durable"
)

// kindAudit is the kind of the documents of the audit log; their names are in the order of time.
const kindAudit = "audit"

// auditKey is the key in the metadata of an operation that is recorded.
const auditKey = "audit"

// withAudit lets an operation be recorded before it is carried out.
func withAudit(o *huma.Operation) { o.Metadata[auditKey] = true }

// AuditEntry is a request that changes what all runs depend on. Runs themselves say who has submitted them, and the answers of people
// are in the audit log of the store.
type AuditEntry struct {
	// ID orders the entries.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// By is the name of the token, TokenID its ID; empty for the token that the service was started with.
	By      string `json:"by"`
	TokenID string `json:"token_id,omitempty"`
	// Operation is the ID of the operation in the OpenAPI document, Path the path of the request.
	Operation string `json:"operation"`
	Path      string `json:"path"`
}

// auditTime is the form of times in the names of entries: they have one length.
const auditTime = "20060102T150405.000000000Z"

// audit records an operation that is to be recorded, before it is carried out: whether it succeeds is not known yet.
func (a *api) audit(ctx huma.Context, by Token) error {
	o := ctx.Operation()
	if o.Metadata[auditKey] == nil {
		return nil
	}
	now := time.Now().UTC()
	at := ctx.URL()
	entry := AuditEntry{
		ID: now.Format(auditTime) + "-" + rand.Text()[:8], Time: now, By: by.Name, TokenID: by.ID, Operation: o.OperationID, Path: at.Path,
	}
	data, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	_, err = a.c.store.PutDocument(ctx.Context(), durable.Document{Kind: kindAudit, Name: entry.ID, By: by.Name, Data: data})
	return err
}

// AuditLog returns at most limit entries after the one with an ID, oldest first.
func (c *Coordinator) AuditLog(ctx context.Context, after string, limit int) (all []AuditEntry, err error) {
	docs, err := c.store.ListDocuments(ctx, kindAudit, after, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	for _, d := range docs {
		var e AuditEntry
		if err := json.Unmarshal(d.Data, &e); err != nil {
			return nil, fmt.Errorf("reading entry %s of the audit log: %w", d.Name, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (a *api) addAudit() {
	type auditInput struct {
		After string `query:"after" doc:"Only entries after the one with this ID."`
		Limit int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	type auditOutput struct {
		Body struct {
			Entries []AuditEntry `json:"entries"`
		}
	}
	huma.Register(a.huma, route(http.MethodGet, "/audit", "read-audit-log", "Read who has changed blueprints and tokens, and stopped runs", Admin),
		func(ctx context.Context, in *auditInput) (*auditOutput, error) {
			all, err := a.c.AuditLog(ctx, in.After, in.Limit)
			out := &auditOutput{}
			out.Body.Entries = append([]AuditEntry{}, all...)
			return out, a.problem("reading the audit log", err)
		})
}

// rates limits the requests of each token. It is safe for concurrent use.
type rates struct {
	limit rate.Limit

	mu  *sync.Mutex
	all map[string]*rate.Limiter
}

// newRates returns limits of requests a second; zero means none.
func newRates(perSecond float64) rates {
	return rates{limit: rate.Limit(perSecond), mu: new(sync.Mutex), all: map[string]*rate.Limiter{}}
}

// allow reports whether a token may send a request now. Only valid tokens are asked about, so that the map stays small.
func (r rates) allow(token string) bool {
	if r.limit <= 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := r.all[token]
	if limiter == nil {
		limiter = rate.NewLimiter(r.limit, max(1, int(2*r.limit)))
		r.all[token] = limiter
	}
	return limiter.Allow()
}
