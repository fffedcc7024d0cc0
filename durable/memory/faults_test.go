package memory_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runWithFault runs tests of this package after edits of its code and of package store: a file's name, a text in it, and what replaces
// it. It returns the output and whether the tests failed.
func runWithFault(t *testing.T, edits []string, args ...string) (string, error) {
	t.Helper()
	replaced := map[string]string{}
	for e := range slices.Chunk(edits, 3) {
		path, err := filepath.Abs(e[0] + ".go")
		require.NoError(t, err)
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join(filepath.Dir(path), "..", "internal", "store", e[0]+".go")
		}
		if replaced[path] == "" {
			replaced[path] = path
		}
		code, err := os.ReadFile(replaced[path])
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(code), e[1]), "%s.go has %q once", e[0], e[1])
		replaced[path] = filepath.Join(t.TempDir(), e[0]+".go")
		require.NoError(t, os.WriteFile(replaced[path], []byte(strings.Replace(string(code), e[1], e[2], 1)), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"test", "-vet=off", "-overlay=" + file, "."}, args...)...).CombinedOutput()
	return string(out), err
}

// allFaults reports whether all faults are tested. Each one builds the package, so that a usual run tests only some of them.
func allFaults() bool { return os.Getenv("GRAPNEL_ALL_FAULTS") != "" }

// TestFaults tests that the contract's tests detect each fault.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the package")
	}
	for name, f := range faults {
		if f[0] == "" || !allFaults() && !slices.Contains([]string{"held", "rollback", "any wait"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part := f[0]
			out, err := runWithFault(t, f[1:], "-run=^TestStore$/"+strings.ReplaceAll(part, "/", "$/"), "-timeout=60s")
			require.Error(t, err, "a store with the fault %q passes %q", name, part)
			assert.Contains(t, out, "--- FAIL: TestStore/"+part)
			assert.NotContains(t, out, "panic: test timed out")
		})
	}
}

// TestRandomFaults tests that random calls detect faults that need several calls in a certain order.
func TestRandomFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the package")
	}
	for i, name := range []string{
		"same epoch", "key in one call", "claim priority", "end keeps lease", "end keeps waits", "handled falls", "answer wakes",
		"wake held", "release paused", "release cancelled", "expired waiting", "offer number", "last reason", "attempts", "any wait",
		"answer refused", "check expired", "open overdue", "delete keeps answers", "pass attempts", "first input", "after itself",
		"document numbers", "resume overdue", "must not start yet", "updated by claim", "updated by time", "commit of another owner", "resume pending",
		"forgets claims",
	} {
		if i > 0 && !allFaults() {
			break
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := runWithFault(t, faults[name][1:], "-run=^TestRandom$", "-rapid.nofailfile", "-rapid.shrinktime=0s", "-rapid.checks=20000")
			require.Error(t, err, "random calls do not detect the fault %q", name)
			assert.Contains(t, out, "--- FAIL: TestRandom")
		})
	}
}

// faults are ways to break the contract: the part of TestStore that must detect each, empty for TestRandom, and the edits that make it.
var faults = map[string][]string{
	"context":                  {"submit/a_cancelled_context_changes", "memory", "if err := ctx.Err(); err != nil {", "if err := ctx.Err(); false && err != nil {"},
	"exists":                   {"submit/an_ID_is_taken_once", "writes", "if t.byID[r.ID] != nil {", "if false {"},
	"submit half":              {"submit/an_ID_is_taken_once", "writes", "set(t, &t.runs, append(t.runs, added))", "t.runs = append(t.runs, added)"},
	"submit order":             {"submit/many_jobs_at_once", "submit", "return t.AddRuns(runs...)", "slices.Reverse(runs)\n\treturn t.AddRuns(runs...)"},
	"invalid":                  {"submit/an_invalid_job", "submit", "if jobs[i], err = j.Prepare(); err != nil {", "if jobs[i], err = j.Prepare(); false {"},
	"not before":               {"submit/a_job_for_later", "submit", "case !j.NotBefore.After(t.Now()):", "default:"},
	"labels":                   {"submit/a_job_is_a_ready_run", "submit", "Labels: orNil(j.Labels),", ""},
	"demands":                  {"submit/a_job_is_a_ready_run", "submit", "Demands: orNil(j.Demands),", ""},
	"submitter":                {"submit/the_job_survives", "submit", " By: j.By,", ""},
	"version":                  {"submit/the_job_survives", "submit", " Version: j.Version,", ""},
	"input":                    {"submit/a_job_is_a_ready_run", "writes", "input := bytes.Clone(r.Input)", "input := bytes.Clone(r.Input[:0])"},
	"begin pending":            {"begin/demands_and_NotBefore", "submit", "r.Start(owner, ttl, t.Now())", "if r.Status != durable.StatusPending {\n\t\t\tr.Start(owner, ttl, t.Now())\n\t\t}"},
	"begin offers":             {"begin/a_run_is_running_and_leased", "submit", "r.Offer = 0", "r.Ready = t.Now()", "submit", "r.Start(owner, ttl, t.Now())", "r.Start(owner, ttl, t.Now())\n\t\tr.Ready = t.Now()"},
	"key":                      {"once/submitted_twice", "submit", `found && j.IdempotencyKey != "" {`, "found && false {"},
	"key in one call":          {"once/twice_in_one_call", "submit", "byKey[j.IdempotencyKey] = r.Run", "_ = byKey"},
	"begin known key":          {"once/begin", "submit", `return fmt.Errorf("key %q: %w", j.IdempotencyKey, durable.ErrExists)`, "return nil"},
	"delete keeps key":         {"once/a_deleted_run_frees", "writes", "maps.DeleteFunc(t.byKey, func(_ string, r *run) bool { return gone[r.ID] })", ""},
	"acquire ended":            {"acquire/an_ended_run", "lease", "case r.Status.Ended():", "case false:"},
	"held":                     {"acquire/a_held_run_stays_held", "lease", "case r.IsHeld(t.Now()) && r.Owner != owner &&", "case false &&"},
	"eternal":                  {"acquire/an_expired_lease_is_free", "rows", "now.Before(r.Expires) && !r.Leased", "!r.Leased"},
	"same epoch":               {"acquire/take_over_takes", "rows", "r.Epoch++", "r.Epoch = max(r.Epoch, 1)"},
	"acquire ready":            {"acquire/a_ready_run_becomes_running", "rows", "if r.Status != durable.StatusWaiting {", "if r.Status != durable.StatusWaiting && r.Status != durable.StatusReady {"},
	"acquire pending":          {"acquire/a_pending_run_becomes_running", "rows", "if r.Status != durable.StatusWaiting {", "if r.Status != durable.StatusWaiting && r.Status != durable.StatusPending {"},
	"acquire waiting":          {"acquire/a_waiting_run_keeps", "rows", "if r.Status != durable.StatusWaiting {", "if true {"},
	"attempts":                 {"acquire/attempts_count", "rows", "r.Attempts++", "r.Attempts = 1"},
	"commit of another owner":  {"acquire/another_owner", "commit", "case !r.isLeased(l):", `case r.Epoch != l.Epoch || r.Owner == "":`},
	"renew of another owner":   {"acquire/another_owner", "lease", "if !r.isLeased(l) {", `if !r.isLeased(l) && (doing != "renewing a lease" || r.Epoch != l.Epoch) {`},
	"release of another owner": {"acquire/another_owner", "lease", "if !r.isLeased(l) {", `if !r.isLeased(l) && (doing != "releasing a run" || r.Epoch != l.Epoch) {`},
	"updated by claim":         {"updated/by_leases", "rows", "r.Owner, r.Leased, r.Expires, r.Updated = owner, now, now.Add(ttl), now", "r.Owner, r.Leased, r.Expires = owner, now, now.Add(ttl)"},
	"updated by time":          {"", "lease", "case Overdue, Due:\n\t\t\tt.free(&r, durable.StatusReady)", "case Overdue, Due:\n\t\t\tt.setStatus(&r, durable.StatusReady)"},
	"renew":                    {"acquire/each_lease_is_an_epoch", "lease", "if !r.isLeased(l) {", `if !r.isLeased(l) && doing != "renewing a lease" {`},
	"release":                  {"acquire/each_lease_is_an_epoch", "lease", "if !r.isLeased(l) {", `if !r.isLeased(l) && doing != "releasing a run" {`},
	"commit":                   {"acquire/each_lease_is_an_epoch", "commit", "case !r.isLeased(l):", "case false:"},
	"expired is stale":         {"acquire/an_expired_lease_that_no_process_took", "lease", "return r.Epoch == l.Epoch &&", "return time.Now().Before(r.Expires) && r.Epoch == l.Epoch &&"},
	"renew adds":               {"acquire/renew_counts_from_now", "lease", "t.Now(), t.Now().Add(ttl)", "t.Now(), l.Expires.Add(ttl)"},
	"claim pending":            {"claim/only_ready_runs", "reads", "if r.Status == durable.StatusReady && slices.Contains(keys", "if (r.Status == durable.StatusReady || r.Status == durable.StatusPending) && slices.Contains(keys"},
	"claim keys":               {"claim/only_the_given_keys", "reads", "if r.Status == durable.StatusReady && slices.Contains(keys, r.Needs().Key()) {", "if r.Status == durable.StatusReady {"},
	"claim limit":              {"claim/at_most_limit", "memory", "ready[:min(limit, len(ready))]", "ready"},
	"claim priority":           {"claim/a_higher_priority_first", "memory", "cmp.Or(cmp.Compare(b.Priority, a.Priority),", "cmp.Or(0,"},
	"claim order":              {"claim/a_higher_priority_first", "memory", "cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Ready.Compare(b.Ready))", "cmp.Compare(b.Priority, a.Priority)"},
	"claim twice":              {"at_once/one_run_and_many_claimers", "memory", "started.Start(owner, ttl, t.now)", "started.Start(owner, ttl, t.now)\n\t\t\tstarted.Status = durable.StatusReady"},
	"queue twice":              {"claim/queues_are_the_needs", "writes", "if !slices.ContainsFunc(t.queues, func(q *queue) bool { return q.key == key }) {", "{"},
	"prune queues":             {"claim/queues_after_the_end", "writes", "return !used[q.key]", "return true"},
	"clone":                    {"commit/what_was_given_may_be_changed", "writes", "clones(entries, entryData)...", "entries..."},
	"seq":                      {"commit/a_number_that_is_not_the_next", "commit", "e.Seq != want", "false && e.Seq != want"},
	"half":                     {"follow-ups/all_or_nothing", "writes", "set(t, &r.entries, append(r.entries, clones(entries, entryData)...))", "r.entries = append(r.entries, clones(entries, entryData)...)"},
	"binary":                   {"commit/data_is_any_bytes", "writes", "clones(entries, entryData)...", "clones(entries, func(e *durable.Entry) *[]byte {\n\t\te.Data, _, _ = bytes.Cut(e.Data, []byte{0})\n\t\treturn &e.Data\n\t})..."},
	"empty status":             {"commit/an_empty_status", "commit", `if u.Status != "" {`, "if true {"},
	"end keeps lease":          {"commit/a_status_that_ends_the_run", "lease", "t.free(r, s)", "t.setStatus(r, s)"},
	"end again":                {"commit/an_end_may_be_repeated", "commit", "case repeatable && bytes", "case false && repeatable && bytes"},
	"end differently":          {"commit/an_end_may_be_repeated", "commit", "s.keys.maskPrint(c.Fingerprint(l))", "s.keys.maskPrint(durable.Commit{Update: c.Update}.Fingerprint(l))"},
	"end keeps waits":          {"commit/a_status_that_ends_the_run", "lease", "if err := t.replaceWaits(r.ID, nil); err != nil {", "if err := error(nil); err != nil {"},
	"after":                    {"commit/entries_after_a_number", "reads", "rowsAfter(v.find(id).entries, last)", "rowsAfter(v.find(id).entries, last-1)"},
	"early result":             {"commit/a_result_is_stored", "commit", "case u.Status != \"\":\n", "case u.Status != \"\":\n\t\t_ = t.PutResult(r.ID, u.Result)\n"},
	"blocked":                  {"commit/blocked_is_kept", "commit", "= u.Reason, u.Blocked, u.Steps", "= u.Reason, false, u.Steps"},
	"event number":             {"follow-ups/events_are_numbered", "commit", "= r.ID, r.Events+int64(i)+1", "= r.ID, int64(i)+1"},
	"event run":                {"follow-ups/events_are_numbered", "commit", "= r.ID, r.Events+int64(i)+1", `= "", r.Events+int64(i)+1`},
	"events after":             {"follow-ups/events_after_a_number", "reads", "rowsAfter(v.find(id).events, last)", "v.find(id).events"},
	"events limit":             {"follow-ups/events_after_a_number", "reads", "clones(all[:min(limit, len(all))], eventData)", "clones(all, eventData)"},
	"phase":                    {"pass/a_run_in_a_phase", "submit", " Phase: j.Phase,", ""},
	"pass phase":               {"pass/a_run_is_passed_on", "commit", "= p.Phase, 0, false", "= r.Phase, 0, false"},
	"pass input":               {"pass/a_run_is_passed_on", "commit", "if p.Input != nil {", "if false {"},
	"submitted input":          {"pass/a_run_is_passed_on", "writes", "set(t, &t.byID[id].payload.Input, bytes.Clone(input))", "set(t, &t.byID[id].payload, store.Payload{Input: bytes.Clone(input), Submitted: bytes.Clone(input)})"},
	"first input":              {"pass/a_run_is_passed_on", "writes", "set(t, &t.byID[id].payload.Input, bytes.Clone(input))", "set(t, &t.byID[id].payload.Submitted, t.byID[id].payload.Input)\n\tset(t, &t.byID[id].payload.Input, bytes.Clone(input))"},
	"pass running":             {"pass/a_run_is_passed_on", "commit", "next := durable.StatusReady", "next := durable.StatusRunning"},
	"pass keeps lease":         {"pass/a_run_is_passed_on", "commit", "t.free(r, next)", "t.setStatus(r, next)"},
	"pass attempts":            {"pass/StartBy_limits", "commit", "= p.Phase, 0, false", "= p.Phase, r.Attempts, false"},
	"pass keeps waits":         {"pass/its_waits_are_removed", "commit", "if err := t.replaceWaits(r.ID, nil); err != nil {", "if err := error(nil); err != nil {"},
	"pass paused":              {"pass/a_paused_run_waits", "commit", `if r.Paused && r.CancelCause == "" {`, "if false {"},
	"pass cancelled":           {"pass/a_run_that_is_to_be_cancelled", "commit", `if r.Paused && r.CancelCause == "" {`, "if r.Paused {"},
	"pass again":               {"pass/it_may_be_repeated", "commit", "case repeatable && bytes", "case c.Update.Pass == nil && repeatable && bytes"},
	"commit check":             {"pass/no_status_and_no_waits", "commit", "if err := c.Check(); err != nil {", "if err := c.Check(); false && err != nil {"},
	"after ignored":            {"after/a_run_waits_until", "submit", `case j.After != "" && !after.Status.Ended() && j.After != ending:`, "case false && !after.Status.Ended():"},
	"after ended":              {"after/a_run_that_has_ended", "submit", "&& !after.Status.Ended() && j.After != ending:", `&& after.ID != "" && j.After != ending:`},
	"after unknown":            {"after/an_unknown_run", "submit", `case j.After != "" && !found:`, "case false && !found:"},
	"after itself":             {"after/a_job_of_the_commit_that_ends", "submit", "&& !after.Status.Ended() && j.After != ending:", "&& !after.Status.Ended():"},
	"begin after":              {"after/not_with_Begin", "submit", "j.PrepareToBegin()", "j.Prepare()"},
	"resume after":             {"after/a_pause_lasts", "lease", "err != nil || !satisfied {\n\t\t\treturn durable", "err != nil || !satisfied && r.Attempts > 0 {\n\t\t\treturn durable"},
	"after deleted":            {"after/the_other_run_may_be_deleted", "lease", "if w.IsAfter() && w", "if false && w"},
	"document version":         {"documents/each_change", "audit", "v, found, err := rows.Document(kind, name, version)", "v, found, err := rows.Document(kind, name, 0)"},
	"document by":              {"documents/each_change", "audit", "version, err := t.AddDocument(d)", "d.By = \"\"\n\tversion, err := t.AddDocument(d)"},
	"document time":            {"documents/each_change", "audit", "documentPlace(d, d.Version)), t.Now()", "documentPlace(d, d.Version)), d.At"},
	"document conflict":        {"documents/a_change_of_an_older", "audit", "last.Newest != d.Version {", "last.Newest == 0 {"},
	"document kind":            {"documents/kinds_are_apart", "reads", "d := v.documents[documentID{kind, name}]", "d := v.documents[documentID{kind, name}]\n\tfor id, other := range v.documents {\n\t\tif id.name == name {\n\t\t\td = other\n\t\t}\n\t}"},
	"documents kind":           {"documents/lists", "reads", "if id.kind == kind && id.name", "if id.name"},
	"documents order":          {"documents/lists", "reads", "cmp.Compare(a.Name, b.Name)", "cmp.Compare(b.Name, a.Name)"},
	"documents page":           {"documents/lists", "reads", "&& id.name > after &&", "&&"},
	"documents limit":          {"documents/lists", "reads", "cmp.Compare(a.Name, b.Name) })\n\treturn all[:min(limit, len(all))], nil", "cmp.Compare(a.Name, b.Name) })\n\treturn all, nil"},
	"documents newest":         {"documents/lists", "reads", "d.versions[len(d.versions)-1]", "d.versions[0]"},
	"document delete":          {"documents/a_deleted_document", "audit", "return t.DropDocument(kind, name)", "return nil"},
	"document deleted":         {"documents/a_deleted_document", "audit", "!found || version == 0 && v.Newest == 0", "!found"},
	"document delete all":      {"documents/a_deleted_document", "audit", "!found || version == 0 && v.Newest == 0", "!found || v.Newest == 0"},
	"document delete twice":    {"documents/a_deleted_document", "audit", "case v.Newest == 0:", "case false && v.Newest == 0:"},
	"documents deleted":        {"documents/a_deleted_document", "reads", "&& !d.deleted {", "{"},
	"document numbers":         {"documents/a_document_again", "writes", "d.Version = int64(len(next.versions)) + 1", "d.Version = 1"},
	"document again":           {"documents/a_document_again", "writes", "next.versions = slices.Clip(old.versions)", "next.versions, next.deleted = slices.Clip(old.versions), old.deleted"},
	"document check":           {"documents/an_invalid_document", "audit", "if err := d.Check(); err != nil {", "if err := d.Check(); false && err != nil {"},
	"commit document":          {"documents/with_a_commit", "commit", "if c.Document != nil {", "if false {"},
	"commit document first":    {"documents/all_or_nothing", "writes", "setKey(t, t.documents, id, next)", "t.documents[id] = next"},
	"jobs":                     {"follow-ups/jobs_of_a_commit", "commit", "return t.storeRuns(jobs)", "return t.storeRuns(jobs[:0])"},
	"handled first":            {"follow-ups/all_or_nothing", "writes", "set(t, &t.byID[r.ID].Run, cloneRun(r))", "t.byID[r.ID].Run = cloneRun(r)"},
	"jobs last":                {"follow-ups/all_or_nothing", "writes", "set(t, &t.runs, append(t.runs, added))", "t.runs = append(t.runs, added)"},
	"events first":             {"follow-ups/all_or_nothing", "writes", "set(t, &r.events, append(r.events, clones(events, eventData)...))", "r.events = append(r.events, clones(events, eventData)...)"},
	"rollback":                 {"follow-ups/all_or_nothing", "memory", "if !done {", "if false && !done {"},
	"oldest first":             {"list/newest_first", "reads", "range slices.Backward(v.runs)", "range v.runs"},
	"page":                     {"list/filters", "reads", "case r.ID == f.Before:\n", "case r.ID == f.Before:\n\t\t\tall = append(all, r.Run.Run)\n"},
	"page gone":                {"list/a_page_behind", "reads", `if f.Before != "" && v.byID[f.Before] == nil {`, "if false {"},
	"filter after":             {"list/filters", "reads", `&& (f.After == "" || f.After == r.After)`, ""},
	"filter parent session":    {"list/filters", "reads", `(f.ParentSession == "" || f.ParentSession == r.Traits.ParentSession) && `, ""},
	"filter turn":              {"list/filters", "reads", `(f.Turn == "" || f.Turn == r.Traits.Turn) &&`, ""},
	"filter request key":       {"list/filters", "reads", `(f.RequestKey == "" || f.RequestKey == r.Traits.RequestKey) && `, ""},
	"filter hooks":             {"list/filters", "reads", `(!f.HasHooks || r.Traits.HasHooks) &&`, ""},
	"limit":                    {"list/filters", "reads", "case len(all) == f.Limit:", "case false:"},
	"filter status":            {"list/filters", "reads", "(len(f.Status) == 0 || slices.Contains(f.Status, r.Status)) &&", "true &&"},
	"filter kind":              {"list/filters", "reads", `(f.Kind == "" || f.Kind == r.Kind) && (f.Phase`, "(f.Phase"},
	"filter name":              {"list/filters", "reads", `(f.Name == "" || f.Name == r.Name) &&`, ""},
	"filter session":           {"list/filters", "reads", `(f.Session == "" || f.Session == r.Session) &&`, ""},
	"filter parent":            {"list/filters", "reads", `(f.Parent == "" || f.Parent == r.Parent) &&`, ""},
	"filter label":             {"list/filters", "reads", `(f.Label.Name == "" || has && label == f.Label.Value) &&`, `(f.Label.Name == "" || has || label == "") &&`},
	"filter blocked":           {"list/filters", "reads", "(!f.Blocked || r.Blocked) &&", ""},
	"filter phase":             {"list/filters", "reads", `(f.Phase == "" || f.Phase == r.Phase) &&`, ""},
	"filter since":             {"list/since_and_until", "reads", "(f.Since.IsZero() || !r.Created.Before(f.Since)) &&", ""},
	"filter until":             {"list/since_and_until", "reads", "&& (f.Until.IsZero() || r.Created.Before(f.Until))", ""},
	"answer wakes":             {"ready/all_questions", "wait", "return t.wake(r)", "return nil"},
	"any wait":                 {"ready/any_of_the_waits", "rows", "if w.Answer.Ends || r.AnyWait {", "if w.Answer.Ends {"},
	"answer ends":              {"ready/an_answer_ends", "rows", "if w.Answer.Ends || r.AnyWait {", "if r.AnyWait {"},
	"child ends":               {"ready/a_child_ended_before", "rows", "case children[w.Child].Status.Ended():", "case false:"},
	"parents":                  {"ready/a_child_has_ended", "lease", "if err := t.wake(&r); err != nil {", "if err := error(nil); err != nil {"},
	"wake held":                {"ready/an_answer_while_the_run_is_held", "lease", "|| r.IsHeld(t.Now()) || r.Paused &&", "|| r.Paused &&"},
	"wake paused":              {"pause/a_waiting_run_stays", "lease", "|| r.Paused && r.CancelCause == \"\" {\n\t\treturn nil\n\t}", "{\n\t\treturn nil\n\t}\n\tr.Paused = false"},
	"wake cancelled":           {"pause/cancel_beats_pause_at_an_answer", "lease", `r.Paused && r.CancelCause == "" {`, "r.Paused {"},
	"release overdue":          {"ready/a_deadline_passed_before", "lease", "&& !r.IsOverdue(t.Now()):", ":"},
	"resume overdue":           {"pause/a_deadline_does_not_wake", "signal", "if err == nil && next != r.Status {", "if err == nil && next != r.Status && !r.IsOverdue(t.Now()) {"},
	"delay":                    {"ready/a_release_with_a_delay", "lease", "&& delay > 0", "&& delay < 0"},
	"release cancelled":        {"pause/cancel_beats_pause_at_the_release", "lease", "switch {\n\tcase r.CancelCause != \"\":", "switch {\n\tcase false:"},
	"release paused":           {"pause/a_running_run_goes_on", "lease", "case r.Paused:", "case false:"},
	"expired":                  {"reconcile/a_running_run_whose_lease", "rows", `return r.Owner != "" && !r.IsHeld(now)`, "return false"},
	"expired waiting":          {"reconcile/a_waiting_run_whose_lease", "rows", `return r.Owner != "" && !r.IsHeld(now)`, `return r.Owner != "" && !r.IsHeld(now) && r.Status != durable.StatusWaiting`},
	"expired keeps owner":      {"reconcile/a_running_run_whose_lease", "lease", "err = t.giveUp(&r, 0)", "err = t.giveUp(&r, 0)\n\t\t\tr.Owner = \"one\""},
	"overdue":                  {"reconcile/a_question_whose_deadline", "rows", "return r.Status == durable.StatusWaiting && !r.IsHeld(now) && !r.Paused && r.IsOverdue(now)", "return false"},
	"overdue held":             {"reconcile/an_overdue_question", "rows", "return r.Status == durable.StatusWaiting && !r.IsHeld(now) && !r.Paused && r.IsOverdue(now)", "return r.Status == durable.StatusWaiting && !r.Paused && r.IsOverdue(now)"},
	"overdue paused":           {"pause/a_deadline_does_not_wake", "rows", "return r.Status == durable.StatusWaiting && !r.IsHeld(now) && !r.Paused && r.IsOverdue(now)", "return r.Status == durable.StatusWaiting && !r.IsHeld(now) && r.IsOverdue(now)"},
	"due":                      {"reconcile/a_pending_run_whose_time", "rows", "return r.Status == durable.StatusPending && HasPassed(r.NotBefore, now)", "return false"},
	"due early":                {"submit/a_job_for_later", "rows", "return r.Status == durable.StatusPending && HasPassed(r.NotBefore, now)", "return r.Status == durable.StatusPending"},
	"deadline":                 {"reconcile/a_deadline_cancels", "rows", `return r.CancelCause == "" && HasPassed(r.Deadline, now)`, "return false"},
	"deadline again":           {"reconcile/a_deadline_cancels", "rows", `return r.CancelCause == "" && HasPassed(r.Deadline, now)`, "return HasPassed(r.Deadline, now)"},
	"start by":                 {"reconcile/a_run_that_did_not_start", "rows", "return r.Attempts == 0 && !r.IsHeld(now) && HasPassed(r.StartBy, now)", "return false"},
	"start by started":         {"reconcile/a_run_that_did_not_start", "rows", "return r.Attempts == 0 && !r.IsHeld(now) && HasPassed(r.StartBy, now)", "return !r.IsHeld(now) && HasPassed(r.StartBy, now)"},
	"start by held":            {"reconcile/a_run_that_did_not_start", "rows", "return r.Attempts == 0 && !r.IsHeld(now) && HasPassed(r.StartBy, now)", "return r.Attempts == 0 && HasPassed(r.StartBy, now)"},
	"reconcile done":           {"reconcile/many_runs", "lease", "&& len(due[c]) < reconcileAtOnce", ""},
	"call order":               {"waits/come_back_in_call_order", "commit", "waits[i] = w", "waits[len(waits)-1-i] = w"},
	"forgets answers":          {"waits/keep_their_answers", "commit", "if old.Answer != nil {", "if false {"},
	"answer of old ID":         {"waits/keep_their_answers", "commit", "if k := findWait(old, w.ID); k >= 0 {", "if k := slices.IndexFunc(old, func(o Wait) bool { return o.Subject == w.Subject }); k >= 0 {"},
	"no token":                 {"waits/are_found_by_token", "commit", "if w.TokenHash != [32]byte{} {", "if true {"},
	"answer running":           {"answer/only_a_waiting_run", "wait", "case r.Status != durable.StatusWaiting:", "case false:"},
	"answered is forgotten":    {"answer/after_the_run_became_ready", "wait", "case waits[i].Answer != nil:", "case waits[i].Answer != nil && r.Status == durable.StatusWaiting:"},
	"answered later":           {"answer/an_answered_question_goes_first", "wait", "case waits[i].Answer != nil:", "case false:"},
	"answer half":              {"answer/all_or_none", "wait", "func(a durable.Answer) bool { return findWait(waits, a.Wait) < 0 }", "func(a durable.Answer) bool { return false }", "wait", "for _, a := range answers {\n\t\t\tw :=", "for _, a := range answers {\n\t\t\tif findWait(waits, a.Wait) < 0 {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tw :="},
	"answer ID":                {"answer/fits_the_question", "rows", "return w.ID == id", "return w.ID == id || w.Subject == id"},
	"answer twice":             {"answer/is_given_once", "wait", "case waits[i].Answer != nil:", "case false:", "wait", "if w.Answer != nil { // by", "if false { // by"},
	"answer at":                {"answer/is_kept", "wait", "a.At, a.Subject = t.Now(), w.Subject", "a.Subject = w.Subject"},
	"answer by":                {"answers_that_do_not_decide/leave_the_wait_open", "wait", "a.At, a.Subject = t.Now(), w.Subject", `a.At, a.Subject, a.By = t.Now(), w.Subject, ""`},
	"answer more":              {"answers_that_do_not_decide/leave_the_wait_open", "wait", "if a.More {", "if false {"},
	"answer refused":           {"answers_that_do_not_decide/are_formed", "wait", "which may change them\n\t\tif err != nil {", "which may change them\n\t\tif false {"},
	"forgets partial answers":  {"answers_that_do_not_decide/are_kept", "commit", "if len(old.Answers()) > 0 {", "if false {"},
	"forgets tokens":           {"token/stays_with_the_same_wait", "commit", "w.TokenHash = old.TokenHash", "w.TokenHash = [32]byte{}"},
	"token ID":                 {"token/fits_an_open_wait", "wait", "if place = findWait(waits, wait); place", "if place = max(findWait(waits, wait), min(0, len(waits)-1)); place"},
	"token answered":           {"token/fits_an_open_wait", "wait", "place < 0 || waits[place].Answer != nil {", "place < 0 {"},
	"token twice":              {"token/is_set_once", "wait", "case waits[place].TokenHash != [32]byte{}:", "case false:"},
	"added token ID":           {"token/one_more", "wait", "if place = findWait(waits, wait); place", "if place = max(findWait(waits, wait), min(0, len(waits)-1)); place"},
	"added token answered":     {"token/one_more", "wait", "place < 0 || waits[place].Answer != nil {", "place < 0 {"},
	"added token replaces":     {"token/one_more", "wait", "return t.PutToken(hash,", "waits[place].TokenHash = hash\n\t\t_ = t.replaceWaits(id, waits)\n\t\treturn t.PutToken(hash,"},
	"forgets spent tokens":     {"token/is_spent_when_the_run", "writes", "set(t, &t.byID[id].waits, store.CloneWaits(waits))", "set(t, &t.byID[id].waits, store.CloneWaits(waits))\n\tif len(waits) == 0 {\n\t\tmaps.DeleteFunc(t.tokens, func(_ [32]byte, k store.Token) bool { return k.Run == id })\n\t}"},
	"open running":             {"open_waits/of_runs_that_wait", "reads", `if r.Status != durable.StatusWaiting && (r.Status != durable.StatusReady || !r.IsOverdue(v.now)) || f.Run != "" && f.Run != r.ID {`, `if f.Run != "" && f.Run != r.ID {`},
	"open overdue":             {"open_waits/of_runs_that_wait", "reads", `if r.Status != durable.StatusWaiting && (r.Status != durable.StatusReady || !r.IsOverdue(v.now)) || f.Run != "" && f.Run != r.ID {`, `if r.Status != durable.StatusWaiting || f.Run != "" && f.Run != r.ID {`},
	"open run":                 {"open_waits/filters", "reads", ` || f.Run != "" && f.Run != r.ID {`, " {"},
	"open answered":            {"open_waits/without_a_decision", "reads", "if w.Answer == nil && (len", "if (len"},
	"open kinds":               {"open_waits/filters", "reads", "(len(f.Kinds) == 0 || slices.Contains(f.Kinds, w.Kind)) &&", ""},
	"open expired":             {"open_waits/filters", "reads", "(!f.Expired || store.HasPassed(w.Deadline, v.now)) &&", ""},
	"open limit":               {"open_waits/filters", "reads", "all[:min(f.Limit, len(all))]", "all"},
	"open page":                {"open_waits/page_by_page", "reads", "&& (f.After == nil || store.CompareWaits(*f.After, w.Wait) < 0)", ""},
	"open order":               {"open_waits/the_oldest_first", "reads", "slices.SortFunc(all, byAge)", ""},
	"check kinds":              {"watch/waits_of_the_kinds", "reads", "case w.Answer != nil, !slices.Contains(kinds, w.Kind), !slices.Contains(hosts, w.Host):", "case w.Answer != nil, !slices.Contains(hosts, w.Host):"},
	"check hosts":              {"watch/waits_of_the_kinds", "reads", "case w.Answer != nil, !slices.Contains(kinds, w.Kind), !slices.Contains(hosts, w.Host):", "case w.Answer != nil, !slices.Contains(kinds, w.Kind):"},
	"check answered":           {"watch/only_of_runs_that_wait", "reads", "case w.Answer != nil, !slices.Contains(kinds, w.Kind), !slices.Contains(hosts, w.Host):", "case !slices.Contains(kinds, w.Kind), !slices.Contains(hosts, w.Host):"},
	"check running":            {"watch/only_of_runs_that_wait", "reads", "if r.Status != durable.StatusWaiting || r.Paused {", "if r.Paused {"},
	"check paused":             {"watch/only_of_runs_that_wait", "reads", "if r.Status != durable.StatusWaiting || r.Paused {", "if r.Status != durable.StatusWaiting {"},
	"check expired":            {"watch/a_claim_expires", "reads", `case w.Checker == "", !w.CheckedUntil.After(v.now):`, `case w.Checker == "":`},
	"check twice":              {"watch/one_owner_at_a_time", "reads", `case w.Checker == "", !w.CheckedUntil.After(v.now):`, "default:"},
	"check renew":              {"watch/a_claim_is_renewed", "wait", "return w.Checker != owner || w", "return w.Checker != owner && w"},
	"check own":                {"watch/at_most_limit", "reads", "own = append(own, w)", "own = nil"},
	"check newest":             {"watch/at_most_limit", "reads", "slices.SortFunc(free, byAge)", "slices.SortFunc(free, byAge)\n\tslices.Reverse(free)"},
	"check limit":              {"watch/at_most_limit", "reads", "all := slices.Concat(own, free)\n\treturn all[:min(limit, len(all))], nil", "return slices.Concat(own, free), nil"},
	"forgets claims":           {"watch/a_claim_stays", "commit", "w.Checker, w.CheckedUntil = old.Checker, old.CheckedUntil", "w.CheckedUntil = old.CheckedUntil"},
	"audit answer":             {"audit_log/an_answer", "audit", "if r.At.IsZero() {", "if r.Kind == durable.AuditAnswer {\n\t\treturn nil\n\t}\n\tif r.At.IsZero() {"},
	"audit waiver":             {"audit_log/waivers", "audit", "if r.At.IsZero() {", "if r.Kind == durable.AuditWaiver {\n\t\treturn nil\n\t}\n\tif r.At.IsZero() {"},
	"audit waiver_revoked":     {"audit_log/waivers", "audit", "if r.At.IsZero() {", "if r.Kind == durable.AuditWaiverRevoked {\n\t\treturn nil\n\t}\n\tif r.At.IsZero() {"},
	"commit records":           {"audit_log/answers_in_a_commit", "commit", "range c.Records {", "range c.Records[:0] {"},
	"records first":            {"audit_log/answers_in_a_commit", "writes", "set(t, &t.records, all)", "t.records = all"},
	"audit subject":            {"audit_log/the_subject", "wait", "cmp.Or(w.Tool, w.Subject, w.ID)", "cmp.Or(w.Tool, w.ID)"},
	"audit by kind":            {"audit_log/filters", "reads", `(f.Kind == "" || f.Kind == r.Kind) && (f.Run`, "(f.Run"},
	"audit by run":             {"audit_log/filters", "reads", `(f.Run == "" || f.Run == r.Run) &&`, ""},
	"audit by subject":         {"audit_log/filters", "reads", `(f.Subject == "" || f.Subject == r.Subject) &&`, ""},
	"audit page":               {"audit_log/filters", "reads", "&& (f.Before == 0 || r.Seq < f.Before) {", "{"},
	"audit limit":              {"audit_log/filters", "reads", "if len(all) < f.Limit && ", "if "},
	"audit order":              {"audit_log/filters", "reads", "range slices.Backward(v.records)", "range v.records"},
	"delete records":           {"audit_log/without_data_when_the_run_is_deleted", "writes", "records := slices.Clone(t.records)", "records := slices.DeleteFunc(slices.Clone(t.records), func(r durable.AuditRecord) bool { return gone[r.Run] })"},
	"delete keeps answers":     {"audit_log/without_data_when_the_run_is_deleted", "writes", "records[i].Answer.Data = nil", ""},
	"prune keeps answers":      {"audit_log/without_data_when_the_run_is_pruned", "writes", "t.delete(func(r *run) bool {\n\t\told :=", "records := t.records\n\tdefer func() { set(t, &t.records, records) }()\n\tt.delete(func(r *run) bool {\n\t\told :="},
	"waiver twice":             {"waivers/are_kept", "audit", "if err != nil || found {", "if err != nil && found {"},
	"revoke twice":             {"waivers/are_revoked_once", "audit", "case !w.Revoked.IsZero():", "case false:"},
	"revoked waiver":           {"waivers/in_force", "audit", "return !w.Revoked.IsZero() || !w", "return !w"},
	"expired waiver":           {"waivers/in_force", "audit", "return !w.Revoked.IsZero() || !w.Expires.After(rows.Now())", "return !w.Revoked.IsZero()"},
	"waiver order":             {"waivers/in_force", "audit", "cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))", "0"},
	"last reason":              {"signal/cancel_is_a_request", "signal", `if r.CancelCause == "" {`, "if true {"},
	"cancel cause":             {"reconcile/a_deadline_cancels", "lease", "t.cancel(&r, durable.CancelDeadline", "t.cancel(&r, durable.CancelRequest"},
	"cancel held":              {"signal/cancel_of_a_waiting_run_that_a_process_holds", "signal", "case r.IsHeld(t.Now()):", "case false:"},
	"cancel wakes":             {"signal/cancel_makes_a_started_run_ready", "signal", "case r.Status == durable.StatusPending, r.Status == durable.StatusWaiting:", "case false:"},
	"cancel pending":           {"signal/cancel_makes_a_started_run_ready", "signal", "case r.Status == durable.StatusPending, r.Status", "case r.Status"},
	"cancel unstarted":         {"signal/cancel_ends_a_run_that_has_never_started", "signal", "case r.Attempts == 0:", "case false:"},
	"signal ended":             {"signal/none_after_the_end", "signal", "if r.Status.Ended() {", "if false {"},
	"signal kind":              {"signal/an_unknown_kind", "signal", `return fmt.Errorf("signal to run %q: unknown kind %q", id, g.Kind)`, "_ = fmt.Sprint()\n\t\treturn nil"},
	"signal by":                {"signal/context_is_numbered", "signal", `g.Seq, g.At, g.Cause = r.Signals, t.Now(), ""`, `g.Seq, g.At, g.Cause, g.By = r.Signals, t.Now(), "", ""`},
	"no owner":                 {"signal/context_waits", "signal", `if owner == "" {`, "if false {"},
	"handled falls":            {"signal/context_is_handled_once", "commit", "r.Handled = max(r.Handled, c.HandledSignals)", "r.Handled = c.HandledSignals"},
	"pause signal":             {"signal/cancel_and_pause_stay", "signal", "all = append(all, durable.Signal{Run: r.Run, Kind: durable.SignalPause})", ""},
	"cancel signal":            {"signal/cancel_and_pause_stay", "signal", `if r.CancelCause != "" {`, "if false {"},
	"signals of expired":       {"signal/an_expired_lease", "reads", "if r.Owner != owner {", "if r.Owner != owner || !r.IsHeld(v.now) {"},
	"signals of waiting":       {"signal/a_waiting_run", "reads", "if r.Owner != owner {", "if r.Owner != owner || r.Status == durable.StatusWaiting {"},
	"pause ready":              {"pause/a_ready_run_waits", "signal", "(r.Status == durable.StatusPending || r.Status == durable.StatusReady)", "r.Status == durable.StatusPending"},
	"pause pending":            {"pause/a_pending_run_waits", "signal", "(r.Status == durable.StatusPending || r.Status == durable.StatusReady)", "r.Status == durable.StatusReady"},
	"pause cancelled":          {"pause/cancel_beats_a_later_pause", "signal", `&& r.CancelCause == "" && (`, "&& ("},
	"resume":                   {"pause/a_ready_run_waits", "signal", "if r.Status != durable.StatusWaiting || r.IsHeld(t.Now()) {", "if true {"},
	"resume pending":           {"pause/a_pending_run_waits", "lease", "if delayed || r.Attempts == 0 && r.NotBefore.After(t.Now()) {", "if delayed {"},
	"resume waiting":           {"pause/a_waiting_run_stays", "lease", "if satisfied, err := t.isSatisfied(r); err != nil || !satisfied {", "if _, err := t.isSatisfied(r); err != nil {"},
	"resume held":              {"pause/a_waiting_run_that_a_process_holds", "signal", "if r.Status != durable.StatusWaiting || r.IsHeld(t.Now()) {", "if r.Status != durable.StatusWaiting {"},
	"resume text":              {"pause/a_text_of_resume", "signal", `err != nil || g.Text == "" {`, "true {"},
	"end keeps pause":          {"pause/an_end_clears_it", "lease", "r.Paused, r.AnswerBy = false, time.Time{}", "r.AnswerBy = time.Time{}"},
	"must not start yet":       {"pause/a_run_that_must_not_start_yet", "lease", "case r.Status == durable.StatusWaiting && !r.IsOverdue", "case r.Attempts > 0 && r.Status == durable.StatusWaiting && !r.IsOverdue"},
	"offer number":             {"offers/each_time_a_run_becomes_ready", "lease", "r.Offer++", "r.Offer = 1"},
	"offered":                  {"offers/a_recorded_offer", "reads", "(r.Offered.IsZero() ||", "(pause > 0 ||"},
	"retry":                    {"offers/it_is_owed_again", "reads", "r.Offered.Before(v.now.Add(-pause))", "pause < 0"},
	"backoff":                  {"offers/the_pauses_between_offers", "reads", "min(r.Offered.Sub(r.Ready), time.Hour)", "min(0, time.Hour)"},
	"old offer":                {"offers/an_offer_that_is_not_the_newest", "writes", "&& r.Offer == o.Seq {", "{"},
	"owed order":               {"offers/the_longest_owed", "reads", "func(a, b *run) int { return a.Ready.Compare(b.Ready) }", "func(a, b *run) int { return 0 }"},
	"owed limit":               {"offers/the_longest_owed", "reads", "range owed[:min(limit, len(owed))]", "range owed"},
	"polled":                   {"offers/how_queues_are_served", "writes", "set(t, &q.polled, at)", ""},
	"served keys":              {"offers/how_queues_are_served", "reads", "if slices.Contains(keys, q.key) {\n\t\t\tall[q.key] = durable.Service", "{\n\t\t\tall[q.key] = durable.Service"},
	"backlog":                  {"offers/how_queues_are_served", "reads", "for _, r := range v.ready(keys) {", "for _, r := range v.runs {"},
	"oldest":                   {"offers/how_queues_are_served", "reads", "if s.Oldest.IsZero() || r.Ready.Before(s.Oldest) {", "{"},
	"changes of ready runs":    {"at_once/a_value_for_every_cause", "lease", "r.Offer++\n\t\tt.Notify()", "r.Offer++"},
	"changes of signals":       {"at_once/a_value_for_every_cause", "signal", "t.Notify()\n\t\tswitch g.Kind {", "switch g.Kind {"},
	"one listener":             {"changes/all_receivers", "listeners", "\t\tdefault:\n\t\t}", "\t\tdefault:\n\t\t}\n\t\tbreak"},
	"many values":              {"changes/one_value_at_most", "listeners", "make(chan struct{}, 1)", "make(chan struct{}, 100)"},
	"never closed":             {"changes/closed_with_its_context", "listeners", "context.AfterFunc(ctx,", "context.AfterFunc(context.WithoutCancel(ctx),"},
	"close":                    {"closed_with_the_store", "memory", "d.listeners.Close()", ""},
	"delete held":              {"end/delete_refuses", "store", "case r.IsHeld(t.Now()):", "case false:"},
	"prune running":            {"end/prune_deletes_runs", "writes", "n < limit && r.Status.Ended() && r", "n < limit && r"},
	"switch":                   {"switch/is_what_it_was_set_to", "audit", "value, err := json.Marshal(deny)", "deny.Reason = \"\"\n\tvalue, err := json.Marshal(deny)"},
}
