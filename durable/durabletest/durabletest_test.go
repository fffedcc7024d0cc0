package durabletest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
)

func TestStore(t *testing.T) {
	durabletest.TestStore(t, func(*testing.T) durable.Store { return durabletest.NewModel("") })
}

func TestShared(t *testing.T) {
	durabletest.TestShared(t, func(*testing.T) func(*testing.T) durable.Store {
		m := durabletest.NewModel("")
		return func(*testing.T) durable.Store { return m }
	})
}

// faults are ways to break the contract, and the part of it that finds each out.
var faults = map[string]string{
	"context":             "create/a_context_that_is_over",
	"exists":              "create/an_id_is_taken_once",
	"created":             "create/what_the_store_sets",
	"claim ended":         "claim/what_has_ended_cannot",
	"held":                "claim/a_claimed_run_stays_claimed",
	"eternal":             "claim/what_ran_out_is_free",
	"same epoch":          "claim/take_over_takes",
	"renew":               "claim/each_claim_is_an_epoch",
	"release":             "claim/each_claim_is_an_epoch",
	"append":              "claim/each_claim_is_an_epoch",
	"expired":             "claim/a_lease_that_ran_out_and_no_process_took",
	"renew adds":          "claim/renew_counts_from_now",
	"clone":               "append/what_was_given_may_be_changed",
	"seq":                 "append/a_number_that_is_not_the_next",
	"half":                "append/a_number_that_is_not_the_next",
	"binary":              "append/data_is_any_bytes",
	"empty status":        "append/an_empty_status",
	"end keeps lease":     "append/a_status_that_ends_the_run",
	"end keeps questions": "append/a_status_that_ends_the_run",
	"after":               "append/entries_behind_a_number",
	"oldest first":        "list/newest_first",
	"page":                "list/filters",
	"page gone":           "list/a_page_behind",
	"limit":               "list/filters",
	"due held":            "due/a_claimed_run_is_not_due_for_others",
	"due cancelled":       "due/one_that_is_to_be_cancelled",
	"due running":         "due/running_ones",
	"due ends":            "due/an_answer_ends",
	"due child":           "due/a_child_has_ended",
	"due deadline":        "due/the_time_of_one",
	"due answered":        "due/all_questions",
	"due order":           "due/those_that_wait",
	"call order":          "questions/come_back_in_call_order",
	"forgets answers":     "questions/keep_their_answers",
	"answer of old hash":  "questions/keep_their_answers",
	"no token":            "questions/are_found_by_token",
	"answer running":      "answer/only_a_parked_run",
	"answer half":         "answer/all_or_none",
	"answer hash":         "answer/fits_the_question",
	"answer twice":        "answer/is_given_once",
	"answer at":           "answer/is_kept",
	"cancel ended":        "end/cancel_what_has_ended",
	"delete held":         "end/delete_spares",
	"prune running":       "end/prune_takes",
	"switch":              "switch/is_what_it_was_set_to",
}

// TestFaults runs the contract over each broken store in a process of its own, for
// a test that fails fails all above it.
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

// TestBroken runs what TestFaults starts.
func TestBroken(t *testing.T) {
	fault := os.Getenv("DURABLETEST_FAULT")
	if fault == "" {
		t.Skip("run by TestFaults")
	}
	durabletest.TestStore(t, func(*testing.T) durable.Store { return durabletest.NewModel(fault) })
}
