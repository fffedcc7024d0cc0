package approval_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// a person or a token that was removed from the file is refused from then on, also in a session, and new ones are accepted. A
// file with a mistake changes nothing.
func TestAFileOfPeopleThatChanges(t *testing.T) {
	ann, annSum := approval.NewToken()
	bob, bobSum := approval.NewToken()
	own, ownSum := approval.NewToken()
	path := filepath.Join(t.TempDir(), "people.yaml")
	write := func(format string, args ...any) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600))
	}
	write("people:\n  - {name: ann, roles: [lead], token: %q}\n", annSum)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	people, err := approval.OpenPeople(path, approval.PeopleOptions{Also: []approval.Person{{Name: "root", Token: ownSum}}, Log: logger})
	require.NoError(t, err)
	d := park(t, scenario{question: agent.Question{Reason: "much", Approvers: []string{"lead"}}, options: approval.Options{People: people, Log: logger}})

	inbox := d.url + "/approvals/"
	status := func(header ...string) int {
		t.Helper()
		return do(t, http.MethodGet, inbox, "", append(header, "Accept", "application/json")...).StatusCode
	}
	require.Equal(t, http.StatusOK, status("Authorization", "Bearer "+ann))
	require.Equal(t, http.StatusOK, status("Authorization", "Bearer "+own))
	require.Equal(t, http.StatusUnauthorized, status("Authorization", "Bearer "+bob))

	for _, broken := range []string{"people: [", "people:\n  - {nam: bob}\n", ""} {
		write("%s", broken)
		assert.Equal(t, http.StatusOK, status("Authorization", "Bearer "+ann), "the former people remain")
	}
	require.NoError(t, os.Remove(path))
	assert.Equal(t, http.StatusOK, status("Authorization", "Bearer "+ann))
	assert.Equal(t, 4, strings.Count(log.String(), "the former people remain"), "each version is logged once: %s", log.String())

	write("people:\n  - {name: bob, token: %q}\n  - {name: root, roles: [lead]}\n", bobSum)
	assert.Equal(t, http.StatusUnauthorized, status("Authorization", "Bearer "+ann))
	assert.Equal(t, http.StatusOK, status("Authorization", "Bearer "+bob))
	got := postOnce(t, d.waitAddress(d.card(0)), d.form(0, "approve"), "Authorization", "Bearer "+bob)
	assert.Equal(t, http.StatusForbidden, got.StatusCode)
	got = postOnce(t, d.waitAddress(d.card(0)), d.form(0, "approve"), "Authorization", "Bearer "+own)
	assert.Equal(t, http.StatusOK, got.StatusCode, "the role comes from the file: %s", got.body)
	for _, token := range []string{ann, bob, own} {
		assert.NotContains(t, log.String(), token)
	}
	for _, sum := range []approval.TokenSum{annSum, bobSum} {
		assert.NotContains(t, log.String(), sum.String())
	}
}

func TestOpenPeople(t *testing.T) {
	_, err := approval.OpenPeople(filepath.Join(t.TempDir(), "none.yaml"), approval.PeopleOptions{})
	require.ErrorContains(t, err, "reading the people who may sign in")
	_, err = approval.OpenPeople("", approval.PeopleOptions{Also: []approval.Person{{Name: ""}}})
	require.ErrorContains(t, err, "cannot be used")
	people, err := approval.OpenPeople("", approval.PeopleOptions{})
	require.NoError(t, err)
	assert.Empty(t, people.All())
}
