package durabletest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
)

// faults are ways to break the contract, with the part of the suite that detects each.
var faults = map[string]string{
	"context":                  "submit/a_cancelled_context_changes",
	"exists":                   "submit/an_ID_is_taken_once",
	"submit half":              "submit/an_ID_is_taken_once",
	"submit order":             "submit/many_jobs_at_once",
	"invalid":                  "submit/an_invalid_job",
	"not before":               "submit/a_job_for_later",
	"labels":                   "submit/a_job_is_a_ready_run",
	"demands":                  "submit/a_job_is_a_ready_run",
	"submitter":                "submit/the_job_survives",
	"version":                  "submit/the_job_survives",
	"input":                    "submit/a_job_is_a_ready_run",
	"begin pending":            "begin/demands_and_NotBefore",
	"begin offers":             "begin/a_run_is_running_and_leased",
	"key":                      "once/submitted_twice",
	"key in one call":          "once/twice_in_one_call",
	"begin known key":          "once/begin",
	"delete keeps key":         "once/a_deleted_run_frees",
	"acquire ended":            "acquire/an_ended_run",
	"held":                     "acquire/a_held_run_stays_held",
	"eternal":                  "acquire/an_expired_lease_is_free",
	"same epoch":               "acquire/take_over_takes",
	"acquire ready":            "acquire/a_ready_run_becomes_running",
	"acquire pending":          "acquire/a_pending_run_becomes_running",
	"acquire waiting":          "acquire/a_waiting_run_keeps",
	"attempts":                 "acquire/attempts_count",
	"commit of another owner":  "acquire/another_owner",
	"renew of another owner":   "acquire/another_owner",
	"release of another owner": "acquire/another_owner",
	"updated by claim":         "updated/by_leases",
	"updated by time":          "updated/by_time",
	"resume overdue":           "pause/a_deadline_does_not_wake",
	"renew":                    "acquire/each_lease_is_an_epoch",
	"release":                  "acquire/each_lease_is_an_epoch",
	"commit":                   "acquire/each_lease_is_an_epoch",
	"expired is stale":         "acquire/an_expired_lease_that_no_process_took",
	"renew adds":               "acquire/renew_counts_from_now",
	"claim pending":            "claim/only_ready_runs",
	"claim keys":               "claim/only_the_given_keys",
	"claim limit":              "claim/at_most_limit",
	"claim priority":           "claim/a_higher_priority_first",
	"claim order":              "claim/a_higher_priority_first",
	"claim twice":              "claim/one_run_and_many_claimers",
	"queue twice":              "claim/queues_are_the_needs",
	"prune queues":             "claim/queues_after_the_end",
	"clone":                    "commit/what_was_given_may_be_changed",
	"seq":                      "commit/a_number_that_is_not_the_next",
	"half":                     "commit/a_number_that_is_not_the_next",
	"binary":                   "commit/data_is_any_bytes",
	"empty status":             "commit/an_empty_status",
	"end keeps lease":          "commit/a_status_that_ends_the_run",
	"end again":                "commit/an_end_may_be_repeated",
	"end differently":          "commit/an_end_may_be_repeated",
	"end keeps waits":          "commit/a_status_that_ends_the_run",
	"after":                    "commit/entries_after_a_number",
	"early result":             "commit/a_result_is_stored",
	"blocked":                  "commit/blocked_is_kept",
	"event number":             "follow-ups/events_are_numbered",
	"event run":                "follow-ups/events_are_numbered",
	"events after":             "follow-ups/events_after_a_number",
	"events limit":             "follow-ups/events_after_a_number",
	"phase":                    "pass/a_run_in_a_phase",
	"pass phase":               "pass/a_run_is_passed_on",
	"pass input":               "pass/a_run_is_passed_on",
	"submitted input":          "pass/a_run_is_passed_on",
	"first input":              "pass/a_run_is_passed_on",
	"pass running":             "pass/a_run_is_passed_on",
	"pass keeps lease":         "pass/a_run_is_passed_on",
	"pass attempts":            "pass/StartBy_limits",
	"pass keeps waits":         "pass/its_waits_are_removed",
	"pass paused":              "pass/a_paused_run_waits",
	"pass cancelled":           "pass/a_run_that_is_to_be_cancelled",
	"pass again":               "pass/it_may_be_repeated",
	"commit check":             "pass/no_status_and_no_waits",
	"after ignored":            "after/a_run_waits_until",
	"after ended":              "after/a_run_that_has_ended",
	"after unknown":            "after/an_unknown_run",
	"after half":               "after/an_unknown_run",
	"after itself":             "after/a_job_of_the_commit_that_ends",
	"begin after":              "after/not_with_Begin",
	"resume after":             "after/a_pause_lasts",
	"after deleted":            "after/the_other_run_may_be_deleted",
	"document version":         "documents/each_change",
	"document by":              "documents/each_change",
	"document time":            "documents/each_change",
	"document conflict":        "documents/a_change_of_an_older",
	"document kind":            "documents/kinds_are_apart",
	"documents kind":           "documents/lists",
	"documents order":          "documents/lists",
	"documents page":           "documents/lists",
	"documents limit":          "documents/lists",
	"documents newest":         "documents/lists",
	"document delete":          "documents/a_deleted_document",
	"document deleted":         "documents/a_deleted_document",
	"document delete all":      "documents/a_deleted_document",
	"document delete twice":    "documents/a_deleted_document",
	"documents deleted":        "documents/a_deleted_document",
	"document numbers":         "documents/a_document_again",
	"document again":           "documents/a_document_again",
	"document check":           "documents/an_invalid_document",
	"commit document":          "documents/with_a_commit",
	"commit document first":    "documents/all_or_nothing",
	"jobs":                     "follow-ups/jobs_of_a_commit",
	"jobs last":                "follow-ups/all_or_nothing",
	"events first":             "follow-ups/all_or_nothing",
	"handled first":            "follow-ups/all_or_nothing",
	"oldest first":             "list/newest_first",
	"page":                     "list/filters",
	"page gone":                "list/a_page_behind",
	"limit":                    "list/filters",
	"filter status":            "list/filters",
	"filter kind":              "list/filters",
	"filter name":              "list/filters",
	"filter session":           "list/filters",
	"filter parent":            "list/filters",
	"filter label":             "list/filters",
	"filter blocked":           "list/filters",
	"filter phase":             "list/filters",
	"filter since":             "list/since_and_until",
	"filter until":             "list/since_and_until",
	"answer wakes":             "ready/all_questions",
	"any wait":                 "ready/any_of_the_waits",
	"answer ends":              "ready/an_answer_ends",
	"child ends":               "ready/a_child_ended_before",
	"parents":                  "ready/a_child_has_ended",
	"wake held":                "ready/an_answer_while_the_run_is_held",
	"wake paused":              "pause/a_waiting_run_stays",
	"release overdue":          "ready/a_deadline_passed_before",
	"delay":                    "ready/a_release_with_a_delay",
	"release cancelled":        "pause/cancel_beats_pause_at_the_release",
	"release paused":           "pause/a_running_run_goes_on",
	"expired":                  "reconcile/a_running_run_whose_lease",
	"expired waiting":          "reconcile/a_waiting_run_whose_lease",
	"expired keeps owner":      "reconcile/a_running_run_whose_lease",
	"overdue":                  "reconcile/a_question_whose_deadline",
	"overdue held":             "reconcile/an_overdue_question",
	"overdue paused":           "pause/a_deadline_does_not_wake",
	"due":                      "reconcile/a_pending_run_whose_time",
	"due early":                "submit/a_job_for_later",
	"deadline":                 "reconcile/a_deadline_cancels",
	"deadline again":           "reconcile/a_deadline_cancels",
	"start by":                 "reconcile/a_run_that_did_not_start",
	"start by started":         "reconcile/a_run_that_did_not_start",
	"start by held":            "reconcile/a_run_that_did_not_start",
	"reconcile done":           "reconcile/thousands_of_runs",
	"call order":               "waits/come_back_in_call_order",
	"forgets answers":          "waits/keep_their_answers",
	"answer of old ID":         "waits/keep_their_answers",
	"no token":                 "waits/are_found_by_token",
	"answer running":           "answer/only_a_waiting_run",
	"answered is forgotten":    "answer/after_the_run_became_ready",
	"answered later":           "answer/an_answered_question_goes_first",
	"answer half":              "answer/all_or_none",
	"answer ID":                "answer/fits_the_question",
	"answer twice":             "answer/is_given_once",
	"answer at":                "answer/is_kept",
	"answer by":                "answers_that_do_not_decide/leave_the_wait_open",
	"answer more":              "answers_that_do_not_decide/leave_the_wait_open",
	"answer refused":           "answers_that_do_not_decide/are_formed",
	"forgets partial answers":  "answers_that_do_not_decide/are_kept",
	"forgets tokens":           "token/stays_with_the_same_wait",
	"token ID":                 "token/fits_an_open_wait",
	"token answered":           "token/fits_an_open_wait",
	"token twice":              "token/is_set_once",
	"added token ID":           "token/one_more",
	"added token answered":     "token/one_more",
	"added token replaces":     "token/one_more",
	"forgets spent tokens":     "token/is_spent_when_the_run",
	"open running":             "open_waits/of_runs_that_wait",
	"open overdue":             "open_waits/of_runs_that_wait",
	"open answered":            "open_waits/without_a_decision",
	"open kinds":               "open_waits/filters",
	"open run":                 "open_waits/filters",
	"open expired":             "open_waits/filters",
	"open limit":               "open_waits/filters",
	"open page":                "open_waits/page_by_page",
	"open order":               "open_waits/the_oldest_first",
	"check kinds":              "watch/waits_of_the_kinds",
	"check hosts":              "watch/waits_of_the_kinds",
	"check answered":           "watch/only_of_runs_that_wait",
	"check running":            "watch/only_of_runs_that_wait",
	"check paused":             "watch/only_of_runs_that_wait",
	"check expired":            "watch/a_claim_expires",
	"check twice":              "watch/one_owner_at_a_time",
	"check renew":              "watch/a_claim_is_renewed",
	"check own":                "watch/at_most_limit",
	"check newest":             "watch/at_most_limit",
	"check limit":              "watch/at_most_limit",
	"forgets claims":           "watch/a_claim_stays",
	"audit answer":             "audit_log/an_answer",
	"audit waiver":             "audit_log/waivers",
	"audit waiver_revoked":     "audit_log/waivers",
	"commit records":           "audit_log/answers_in_a_commit",
	"records first":            "audit_log/answers_in_a_commit",
	"audit subject":            "audit_log/the_subject",
	"audit by kind":            "audit_log/filters",
	"audit by run":             "audit_log/filters",
	"audit by subject":         "audit_log/filters",
	"audit page":               "audit_log/filters",
	"audit limit":              "audit_log/filters",
	"audit order":              "audit_log/filters",
	"delete records":           "audit_log/without_data_when_the_run_is_deleted",
	"delete keeps answers":     "audit_log/without_data_when_the_run_is_deleted",
	"prune keeps answers":      "audit_log/without_data_when_the_run_is_pruned",
	"waiver twice":             "waivers/are_kept",
	"revoke twice":             "waivers/are_revoked_once",
	"revoked waiver":           "waivers/in_force",
	"expired waiver":           "waivers/in_force",
	"waiver order":             "waivers/in_force",
	"last reason":              "signal/cancel_is_a_request",
	"cancel cause":             "reconcile/a_deadline_cancels",
	"cancel held":              "signal/cancel_of_a_waiting_run_that_a_process_holds",
	"cancel wakes":             "signal/cancel_makes_a_started_run_ready",
	"cancel pending":           "signal/cancel_makes_a_started_run_ready",
	"cancel unstarted":         "signal/cancel_ends_a_run_that_has_never_started",
	"signal ended":             "signal/none_after_the_end",
	"signal kind":              "signal/an_unknown_kind",
	"signal by":                "signal/context_is_numbered",
	"no owner":                 "signal/context_waits",
	"handled falls":            "signal/context_is_handled_once",
	"pause signal":             "signal/cancel_and_pause_stay",
	"cancel signal":            "signal/cancel_and_pause_stay",
	"signals of expired":       "signal/an_expired_lease",
	"signals of waiting":       "signal/a_waiting_run",
	"pause ready":              "pause/a_ready_run_waits",
	"pause pending":            "pause/a_pending_run_waits",
	"pause cancelled":          "pause/cancel_beats_pause",
	"resume":                   "pause/a_ready_run_waits",
	"resume pending":           "pause/a_pending_run_waits",
	"resume waiting":           "pause/a_waiting_run_stays",
	"resume held":              "pause/a_waiting_run_that_a_process_holds",
	"resume text":              "pause/a_text_of_resume",
	"end keeps pause":          "pause/an_end_clears_it",
	"offer number":             "offers/each_time_a_run_becomes_ready",
	"offered":                  "offers/a_recorded_offer",
	"retry":                    "offers/it_is_owed_again",
	"backoff":                  "offers/the_pauses_between_offers",
	"old offer":                "offers/an_offer_that_is_not_the_newest",
	"owed order":               "offers/the_longest_owed",
	"owed limit":               "offers/the_longest_owed",
	"polled":                   "offers/how_queues_are_served",
	"served keys":              "offers/how_queues_are_served",
	"backlog":                  "offers/how_queues_are_served",
	"oldest":                   "offers/how_queues_are_served",
	"changes of ready runs":    "changes/a_value_for_every_cause",
	"changes of signals":       "changes/a_value_for_every_cause",
	"one listener":             "changes/all_receivers",
	"many values":              "changes/one_value_at_most",
	"never closed":             "changes/closed_with_its_context",
	"close":                    "closed_with_the_store",
	"delete held":              "end/delete_refuses",
	"prune running":            "end/prune_deletes_runs",
	"switch":                   "switch/is_what_it_was_set_to",
}

// TestFaults tests each broken store in a process of its own, because a failing test fails its parents.
func TestFaults(t *testing.T) {
	if os.Getenv("DURABLETEST_FAULT") != "" {
		t.Skip("this is the process of one fault")
	}
	for fault, part := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$/"+strings.ReplaceAll(part, "/", "$/"), "-test.timeout=60s")
			cmd.Env = append(os.Environ(), "DURABLETEST_FAULT="+fault)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "a store that is broken at %q passes %q", fault, part)
			assert.Contains(t, string(out), "--- FAIL: TestBroken/"+part)
			assert.NotContains(t, string(out), "panic: test timed out")
		})
	}
}

// TestBroken runs in the processes of TestFaults.
func TestBroken(t *testing.T) {
	fault := os.Getenv("DURABLETEST_FAULT")
	if fault == "" {
		t.Skip("run by TestFaults")
	}
	durabletest.SetPatience(2 * time.Second)
	open := func(*testing.T) durable.Store { return durabletest.NewModel(fault) }
	if os.Getenv("DURABLETEST_RANDOM") != "" {
		durabletest.TestRandom(t, open)
		return
	}
	durabletest.TestStore(t, open)
}

// TestRandomFaults tests that random calls detect faults that need several calls in a certain order.
func TestRandomFaults(t *testing.T) {
	if os.Getenv("DURABLETEST_FAULT") != "" {
		t.Skip("this is the process of one fault")
	}
	for _, fault := range []string{
		"same epoch", "key in one call", "claim priority", "end keeps lease", "end keeps waits", "handled falls", "answer wakes", "wake held",
		"release paused", "release cancelled", "expired waiting", "offer number", "last reason", "attempts", "any wait", "answer refused",
		"check expired", "open overdue", "delete keeps answers", "pass attempts", "first input", "after itself", "document numbers",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-rapid.nofailfile", "-rapid.shrinktime=0s", "-rapid.checks=20000")
			cmd.Env = append(os.Environ(), "DURABLETEST_FAULT="+fault, "DURABLETEST_RANDOM=1")
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "random calls do not detect a store that is broken at %q", fault)
			assert.Contains(t, string(out), "--- FAIL: TestBroken")
		})
	}
}
