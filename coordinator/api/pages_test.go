package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/durable/memory"
)

// Without pages, a request for them says why there is no answer.
func TestNoPages(t *testing.T) {
	store := memory.New()
	defer store.Close()
	c, err := coordinator.New(coordinator.Options{Store: store})
	require.NoError(t, err)
	handler := api.Handler(c, api.Options{})
	for _, path := range []string{"/", "/ui/runs", "/approvals/wait"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil))
		assert.Equal(t, http.StatusNotFound, w.Code, path)
		assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), path)
		assert.Contains(t, w.Body.String(), "must set api.Options.Pages", path)
	}
}
